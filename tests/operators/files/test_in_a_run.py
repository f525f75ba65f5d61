"""Splitters within whole runs of the in-process runner."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest

from dagflow import DAG, FileInfo, InputOperator, Operator, OutputPort, State, launch
from dagflow.storage import absolute
from operators import BlockReader, FileSplitterBase, FileSplitterInput, Map, RecordWriter


def write_lines(dag: DAG, splitter: Operator, output: Path) -> None:
    reader = dag.add_operator("reader", BlockReader())
    text = dag.add_operator("text", Map(lambda record: record.record))
    writer = dag.add_operator("writer", RecordWriter(path=str(output)))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, text.input)
    dag.add_stream("texts", text.output, writer.input)


def lines_below(folder: Path) -> list[str]:
    files = [p for p in folder.rglob("*") if p.is_file() and not p.relative_to(folder).parts[0].startswith(("_", "."))]
    return sorted(line for p in files for line in p.read_text().splitlines())


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    (folder / "sub").mkdir(parents=True)
    for n in range(6):
        (folder / ("sub" if n % 2 else ".") / f"{n}.txt").write_text("\n".join(f"{n} {k}" for k in range(40)))
    return folder


def test_configuration_reaches_splitter_and_scanner(logs, tmp_path):
    def populate_dag(dag, conf):
        splitter = dag.add_operator("splitter", FileSplitterInput(files=conf["input"]))
        write_lines(dag, splitter, tmp_path / "out")

    settings = {
        "input": str(logs),
        "operator.splitter.block_size": 32,
        "operator.splitter.blocks_threshold": 7,
        "operator.splitter.scanner.recursive": False,
        "operator.splitter.scanner.file_pattern_regular_exp": ".*[024][.]txt",
    }
    report = launch(populate_dag, settings, runner="local").report
    assert lines_below(tmp_path / "out") == sorted(f"{n} {k}" for n in (0, 2, 4) for k in range(40))
    counters = report.operators["splitter"].counters
    assert counters["files"] == 3
    assert report.windows == -(-counters["blocks_planned"] // 7)


def test_a_second_launch_reads_what_is_new(logs, tmp_path):
    def populate_dag(dag, conf):
        splitter = dag.add_operator("splitter", FileSplitterInput(files=[logs], block_size=50))
        write_lines(dag, splitter, tmp_path / "out")

    first = launch(populate_dag, runner="local", max_windows=1).report
    assert first.windows == 1
    launch(populate_dag, runner="local")
    assert lines_below(tmp_path / "out") == lines_below(logs)
    (logs / "new.txt").write_text("one more")
    report = launch(populate_dag, runner="local").report
    assert report.operators["splitter"].counters["files"] == 1
    assert lines_below(tmp_path / "out") == lines_below(logs)
    assert launch(populate_dag, runner="local").report.windows == 0


@attrs.define
class Names(InputOperator):
    """Tells a splitter of all files at once."""

    folder: str

    output = OutputPort[FileInfo]()

    told = State(False)

    def emit_tuples(self) -> None:
        if not self.told:
            for root, _, names in os.walk(self.folder):
                self.output.emit_all(FileInfo(root, name) for name in sorted(names))
            self.told = True


def test_the_base_splitter_empties_itself_over_many_windows(logs, tmp_path):
    def populate_dag(dag, conf):
        names = dag.add_operator("names", Names(absolute(str(logs))))
        splitter = dag.add_operator("splitter", FileSplitterBase(block_size=50, blocks_threshold=4))
        dag.add_stream("names", names.output, splitter.input)
        write_lines(dag, splitter, tmp_path / "out")

    report = launch(populate_dag, runner="local").report
    assert lines_below(tmp_path / "out") == lines_below(logs)
    assert report.windows > 4
