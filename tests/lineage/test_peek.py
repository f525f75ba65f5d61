"""Peeking at ports: the records that are shown, the operators that run for it, and those that do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import dagflow
from dagflow import DAG, InputOperator, InputPort, Operator, OutputPort, ReaderRecord, State
from dagflow.launching.build import build
from dagflow.lineage.errors import PortNotPeekable
from dagflow.lineage.peek import PeekedRecords, peek_at, peekable_ports
from dagflow.model.errors.dag import UnknownName
from operators import (
    BlockReader,
    Count,
    CsvFormat,
    FileInput,
    FileSplitterInput,
    Filter,
    JsonLinesWriter,
    Map,
    RecordWriter,
    ScanReader,
    Tumbling,
)

HANDLED: list[str] = []


def text_of(record: ReaderRecord[str]) -> str:
    HANDLED.append(record.record)
    return record.record


def second(record: str) -> int:
    return int(record)


def number_of(record: ReaderRecord[str]) -> int:
    return int(record.record)


@attrs.define
class Opened(RecordWriter[Any]):
    """A sink that says when it is set up."""

    def setup(self, context: Any) -> None:
        raise AssertionError("no sink is set up")

    def get_bytes_for_tuple(self, record: Any) -> bytes:
        return repr(record).encode()


def remainder(number: int) -> int:
    return number % 3


@attrs.define
class Endless(InputOperator):
    output = OutputPort[int]()
    last = State(0)

    def emit_tuples(self) -> None:
        self.last += 1
        self.output.emit(self.last)

    def is_exhausted(self) -> bool:
        return False


@attrs.define
class RunningTotal(Operator):
    input = InputPort[str]()
    output = OutputPort[int]()
    total = State(0, merge=sum)

    @input.process
    def each(self, record: str) -> None:
        self.total += 1
        self.output.emit(self.total)


def chain(dag: DAG, conf: Any, *operators: tuple[str, Any]) -> None:
    files = dag.add_operator("files", FileSplitterInput(files=conf["input"], block_size=conf.get("block_size", 1 << 20)))
    reader = dag.add_operator("reader", BlockReader(convert_to_record=bytes.decode))
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    source: Any = reader.messages
    for name, operator in (*operators, ("writer", Opened("out"))):
        dag.add_operator(name, operator)
        dag.add_stream(f"to {name}", source, operator.input)
        source = getattr(operator, "output", None)


def lines(dag: DAG, conf: Any) -> None:
    chain(dag, conf, ("text", Map(text_of)))


def counted(dag: DAG, conf: Any) -> None:
    chain(dag, conf, ("text", Map(text_of)), ("count", Count[str, str](by="value")))


def numbers(dag: DAG, conf: Any) -> None:
    chain(dag, conf, ("number", Map(number_of, on_error=conf.get("on_error", "fail"))))


def endless(dag: DAG, conf: Any) -> None:
    source = dag.add_operator("numbers", Endless())
    count = dag.add_operator("count", Count[int, int](by=remainder))
    dag.add_stream("numbers", source.output, count.input)
    dag.add_stream("counts", count.output, dag.add_operator("writer", Opened("out")).input)


def totals(dag: DAG, conf: Any) -> None:
    chain(dag, conf, ("text", Map(text_of)), ("total", RunningTotal()))


def event_time(dag: DAG, conf: Any) -> None:
    chain(dag, conf, ("text", Map(text_of)), ("minutes", Tumbling[str, str](size=60, time=second, by=str)))


def table(dag: DAG, conf: Any) -> None:
    files = dag.add_operator("files", FileSplitterInput(files=conf["input"]))
    scan = dag.add_operator("scan", ScanReader(CsvFormat(), schema="id: int64", on_bad_row="route"))
    dag.add_stream("blocks", files.blocks_metadata_output, scan.blocks_metadata_input)
    dag.add_stream("rows", scan.batches, dag.add_operator("writer", JsonLinesWriter("out")).input)


def module(dag: DAG, conf: Any) -> None:
    read = dag.add_module("lines", FileInput(conf["input"]))
    dag.add_stream("text", read.messages, dag.add_operator("keep", Filter(lambda line: True)).input)


@pytest.fixture(autouse=True)
def handled() -> Iterator[list[str]]:
    HANDLED.clear()
    yield HANDLED
    HANDLED.clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def peeked(populate: Any, port: str, folder: Path, n: int = 20, sample: int = 1000, **settings: Any) -> PeekedRecords:
    return peek_at(build(populate, code={"input": str(folder), **settings}), port, n=n, sample=sample)


def records(found: PeekedRecords) -> list[Any]:
    return [each.record for each in found.records]


def test_the_first_records_with_their_places(folder: Path, handled: list[str]) -> None:
    (folder / "a").write_text("one\ntwo\nthree\n")
    found = peeked(lines, "text.output", folder, n=2)
    assert records(found) == ["one", "two"]
    assert [(each.path, each.position) for each in found.records] == [(str(folder / "a"), 0), (str(folder / "a"), 4)]
    assert (found.port, found.type, found.is_all, found.problem) == ("text.output", "str", False, None)
    assert handled == ["one", "two"]  # no operator got a record more


def test_nothing_is_written_and_no_sink_is_set_up(folder: Path) -> None:
    (folder / "a").write_text("one\n")
    before = sorted(folder.parent.rglob("*"))
    found = peeked(lines, "writer.input", folder)
    assert (records(found), found.is_all) == (["one"], True)
    assert sorted(folder.parent.rglob("*")) == before


def test_only_the_first_blocks_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        (folder / f"{number}").write_text(f"{number}\n" * 10)
    opened: list[str] = []
    inner = BlockReader.setup_stream
    monkeypatch.setattr(BlockReader, "setup_stream", lambda self, block: (opened.append(block.file_path), inner(self, block))[1])
    assert len(peeked(lines, "reader.messages", folder, n=15).records) == 15
    assert len(opened) == 2


def test_an_input_without_end_is_cut(folder: Path) -> None:
    found = peeked(endless, "count.output", folder, sample=50)
    assert {each.key: each.value for each in records(found)} == {1: 17, 2: 17, 0: 16}
    assert found.remarks[0] == "the sample ends after 50 records of 'numbers': --sample N reads more"
    assert records(peeked(endless, "numbers", folder, n=3)) == [1, 2, 3]


def test_items_of_the_driver(folder: Path) -> None:
    (folder / "a").write_text("x" * 10)
    found = peeked(lines, "files.blocks_metadata_output", folder, block_size=4)
    assert [(each.start, each.stop) for each in records(found)] == [(0, 4), (4, 8), (8, 10)]
    assert found.is_all


def test_a_port_without_a_stream(folder: Path) -> None:
    (folder / "a").write_text("x")
    assert [each.file_name for each in records(peeked(lines, "files.files_metadata_output", folder))] == ["a"]


def test_keyed_operators_see_one_window_of_the_sample(folder: Path) -> None:
    (folder / "a").write_text("a\nb\n" * 100)
    (folder / "b").write_text("a\n" * 7)
    whole = peeked(counted, "count.output", folder)
    assert {each.key: each.value for each in records(whole)} == {"a": 107, "b": 100}
    assert whole.is_all
    assert whole.remarks == (
        "one window in one partition: groups and totals are those of the sample",
        "the state of 'count' begins empty, and one window runs",
    )
    part = peeked(counted, "count.output", folder, sample=50)
    assert {each.key: each.value for each in records(part)} == {"a": 25, "b": 25}
    assert part.remarks[0] == "the sample ends after 50 records of 'reader': --sample N reads more"
    assert not part.is_all


def test_an_input_behind_an_exchange_shows_what_comes_to_it(folder: Path) -> None:
    (folder / "a").write_text("a\nb\na\n")
    assert records(peeked(counted, "count.input", folder)) == ["a", "b", "a"]
    assert {each.key for each in records(peeked(counted, "count.partial.output", folder))} == {"a", "b"}


def test_windows_of_event_time_fire_at_the_end_of_the_sample(folder: Path) -> None:
    (folder / "a").write_text("1\n2\n61\n")
    found = peeked(event_time, "minutes.output", folder)
    assert [each.count for each in records(found)] == [1, 1, 1]


def test_state_begins_empty_and_one_window_runs(folder: Path) -> None:
    (folder / "a").write_text("a\nb\n")
    found = peeked(totals, "total.output", folder)
    assert records(found) == [1, 2]
    assert found.remarks == ("the state of 'total' begins empty, and one window runs",)


def test_rows_of_batches_are_dictionaries_with_places(folder: Path) -> None:
    (folder / "a.csv").write_text("id,name\n1,one\nx,two\n3,three\n")
    found = peeked(table, "scan.batches", folder)
    assert records(found) == [{"id": 1, "name": "one"}, {"id": 3, "name": "three"}]
    assert [each.position for each in found.records] == [8, 20]
    assert [each.raw for each in records(peeked(table, "scan.errors", folder))] == ["x,two"]


def test_an_error_of_user_code_comes_after_the_records_before_it(folder: Path) -> None:
    (folder / "a").write_text("1\n2\nx\n4\n")
    found = peeked(numbers, "number.output", folder)
    assert records(found) == [1, 2]
    assert found.problem is not None
    assert "operator 'number'" in found.problem.message()
    assert "position 4" in found.problem.message()
    assert peeked(numbers, "number.output", folder, n=2).problem is None
    with pytest.raises(dagflow.errors.RunError):
        dagflow.peek(numbers, {"input": str(folder)}, "number")


def test_skipped_records_are_remarked(folder: Path) -> None:
    (folder / "a").write_text("1\nx\n3\n")
    found = peeked(numbers, "number.output", folder, on_error="skip")
    assert records(found) == [1, 3]
    [remark] = found.remarks
    assert remark.startswith("'number' rejected 1 record; the first: ValueError: invalid literal for int()")
    assert remark.endswith("a, position 2)")


def test_rows_that_a_reader_rejects_are_remarked_with_their_number_and_the_first(folder: Path) -> None:
    (folder / "a.csv").write_text("id,name\n1,one\nx,two\ny,three\n")
    [remark] = peeked(table, "scan.batches", folder).remarks
    assert remark.startswith("'scan' rejected 2 records; the first: column 'id': 'x' is not a valid int64 ('x,two', ")
    assert remark.endswith("a.csv:3, position 14)")


def test_no_records_say_where_they_went(folder: Path) -> None:
    (folder / "a").write_text("x\n")
    found = peeked(numbers, "number.output", folder, on_error="skip")
    assert found.remarks[0] == "records that came out: files 1, reader 1, number 0"


def test_operators_stand_for_their_only_stream_and_modules_for_what_is_behind(folder: Path) -> None:
    (folder / "a").write_text("x\n")
    assert peeked(lines, "text", folder).port == "text.output"
    assert peeked(lines, "writer", folder).port == "writer.input"
    assert [each.record for each in records(peeked(module, "lines.messages", folder))] == ["x"]
    assert [each.record for each in records(peeked(module, "lines.reader", folder))] == ["x"]


@pytest.mark.parametrize(
    ("port", "error", "text"),
    [
        ("txt.output", UnknownName, "Did you mean 'text'?"),
        ("txt", UnknownName, "Did you mean 'text'?"),
        ("text.outptu", UnknownName, "Did you mean 'text.output'?"),
        ("writer.errors.x", UnknownName, "there is no operator 'writer.errors'"),
    ],
)
def test_unknown_ports_are_refused_with_the_nearest(folder: Path, port: str, error: type, text: str) -> None:
    with pytest.raises(error, match=text.replace("?", r"\?")):
        peeked(lines, port, folder)


def test_several_streams_of_an_operator_are_named(folder: Path) -> None:
    def both(dag: DAG, conf: Any) -> None:
        table(dag, conf)
        scan = dag.operator("scan")
        dag.add_stream("bad", scan.errors, dag.add_operator("bad", JsonLinesWriter("bad")).input)  # type: ignore[attr-defined]

    with pytest.raises(PortNotPeekable, match=r"scan\.batches, scan\.errors"):
        peeked(both, "scan", folder)


def test_the_ports_of_an_application(folder: Path) -> None:
    ports = peekable_ports(build(counted, code={"input": str(folder)}))
    assert [each.port for each in ports] == ["files.blocks_metadata_output", "reader.messages", "text.output", "count.output"]
    assert ports[-1].sinks == ("writer.input",)
