"""Iteration that claims what it promises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import attrs

from dagflow.ranges.tracker import P, RangeTracker

R = TypeVar("R")


def _iterator(found: Iterable[tuple[P, bool, R]]) -> Iterator[tuple[P, bool, R]]:
    return iter(found)  # a converter of its own, as type checkers cannot infer what `iter` takes


@attrs.define(eq=False)
class ClaimedRecords(Generic[P, R]):
    """Those of the found records that belong to a tracker's range, each claimed before it is promised.

    `found` yields (position, is_split_point, record) in order, from the first split point at or after the range's start; as far
    as it likes, for this ends at the first record that is refused, and closes `found`. It may look ahead: what it has
    found is not claimed. `has_next()` claims the record that it promises, once, however often it is asked, since a split must
    not take what was promised (Beam's rule for `hasNext`). For one thread; others may split the tracker.

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
    _found: Iterator[tuple[P, bool, R]] = attrs.field(converter=_iterator)
    _promised: tuple[P, bool, R] | None = attrs.field(init=False, default=None)
    _is_over: bool = attrs.field(init=False, default=False)

    def has_next(self) -> bool:
        """Tell whether there is another record of the range. True is a promise that it will be returned."""
        if self._promised is None and not self._is_over:
            found = next(self._found, None)
            if found is not None and self.tracker.try_return_record_at(found[1], found[0]):
                self._promised = found
            else:
                self.close()
        return self._promised is not None

    def close(self) -> None:
        """End it, and what finds the records. What was promised is still returned."""
        self._is_over = True
        close = getattr(self._found, "close", None)
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
