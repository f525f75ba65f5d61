"""The number of readers: the half of a block reader that is a partitioner and a stats listener."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

from dagflow import Operator
from dagflow.config import Millis, millis_of
from dagflow.scaling import (
    DEFAULT_INTERVAL_MILLIS,
    BacklogPartitioner,
    OperatorStats,
    Partition,
    PartitioningContext,
    Response,
    ScalingPolicy,
    policy_named,
)
from operators.problems import all_problems


def a_policy(_: object, attribute: attrs.Attribute[Any], value: str | ScalingPolicy) -> None:
    """Validate the name of a policy, or a policy."""
    policy_named(value)


@attrs.define
class ScaledReader(Operator):
    """An operator whose partitions follow the backlog: its own `Partitioner` and `StatsListener`.

    >>> from dagflow.scaling import OperatorStats
    >>> from operators import BlockReader
    >>> BlockReader(max_readers=8).process_stats(OperatorStats(0, queue_size=100)).partitions
    8

    Attributes:
        min_readers, max_readers: how many readers a window has, from the first one on.
        collect_stats: whether their number follows the backlog; False: it is `min_readers`.
        interval_millis: how often it may change.
        policy: how many readers a backlog is worth: `steady`, `power_of_two` (Malhar's) or an object with `name` and
            `readers(load)`.
        sequential: the blocks of a file that a window has are read by one reader, in order; nothing is given to others.
    """

    partitioner: ClassVar[Any] = "self"
    scope: ClassVar[Any] = "rows"

    min_readers: int = attrs.field(default=1, kw_only=True, validator=attrs.validators.instance_of(int))
    max_readers: int = attrs.field(default=16, kw_only=True, validator=attrs.validators.instance_of(int))
    collect_stats: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))
    interval_millis: Millis = attrs.field(
        default=DEFAULT_INTERVAL_MILLIS, kw_only=True, converter=millis_of, validator=attrs.validators.gt(0)
    )
    policy: str | ScalingPolicy = attrs.field(default="steady", kw_only=True, validator=a_policy)
    sequential: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            if self.min_readers < 1:
                problems.append(f"min_readers is {self.min_readers}, but must be at least 1")
            if self.min_readers > self.max_readers:
                problems.append(f"min_readers is {self.min_readers}, more than max_readers = {self.max_readers}")

    def process_stats(self, stats: OperatorStats | Sequence[OperatorStats]) -> Response:
        """Return a response to the stats of one partition, or of all as a sequence: repartition, or not."""
        return self._scaling().process_stats(stats)

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext | None = None) -> list[Partition]:
        """Return as many readers as the stats have asked for; before any stats as many as there are, within the bounds."""
        return self._scaling().define_partitions(partitions, context)

    def item_weight(self, item: Any) -> int:
        """Return the weight of a block, in bytes where they are known. Blocks are distributed by it."""
        stop, start = getattr(item, "stop", None), getattr(item, "start", None)
        return max(1, stop - start) if isinstance(stop, int) and isinstance(start, int) else 1

    def item_group(self, item: Any) -> str | None:
        """Return the group that stays together on one reader: the file of a block, where the reader is `sequential`."""
        return getattr(item, "file_path", None) if self.sequential else None

    def _scaling(self) -> BacklogPartitioner:
        partitioner: BacklogPartitioner | None = self.__dict__.get("_following")
        if partitioner is None:
            bounds = self.min_readers, self.max_readers
            partitioner = BacklogPartitioner(*bounds, self.interval_millis, self.policy, self.collect_stats)
            self.__dict__["_following"] = partitioner
        return partitioner
