"""The flow of records within a task: chunks, conversions, and bad records in every form."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import InputPort, Operator, OutputPort, WindowState
from dagflow.errors import OperatorFailed, PortUnbound
from dagflow.runtime.stage import inlet, outlet
from dagflow.testing import run_operator

BAD = -1


@attrs.define
class Refuses(Operator):
    """Passes records on and refuses BAD, in the form that it is asked in; `late` refuses after it has emitted."""

    singly: bool = False
    late: bool = False

    input = InputPort[int]()
    output = OutputPort[int]()

    @input.process
    def each(self, record: int) -> None:
        if record == BAD:
            raise ValueError("bad")
        self.output.emit(record)

    @input.stream
    def all(self, records: Iterator[int]) -> None:
        def checked() -> Iterator[int]:
            for record in records:
                if record == BAD:
                    raise ValueError("bad")
                yield record

        self.output.emit_all(checked())

    @input.batch
    def batch(self, batch: pa.RecordBatch) -> None:
        values = batch.column(0).to_pylist()
        if self.late:
            self.output.emit_batch(batch)
        if BAD in values:
            raise ValueError("bad")
        if self.singly:
            for value in values:
                self.output.emit(value)
        elif not self.late:
            self.output.emit_batch(batch)


@pytest.mark.parametrize("form", ["record", "stream", "batch"])
@pytest.mark.parametrize("singly", [False, True])
@given(records=st.lists(st.integers(BAD, 3), max_size=12))
def test_bad_records_are_set_aside_and_nothing_else(form: str, singly: bool, records: list[int]) -> None:
    operator = Refuses(singly, on_error="route")
    emitted = run_operator(operator, {"input": records}, form=form)
    assert emitted["output"] == [r for r in records if r != BAD]
    assert emitted.skipped == records.count(BAD)
    assert [error.record for error in emitted.get("errors", [])] == ["-1"] * records.count(BAD)


@pytest.mark.parametrize("form", ["record", "stream", "batch"])
def test_a_bad_record_ends_the_task_and_is_named(form: str) -> None:
    with pytest.raises(OperatorFailed) as caught:
        run_operator(Refuses(), {"input": [1, 2, BAD, 3]}, form=form)
    assert caught.value.record == "-1"


def test_what_a_batch_handler_emitted_for_the_bad_row_stays_and_nothing_is_doubled() -> None:
    emitted = run_operator(Refuses(late=True, on_error="skip"), {"input": [1, BAD, 2]}, form="batch")
    assert emitted["output"] == [1, BAD, 2]
    assert emitted.skipped == 1


@attrs.define
class Counted(Operator):
    """Counts rows before it refuses a batch with a zero in it, and tells the count at the end."""

    count = WindowState(0)
    input = InputPort[int]()
    output = OutputPort[int]()

    @input.batch
    def batch(self, batch: pa.RecordBatch) -> None:
        self.count += batch.num_rows
        if 0 in batch.column(0).to_pylist():
            raise ValueError("a zero")

    def end_window(self) -> None:
        self.output.emit(self.count)


def test_what_a_batch_handler_kept_before_it_raised_is_undone() -> None:
    assert run_operator(Counted(on_error="skip"), {"input": [1, 0, 2, 3]})["output"] == [4]


@attrs.define
class Early(Operator):
    """Emits in `setup`."""

    input = InputPort[int]()
    output = OutputPort[int]()

    def setup(self, context: object) -> None:
        self.output.emit(1)

    @input.process
    def each(self, number: int) -> None: ...


def test_emitting_outside_a_window_fails() -> None:
    with pytest.raises(PortUnbound, match="only within a window"):
        run_operator(Early(), {"input": [1]})


@attrs.define
class Exits(Operator):
    """Ends the process, or tries to."""

    input = InputPort[int]()

    @input.process
    def each(self, number: int) -> None:
        raise SystemExit(3)


def test_an_operator_cannot_end_the_process() -> None:
    with pytest.raises(OperatorFailed, match="SystemExit: 3"):
        run_operator(Exits(on_error="skip"), {"input": [1]})


@attrs.define
class Total(Operator):
    """Refuses batches whose sum is odd: no single record's fault."""

    input = InputPort[int]()
    output = OutputPort[int]()

    @input.batch
    def batch(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows > 1:
            raise ValueError("too many")


def test_a_batch_that_fails_as_a_whole_names_no_record() -> None:
    with pytest.raises(OperatorFailed) as caught:
        run_operator(Total(), {"input": [1, 2]})
    assert caught.value.record is None


@attrs.define
class Lazy(Operator):
    input = InputPort[int]()

    @input.stream
    def all(self, records: Iterator[int]) -> None:
        next(records)


def test_a_stream_handler_must_read_all() -> None:
    run_operator(Lazy(), {"input": [1]})
    for on_error in ("fail", "skip"):
        with pytest.raises(OperatorFailed, match="the stream handler of 'input' left 2 records unread"):
            run_operator(Lazy(on_error=on_error), {"input": [1, 2, 3]})  # type: ignore[arg-type]


@attrs.define
class Swallows(Operator):
    """Catches everything around `emit`."""

    input = InputPort[int]()
    output = OutputPort[str]()

    @input.process
    def each(self, record: Any) -> None:
        with contextlib.suppress(Exception):
            self.output.emit(record)


def test_user_code_cannot_swallow_what_fails_downstream() -> None:
    from dagflow.errors import WrongRecordType

    with pytest.raises(WrongRecordType):
        run_operator(Swallows(), {"input": [1]})


@attrs.define
class Repeats(Operator):
    """Emits each number so many times, in all the ways there are."""

    input = InputPort[int]()
    output = OutputPort[int]()

    @input.process
    def each(self, record: int) -> None:
        self.output.emit_all(iter([record] * record))
        self.output.emit(record)
        self.output.emit_batch(pa.record_batch({"value": pa.array([record] * record, pa.int64())}))
        self.output.emit_all([])


@pytest.mark.parametrize("chunk", [1, 2, 7, 8192])
def test_order_is_kept_whatever_the_size_of_chunks(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "CHUNK", chunk)
    monkeypatch.setattr(inlet, "CHUNK", chunk)
    emitted = run_operator(Repeats(), {"input": [3, 0, 9, 1]})
    assert emitted["output"] == [3] * 7 + [0] + [9] * 19 + [1] * 3


def test_records_of_unknown_type_become_batches_by_the_first() -> None:
    @attrs.define
    class Columns(Operator):
        input = InputPort[Any]()
        output = OutputPort[str]()

        @input.batch
        def each(self, batch: pa.RecordBatch) -> None:
            self.output.emit(",".join(batch.schema.names))

    assert run_operator(Columns(), {"input": [1, 2]})["output"] == ["value"]
    with pytest.raises(OperatorFailed, match="the conversion to batches before 'input'"):
        run_operator(Columns(), {"input": [1, "a"]})
