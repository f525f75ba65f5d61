"""The partitioner that follows the backlog: what block readers are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from dagflow.model.operator.context import Clock, SystemClock
from dagflow.scaling.partition import Partition, assign_partition_keys, resized
from dagflow.scaling.partitioner import PartitioningContext
from dagflow.scaling.policy import Load, ScalingPolicy, policy_named
from dagflow.scaling.stats import OperatorStats, Response, summed, total

DEFAULT_INTERVAL_MILLIS = 500
"""As long as a continuous run keeps a window open: no window has the readers of a smaller one before it.

Apache Apex Malhar, whose windows follow each other endlessly, waits 120,000 ms.
"""


@attrs.define(eq=False)
class BacklogPartitioner:
    """As many readers as the backlog is worth to a policy: a `Partitioner` and a `StatsListener`.

    The backlog is what all partitions have told last. It is looked at once an interval, the first time at once; the number of
    readers is between the bounds always, from the first window on. `clock` and slots come with the context of
    `define_partitions`.

    >>> from dagflow.scaling import BacklogPartitioner, OperatorStats, Partition
    >>> readers = BacklogPartitioner(min_readers=2, max_readers=16)
    >>> partitions = readers.define_partitions([Partition("reader")], None)
    >>> len(partitions)
    2
    >>> readers.process_stats(OperatorStats(0, queue_size=10))
    Response(repartition_required=True, partitions=10, backlog=Backlog(items=10, size=0))
    >>> len(readers.define_partitions(partitions, None))
    10

    Where Malhar differs (as its documents and its source do): it looks at the first partition that reports after an
    interval, here those that have not reported since count with what they told before; it does not apply the bounds where the
    backlog equals the number of readers, at the start, and after rounding; it removes readers from the front of the list.

    Attributes:
        collect_stats: False: always `min_readers`.
        policy: the name of one, or an object with `name` and `readers(load)`.
    """

    min_readers: int = 1
    max_readers: int = 16
    interval_millis: float = DEFAULT_INTERVAL_MILLIS
    policy: str | ScalingPolicy = "steady"
    collect_stats: bool = True
    clock: Clock = attrs.field(factory=SystemClock, kw_only=True)

    _policy: ScalingPolicy = attrs.field(init=False)
    _readers: int = attrs.field(init=False, default=1)
    _asked: bool = attrs.field(init=False, default=False)
    _latest: dict[int, OperatorStats] = attrs.field(init=False, factory=dict)
    _due: float | None = attrs.field(init=False, default=None)
    _slots: int | None = attrs.field(init=False, default=None)
    _grows: bool = attrs.field(init=False, default=False)
    _shares: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.min_readers <= self.max_readers:
            raise ValueError(
                f"min_readers is {self.min_readers} and max_readers {self.max_readers}: at least 1, and in this order"
            )
        self._policy = policy_named(self.policy)

    @property
    def readers(self) -> int:
        """The number of readers that there are, or that have been asked for."""
        return self._readers

    def process_stats(self, stats: OperatorStats | Sequence[OperatorStats]) -> Response:
        """Takes what one partition tells, or (as a sequence) what all tell at once; decides when an interval has passed."""
        if isinstance(stats, OperatorStats):
            self._latest[stats.operator_id] = stats
        else:
            self._latest = {each.operator_id: each for each in stats}
        backlog = total(self._latest.values())
        now = self.clock.monotonic()
        if not self.collect_stats or (self._due is not None and now < self._due):
            return Response(False, self._readers, backlog)
        self._due = now + self.interval_millis / 1000
        load = self._load(backlog.items, backlog.size)
        said: Any = self._policy.readers(load)
        if not isinstance(said, int):
            name = getattr(self._policy, "name", type(self._policy).__name__)
            raise TypeError(f"policy {name!r} returned {said!r} readers for {load}, but must return an integer")
        wanted = load.clamped(said)
        changes = wanted != self._readers
        self._readers, self._asked = wanted, self._asked or changes
        return Response(changes, wanted, backlog)

    def define_partitions(self, partitions: Sequence[Partition], context: Any = None) -> list[Partition]:
        """As many partitions as were asked for; before that, as many as there are, brought between the bounds."""
        if isinstance(context, PartitioningContext):
            if context.clock is not self.clock:
                self.clock, self._due = context.clock, None  # times of two clocks have nothing in common
            self._slots, self._grows, self._shares = context.slots, context.grows, context.shares
        if not self.collect_stats:
            self._readers = self.min_readers
        elif not self._asked:
            self._readers = self._load(0, 0).clamped(len(partitions))
        found = resized(partitions, self._readers)
        for port in getattr(context, "input_ports", ()):
            assign_partition_keys(found, port)
        kept = range(len(found)) if len(found) == len(partitions) else ()
        self._latest = {key: each for key, each in self._latest.items() if key in kept}
        return found

    def _load(self, backlog: int, size: int) -> Load:
        return Load(
            backlog=backlog,
            size=size,
            readers=self._readers,
            min_readers=self.min_readers,
            max_readers=self.max_readers,
            slots=self._slots,
            grows=self._grows,
            shares=self._shares,
            records_in_per_second=summed(each.records_in_per_second for each in self._latest.values()),
            records_out_per_second=summed(each.records_out_per_second for each in self._latest.values()),
            latency=max((each.latency for each in self._latest.values() if each.latency is not None), default=None),
        )
