"""A day of windows: what waits is planned, sized by a partitioner, run and committed, again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from benchmarks.decisions.arrivals import Range
from benchmarks.decisions.window import SHIPPED, Stealing, run
from dagflow.scaling import UNASSIGNED, OperatorStats, Partition, PartitioningContext, StatsListener
from dagflow.testing import FakeClock

OVERHEAD = 0.15
"""Seconds that a window costs, whatever it does."""
TASK = 0.01
"""Seconds that a task costs its slot, also when it has nothing to do."""
START = 2.0
"""Seconds until a reader that was not there before can work: an executor and its Python process."""
HELD = 60.0
"""Seconds after which an executor without work is given back: Spark's default of dynamic allocation."""
WINDOW = 0.5
"""Seconds that a window waits for more to arrive."""


@attrs.frozen
class Day:
    """The result of a day.

    Attributes:
        backlog_seconds: the number of ranges that are known and not committed, over time.
        reader_seconds: the number of readers that are held, over time.
        work_seconds: the least that reader_seconds could be.
        changes: how often the number of readers was another one than in the window before.
    """

    backlog_seconds: float
    reader_seconds: float
    work_seconds: float
    windows: int
    changes: int
    highest: int
    steals: int

    @property
    def cost(self) -> float:
        """The product: what a policy saves of one and pays with the other at the same rate, it gains nothing by."""
        return self.backlog_seconds * self.reader_seconds


def simulate(work: Sequence[Range], partitioner: Any, slots: int, *, starts: bool, stealing: Stealing = SHIPPED) -> Day:
    """Runs a day with a shipped partitioner, and with the shipped deal and steals in its windows.

    Args:
        starts: executors come and go with the tasks (dynamic allocation): a reader that was not there before has to be started
            first, is held as long as the window lasts, and for a while after it. Else the slots are there, and a reader is a
            task: its slot is free for others when it ends.
    """
    clock = FakeClock()
    context = PartitioningContext(slots=slots, grows=starts, shares=stealing.is_on, clock=clock)
    partitions = partitioner.define_partitions([Partition()], context)
    warm, held_until = 0, 0.0
    now = backlog_seconds = reader_seconds = 0.0
    windows = changes = highest = steals = begun = 0
    while begun < len(work):
        ends = max(now, work[begun].arrives) + WINDOW
        stop = begun
        while stop < len(work) and work[stop].arrives <= ends:
            stop += 1
        clock.advance(ends - clock.monotonic())
        mine = work[begun:stop]
        before, partitions = len(partitions), _partitions(partitioner, partitions, mine, context)
        count = len(partitions)
        idle = max(0.0, min(ends, held_until) - now)
        ready = count if not starts else min(warm, count) if ends <= held_until else 0
        begins = [TASK if number < ready else START + TASK for number in range(count)]
        outcome = run(mine, count, slots, starts=begins, stealing=stealing)
        held = min(count, slots)
        reader_seconds += warm * idle if starts else 0.0
        now = ends + OVERHEAD + max(outcome.makespan, TASK * -(-count // slots))
        reader_seconds += held * (now - ends) if starts else outcome.tasks + TASK * count
        warm, held_until = held, now + HELD
        backlog_seconds += sum(now - each.arrives for each in mine)
        changes, highest = changes + (count != before), max(highest, count)
        begun, windows, steals = stop, windows + 1, steals + outcome.steals
    total = sum(each.seconds for each in work)
    return Day(backlog_seconds, reader_seconds, total, windows, changes, highest, steals)


def _partitions(partitioner: Any, partitions: Any, work: Sequence[Range], context: PartitioningContext) -> Any:
    """The partitions of the next window; all that waits is in it."""
    stats = [OperatorStats(UNASSIGNED, len(work), sum(each.size for each in work))]
    if isinstance(partitioner, StatsListener) and partitioner.process_stats(stats).repartition_required:
        return partitioner.define_partitions(partitions, context)
    return partitions
