"""Ranges of offsets as work items, and the pure function that cuts them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from operators.logs.protocol import partition_name


@attrs.frozen
class OffsetBlock:
    """The messages of a partition whose offsets lie in `[start, stop)`. There may be fewer than that: offsets have gaps.

    Attributes:
        size: about how many bytes they are; 0: unknown.
        identity: of the topic when the block was planned (`LogPartition.identity`).
        previous_block_id: the block before it in the same partition; -1 for the first one.
    """

    block_id: int
    topic: str
    partition: int
    start: int
    stop: int
    previous_block_id: int = -1
    size: int = 0
    identity: str | None = None

    @property
    def name(self) -> str:
        """The partition, as `LogPartition.name` has it."""
        return partition_name(self.topic, self.partition)

    @property
    def words(self) -> str:
        """The range in words.

        >>> OffsetBlock(0, "events", 3, start=10, stop=20).words
        'offsets 10 to 19 of events[3]'
        """
        return f"offsets {self.start} to {self.stop - 1} of {self.name}"


@attrs.frozen
class PartitionPosition:
    """The position of a run in a partition, which its input operator remembers.

    Attributes:
        offset: the first one that is not planned yet.
        identity: of the topic.
        last_block_id: the block that was planned last; -1: none.
        event_time: the latest time of the last messages of its blocks, in microseconds since the epoch; None while unknown.
    """

    topic: str
    partition: int
    offset: int
    identity: str | None = None
    last_block_id: int = -1
    event_time: int | None = None


def cut_ranges(unread: Mapping[str, tuple[int, int]], records: Mapping[str, int], room: int) -> list[tuple[str, int, int]]:
    """Return up to `room` ranges of unread offsets, `records` each, as (partition, start, stop).

    Partitions take turns, in the order in which they are given. The ranges of a partition follow each other in the result.

    >>> cut_ranges({"a": (0, 25), "b": (5, 9)}, {"a": 10, "b": 10}, room=3)
    [('a', 0, 10), ('a', 10, 20), ('b', 5, 9)]
    """
    counts = dict.fromkeys(unread, 0)
    limits = {name: -(-(stop - start) // records[name]) for name, (start, stop) in unread.items()}
    left, waiting = room, [name for name in unread if limits[name] > 0]
    while left > 0 and waiting:
        each = max(1, min([left // len(waiting), *(limits[name] - counts[name] for name in waiting)]))
        for name in waiting[:left]:
            counts[name] += each
            left -= each
        waiting = [name for name in waiting if counts[name] < limits[name]]
    ranges = []
    for name, (start, stop) in unread.items():
        size = records[name]
        ranges += [(name, at, min(at + size, stop)) for at in range(start, start + counts[name] * size, size)]
    return ranges
