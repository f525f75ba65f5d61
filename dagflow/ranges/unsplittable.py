"""Ranges that cannot be split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar, cast

import attrs

from dagflow.ranges.keys import ByteKeyRangeTracker
from dagflow.ranges.offsets import OffsetRangeTracker
from dagflow.ranges.tracker import RangeTracker, check_fraction

P = TypeVar("P")


@attrs.define(init=False, eq=False, repr=False)
class UnsplittableRangeTracker(Generic[P]):
    """Tracks a range that is never split, such as a plain `.gz` file: all splits are refused.

    Made from start and stop: integers (None for no end) or bytes; or from another tracker, which it wraps.
    The whole range counts as one split point.

    >>> tracker = UnsplittableRangeTracker(100, 200)
    >>> tracker.try_return_record_at(True, 110), tracker.try_split_at_position(150), tracker.try_split_at_fraction(0.9)
    (True, False, None)
    >>> tracker.fraction_consumed, tracker.split_points()
    (0.1, (0, 1))
    """

    _inner: RangeTracker[Any]

    def __init__(self, start: P | RangeTracker[Any], stop: P | None = None) -> None:
        inner: Any = start
        if isinstance(start, bytes):
            inner = ByteKeyRangeTracker(start, cast("bytes", stop or b""))
        elif not isinstance(start, RangeTracker):
            inner = OffsetRangeTracker(cast("int", start), cast("int | None", stop))
        self.__attrs_init__(inner)  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def start_position(self) -> P:
        """See RangeTracker."""
        return cast("P", self._inner.start_position)

    @property
    def stop_position(self) -> P:
        """See RangeTracker; never changes."""
        return cast("P", self._inner.stop_position)

    @property
    def fraction_consumed(self) -> float:
        """See RangeTracker."""
        return self._inner.fraction_consumed

    def try_return_record_at(self, is_at_split_point: bool, record_start: P) -> bool:
        """See RangeTracker."""
        return self._inner.try_return_record_at(is_at_split_point, record_start)

    def try_return_batch_at(self, split_points: Sequence[P]) -> int:
        """See RangeTracker."""
        return self._inner.try_return_batch_at(split_points)

    def try_split_at_position(self, position: P) -> bool:
        """Return False: the range is never split."""
        return False

    def position_at_fraction(self, fraction: float) -> P:
        """See RangeTracker."""
        return cast("P", self._inner.position_at_fraction(fraction))

    def try_split_at_fraction(self, fraction: float) -> None:
        """Return None: the range is never split. Raises NoFraction."""
        check_fraction(fraction)

    def split_points(self) -> tuple[int, int | None]:
        """Return (0, 1) until the range is at its end, then (1, 0), or (0, 0) if it was empty."""
        consumed, remaining = self._inner.split_points()
        return (min(consumed, 1), 0) if remaining == 0 else (0, 1)

    def __repr__(self) -> str:
        return f"UnsplittableRangeTracker({self._inner!r})"

    def __copy__(self) -> UnsplittableRangeTracker[P]:
        import copy

        return UnsplittableRangeTracker(copy.copy(self._inner))
