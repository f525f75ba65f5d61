"""An application of numbers, window by window, in as many partitions as a table says; and what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from dagflow import DAG, InputOperator, InputPort, Operator, OperatorContext, OutputPort, State
from dagflow.runtime.run_folder.window_log import Decision, WindowLog
from dagflow.scaling import UNASSIGNED, OperatorStats, Partition, PartitioningContext, Response, resized
from dagflow.state.task_states import read_states
from dagflow.testing import run_dag


@attrs.define
class Given(InputOperator):
    """Emits the numbers of one window after the other: those below zero on a port of their own."""

    windows: list[list[int]]
    next = State(0)
    output = OutputPort[int]()
    negative = OutputPort[int]()

    def setup(self, context: OperatorContext) -> None:
        self.context = context

    def emit_tuples(self) -> None:
        if self.next < len(self.windows):
            for number in self.windows[self.next]:
                (self.output if number >= 0 else self.negative).emit(number)
            self.next += 1
            self.context.close_window()

    def is_exhausted(self) -> bool:
        return self.next >= len(self.windows)


@attrs.define
class Sizer:
    """As many partitions as a table says for so many items."""

    table: Sequence[int] = (1,)
    wanted: int = attrs.field(init=False, default=1)

    def process_stats(self, stats: Sequence[OperatorStats]) -> Response:
        fresh = next(each.queue_size for each in stats if each.operator_id == UNASSIGNED)
        self.wanted = self.table[fresh % len(self.table)]
        return Response(repartition_required=True)

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> list[Partition]:
        return resized(partitions, self.wanted)


def joined(parts: list[list[int]]) -> list[int]:
    return [item for part in parts for item in part]


def most_of(parts: list[int | None]) -> int | None:
    return max((part for part in parts if part is not None), default=None)


@attrs.define
class Total(Operator):
    """Adds up, and keeps everything that it has seen."""

    input = InputPort[int]()
    total = State(0, merge=sum)
    most = State[int | None](None, merge=most_of)
    seen = State[list[int]](factory=list, merge=joined)

    @input.process
    def each(self, number: int) -> None:
        self.total += number
        self.most = number if self.most is None else max(self.most, number)
        self.seen.append(number)


def application(windows: list[list[int]], table: Sequence[int] = (1,), total: type[Operator] = Total) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("given", Given(windows))
        for name, port in (("positive", source.output), ("negative", source.negative)):
            operator: Any = dag.add_operator(name, total())
            dag.set_attributes(operator, partitioner=Sizer(table))
            dag.add_stream(name, port, operator.input)

    return populate_dag


def run(folder: Path, windows: list[list[int]], *args: Any, **options: Any) -> None:
    run_dag(application(windows, *args), run_folder=str(folder), **options)


def decisions(folder: Path) -> list[Decision]:
    log = WindowLog.open(str(folder), durable=False)
    found = [log.read_decision(window) for window in log.windows("decision")]
    return [decision for decision in found if decision is not None]


def kept(folder: Path, decision: Decision, operator: str = "positive") -> list[dict[str, Any]]:
    store = WindowLog.open(str(folder), durable=False).store
    return [read_states(store, operator, ref) for ref in decision.partition_states.get(operator, [])]


def objects(folder: Path) -> set[str]:
    return set(WindowLog.open(str(folder), durable=False).store.names("task-states/"))
