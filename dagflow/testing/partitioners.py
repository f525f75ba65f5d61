"""The readers of one operator, window by window: tests of partitioners without a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from dagflow.model.graph.dag import DAG
from dagflow.model.operator.base import InputOperator, Operator
from dagflow.model.operator.ports import OutputPort, input_ports
from dagflow.planning.plan import Plan
from dagflow.planning.steps import make_plan
from dagflow.runtime.events import ReadersChanged
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.runtime.run_report import ReaderFigures
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.windows.readers import ItemAssignment, Readers
from dagflow.scaling import Backlog, Partitioner
from dagflow.testing.tasks import FakeClock


@attrs.define
class _Source(InputOperator):
    """An input operator of work items; it never runs."""

    output = OutputPort[Any]()


class ReaderWindows:
    """The windows of one operator, as its partitioner sees them: how many readers each gets, and which items they get.

    It plans and commits windows without running them. Time passes only between windows, as the test says.

    Args:
        operator: a `BlockReader`, or any operator that gets work items.
        partitioner: decides on the number of readers, instead of the operator's own.
        slots: the number of tasks that can work at once; None: as many as are asked for.
        name: the operator's name in errors and events.
        resumed: the number of readers of the launch before; None: there was none.

    Attributes:
        clock: the clock that the partitioner gets.
        changes: the events about another number of readers, so far.
        assignment: which reader gets each item of the last window (`places`), and how much each has to do (`weights`).

    Raises PartitionerFailed, as a run would.

    >>> from operators import BlockReader
    >>> from dagflow import FileBlockMetadata
    >>> blocks = [FileBlockMetadata(n, "log", n, n + 1, 9) for n in range(9)]
    >>> windows = ReaderWindows(BlockReader(max_readers=4))
    >>> windows.plan(blocks)
    4
    >>> windows.commit(0)
    >>> windows.plan(blocks[:2], after=5.0)
    2
    >>> [(change.before, change.readers) for change in windows.changes]
    [(4, 2)]
    """

    def __init__(
        self,
        operator: Operator,
        *,
        partitioner: Partitioner | None = None,
        slots: int | None = 8,
        name: str = "reader",
        resumed: int | None = None,
    ) -> None:
        self._name = name
        self.plan_of_run = _plan_of(operator, name, partitioner)
        self.clock = FakeClock()
        self.changes: list[ReadersChanged] = []
        self.assignment = ItemAssignment(0, [], [])
        self._next_window = 0
        last = None if resumed is None else self.decided(7, ItemAssignment(resumed, [], [0] * resumed))
        self.readers = Readers(self.plan_of_run, slots=slots, clock=self.clock, last=last, tell=self._tell)

    def plan(self, items: Sequence[Any], backlog: Backlog | None = None, after: float = 0.0) -> int:
        """Plan the next window. Return the number of its readers.

        `backlog`: what input operators know of and have not emitted; `after`: seconds since the window before.
        """
        self.clock.advance(after)
        stage = self.plan_of_run.stages[0]
        self.assignment = self.readers.assign(stage, self._next_window, items, backlog or Backlog())
        self.readers.planned(self.decided(self._next_window, self.assignment))
        self._next_window += 1
        return self.assignment.partitions

    def commit(self, window: int, records: Sequence[int] = ()) -> None:
        """Commit a window. `records`: how many records each of its readers has read."""
        stage = self.plan_of_run.stages[0].name
        tasks = ((f"{stage}-{number:04d}", count) for number, count in enumerate(records))
        ended = [TaskOutcome(task=task, attempt="1", started=0, ended=0, records=count) for task, count in tasks]
        self.readers.decided(window, ended)

    def figures(self) -> ReaderFigures:
        """Return the number of readers as the report of a run shows it."""
        return self.readers.figures()[self._name]

    def decided(self, window: int, assignment: ItemAssignment) -> WindowPlan:
        """Return the plan of a window with this assignment, as the run folder has it."""
        return WindowPlan(
            window=window,
            items={},
            partitions={self._name: assignment.partitions},
            places={self._name: assignment.places},
            weights={self._name: assignment.weights},
            states={},
            driver=TaskReport("driver", 0),
        )

    def _tell(self, event: object) -> None:
        if isinstance(event, ReadersChanged):
            self.changes.append(event)


def _plan_of(operator: Operator, name: str, partitioner: Partitioner | None) -> Plan:
    """Return the plan of an application in which an operator gets work items."""
    dag = DAG()
    items = dag.add_operator("items", _Source())
    attributes = {} if partitioner is None else {"partitioner": partitioner}
    reader = dag.add_operator(name, operator, **attributes)
    dag.add_stream("work", items.output, getattr(reader, next(iter(input_ports(type(operator))))))
    return make_plan(dag)
