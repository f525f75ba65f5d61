"""The protocols of partitioners, which set an operator's number of partitions, and one that always sets the same number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import attrs

from dagflow.model.operator.context import Clock, SystemClock
from dagflow.model.operator.validators import integer_from
from dagflow.scaling.partition import Partition, assign_partition_keys, resized
from dagflow.scaling.stats import OperatorStats, Response


@attrs.frozen(kw_only=True)
class PartitioningContext:
    """The facts that a partitioner decides by.

    Attributes:
        slots: how many tasks can work at once; None: not known.
        grows: whether Spark adds slots for waiting tasks (dynamic allocation).
        shares: readers steal work from each other within a window (rebalancing).
        clock: the source of time.
        input_ports: the operator's connected input ports that have a key (`partition_by`), whose keys may be assigned.
    """

    slots: int | None = None
    grows: bool = False
    shares: bool = False
    clock: Clock = attrs.field(factory=SystemClock)
    input_ports: tuple[str, ...] = ()


@runtime_checkable
class Partitioner(Protocol):
    """Decides how many partitions an operator has. An operator may be its own; the attribute `partitioner` replaces it.

    `define_partitions` is called before the first window, with one partition or with those that the launch before had, and again
    whenever a `StatsListener` (the same object, if it is one) has asked for it.
    """

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        """Return the partitions from now on, at least one. `partitions` itself must not be changed."""
        ...


@runtime_checkable
class StatsListener(Protocol):
    """A listener that gets the figures of each partition before every window, and says whether the number should change."""

    def process_stats(self, stats: OperatorStats | Sequence[OperatorStats]) -> Response:
        """Process the stats of one partition, or of all at once."""
        ...


@attrs.frozen
class StatelessPartitioner:
    """A partitioner that always makes the same number of partitions.

    >>> from dagflow.scaling import Partition, PartitioningContext, StatelessPartitioner
    >>> len(StatelessPartitioner(4).define_partitions([Partition("reader")], PartitioningContext()))
    4
    """

    partition_count: int = attrs.field(default=1, validator=integer_from(1))

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext | None = None) -> list[Partition]:
        """Return the partitions. Keys are assigned alike on all input ports, so that records with the same key meet."""
        result = resized(partitions, self.partition_count)
        for port in () if context is None else context.input_ports:
            assign_partition_keys(result, port)
        return result


@attrs.frozen
class Bounds:
    """The description of a partitioner in a plan, its own if it has one."""

    min_readers: int | None = None
    max_readers: int | None = None
    policy: str | None = None


def bounds(partitioner: Any) -> Bounds:
    """Return the bounds and the policy of a partitioner.

    >>> bounds(StatelessPartitioner(4))
    Bounds(min_readers=4, max_readers=4, policy='always 4')
    """
    if isinstance(partitioner, StatelessPartitioner):
        count = partitioner.partition_count
        return Bounds(count, count, f"always {count}")
    least, most = getattr(partitioner, "min_readers", None), getattr(partitioner, "max_readers", None)
    if getattr(partitioner, "collect_stats", None) is False:
        return Bounds(least, least, f"always {least} (collect_stats = False)")
    policy = getattr(partitioner, "policy", None)
    if policy is None:
        return Bounds(least, most, type(partitioner).__name__)
    millis = getattr(partitioner, "interval_millis", None)
    name = policy if isinstance(policy, str) else getattr(policy, "name", type(policy).__name__)
    return Bounds(least, most, name if millis is None else f"{name}, every {millis:,} ms")
