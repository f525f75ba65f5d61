"""Range trackers: the owner of each position of a range, and the splits of a range while it is read.

A reader of the range [start, stop) returns the records from the first *split point* at or after start up to, not including,
the first split point at or after stop. It claims each record from the tracker of the range before it returns it. A task that
takes part of the work splits the same tracker, at any time, from any thread.

Read `tracker` (the protocol with its rules, and the state machine), then `offsets`, `keys` and `unsplittable` (the trackers),
then `claimed` (records that are claimed before they are promised) and `splitting` (work items that can be split).
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
