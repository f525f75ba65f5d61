"""How quick the partitions of a stage were of late: what stats listeners are told beside the backlog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from dagflow.runtime.task.program import TaskOutcome
from dagflow.scaling import Backlog, OperatorStats

NEWEST = 0.5
"""How much the newest window counts in an average."""


@attrs.frozen(kw_only=True)
class Pace:
    """Records that came to a partition, and that it passed on, in each second of its tasks; seconds from plan to decision."""

    records_in: float
    records_out: float
    latency: float | None

    def after(self, before: Pace | None) -> Pace:
        """The average with what was known before."""
        if before is None:
            return self
        latency = self.latency
        if latency is not None and before.latency is not None:
            latency = _average(latency, before.latency)
        return Pace(
            records_in=_average(self.records_in, before.records_in),
            records_out=_average(self.records_out, before.records_out),
            latency=latency,
        )

    def stats(self, number: int, backlog: Backlog) -> OperatorStats:
        """What is told of the partition."""
        return OperatorStats(
            number,
            backlog.items,
            backlog.size,
            records_in_per_second=self.records_in,
            records_out_per_second=self.records_out,
            latency=self.latency,
        )


def _average(newest: float, before: float) -> float:
    return NEWEST * newest + (1 - NEWEST) * before


def later(paces: Mapping[int, Pace], outcomes: Iterable[TaskOutcome], count: int, latency: float | None) -> dict[int, Pace]:
    """The paces of so many partitions after a window with these tasks of their stage. Those without a task keep theirs.

    >>> done = TaskOutcome(task="s0-0001", attempt="1", started=10.0, ended=12.0, records=100, records_in=4)
    >>> later({}, [done], 2, 3.0)
    {1: Pace(records_in=2.0, records_out=50.0, latency=3.0)}
    """
    by_number: dict[int, list[TaskOutcome]] = {}
    for outcome in outcomes:
        by_number.setdefault(int(outcome.task.rpartition("-")[2]) % count, []).append(outcome)
    found = {number: pace for number, pace in paces.items() if number < count}
    for number, tasks in by_number.items():
        seconds = sum(task.ended - task.started for task in tasks)
        if seconds > 0:
            pace = Pace(
                records_in=sum(task.records_in for task in tasks) / seconds,
                records_out=sum(task.records for task in tasks) / seconds,
                latency=latency,
            )
            found[number] = pace.after(found.get(number))
    return found
