"""Records that a handler refuses, and the texts of their errors; on both runners."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dagflow import DAG, ErrorRecord, InputPort, Operator, OutputPort, ReaderRecord
from dagflow.errors import OperatorFailed, RecordsWithoutColumns
from dagflow.testing import Collector, run_dag
from operators import BlockReader, FileSplitterInput, Map, ParquetWriter, ReadAheadLineReaderContext
from tests.conformance.apps import chain


def number_of(line: ReaderRecord[str]) -> int:
    return int(line.record)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.txt"
    path.write_text("1\ntwo\n3\n\n5\n")
    return path


def test_skipped_records_are_counted_and_shown(runner: str, source: Path) -> None:
    seen = Collector[int]()
    report = run_dag(chain(source, Map(number_of, on_error="skip"), sink=seen), runner=runner)
    assert seen.records == [1, 3, 5]
    figures = report.operators["m0"]
    assert (figures.records_in, figures.records_out, figures.errors) == (5, 3, 2)
    text = f"ValueError: invalid literal for int() with base 10: 'two' ('two', {source}, position 2)"
    assert figures.samples[0] == text


def test_routed_records_come_out_of_the_errors_port(runner: str, source: Path) -> None:
    numbers, bad = Collector[int](), Collector[ErrorRecord]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)], block_size=3))
        lines = dag.add_operator("lines", BlockReader())
        each = dag.add_operator("each", Map(number_of, on_error="route"))
        dag.add_operator("numbers", numbers)
        dag.add_operator("bad", bad)
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, each.input)
        dag.add_stream("numbers", each.output, numbers.input)
        dag.add_stream("errors", each.errors, bad.input)

    run_dag(populate_dag, runner=runner)
    assert numbers.records == [1, 3, 5]
    assert [(e.operator, e.window, e.file_path, e.position, e.record) for e in bad.records] == [
        ("each", 0, str(source), 2, "two"),
        ("each", 0, str(source), 8, ""),
    ]


def test_readers_route_what_they_cannot_convert(runner: str, source: Path) -> None:
    numbers, bad = Collector[ReaderRecord[int]](), Collector[ErrorRecord]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)]))
        lines = dag.add_operator("lines", BlockReader[int](int, on_error="route"))
        dag.add_operator("numbers", numbers)
        dag.add_operator("bad", bad)
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, numbers.input)
        dag.add_stream("errors", lines.errors, bad.input)

    report = run_dag(populate_dag, runner=runner)
    assert [n.record for n in numbers.records] == [1, 3, 5]
    assert [(e.file_path, e.position, e.record) for e in bad.records] == [(str(source), 2, "two"), (str(source), 8, "")]
    assert report.operators["lines"].errors == 2


def test_blocks_that_are_skipped_are_shown_by_path_and_range(runner: str, source: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)], block_size=6))
        context = ReadAheadLineReaderContext(max_record_bytes=2)
        lines = dag.add_operator("lines", BlockReader(reader_context=context, on_error="skip"))
        every = dag.add_operator("all", Collector[ReaderRecord[str]]())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, every.input)

    figures = run_dag(populate_dag, runner=runner).operators["lines"]
    assert figures.errors == 1
    assert figures.samples == [
        f"[DF310] {source}: the record that starts at byte 2 is longer than max_record_bytes = 2 (bytes 0 to 6 of {source})"
    ]


@attrs.define
class Lengths(Operator):
    """Refuses batches in which a line is too long; knows no single records."""

    most: int

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[int]()

    @input.batch
    def each(self, batch: pa.RecordBatch) -> None:
        lengths = pc.utf8_length(batch.column("record"))
        if pc.max(lengths).as_py() > self.most:
            raise ValueError(f"a line is longer than {self.most}")
        self.output.emit_batch(pa.record_batch([lengths.cast(pa.int64())], names=["value"]))


def test_a_bad_record_in_a_batch_is_found_and_set_aside(runner: str, source: Path) -> None:
    seen = Collector[int]()
    report = run_dag(chain(source, Lengths(2, on_error="skip"), sink=seen), runner=runner)
    assert seen.records == [1, 1, 0, 1]
    figures = report.operators["m0"]
    assert figures.errors == 1
    assert f"('two', {source}, position 2)" in figures.samples[0]


def golden(error: OperatorFailed, source: Path) -> str:
    return re.sub(r"[^ ]*test_bad_records\.py:\d+", "FILE:LINE", str(error)).replace(str(source), "SOURCE")


def test_an_error_names_operator_window_source_and_the_users_line(runner: str, source: Path) -> None:
    source.write_text("1\ntwo\n3\n4\n5\n")  # one bad line: of two, either may be the first that fails
    with pytest.raises(OperatorFailed) as caught:
        run_dag(chain(source, Map(number_of), sink=Collector[int](), block_size=4), runner=runner)
    assert golden(caught.value, source) == (
        "operator 'm0' failed in apply_all() of port 'input': ValueError: invalid literal for int() with base 10: 'two'\n"
        "  at FILE:LINE in number_of: return int(line.record)\n"
        "  window  0\n"
        "  source  SOURCE, position 2\n"
        "  record  'two'"
    )
    assert "Traceback" in caught.value.trace
    assert "py4j" not in caught.value.trace


def test_an_error_in_a_batch_names_the_record(runner: str, source: Path) -> None:
    with pytest.raises(OperatorFailed) as caught:
        run_dag(chain(source, Lengths(2), sink=Collector[int]()), runner=runner)
    assert golden(caught.value, source) == (
        "operator 'm0' failed in each() of port 'input': ValueError: a line is longer than 2\n"
        '  at FILE:LINE in each: raise ValueError(f"a line is longer than {self.most}")\n'
        "  window  0\n"
        "  source  SOURCE, position 2\n"
        "  record  'two'"
    )


@attrs.define
class Fails(Operator):
    """Fails where it is told to."""

    where: str
    input = InputPort[ReaderRecord[str]]()

    def setup(self, context: object) -> None:
        self._fail("setup")

    def begin_window(self, window: int) -> None:
        self._fail("begin_window")

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        self._fail("each")

    def end_window(self) -> None:
        self._fail("end_window")

    def teardown(self) -> None:
        self._fail("teardown")

    def _fail(self, where: str) -> None:
        if where == self.where:
            raise RuntimeError(f"in {where}")


@pytest.mark.parametrize("where", ["setup", "begin_window", "each", "end_window", "teardown"])
def test_an_error_anywhere_fails_the_run_with_its_place(where: str, source: Path) -> None:
    with pytest.raises(OperatorFailed, match=rf"operator 'sink' failed in {where}\(\).*: RuntimeError: in {where}"):
        run_dag(chain(source, sink=Fails(where)))


def test_a_failed_run_leaves_nothing_visible(runner: str, source: Path, tmp_path: Path) -> None:
    from operators import JsonLinesWriter
    from tests.conformance.apps import written

    output = tmp_path / "out"
    with pytest.raises(OperatorFailed):
        run_dag(chain(source, Map(number_of), sink=JsonLinesWriter(str(output))), runner=runner)
    assert written(output) == []


def as_dict(line: ReaderRecord[str]) -> Any:
    return {"number": int(line.record), "two words": 1}


def test_a_dict_for_a_sink_of_batches_names_the_function_that_made_it(runner: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("1\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(tmp_path / "in.txt")]))
        lines = dag.add_operator("lines", BlockReader())
        parse = dag.add_operator("parse", Map(as_dict))
        writer = dag.add_operator("writer", ParquetWriter(str(tmp_path / "out")))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, parse.input)
        dag.add_stream("rows", parse.output, writer.input)

    with pytest.raises(RecordsWithoutColumns) as caught:
        run_dag(populate_dag, runner=runner)
    first = as_dict.__code__.co_firstlineno
    assert re.search(rf"from    operator 'parse', as_dict\(\) \(.*test_bad_records\.py:{first}\)", str(caught.value))
    assert "takes batches on port 'input', and nothing says the columns of a dict" in str(caught.value)
    assert "class Row: number: int (" in str(caught.value)
