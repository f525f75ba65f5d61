"""Handlers that return records instead of emitting them, and those that raise what is not an Exception."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import DAG, InputOperator, InputPort, Operator, OutputPort, State
from dagflow.errors import OperatorFailed, ResultNotEmitted
from dagflow.testing import Collector, run_dag, run_operator
from operators import BlockReader, FileSplitterInput


@attrs.define
class Numbers(InputOperator):
    output = OutputPort[int]()
    next = State(0)

    def emit_tuples(self) -> None:
        if self.next < 3:
            self.output.emit(self.next)
            self.next += 1


def behind(operator: Operator) -> Any:
    def populate_dag(dag: DAG, conf: object) -> None:
        numbers, it = dag.add_operator("numbers", Numbers()), dag.add_operator("it", operator)
        dag.add_stream("n", numbers.output, it.input)  # type: ignore[attr-defined]
        dag.add_stream("out", it.output, dag.add_operator("seen", Collector[Any]()).input)  # type: ignore[attr-defined]

    return populate_dag


def behind_lines(operator: Operator, folder: Path) -> Any:
    def populate_dag(dag: DAG, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput([str(folder)]))
        lines, it = dag.add_operator("lines", BlockReader()), dag.add_operator("it", operator)
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("text", lines.messages, it.input)  # type: ignore[attr-defined]

    return populate_dag


@attrs.define
class Doubles(Operator):
    input = InputPort[int]()
    output = OutputPort[int]()

    @input.process
    def double(self, number: int) -> Any:
        return 2 * number


@attrs.define
class DoublesMany(Operator):
    input = InputPort[int]()
    output = OutputPort[int]()

    @input.stream
    def double(self, numbers: Iterator[int]) -> Any:
        return [2 * number for number in numbers]


@attrs.define
class DoublesBatches(Operator):
    input = InputPort[int]()
    output = OutputPort[int]()

    @input.batch
    def double(self, batch: pa.RecordBatch) -> Any:
        return batch


@pytest.mark.parametrize(
    ("operator", "emit"),
    [(Doubles, "emit"), (DoublesMany, "emit_all"), (DoublesBatches, "emit_batch")],
    ids=lambda each: str(each),
)
def test_a_handler_that_returns_records_is_refused(operator: type, emit: str) -> None:
    with pytest.raises(ResultNotEmitted) as caught:
        run_dag(behind(operator()))
    error = caught.value
    assert (error.code, error.operator, error.handler, error.port, error.emit) == ("DF349", "it", "double", "input", emit)
    assert "test_what_handlers_do.py:" in error.where
    assert str(error).endswith(f"help: emit it instead of returning it: self.output.{emit}(…)")
    with pytest.raises(ResultNotEmitted):
        run_operator(operator(on_error="skip"), {"input": [1, 2]})


@attrs.define
class Says(Operator):
    """Emits at times, and returns something on purpose."""

    value: Any
    emits: bool = True
    input = InputPort[int]()
    output = OutputPort[int]()
    other = OutputPort[int](optional=True)

    @input.process
    def take(self, number: int) -> Any:
        if self.emits and number == 2:
            self.output.emit(number)
        return self.value


@attrs.define
class EmitsLater(Operator):
    input = InputPort[int]()
    output = OutputPort[int]()
    total = State(0, merge=sum)

    @input.process
    def take(self, number: int) -> int:
        self.total += number
        return self.total

    def end_window(self) -> None:
        self.output.emit(self.total)


@attrs.define
class EmitsNowhere(Says):
    @Says.input.process
    def take(self, number: int) -> Any:
        self.other.emit(number)
        return number


@pytest.mark.parametrize(
    "operator",
    [Says(1), Says(True, emits=False), Says("text", emits=False), Says(None, emits=False), EmitsLater(), EmitsNowhere(1)],
    ids=["it emits", "a bool", "another type", "None", "it emits later", "it emits by a port without a stream"],
)
def test_a_handler_may_return_what_it_likes_where_it_loses_no_record(operator: Operator) -> None:
    run_dag(behind(operator))


class Stopped(BaseException):
    pass


@attrs.define
class Stops(Operator):
    where: str
    input = InputPort[Any]()
    output = OutputPort[int]()

    def stop_in(self, method: str) -> None:
        if self.where == method:
            raise Stopped("enough")

    def setup(self, context: object) -> None:
        self.stop_in("setup()")

    def begin_window(self, window: int) -> None:
        self.stop_in("begin_window()")

    @input.process
    def take(self, record: Any) -> None:
        self.stop_in("take() of port 'input'")

    def end_window(self) -> None:
        self.stop_in("end_window()")


@pytest.mark.parametrize("where", ["setup()", "begin_window()", "take() of port 'input'", "end_window()"])
@pytest.mark.parametrize("on", ["the driver", "tasks"])
def test_an_exception_that_is_not_an_exception_names_its_operator(where: str, on: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a line")
    operator = Stops(where, on_error="skip")
    with pytest.raises(OperatorFailed) as caught:
        run_dag(behind(operator) if on == "the driver" else behind_lines(operator, tmp_path))
    error = caught.value
    assert (error.operator, error.doing) == ("it", where)
    assert "Stopped: enough" in error.error
    assert "test_what_handlers_do.py" in error.frames
    assert (error.record is not None) == ("take" in where)


@attrs.define
class StopsInBatches(DoublesBatches):
    @DoublesBatches.input.batch
    def double(self, batch: pa.RecordBatch) -> Any:
        raise Stopped("enough")

    def teardown(self) -> None:
        raise Stopped("later")


@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_it_names_its_operator_in_batches_too(on_error: Any) -> None:
    with pytest.raises(OperatorFailed) as caught:
        run_dag(behind(StopsInBatches(on_error=on_error)))
    assert (caught.value.operator, caught.value.doing) == ("it", "double() of port 'input'")
    assert "Stopped: enough" in caught.value.error


def test_a_ctrl_c_in_a_handler_stays_what_it_is() -> None:
    @attrs.define
    class Interrupted(Says):
        @Says.input.process
        def take(self, number: int) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_operator(Interrupted(1), {"input": [1]})
