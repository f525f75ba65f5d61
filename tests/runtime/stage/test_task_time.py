"""The time of operators in a task, by a clock that only operators move."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import InputPort, Operator, OutputPort
from dagflow.model.types.plain_data import decode, dumps, encode, loads
from dagflow.runtime.run_folder.reports import OperatorFigures, TaskReport, summed
from dagflow.runtime.stage import inlet, outlet
from dagflow.runtime.stage.program import OutputPlan, PortPlan, Program, ProgramOperator, TaskSpec
from dagflow.runtime.stage.task_time import TaskTime
from dagflow.runtime.task.flow import Flow

SPEC = TaskSpec(window=0, epoch="test", stage="test", partition=0, partitions=1)


class WorkClock:
    """Shows the seconds of work that operators have done."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


CLOCK = WorkClock()


@attrs.define
class Works(Operator):
    """Works for some seconds on each record, and at the beginning and the end of a window."""

    each_takes: float = 0.0
    ends_take: float = 0.0
    input = InputPort[int]()
    output = OutputPort[int]()

    def begin_window(self, window: int) -> None:
        CLOCK.seconds += self.ends_take

    def end_window(self) -> None:
        CLOCK.seconds += self.ends_take
        self.output.emit(0)

    @input.process
    def each(self, number: int) -> None:
        CLOCK.seconds += self.each_takes
        self.output.emit(number)

    @input.stream
    def all(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            self.each(number)

    @input.batch
    def batch(self, numbers: pa.RecordBatch) -> None:
        CLOCK.seconds += self.each_takes * numbers.num_rows
        self.output.emit_batch(numbers)


def flow_of(forms: list[str], *operators: Operator) -> Flow:
    plans = [
        ProgramOperator(
            f"o{number}",
            operator,
            {"input": PortPlan(forms[number], int)},
            {"output": OutputPlan(int, ((f"o{number + 1}", "input"),), False)} if number + 1 < len(operators) else {},
        )
        for number, operator in enumerate(operators)
    ]
    return Flow(Program("test", tuple(plans)), SPEC, time=TaskTime(CLOCK))


@pytest.mark.parametrize("forms", [["record"] * 3, ["stream"] * 3, ["batch"] * 3, ["batch", "record", "batch"]])
def test_each_operator_is_charged_for_its_own_work(forms: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "CHUNK", 2)  # so that operators behind work while a handler is about to emit
    monkeypatch.setattr(inlet, "CHUNK", 2)
    flow = flow_of(forms, Works(1.0), Works(10.0, ends_take=3.0), Works(0.5))
    with flow:
        with flow.window(0):
            flow.deliver("o0", "input", [1, 2, 3, 4, 5])
        seconds = {name: figures.seconds for name, figures in flow.figures().items()}
    # end_window of o0 and of o1 emit one more record each
    assert seconds == {"o0": 5.0, "o1": 6 * 10.0 + 2 * 3.0, "o2": 7 * 0.5}
    assert flow.time.own.seconds == 0.0


def test_the_accounts_of_a_task_sum_to_its_time() -> None:
    clock = WorkClock()
    time = TaskTime(clock)
    clock.seconds += 1
    with time.charging(time.storing):
        clock.seconds += 2
        with contextlib.suppress(ValueError), time.charging(time.loading):
            clock.seconds += 4
            raise ValueError
        clock.seconds += 8

    def items() -> Iterator[int]:
        clock.seconds += 16
        yield 1
        clock.seconds += 32

    for _ in time.during(time.waiting, items()):
        clock.seconds += 64
    accounts = (time.own, time.storing, time.loading, time.waiting)
    time.charge(time.own)
    assert [each.seconds for each in accounts] == [65, 10, 4, 48]
    assert sum(each.seconds for each in accounts) == time.total()


def test_reports_without_seconds_are_read() -> None:
    report = TaskReport("s0-0000", 1, operators={"keep": OperatorFigures(records_in=3)})
    data: Any = loads(dumps(encode(report, "a report")))
    assert data["operators"]["keep"].pop("seconds") == 0.0
    assert decode(data, TaskReport) == report


def test_seconds_are_summed_and_not_compared() -> None:
    total = summed([{"keep": OperatorFigures(seconds=1.5)}, {"keep": OperatorFigures(seconds=2.25)}])
    assert total["keep"].seconds == 3.75
    assert total["keep"] == OperatorFigures()
