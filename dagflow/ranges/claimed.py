"""Iterators that claim each record before they promise it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import attrs

from dagflow.ranges.tracker import P, RangeTracker

R = TypeVar("R")


def _iterator(records: Iterable[tuple[P, bool, R]]) -> Iterator[tuple[P, bool, R]]:
    return iter(records)  # a function of its own, since type checkers cannot infer the argument of `iter`


@attrs.define(eq=False)
class ClaimedRecords(Generic[P, R]):
    """The records that belong to the range of a tracker, each claimed before it is promised.

    `records` yields (position, is_split_point, record) in order, from the first split point at or after the start of the range.
    It may go beyond the range and look ahead: iteration ends at the first refused claim, and closes `records`. `has_next()`
        claims the record that it promises, but only once, since a split must not take a promised record (Beam's rule for
        `hasNext`). For one thread; other threads may split the tracker.

    >>> from dagflow.ranges import OffsetRangeTracker
    >>> tracker = OffsetRangeTracker(0, 10)
    >>> records = ClaimedRecords(tracker, [(0, True, "a"), (4, True, "b"), (12, True, "c")])
    >>> next(records), records.has_next(), records.has_next()
    ((0, True, 'a'), True, True)
    >>> tracker.try_split_at_position(4), tracker.try_split_at_position(5)
    (False, True)
    >>> list(records), tracker.fraction_consumed
    ([(4, True, 'b')], 1.0)
    """

    tracker: RangeTracker[P]
    _records: Iterator[tuple[P, bool, R]] = attrs.field(converter=_iterator)
    _promised: tuple[P, bool, R] | None = attrs.field(init=False, default=None)
    _is_over: bool = attrs.field(init=False, default=False)

    def has_next(self) -> bool:
        """Return whether there is another record of the range. True is a promise that it will be returned."""
        if self._promised is None and not self._is_over:
            record = next(self._records, None)
            if record is not None and self.tracker.try_return_record_at(record[1], record[0]):
                self._promised = record
            else:
                self.close()
        return self._promised is not None

    def close(self) -> None:
        """End the iteration, and close `records`. A promised record is still returned."""
        self._is_over = True
        close = getattr(self._records, "close", None)
        if close is not None:
            close()

    def __iter__(self) -> Iterator[tuple[P, bool, R]]:
        return self

    def __next__(self) -> tuple[P, bool, R]:
        if not self.has_next():
            raise StopIteration
        promised, self._promised = self._promised, None
        assert promised is not None
        return promised
