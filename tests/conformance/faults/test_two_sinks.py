"""Two sinks may write into one folder: nothing of either is lost, and no file holds something of both."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import DAG, ReaderRecord
from dagflow.ledger import read_dataset
from dagflow.testing import run_dag
from operators import BlockReader, FileSplitterInput, Map, RecordWriter
from tests.conformance.apps import Populate, left_over, lines_in, written
from tests.tiers import examples

SPELLINGS = ["{}", "{}/", "{}/../out", "file://{}"]


class Named(RecordWriter[ReaderRecord[str]]):
    """Names files by what it writes: the sinks want the same names."""

    def get_file_name(self, record: ReaderRecord[str]) -> str:
        return f"{record.record[-1:]}.txt"


def by_block(path: str, **properties: Any) -> RecordWriter[Any]:
    return RecordWriter(path, per_block=True, **properties)


def tagged(tag: str) -> Callable[[ReaderRecord[str]], ReaderRecord[str]]:
    def tag_it(line: ReaderRecord[str]) -> ReaderRecord[str]:
        return line._replace(record=f"{tag}:{line.record}")

    return tag_it


def both(source: Path, sinks: list[RecordWriter[Any]], **splitter: Any) -> Populate:
    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)], **splitter))
        lines = dag.add_operator("lines", BlockReader(min_readers=2))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        maps = [dag.add_operator(f"map {tag}", Map(tagged(tag))) for tag in "ab"]
        dag.add_stream("lines", lines.messages, *(each.input for each in maps))
        for tag, each, sink in zip("ab", maps, sinks, strict=True):
            dag.add_operator(f"sink {tag}", sink)
            dag.add_stream(f"out {tag}", each.output, sink.input)

    return populate_dag


def check(output: Path, lines: list[str], *reports: Any) -> None:
    assert lines_in(output) == Counter(f"{tag}:{line}".encode() for line in lines for tag in "ab")
    for path in written(output):
        assert len({line[:1] for line in path.read_bytes().splitlines()}) == 1, path
    assert read_dataset(str(output)).count_rows() == 2 * len(lines)
    for tag in "ab":
        assert sum(report.operators[f"sink {tag}"].records_in for report in reports) == len(lines)
    assert sum(report.files for report in reports) == len(written(output))
    assert left_over(output) == []


texts = st.lists(st.text("xyz", min_size=1, max_size=3), min_size=1, max_size=6)
KINDS = [RecordWriter, Named, by_block]


@pytest.mark.full
@settings(max_examples=examples(25), deadline=None)
@given(
    contents=st.tuples(texts, texts),
    block_size=st.integers(1, 9),
    blocks_threshold=st.none() | st.integers(1, 4),
    kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)),
    suffixes=st.sampled_from([("", ""), (".txt", ""), (".txt", ".txt")]),
    max_open_files=st.sampled_from([1, 100]),
    spelling=st.sampled_from(SPELLINGS),
)
def test_outputs_neither_mix_nor_get_lost(
    contents: tuple[list[str], list[str]],
    block_size: int,
    blocks_threshold: int | None,
    kinds: tuple[Any, Any],
    suffixes: tuple[str, str],
    max_open_files: int,
    spelling: str,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "in"), Path(folder, "out")
        source.mkdir()
        reports, lines = [], []
        for launch, some in enumerate(contents):  # the second launch goes on beside what the first has written
            (source / f"{launch}.txt").write_text("".join(f"{line}\n" for line in some))
            lines += some
            sinks = [
                kind(path, suffix=suffix, max_open_files=max_open_files)
                for kind, path, suffix in zip(kinds, (str(output), spelling.format(output)), suffixes, strict=True)
            ]
            splitter = {"block_size": block_size, "blocks_threshold": blocks_threshold}
            reports.append(run_dag(both(source, sinks, **splitter)))
        check(output, lines, *reports)


@pytest.mark.parametrize("kind", KINDS)
def test_on_both_runners(runner: str, tmp_path: Path, kind: Any) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    lines = [f"line {number}" for number in range(40)]
    (source / "a.txt").write_text("".join(f"{line}\n" for line in lines))
    sinks = [kind(str(output)) for _ in "ab"]
    report = run_dag(both(source, sinks, block_size=50), runner=runner)
    check(output, lines, report)
