"""Fan-out, several inputs and sinks, and sinks on the driver: all in one window, on both runners."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG, FileMetadata, ReaderRecord
from dagflow.testing import Collector, run_dag
from operators import BlockReader, Console, FileSplitterInput, Filter, FSSliceReader, Map, RecordWriter
from tests.conformance.apps import chain, lines_in, vectorised


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n.two\nthree\n")
    (folder / "b.txt").write_text("four\n.five")
    return folder


def texts(records: list[Any]) -> list[str]:
    return [record.record for record in records]


def test_one_stream_with_many_sinks(runner: str, source: Path, tmp_path: Path) -> None:
    everything, hidden = Collector[ReaderRecord[str]](), Collector[ReaderRecord[str]]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)], block_size=4))
        lines = dag.add_operator("lines", BlockReader())
        keep = dag.add_operator("keep", vectorised())
        hide = dag.add_operator("hide", Filter(lambda line: line.record.startswith(".")))
        out = dag.add_operator("out", RecordWriter(str(tmp_path / "out")))
        again = dag.add_operator("again", RecordWriter(str(tmp_path / "again")))
        dag.add_operator("everything", everything)
        dag.add_operator("hidden", hidden)
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, everything.input, keep.input, hide.input)
        dag.add_stream("kept", keep.output, out.input, again.input)
        dag.add_stream("others", hide.output, hidden.input)

    report = run_dag(populate_dag, runner=runner)
    assert texts(everything.records) == ["one", ".two", "three", "four", ".five"]
    assert texts(hidden.records) == [".two", ".five"]
    assert lines_in(tmp_path / "out") == lines_in(tmp_path / "again") == Counter([b"one", b"three", b"four"])
    assert {name: (f.records_in, f.records_out) for name, f in report.operators.items() if name != "files"} == {
        "lines": (report.operators["files"].counters["blocks_planned"], 5),
        "everything": (5, 0),
        "keep": (5, 3),
        "hide": (5, 2),
        "out": (3, 0),
        "again": (3, 0),
        "hidden": (2, 0),
    }


def test_separate_chains_in_one_dag(runner: str, source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.bin").write_bytes(b"0123456789")
    slices = Collector[ReaderRecord[bytes]]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)]))
        lines = dag.add_operator("lines", BlockReader())
        out = dag.add_operator("out", RecordWriter(str(tmp_path / "out")))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, out.input)
        more = dag.add_operator("more", FileSplitterInput(files=[str(other)], block_size=4))
        reader = dag.add_operator("reader", FSSliceReader())
        dag.add_operator("slices", slices)
        dag.add_stream("more blocks", more.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("slices", reader.messages, slices.input)

    report = run_dag(populate_dag, runner=runner)
    assert (report.windows, report.jobs) == (1, 1)
    assert sum(lines_in(tmp_path / "out").values()) == 5
    assert texts(slices.records) == [b"0123", b"4567", b"89"]


def test_two_readers_of_the_same_blocks(runner: str, source: Path) -> None:
    lines, raw = Collector[ReaderRecord[str]](), Collector[ReaderRecord[bytes]]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source / "b.txt")], block_size=6))
        text = dag.add_operator("text", BlockReader())
        slices = dag.add_operator("slices", FSSliceReader())
        dag.add_operator("lines", lines)
        dag.add_operator("raw", raw)
        dag.add_stream("blocks", files.blocks_metadata_output, text.blocks_metadata_input, slices.blocks_metadata_input)
        dag.add_stream("lines", text.messages, lines.input)
        dag.add_stream("slices", slices.messages, raw.input)

    run_dag(populate_dag, runner=runner)
    assert texts(lines.records) == ["four", ".five"]
    assert b"".join(texts(raw.records)) == b"four\n.five"


def test_a_sink_on_the_driver(runner: str, source: Path, tmp_path: Path) -> None:
    found, lines_seen = Collector[FileMetadata](), Collector[ReaderRecord[str]]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)], block_size=4))
        lines = dag.add_operator("lines", BlockReader())
        names = dag.add_operator("names", Map(lambda file: f"{file.file_name} {file.number_of_blocks}"))
        listing = dag.add_operator("listing", RecordWriter(str(tmp_path / "listing")))
        dag.add_operator("found", found)
        dag.add_operator("seen", lines_seen)
        dag.add_stream("files", files.files_metadata_output, found.input, names.input)
        dag.add_stream("names", names.output, listing.input)
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, lines_seen.input)

    run_dag(populate_dag, runner=runner)
    assert [(file.file_name, list(file.block_ids)) for file in found.records] == [("a.txt", [0, 1, 2, 3]), ("b.txt", [4, 5, 6])]
    assert lines_in(tmp_path / "listing") == Counter([b"a.txt 4", b"b.txt 3"])
    assert len(lines_seen.records) == 5


def test_driver_only_runs_no_job(source: Path) -> None:
    """A DAG without a partitioned part never starts a job: on Spark there is nothing to see."""
    found = Collector[FileMetadata]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)]))
        dag.add_operator("found", found)
        dag.add_stream("files", files.files_metadata_output, found.input)

    report = run_dag(populate_dag, runner="local")
    assert (report.windows, report.jobs, len(found.records)) == (1, 0, 2)


def test_what_consoles_note_is_printed_once_a_window(runner: str, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dag(chain(source, sink=Console(prefix="> "), block_size=4), runner=runner)
    assert capsys.readouterr().out.splitlines() == ["> one", "> .two", "> three", "> four", "> .five"]
