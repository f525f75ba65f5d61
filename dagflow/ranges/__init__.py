"""Range trackers: who owns which positions of a range, and how a range is split while it is read.

A reader of the range [start, stop) returns the records from the first *split point* at or after start up to, not including,
the first split point at or after stop. It asks the range's tracker before it returns a record; a task that wants part of the work
splits the same tracker, at any time, from any thread. `RangeTracker` is what all trackers do, and says the rules.
"""

from __future__ import annotations

from dagflow.ranges.claimed import ClaimedRecords
from dagflow.ranges.keys import ByteKey, ByteKeyRange, ByteKeyRangeTracker
from dagflow.ranges.offsets import OFFSET_INFINITY, OffsetRange, OffsetRangeTracker
from dagflow.ranges.splitting import SplitsItems
from dagflow.ranges.tracker import RangeTracker
from dagflow.ranges.unsplittable import UnsplittableRangeTracker

__all__ = [
    "OFFSET_INFINITY",
    "ByteKey",
    "ByteKeyRange",
    "ByteKeyRangeTracker",
    "ClaimedRecords",
    "OffsetRange",
    "OffsetRangeTracker",
    "RangeTracker",
    "SplitsItems",
    "UnsplittableRangeTracker",
]
