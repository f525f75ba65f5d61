"""The figures of each partition, and the answer of a stats listener."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import attrs

UNASSIGNED = -1
"""The `operator_id` of work that is known and not assigned to a partition yet."""


@attrs.frozen
class Backlog:
    """The number of waiting work items, and their bytes.

    >>> Backlog(2, 10) + Backlog(1, 5) - Backlog(3, 20)
    Backlog(items=0, size=0)
    """

    items: int = 0
    size: int = 0

    def __add__(self, other: Backlog) -> Backlog:
        return Backlog(self.items + other.items, self.size + other.size)

    def __sub__(self, other: Backlog) -> Backlog:
        """Subtract, but not below zero: a backlog is an estimate."""
        return Backlog(max(0, self.items - other.items), max(0, self.size - other.size))


@runtime_checkable
class KnowsBacklog(Protocol):
    """An operator on the driver that knows about work that it has not emitted yet."""

    def backlog(self) -> Backlog:
        """Return the work that is known and not emitted. Called once a window; must be quick."""
        ...


@attrs.frozen
class OperatorStats:
    """The backlog of one partition and its recent speed: blocks that are known and not committed, and their bytes.

    >>> OperatorStats(0, queue_size=10, records_out_per_second=1200.0)
    OperatorStats(operator_id=0, queue_size=10, queue_bytes=0,
                  records_in_per_second=None, records_out_per_second=1200.0, latency=None)

    Attributes:
        operator_id: the partition's number; `UNASSIGNED` for work that belongs to none yet.
        records_in_per_second, records_out_per_second: the records that came to the operator and that it emitted, by second of its
            tasks. A moving average: the newest committed window counts half. The records that come to a reader are blocks. None:
            not known, as no task of it has been committed since the launch, or since the number of partitions rose.
        latency: seconds from the plan of a window to its decision; a moving average.
    """

    operator_id: int
    queue_size: int
    queue_bytes: int = 0
    records_in_per_second: float | None = None
    records_out_per_second: float | None = None
    latency: float | None = None


@attrs.frozen
class Response:
    """The answer of a stats listener.

    Attributes:
        repartition_required: whether `define_partitions` is to be called before the next window.
        partitions: how many partitions there should be; 0 if the listener does not say.
        backlog: the sum over all partitions.
    """

    repartition_required: bool = False
    partitions: int = 0
    backlog: Backlog = Backlog()


def total(stats: Iterable[OperatorStats]) -> Backlog:
    """Return the backlog over all partitions.

    >>> total([OperatorStats(0, 3, 30), OperatorStats(UNASSIGNED, 4, 40)])
    Backlog(items=7, size=70)
    """
    each = list(stats)
    return Backlog(sum(s.queue_size for s in each), sum(s.queue_bytes for s in each))


def summed(values: Iterable[float | None]) -> float | None:
    """Return the sum of the values that are known; None if none is.

    >>> summed([None, 2.0, 3.0]), summed([None])
    (5.0, None)
    """
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None
