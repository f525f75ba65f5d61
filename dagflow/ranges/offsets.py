"""Ranges of offsets: bytes of a file, rows, or anything else with a number."""

from __future__ import annotations

import math
from operator import index
from typing import ClassVar, NamedTuple

import attrs

from dagflow.ranges.errors import NoRange, UnboundedRange
from dagflow.ranges.tracker import PositionTracker

OFFSET_INFINITY = (1 << 63) - 1
"""The stop of a range without an end: an integer that fits into 64 bits, as in Java, so that it can be compared, stored and sent
like any other stop. Where a range is made, `None` and `math.inf` mean the same."""


class OffsetRange(NamedTuple):
    """The offsets [start, stop).

    >>> OffsetRange(10, 20) == (10, 20)
    True
    """

    start: int
    stop: int


@attrs.define(init=False, eq=False, repr=False)
class OffsetRangeTracker(PositionTracker[int]):
    """Tracks a range of offsets [start, stop); `stop` may be None: no end. The rules are those of RangeTracker.

    >>> tracker = OffsetRangeTracker(100, 200)
    >>> tracker.try_split_at_position(150)  # nothing returned yet
    False
    >>> tracker.try_return_record_at(True, 110), tracker.fraction_consumed
    (True, 0.1)
    >>> tracker.try_split_at_position(110), tracker.try_split_at_fraction(0.5)
    (False, OffsetRange(start=150, stop=200))
    >>> tracker.try_return_record_at(True, 149), tracker.try_return_record_at(True, 150), tracker.fraction_consumed
    (True, False, 1.0)
    >>> OffsetRangeTracker(*OffsetRange(150, 200)).try_return_batch_at([150, 180, 210])
    2

    A position at a fraction is rounded up (Java: down), except for errors of floating point: the position at `k / n` of n
    offsets is the k-th. A range without an end does not have fractions: its consumed fraction is 0.0 until it is split at a
    position (which Beam refuses); then it has an end. Raises NoRange for a stop before the start, TypeError for a bound that is
    not an integer.
    """

    OFFSET_INFINITY: ClassVar[int] = OFFSET_INFINITY

    def __init__(self, start: int, stop: int | float | None) -> None:
        first = index(start)
        end = OFFSET_INFINITY if stop is None or stop == math.inf else index(stop)  # type: ignore[arg-type]  # other floats raise
        if first > end:
            raise NoRange(start=first, stop=end)
        self.__attrs_init__(first, end)  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def stop_position(self) -> int:
        """The end of the range, exclusive; OFFSET_INFINITY if it has none."""
        assert self._stop is not None
        return self._stop

    def _range(self, start: int, stop: int | None) -> OffsetRange:
        return OffsetRange(start, OFFSET_INFINITY if stop is None else stop)

    def _as_position(self, value: int) -> int:
        return index(value)

    def _after(self, position: int) -> int:
        return position + 1

    def _has_fractions(self) -> bool:
        return self._stop != OFFSET_INFINITY

    def _fraction_at(self, position: int) -> float:
        return (position - self._start) / (self.stop_position - self._start)

    def _position_at(self, fraction: float) -> int:
        if not self._has_fractions():
            raise UnboundedRange(start=self._start)
        size = self.stop_position - self._start
        exact = fraction * size
        nearest = round(exact)
        steps = nearest if abs(exact - nearest) <= exact * 2**-51 else math.ceil(exact)
        return self._start + min(steps, size)
