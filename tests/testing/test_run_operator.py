from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dagflow import ErrorRecord, InputOperator, InputPort, Operator, OperatorContext, OutputPort, ReaderRecord, State, WindowState
from dagflow.errors import ClassWrong, FieldFrozen, NotPicklable, NotSupported, OperatorFailed, UnknownName, WrongRecordType
from dagflow.testing import FakeClock, OperatorTask, Window, run_operator
from operators import Filter, Map, ParquetWriter, RecordWriter

CALLS: list[str] = []


@attrs.define
class Forms(Operator):
    """Says in which form it was called."""

    input = InputPort[int]()
    output = OutputPort[str]()

    @input.process
    def one(self, record: int) -> None:
        self.output.emit(f"record {record}")

    @input.stream
    def many(self, records: Iterator[int]) -> None:
        self.output.emit_all(f"stream {record}" for record in records)

    @input.batch
    def batch(self, batch: pa.RecordBatch) -> None:
        assert self.output.wants_batches
        self.output.emit_batch(pa.record_batch([pa.array([f"batch {v}" for v in batch.column(0).to_pylist()])], names=["value"]))


class Shares(Operator):
    """Keeps what it has seen in a set that all of its copies share."""

    input = InputPort[int]()
    output = OutputPort[int]()
    seen = set()  # the mistake

    @input.process
    def once(self, record: int) -> None:
        if record not in self.seen:
            self.seen.add(record)
            self.output.emit(record)


@pytest.mark.parametrize("run", [OperatorTask, lambda operator: run_operator(operator, {"input": [1]})])
def test_a_class_that_a_dag_refuses_is_refused(run: Any) -> None:
    with pytest.raises(ClassWrong, match=r"Shares: seen is a set that all copies of the operator share.*\n  help: write seen"):
        run(Shares())


@pytest.mark.parametrize(
    ("form", "first"), [(None, "stream 1"), ("record", "record 1"), ("stream", "stream 1"), ("batch", "batch 1")]
)
def test_each_form_that_is_offered_can_be_asked_for(form: str | None, first: str) -> None:
    assert run_operator(Forms(), {"input": [1, 2]}, form=form)["output"][0] == first


def test_batches_and_tables_are_given_as_they_are() -> None:
    table = pa.table({"value": [1, 2]})
    batch = table.to_batches()[0]
    assert run_operator(Forms(), {"input": [batch, table]})["output"] == [f"batch {n}" for n in (1, 2, 1, 2)]
    assert run_operator(Forms(), {"input": [Window([batch]), Window([3, batch])]})["output"] == [
        f"batch {n}" for n in (1, 2, 3, 1, 2)
    ]
    assert run_operator(Forms(), {"input": [batch]}, form="record")["output"] == ["record 1", "record 2"]


def test_a_writer_writes_a_table(tmp_path: pathlib.Path) -> None:
    table = pa.table({"n": [1, 2], "day": pa.array(["2026-01-31", None]).cast(pa.date32())})
    run_operator(ParquetWriter(str(tmp_path)), {"input": [table]})
    (written,) = tmp_path.glob("*.parquet")
    assert pq.read_table(written).equals(table)


def test_a_form_that_is_not_offered_is_refused_with_those_that_are() -> None:
    with pytest.raises(UnknownName, match=r"no form of Filter 'batch'\. Known: record, stream"):
        run_operator(Filter(bool), {"input": [1]}, form="batch")


def test_ports_without_records_are_there_but_not_the_errors_port() -> None:
    assert run_operator(Filter(bool), {"input": [0]}) == {"output": []}
    assert run_operator(Filter(bool), {"input": []}) == {"output": []}
    assert run_operator(Filter(bool), {}) == {"output": []}


def test_an_unknown_port_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'input'"):
        run_operator(Filter(bool), {"inptu": [1]})


@attrs.define
class Life(Operator):
    """Notes what it lives through, in this process."""

    input = InputPort[int]()
    output = OutputPort[str]()
    count = WindowState(0)
    total = State(0)

    def setup(self, context: OperatorContext) -> None:
        self.made_here = "setup"
        CALLS.append(f"setup {context.window} {context.partition}/{context.partitions}")

    def begin_window(self, window: int) -> None:
        CALLS.append(f"begin {window}")

    @input.process
    def each(self, record: int) -> None:
        self.count += 1
        self.total += record
        self.output.emit(f"{self.count} {self.total}")

    def end_window(self) -> None:
        CALLS.append("end")
        self.output.emit("end")

    def committed(self, window: int) -> None:
        CALLS.append(f"committed {window}")

    def teardown(self) -> None:
        self.made_here = "gone"
        CALLS.append("teardown")


def test_every_window_has_a_copy_of_its_own_and_state_goes_on() -> None:
    CALLS.clear()
    operator = Life()
    emitted = run_operator(operator, {"input": [Window([1, 2]), Window([3])]}, window=7, partition=1, partitions=4)
    assert emitted["output"] == ["1 1", "2 3", "end", "1 6", "end"]
    one = ["begin {0}", "end", "committed {0}", "teardown"]
    assert ["setup 7 1/4", *(c.format(7) for c in one), "setup 8 1/4", *(c.format(8) for c in one)] == CALLS
    assert "made_here" not in operator.__dict__, "the copy was set up, not what the test holds"


@attrs.define
class Counts(Operator):
    input = InputPort[int]()
    seen: int = 0

    @input.process
    def each(self, record: int) -> None:
        self.seen += 1


def test_a_counter_in_a_plain_field_is_refused_not_lost() -> None:
    with pytest.raises(FieldFrozen) as caught:
        run_operator(Counts(), {"input": [1]})
    assert str(caught.value) == (
        "Counts assigns 'seen' while it runs: an operator's fields are frozen after setup(), since an instance lives\n"
        "  for one task of one window and what it assigns would be lost\n"
        "  help: declare it at class level, `seen = WindowState(0)` for a value within the window\n"
        "        or `seen = State(0)` for one that is kept over windows"
    )


@attrs.define
class Liar(Operator):
    """Emits what is not of its port's type."""

    how: str = "emit"
    input = InputPort[str]()
    output = OutputPort[ReaderRecord[int]]()

    @input.process
    def each(self, record: str) -> None:
        wrong: Any = ReaderRecord(1, 2, "three")
        if self.how == "emit":
            self.output.emit(wrong)
        elif self.how == "emit_all":
            self.output.emit_all([ReaderRecord(1, 1, 1), wrong])
        elif self.how == "columns":
            self.output.emit_batch(pa.record_batch({"value": [1]}))
        else:
            self.output.emit_batch(pa.record_batch({"block_id": [1], "position": [2], "record": ["three"]}))


LINES_OF_LIAR = {
    how: number
    for number, line in enumerate(Path(__file__).read_text().splitlines(), 1)
    for how in ("emit", "emit_all", "emit_batch")
    if re.match(rf"\s+self\.output\.{how}\(.*(wrong|three)", line)
}


@pytest.mark.parametrize("how", ["emit", "emit_all", "emit_batch"])
@pytest.mark.parametrize("on_error", ["fail", "skip", "route"])
def test_a_record_of_the_wrong_type_is_always_caught(how: str, on_error: Any) -> None:
    with pytest.raises(WrongRecordType) as caught:
        run_operator(Liar(how, on_error=on_error), {"input": ["a"]})
    first, line, window = str(caught.value).splitlines()
    assert first == "operator.output carries ReaderRecord[int], but ReaderRecord[str] was emitted: 'three'"
    assert line.startswith("  at ")
    assert f"test_run_operator.py:{LINES_OF_LIAR[how]} in each: self.output.{how}(" in line
    assert window == "  window  0"


def test_a_batch_with_other_columns_is_caught() -> None:
    with pytest.raises(WrongRecordType, match="carries ReaderRecord"):
        run_operator(Liar("columns"), {"input": ["a"]})


def test_a_given_record_of_the_wrong_type_is_caught() -> None:
    with pytest.raises(WrongRecordType) as caught:
        run_operator(Liar(), {"input": [5]})
    assert str(caught.value) == "operator.input carries str, but int was given: 5"


def test_types_are_bound_by_what_is_given() -> None:
    assert run_operator(Filter(pc.field("record") > 1), {"input": [ReaderRecord(0, 0, 1), ReaderRecord(0, 1, 2)]}) == {
        "output": [ReaderRecord(0, 1, 2)]
    }
    error = ErrorRecord("a", 0, None, None, "e", "r")
    assert run_operator(Filter(pc.field("operator") == "a"), {"input": [error]}) == {"output": [error]}


def test_an_error_names_the_operator_and_carries_the_cause() -> None:
    with pytest.raises(OperatorFailed) as caught:
        run_operator(Map(int), {"input": ["1", "x"]}, window=3)
    assert isinstance(caught.value.__cause__, ValueError)
    assert (caught.value.operator, caught.value.window, caught.value.record) == ("operator", 3, "'x'")


def test_skipped_and_routed_records() -> None:
    emitted = run_operator(Map(int, on_error="skip"), {"input": ["1", "x", "2"]})
    assert (emitted, emitted.skipped) == ({"output": [1, 2]}, 1)
    emitted = run_operator(Map(int, on_error="route"), {"input": ["1", "x", "2"]})
    assert emitted["output"] == [1, 2]
    assert [(e.record, e.error) for e in emitted["errors"]] == [("x", "ValueError: invalid literal for int() with base 10: 'x'")]


def test_what_cannot_be_pickled_is_named() -> None:
    import threading

    with pytest.raises(NotPicklable, match="its property 'predicate' cannot be pickled"):
        run_operator(Filter(threading.Lock().__enter__), {"input": [1]})


def test_a_port_without_handler_is_refused() -> None:
    @attrs.define
    class Deaf(Operator):
        input = InputPort[int]()

    with pytest.raises(NotSupported, match=r"port Deaf\.input has no handler"):
        run_operator(Deaf(), {"input": [1]})


def test_check_is_called() -> None:
    with pytest.raises(ValueError, match="path is empty"):
        run_operator(RecordWriter(""), {"input": ["a"]})


@attrs.define
class Numbers(InputOperator):
    """Emits `per_call` numbers a call, `calls` times a window, `last` in all."""

    last: int | None = 5
    per_call: int = 1
    calls: int = 2

    output = OutputPort[int]()
    next_number = State(0)
    called = WindowState(0)

    def setup(self, context: OperatorContext) -> None:
        self._context = context

    def emit_tuples(self) -> None:
        self.called += 1
        if self.last is None or self.next_number < self.last:
            self.output.emit(self.next_number)
            self.next_number += 1
        self._context.count("calls")
        if self.called >= self.calls:
            self._context.close_window()

    def is_exhausted(self) -> bool:
        return self.last is not None and self.next_number >= self.last


def test_an_input_operator_runs_until_it_is_exhausted() -> None:
    emitted = run_operator(Numbers(), {})
    assert emitted["output"] == [0, 1, 2, 3, 4]


def test_an_input_operator_runs_so_many_windows() -> None:
    emitted = run_operator(Numbers(None, calls=3), {}, windows=2)
    assert (emitted["output"], emitted.counters) == ([0, 1, 2, 3, 4, 5], {"calls": 6})


def test_a_window_of_an_input_operator_ends_in_time() -> None:
    assert run_operator(Numbers(None, calls=10**9), {}, windows=2, seconds=0, clock=FakeClock())["output"] == [0, 1]


def test_files_of_sinks_stand_in_place_and_nothing_else_does(tmp_path: pathlib.Path) -> None:
    emitted = run_operator(RecordWriter(str(tmp_path)), {"input": [Window(["a"]), Window(["b", "c"])]})
    assert emitted == {}
    files = {p.name: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert files == {"part-000000-0000": b"a\n", "part-000001-0000": b"b\nc\n"}


def test_a_failed_window_leaves_no_file(tmp_path: pathlib.Path) -> None:
    class Refuses(RecordWriter[str]):
        def get_bytes_for_tuple(self, record: str) -> bytes:
            return bytes([1 // len(record)])

    with pytest.raises(OperatorFailed):
        run_operator(Refuses(str(tmp_path)), {"input": ["a", ""]})
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_a_relative_folder_starts_from_here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_operator(RecordWriter("out"), {"input": ["a"]})
    assert (tmp_path / "out" / "part-000000-0000").read_bytes() == b"a\n"


def test_a_patched_module_is_what_operators_see(monkeypatch: pytest.MonkeyPatch) -> None:
    mine: list[str] = []
    monkeypatch.setattr(sys.modules[__name__], "CALLS", mine)
    run_operator(Life(), {"input": [1]})
    assert "teardown" in mine


def test_the_users_own_classes_stay_as_they_are() -> None:
    before = dict(vars(Life))
    run_operator(Life(), {"input": [1]})
    assert dict(vars(Life)) == before, "loading a copy must not put copies of methods into the class"
