"""An operator at work, step by step."""

from __future__ import annotations

from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import InputOperator, InputPort, OutputPort, State
from dagflow.errors import OperatorFailed, UnknownName, WindowNotBegun, WrongRecordType
from dagflow.model.operator.base import Operator
from dagflow.testing import FakeClock, OperatorTask, run_operator
from operators import Filter, RecordWriter, Sum
from operators.sinks.errors import NotText


@attrs.define
class Numbers(InputOperator):
    """The integers from 1, as many in one call as `at_once` says; three windows of two calls."""

    at_once: int = 2
    output = OutputPort[int]()
    last = State[int](factory=int)

    def emit_tuples(self) -> None:
        self.output.emit_all(range(self.last + 1, self.last + 1 + self.at_once))
        self.last += self.at_once

    def is_exhausted(self) -> bool:
        return self.last >= 6 * self.at_once


def test_records_are_given_in_any_form_one_after_the_other() -> None:
    with OperatorTask(Sum[int, str, int]()) as task:
        task.give("input", [1, 2])
        task.give("input", pa.record_batch({"value": [3]}))
        task.give("input", (4,), "stream")
        assert task.emitted["output"] == []
    assert [each.value for each in task.emitted["output"]] == [10]


def test_a_form_or_port_that_is_not_there() -> None:
    with OperatorTask(Filter(bool)) as task:
        with pytest.raises(UnknownName, match="batch"):
            task.give("input", pa.record_batch({"value": [1]}), "batch")
        with pytest.raises(UnknownName, match="Did you mean 'input'"):
            task.give("inputs", [1])


def test_windows_of_an_input_operator_and_its_state() -> None:
    with OperatorTask(Numbers()) as task:
        assert task.emit_tuples() == 2
        assert task.emit_tuples() == 2
        assert task.end_window() == {"errors": [], "output": [1, 2, 3, 4]}
        task.emit_tuples()
        assert task.end_window()["output"] == [5, 6]
        assert task.context.window == 1
    assert task.emitted["output"] == [1, 2, 3, 4, 5, 6]
    assert task.chunks["output"] == [("records", 2)] * 3
    with OperatorTask(Numbers(), states=task.states()) as task:
        task.emit_tuples()
    assert task.emitted["output"] == [7, 8]


def test_the_context_is_that_of_a_task() -> None:
    clock = FakeClock(now=5.0)
    with OperatorTask(Filter(bool), name="keep", window=7, partition=3, slots=4, continuous=True, clock=clock) as task:
        task.give("input", [1])
        context = task.context
    assert (context.name, context.window, context.partition, context.partitions) == ("keep", 7, 3, 4)
    assert (context.slots, context.continuous, context.clock) == (4, True, clock)


def test_files_stay_in_memory(tmp_path: Any) -> None:
    with OperatorTask(RecordWriter(str(tmp_path), suffix=".txt")) as task:
        task.give("input", ["a", "b"])
        file = task.files.create("operator", str(tmp_path), "other")
        assert task.files.most_open == len([each for each in task.files.files.values() if each.is_open])
        file.close()
        with pytest.raises(ValueError, match="closed file"):
            file.write(b"x")
    assert task.files.contents == {"other": b"", "part-000000-0000.txt": b"a\nb\n"}
    assert task.files.files["part-000000-0000.txt"].rows == 2
    assert list(tmp_path.iterdir()) == []


def test_errors_are_those_of_a_run_and_what_came_before_them_is_there() -> None:
    with OperatorTask(Filter[Any](lambda text: text.isalpha())) as task:
        with pytest.raises(OperatorFailed, match="record  7") as caught:
            task.give("input", ["a", 7])
        assert isinstance(caught.value.__cause__, AttributeError)
        assert task.emitted["output"] == ["a"]
    with OperatorTask(Filter[Any](lambda text: text.isalpha(), on_error="route")) as task:
        task.give("input", ["a", 7, "b"])
    assert (task.emitted["output"], task.skipped, task.emitted["errors"][0].record) == (["a", "b"], 1, "7")


def test_an_error_of_the_framework_is_not_its_own_cause() -> None:
    with OperatorTask(RecordWriter("out")) as task, pytest.raises(NotText) as caught:
        task.give("input", [7])
    assert caught.value.__cause__ is None
    with pytest.raises(NotText) as caught:
        run_operator(RecordWriter("out"), {"input": [7]})
    assert caught.value.__cause__ is None


def test_records_are_checked_against_their_types() -> None:
    class Wrong(Operator):
        input = InputPort[str]()
        output = OutputPort[str]()

        @input.process
        def each(self, text: str) -> None:
            self.output.emit(len(text))  # type: ignore[arg-type]

    with OperatorTask(Wrong()) as task, pytest.raises(WrongRecordType):
        task.give("input", ["a"])


def test_setup_and_teardown_come_in_pairs() -> None:
    calls: list[str] = []

    class Fragile(Operator):
        input = InputPort[str]()

        @input.process
        def each(self, text: str) -> None: ...

        def setup(self, context: Any) -> None:
            calls.append("setup")

        def end_window(self) -> None:
            raise ValueError("the end")

        def teardown(self) -> None:
            calls.append("teardown")

    with pytest.raises(OperatorFailed, match="the end"), OperatorTask(Fragile()) as task:
        task.give("input", ["a"])
    assert calls == ["setup", "teardown"]


def test_a_window_that_is_not_open_cannot_end() -> None:
    with OperatorTask(Filter(str.isdigit)) as task:
        with pytest.raises(WindowNotBegun, match=r"no window of Filter is open.*\n  help: .*task\.begin_window\(\)"):
            task.end_window()
        task.give("input", ["1"])
        assert task.end_window() == {"output": ["1"], "errors": []}
        with pytest.raises(WindowNotBegun):
            task.end_window()
