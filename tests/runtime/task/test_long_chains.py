"""Chains of 2,000 fused operators, in every form: Python's stack does not grow with a DAG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import DAG, InputPort, Operator, OutputPort
from dagflow.launching.build import examine
from dagflow.planning.steps import PHASES
from dagflow.planning.view import plan_view
from dagflow.render.graph import graph_text
from dagflow.runtime.stage import inlet, outlet
from dagflow.runtime.stage.program import OutputPlan, PortPlan, Program, ProgramOperator, TaskSpec
from dagflow.runtime.task.flow import Flow
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag
from tests.conformance.windows import InWindows

LENGTH = 2000
SPEC = TaskSpec(window=0, epoch="test", stage="test", partition=0, partitions=1)


@attrs.define
class Plus(Operator):
    """Adds to numbers; `begins` with a number of its own."""

    by: int = 1
    begins: bool = False
    input = InputPort[int]()
    output = OutputPort[int]()

    @input.process
    def each(self, number: int) -> None:
        self.output.emit(number + self.by)

    @input.stream
    def all(self, numbers: Iterator[int]) -> None:
        self.output.emit_all(number + self.by for number in numbers)

    @input.batch
    def batch(self, numbers: pa.RecordBatch) -> None:
        half = numbers.num_rows // 2
        for part in (numbers.slice(0, half), numbers.slice(half)) if half else (numbers,):
            self.output.emit_batch(part)

    def begin_window(self, window: int) -> None:
        if self.begins:
            self.output.emit(-1)


@attrs.define
class Kept(Operator):
    input = InputPort[int]()

    def setup(self, context: object) -> None:
        self.found: list[int] = []

    @input.process
    def each(self, number: int) -> None:
        self.found.append(number)


def chain(operator: Operator, form: str, length: int = LENGTH) -> Flow:
    """A flow of many copies of an operator, each behind the other, and one that keeps what comes out."""
    plans = [
        ProgramOperator(
            f"o{number}",
            attrs.evolve(operator),
            {"input": PortPlan(form, int)},
            {"output": OutputPlan(int, ((f"o{number + 1}", "input"),), wants_batches=form == "batch")},
        )
        for number in range(length)
    ]
    plans.append(ProgramOperator(f"o{length}", Kept(), {"input": PortPlan("record", int)}, {}))
    return Flow(Program("test", tuple(plans)), SPEC)


def run(flow: Flow, records: list[int]) -> list[int]:
    with flow:
        with flow.window(0):
            flow.deliver("o0", "input", records)
        kept: Any = flow.nodes[list(flow.nodes)[-1]].operator
        return list(kept.found)


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("form", ["record", "stream", "batch"])
@pytest.mark.parametrize("count", [1, 9])
def test_a_chain_of_any_form(form: str, on_error: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "CHUNK", 4)  # so that outlets are full while a handler emits
    monkeypatch.setattr(inlet, "CHUNK", 4)
    added = 0 if form == "batch" else LENGTH
    assert run(chain(Plus(on_error=on_error), form), list(range(count))) == [n + added for n in range(count)]


def test_records_of_begin_window_take_the_same_way() -> None:
    found = run(chain(Plus(by=0, begins=True), "stream", length=300), [7])
    assert sorted(found) == [-1] * 300 + [7]


def long_application(length: int, seen: Collector[int]) -> Any:
    def populate_dag(dag: DAG, conf: object) -> None:
        last: Any = dag.add_operator("given", InWindows[int]([[1, 2, 3]]))
        for number in range(length):
            added = dag.add_operator(f"plus{number}", Plus())
            if number == 0:
                dag.set_attributes(added, partitioner=StatelessPartitioner(1))
            dag.add_stream(f"to {number}", last.output, added.input)
            last = added
        dag.add_operator("seen", seen)
        dag.add_stream("seen", last.output, seen.input)

    return populate_dag


@pytest.mark.full
def test_a_chain_is_checked_planned_and_drawn() -> None:
    built, plan, problems = examine(long_application(LENGTH, Collector[int]()))
    assert built is not None
    assert plan is not None
    assert problems == ()
    for step in PHASES:
        of = built.dag if step == "logical" else built.expanded if step == "expanded" else plan
        assert f"plus{LENGTH - 1}" in graph_text(plan_view(of, step))


@pytest.mark.full
def test_a_chain_runs(runner: str) -> None:
    seen = Collector[int]()
    run_dag(long_application(LENGTH, seen), runner=runner)
    assert sorted(seen.records) == [LENGTH + 1, LENGTH + 2, LENGTH + 3]
