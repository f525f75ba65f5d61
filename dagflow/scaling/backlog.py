"""The partitioner of block readers, which follows the backlog."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

import attrs

from dagflow.errors.frames import is_ours
from dagflow.model.operator.call_sites import shown
from dagflow.model.operator.context import Clock, SystemClock
from dagflow.scaling.errors import PolicyFailed
from dagflow.scaling.partition import Partition, assign_partition_keys, resized
from dagflow.scaling.partitioner import PartitioningContext
from dagflow.scaling.policy import Load, ScalingPolicy, policy_named
from dagflow.scaling.stats import OperatorStats, Response, summed, total

DEFAULT_INTERVAL_MILLIS = 500
"""The time that a continuous run keeps a window open, so that each window has the readers for its own backlog.

Apache Apex Malhar waits 120,000 ms.
"""


@attrs.define(eq=False)
class BacklogPartitioner:
    """A `Partitioner` and a `StatsListener` that gives an operator the number of readers that a policy says for its backlog.

    The backlog is the sum of the newest figures of all partitions. It is evaluated at once, and then once per interval. The
    number of readers is always within the bounds. The clock and the slots come with the context of `define_partitions`.

    >>> from dagflow.scaling import BacklogPartitioner, OperatorStats, Partition
    >>> readers = BacklogPartitioner(min_readers=2, max_readers=16)
    >>> partitions = readers.define_partitions([Partition("reader")], None)
    >>> len(partitions)
    2
    >>> readers.process_stats(OperatorStats(0, queue_size=10))
    Response(repartition_required=True, partitions=10, backlog=Backlog(items=10, size=0))
    >>> len(readers.define_partitions(partitions, None))
    10

    Differences from Malhar: it looks only at the first partition that reports after an interval, here the others count with their
    last figures. It does not apply the bounds if the backlog equals the number of readers, at the start, and after rounding. It
    removes readers from the front of the list.

    Attributes:
        collect_stats: if False, there are always `min_readers`.
        policy: the name of a policy, or an object with `name` and `readers(load)`.
    """

    min_readers: int = 1
    max_readers: int = 16
    interval_millis: float = DEFAULT_INTERVAL_MILLIS
    policy: str | ScalingPolicy = "steady"
    collect_stats: bool = True
    clock: Clock = attrs.field(factory=SystemClock, kw_only=True)

    _policy: ScalingPolicy = attrs.field(init=False)
    _readers: int = attrs.field(init=False, default=1)
    _has_decided: bool = attrs.field(init=False, default=False)
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
        """The number of readers, or the one that a policy has decided on for the next window."""
        return self._readers

    def process_stats(self, stats: OperatorStats | Sequence[OperatorStats]) -> Response:
        """Take the figures of one partition, or (as a sequence) of all at once. Decide if an interval has passed."""
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
        readers = load.clamped(self._answer(load))
        changes = readers != self._readers
        self._readers, self._has_decided = readers, self._has_decided or changes
        return Response(changes, readers, backlog)

    def _answer(self, load: Load) -> int:
        """Return the answer of the policy. Raises PolicyFailed: it may be the user's."""
        try:
            answer: Any = self._policy.readers(load)
        except Exception as error:
            own = [frame for frame in traceback.extract_tb(error.__traceback__) if not is_ours(frame.filename)]
            where = f"{shown(own[-1].filename)}:{own[-1].lineno} in {own[-1].name}: {own[-1].line}" if own else ""
            raise self._failed(f"failed in readers(load): {type(error).__name__}: {error}", where) from error
        if not isinstance(answer, int):
            raise self._failed(f"returned {answer!r} for {load}")
        return answer

    def _failed(self, reason: str, where: str = "") -> PolicyFailed:
        name = getattr(self._policy, "name", "")
        policy = type(self._policy).__qualname__ + (f" ({name!r})" if name else "")
        return PolicyFailed("", policy, reason, where, tuple(field.name for field in attrs.fields(Load)))

    def define_partitions(self, partitions: Sequence[Partition], context: Any = None) -> list[Partition]:
        """Return as many partitions as the policy has decided on; before that, as many as there are, within the bounds."""
        if isinstance(context, PartitioningContext):
            if context.clock is not self.clock:
                self.clock, self._due = context.clock, None  # times of two clocks have nothing in common
            self._slots, self._grows, self._shares = context.slots, context.grows, context.shares
        if not self.collect_stats:
            self._readers = self.min_readers
        elif not self._has_decided:
            self._readers = self._load(0, 0).clamped(len(partitions))
        result = resized(partitions, self._readers)
        for port in getattr(context, "input_ports", ()):
            assign_partition_keys(result, port)
        unchanged = range(len(result)) if len(result) == len(partitions) else ()
        self._latest = {key: each for key, each in self._latest.items() if key in unchanged}
        return result

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
