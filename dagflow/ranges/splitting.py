"""Cuts of ranges whose positions only their tracker understands: by fractions, never by arithmetic."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from dagflow.ranges.keys import ByteKeyRangeTracker
from dagflow.ranges.offsets import OffsetRangeTracker
from dagflow.ranges.tracker import RangeTracker

JUST_BEHIND = (2.0**-40, 2.0**-20)
"""Fractions of a range just behind the consumed part, at which a split may succeed. Positions are rounded up."""


@runtime_checkable
class SplitsItems(Protocol):
    """An operator whose work items may be split while they are read. An item is an attrs class with fields `start` and `stop`.

    A part of an item is the same item with another `start` or `stop`. Positions may be integers, floats, strings, bytes or
    tuples of them: whatever the tracker orders.
    """

    def can_split(self, item: Any) -> bool:
        """Return whether different tasks may read parts of an item."""
        ...

    def tracker_of(self, item: Any) -> RangeTracker[Any]:
        """Return a new tracker of the range of an item, or of a part of one: `start` to `stop`."""
        ...


def tracker_between(start: Any, stop: Any) -> RangeTracker[Any] | None:
    """Return the tracker of a range of integers or of keys, by its bounds; None for other positions.

    >>> tracker_between(0, 10), tracker_between("a", "b")
    (OffsetRangeTracker(0, 10: nothing returned), None)
    """
    if isinstance(start, bytes):
        return ByteKeyRangeTracker(start, stop)
    return OffsetRangeTracker(start, stop) if isinstance(start, int) else None


def fraction_at(tracker: RangeTracker[Any], position: Any) -> float:
    """Return the fraction of a position in the range of a tracker that has not begun: 0.0 at its start, 1.0 at its stop.

    >>> fraction_at(ByteKeyRangeTracker(b"0", b"8"), b"2"), fraction_at(OffsetRangeTracker(10, 20), 20)
    (0.25, 1.0)
    """
    probe = copy.copy(tracker)
    probe.try_return_record_at(True, position)
    return probe.fraction_consumed


def cut_at(tracker: RangeTracker[Any], fraction: float) -> Any | None:
    """Return the position at which a range that has not begun can be cut in two, at about a fraction; None: it cannot.

    >>> cut_at(OffsetRangeTracker(10, 20), 0.25), cut_at(OffsetRangeTracker(10, 11), 0.5)
    (13, None)
    >>> cut_at(ByteKeyRangeTracker(b"0", b"8"), 0.5)
    ByteKey.fromhex('34')
    """
    probe = copy.copy(tracker)
    if not probe.try_return_record_at(True, probe.start_position):
        return None  # an empty range
    return None if probe.try_split_at_fraction(fraction) is None else probe.stop_position


def cuts(tracker: RangeTracker[Any], count: int) -> Iterator[Any]:
    """Yield the positions that cut a range that has not begun into at most `count` parts, about equally large.

    >>> list(cuts(OffsetRangeTracker(10, 20), 3)), list(cuts(OffsetRangeTracker(10, 12), 4))
    ([14, 17], [11])
    """
    last = None
    for number in range(1, count):
        position = cut_at(tracker, number / count)
        if position is not None and (last is None or position > last):
            yield position
            last = position


def split_off(tracker: RangeTracker[Any], share: float) -> bool:
    """Split a range that is being read, after a share (0 to 1) of the part that is not consumed; 1.0: all of it.

    If that is refused, since there is no position, split off more.

    >>> tracker = OffsetRangeTracker(0, 1000)
    >>> tracker.try_return_record_at(True, 500), split_off(tracker, 0.5), tracker.stop_position
    (True, True, 750)
    >>> split_off(tracker, 1.0), tracker.stop_position, split_off(tracker, 1.0)
    (True, 501, False)
    """
    consumed = tracker.fraction_consumed
    middle = 1 - share * (1 - consumed)
    for fraction in (middle, (middle + consumed) / 2, *(consumed + least for least in JUST_BEHIND)):
        if consumed < fraction < 1 and tracker.try_split_at_fraction(fraction) is not None:
            return True
    return False
