"""The number of readers of each stage. Its partitioner gets the backlog before every window."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.model.graph.partitioning import partitioner_of
from dagflow.model.operator.context import Clock
from dagflow.model.operator.protocols import GroupsItems, WeighsItems
from dagflow.planning.assignment import assign, assign_groups
from dagflow.planning.plan import SINGLE, Plan, Stage
from dagflow.runtime.events import Event, ReadersChanged
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.runtime.run_report import ReaderFigures
from dagflow.runtime.stage.failure import describe
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.scaling import (
    UNASSIGNED,
    Backlog,
    BacklogPartitioner,
    Bounds,
    OperatorStats,
    Partition,
    Partitioner,
    PartitioningContext,
    StatelessPartitioner,
    StatsListener,
    bounds,
    key_owners,
    resized,
)
from dagflow.scaling.errors import PartitionerFailed, PolicyFailed
from dagflow.state.references import StateRef
from dagflow.state.task_states import declared_maps

EMPTY: Mapping[str, Any] = MappingProxyType({})


@attrs.frozen
class ItemAssignment:
    """The assignment of a window's items: the number of partitions, the partition of each item, the weight of each partition."""

    partitions: int
    places: list[int]
    weights: list[int]


@attrs.define
class _StageReaders:
    """The readers of one stage.

    Attributes:
        open: by window that is not committed, what each partition has to do.
        groups: where the last window's groups of items were.
        owners: the partition of each key that the partitioner has assigned.
        paces: how quick each partition was of late.
        planned_at: when each window that is open was planned.
    """

    stage: Stage
    operator: Any
    partitioner: Partitioner
    partitions: Sequence[Partition]
    has_partitioner: bool = True
    open: dict[int, list[Backlog]] = attrs.field(factory=dict)
    groups: dict[Hashable, int] = attrs.field(factory=dict)
    owners: tuple[int, ...] = ()
    paces: dict[int, Pace] = attrs.field(factory=dict)
    planned_at: dict[int, float] = attrs.field(factory=dict)
    figures: ReaderFigures | None = None
    first: bool = True

    @property
    def said(self) -> Bounds:
        """The bounds of the partitioner, where it is not a stand-in for none."""
        return bounds(self.partitioner) if self.has_partitioner else Bounds()


class Readers:
    """The partitions of all stages, over the windows of a launch.

    The backlog of a stage is what its windows have that are not committed, by partition, and what is not assigned yet: the
    window that is being planned, and what operators on the driver know of and have not emitted.

    Args:
        slots: the number of tasks that can work at once; None: as many as are asked for.
        share: the stages whose readers take over work from each other.
        last: the plan of the window before, from which the number of readers resumes.
        left: the states that the operators in tasks have left: theirs is the number where that plan does not have a stage.
        figures: of the same launch, until it was begun anew: they are added to.
        tell: gets events.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        slots: int | None,
        share: Collection[str] = (),
        clock: Clock,
        last: WindowPlan | None = None,
        left: Mapping[str, Sequence[StateRef]] = EMPTY,
        figures: Mapping[str, ReaderFigures] = EMPTY,
        tell: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._plan = plan
        self._tell = tell
        self._clock = clock
        self._contexts = {
            stage.name: PartitioningContext(
                slots=slots,
                grows=slots is None,
                shares=stage.name in share,
                clock=clock,
                input_ports=plan.keyed_ports(stage),
            )
            for stage in plan.stages
        }
        self._of = {
            stage.name: self._made(stage, last, left, figures.get(stage.head)) for stage in plan.stages if stage.is_leading
        }

    def figures(self) -> dict[str, ReaderFigures]:
        """Return the number of readers of each stage's head, by operator; before its first window, the number it begins with."""
        by_head = {of.stage.head: (of, of.figures or _figures(of, len(of.partitions), None)) for of in self._of.values()}
        return {
            head: attrs.evolve(figures, counters=_counters(of.partitions))
            for head, (of, figures) in by_head.items()
            if of.figures is not None or of.has_partitioner
        }

    def assign(self, stage: Stage, window: int, items: Sequence[Any], known: Backlog) -> ItemAssignment:
        """Assign a window's items, after the partitioner has got the backlog. `known`: what the driver has not emitted.

        Raises PartitionerFailed.
        """
        of = self._of[stage.name]
        weigh = of.operator.item_weight if isinstance(of.operator, WeighsItems) else lambda item: 1
        weights = [weigh(item) for item in items]
        count = self._count(of, window, Backlog(len(items), sum(weights)) + known)
        group = of.operator.item_group if isinstance(of.operator, GroupsItems) else lambda item: None
        groups = [group(item) for item in items]
        if any(each is not None for each in groups):
            places = assign_groups(weights, groups, count, of.groups)
            of.groups = {each: place for each, place in zip(groups, places, strict=True) if each is not None}
        else:
            places = assign(weights, count)
        sums = [0] * count
        for place, weight in zip(places, weights, strict=True):
            sums[place] += weight
        return ItemAssignment(count, places, sums)

    def above(self, stage: Stage, window: int, readers: int) -> int:
        """Return the number of partitions of a stage behind an exchange, for a number of readers. Raises PartitionerFailed.

        Without a partitioner: as many as there are readers, at most one a slot. A stage that keeps rows by key gets fewer than it
        has only where there are fewer slots, and where it gets more, at least twice as many.
        """
        of = self._of[stage.name]
        if self._plan.placement[stage.head] == SINGLE:
            count = 1
        elif self._plan.partitioner(stage) is None:
            count, before = max(1, readers), len(of.partitions)
            if self._keeps(stage):  # who takes over rows writes them anew in time: small windows move none, and growth few times
                count = before if count <= before else max(count, 2 * before)
            slots = self._contexts[stage.name].slots
            count = count if slots is None else min(count, slots)
        else:
            return self._count(of, window, Backlog())
        changed = None if of.figures is None or of.figures.now == count else of.figures.now
        of.first = False
        of.figures = _figures(of, count, changed)
        if len(of.partitions) != count:
            of.partitions = resized(of.partitions, count)
        return count

    def owners(self, stage: Stage) -> list[int]:
        """Return the partition of each key, for a stage whose partitioner has assigned keys; else nothing."""
        return list(self._of[stage.name].owners)

    def _keeps(self, stage: Stage) -> bool:
        """Return whether partitions have rows by key, which others must take over if the number of partitions changes."""
        return any(declared_maps(self._plan.dag.nodes[name].operator) for name in stage.operators)

    def planned(self, plan: WindowPlan) -> None:
        """Note that a window is going to run."""
        for of in self._of.values():
            count = plan.partitions.get(of.stage.head, 0)
            items = [0] * count
            for place in plan.places.get(of.stage.head, ()):
                items[place] += 1
            sizes = plan.weights.get(of.stage.head, [0] * count)
            of.open[plan.window] = [Backlog(*pair) for pair in zip(items, sizes, strict=True)]
            of.planned_at[plan.window] = self._clock.monotonic()

    def decided(self, window: int, outcomes: Iterable[TaskOutcome]) -> None:
        """Note that a window is committed, with the figures of its tasks."""
        outcomes = tuple(outcomes)
        for of in self._of.values():
            of.open.pop(window, None)
            began = of.planned_at.pop(window, None)
            latency = None if began is None else self._clock.monotonic() - began
            mine = [each for each in outcomes if each.task.rpartition("-")[0] == of.stage.name]
            of.paces = later(of.paces, mine, len(of.partitions), latency)
        for outcome in outcomes:
            stage, _, number = outcome.task.rpartition("-")
            readers = self._of.get(stage)
            if readers is not None:
                counters = readers.partitions[int(number) % len(readers.partitions)].counters
                for name, n in {"tasks": 1, "records": outcome.records, **outcome.counters}.items():
                    counters[name] = counters.get(name, 0) + n

    def _made(
        self,
        stage: Stage,
        last: WindowPlan | None,
        left: Mapping[str, Sequence[StateRef]],
        figures: ReaderFigures | None,
    ) -> _StageReaders:
        node = self._plan.dag.nodes[stage.head]
        partitioner: Any = self._plan.partitioner(stage) or StatelessPartitioner(1)
        if partitioner_of(node) == "self":
            partitioner = copy.copy(node.operator)  # fields only: nothing of another launch
        elif isinstance(partitioner, BacklogPartitioner):
            partitioner = attrs.evolve(partitioner)
        before = 0 if last is None else last.partitions.get(stage.head, 0)
        before = before or max((len(left.get(name, ())) for name in stage.operators), default=0)
        has = self._plan.partitioner(stage) is not None
        only = Partition(node.operator, counters={} if figures is None else dict(figures.counters))
        readers = _StageReaders(
            stage, node.operator, partitioner, [only], has_partitioner=has, figures=figures, first=before == 0
        )
        if before:
            readers.partitions = resized(readers.partitions, before)
        if has or stage.level == 0:
            readers.partitions = self._defined(readers)
        return readers

    def _count(self, of: _StageReaders, window: int, fresh: Backlog) -> int:
        """Tell the partitioner the backlog, and return the number of readers of a window."""
        before = len(of.partitions)
        stats = self._stats(of, fresh)
        of.partitions = [attrs.evolve(p, stats=own) for p, own in zip(of.partitions, stats, strict=False)]
        backlog = Backlog(sum(s.queue_size for s in stats), sum(s.queue_bytes for s in stats))
        if isinstance(of.partitioner, StatsListener):
            try:
                response = of.partitioner.process_stats(stats)
            except PolicyFailed as error:
                error.operator = of.stage.head
                raise
            except Exception as error:
                raise self._failed(of, f"failed in process_stats(): {describe(error)}") from error
            if response.repartition_required:
                of.partitions = self._defined(of)
        count = len(of.partitions)
        changed = count != before and not of.first
        of.first = False
        if changed:
            self._tell(
                ReadersChanged(
                    window=window,
                    operator=of.stage.head,
                    before=before,
                    readers=count,
                    backlog=backlog.items,
                    backlog_bytes=backlog.size,
                    counters=_counters(of.partitions),
                )
            )
        of.figures = _figures(of, count, before if changed else None)
        return count

    def _stats(self, of: _StageReaders, fresh: Backlog) -> list[OperatorStats]:
        waiting = [Backlog()] * len(of.partitions)
        for window in of.open.values():
            for number, backlog in enumerate(window):
                waiting[number % len(waiting)] += backlog
        stats = []
        for number, backlog in enumerate(waiting):
            pace = of.paces.get(number)
            stats.append(OperatorStats(number, backlog.items, backlog.size) if pace is None else pace.stats(number, backlog))
        return [*stats, OperatorStats(UNASSIGNED, fresh.items, fresh.size)]

    def _defined(self, of: _StageReaders) -> list[Partition]:
        try:
            partitions = list(of.partitioner.define_partitions(of.partitions, self._contexts[of.stage.name]))
        except DagflowError:
            raise
        except Exception as error:
            raise self._failed(of, f"failed in define_partitions(): {describe(error)}") from error
        if not partitions or not all(isinstance(each, Partition) for each in partitions):
            raise self._failed(
                of, "returned no partitions" if not partitions else f"returned {partitions[0]!r} among its partitions"
            )
        lost = Counter(_counters(of.partitions)) - Counter(_counters(partitions))  # by a partitioner that makes new partitions
        partitions[0].counters.update(Counter(partitions[0].counters) + lost)
        if of.has_partitioner:  # the stand-in for none assigns nothing
            of.owners = key_owners(partitions, self._contexts[of.stage.name].input_ports, self._named(of))
        return partitions

    def _named(self, of: _StageReaders) -> tuple[str, str]:
        return of.stage.head, type(of.partitioner).__qualname__

    def _failed(self, of: _StageReaders, reason: str) -> PartitionerFailed:
        return PartitionerFailed(*self._named(of), reason)


def known_to(plan: Plan, backlogs: Mapping[str, Backlog]) -> dict[str, Backlog]:
    """Return the backlog of each stage that the driver's operators above it know of and have not emitted."""
    by_stage = {}
    for stage in plan.stages:
        above, left = set[str](), [stage.head]
        while left:
            for source, _ in plan.dag.upstream(left.pop()):
                if source.operator not in above:
                    above.add(source.operator)
                    left.append(source.operator)
        by_stage[stage.name] = sum((b for name, b in backlogs.items() if name in above), Backlog())
    return by_stage


def _counters(partitions: Sequence[Partition]) -> dict[str, int]:
    """Return the sums of the counters of partitions, former ones included."""
    return resized(partitions, 1)[0].counters


def _figures(of: _StageReaders, now: int, before: int | None) -> ReaderFigures:
    """Return the figures with the number of readers now, and with the one `before` it, from which it has just changed."""
    known, changed = of.figures, before is not None
    numbers = [now, *([] if before is None else [before]), *([] if known is None else [known.lowest, known.highest])]
    lowest, highest = min(numbers), max(numbers)
    declared = of.said
    least = lowest if declared.min_readers is None else declared.min_readers
    most = highest if declared.max_readers is None else declared.max_readers
    return ReaderFigures(least, now, most, lowest, highest, (0 if known is None else known.changes) + changed)


NEWEST = 0.5
"""The weight of the newest window in an average."""


@attrs.frozen(kw_only=True)
class Pace:
    """Records that came to a partition, and that it passed on, in each second of its tasks; seconds from plan to decision."""

    records_in: float
    records_out: float
    latency: float | None

    def after(self, before: Pace | None) -> Pace:
        """Return the average with the figures from before."""
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
        """Return the statistics of a partition for its partitioner."""
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
    """Return the paces of a number of partitions after a window with these tasks. Partitions without a task keep theirs.

    >>> done = TaskOutcome(task="s0-0001", attempt="1", started=10.0, ended=12.0, records=100, records_in=4)
    >>> later({}, [done], 2, 3.0)
    {1: Pace(records_in=2.0, records_out=50.0, latency=3.0)}
    """
    by_number: dict[int, list[TaskOutcome]] = {}
    for outcome in outcomes:
        by_number.setdefault(int(outcome.task.rpartition("-")[2]) % count, []).append(outcome)
    averages = {number: pace for number, pace in paces.items() if number < count}
    for number, tasks in by_number.items():
        seconds = sum(task.ended - task.started for task in tasks)
        if seconds > 0:
            pace = Pace(
                records_in=sum(task.records_in for task in tasks) / seconds,
                records_out=sum(task.records for task in tasks) / seconds,
                latency=latency,
            )
            averages[number] = pace.after(averages.get(number))
    return averages
