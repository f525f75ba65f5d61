"""The protocol of range trackers, and the state machine behind those whose ranges can be split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import attrs

from dagflow.ranges.errors import FirstNotSplitPoint, NoFraction, PositionsDecrease, RecordBeforeRange, SplitPointTwice


class Ordered(Protocol):
    """A position: positions can be compared with one another."""

    def __lt__(self, other: Any, /) -> bool: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...


P = TypeVar("P", bound=Ordered)


@runtime_checkable
class RangeTracker(Protocol[P]):
    """Decides which records belong to a range [start, stop) while it is read, as in Apache Beam. Thread-safe.

    A *split point* is a record at which a range can begin: its position is the largest A such that reading [A, …) returns it
    first. Positions of split points are unique, those of other records never decrease. *Consumed* is every position up to that of
    the record returned last, or promised: a promised record has been claimed already (see ClaimedRecords).

    The contract is the Javadoc of Beam's RangeTracker
    (https://beam.apache.org/releases/javadoc/current/org/apache/beam/sdk/io/range/RangeTracker.html).
    Where it is silent, or Beam's Java and Python differ, this holds for all trackers:

    - The start does not move, whatever the first record is (Java moves it).
    - The first record that is returned must be a split point: else FirstNotSplitPoint.
    - A split point before the start raises RecordBeforeRange. A departure: Beam's Javadoc returns False, which hides a reader's
      error until records come twice (Python returns True).
    - A record before the one returned last raises PositionsDecrease, a split point where the split point before it was raises
      SplitPointTwice. Both name both positions, for keys too (Java lets keys come twice).
    - A refused claim ends the range: later claims of split points and later splits are refused whatever their positions (Python
      would still split), and the fraction consumed is 1.0, even if nothing was returned.
    - A record that is not a split point belongs to the split point before it, also behind the stop and after a refused claim
      (Java refuses it there for keys). After a claim was refused with nothing returned before, it still cannot be the first.
    - A range that is not begun is not split by its tracker (Python's ordered tracker does): its owner can pass it on whole.
    - A claim that raises changes nothing.

    `copy.copy` returns an independent tracker in the same state. Trackers can be pickled, too.
    """

    @property
    def start_position(self) -> P:
        """The start of the range, inclusive. Never changes."""
        ...

    @property
    def stop_position(self) -> P:
        """The end of the range, exclusive: the position of the last split, if there was one."""
        ...

    @property
    def fraction_consumed(self) -> float:
        """The consumed fraction of the range: 0.0 at first, (last - start) / (stop - start), 1.0 after a refused claim."""
        ...

    def try_return_record_at(self, is_at_split_point: bool, record_start: P) -> bool:
        """Claim the record that starts there. True: the reader may return it, and it is consumed from now on.

        False exactly if it is a split point and does not belong to the range: the reader ends there. Must be called for every
        split point before it is returned, may be for other records.
        """
        ...

    def try_return_batch_at(self, split_points: Sequence[P]) -> int:
        """Claim the next split points at once; return how many of them the reader may return.

        They must be sorted; only the first and the last are checked, and all up to the last are consumed from now on. A batch
        that straddles the stop is cut there: the split points before the stop belong to the range and are consumed, the others
        do not, and the range is at its end, as after a refused claim. So any answer less than `len(split_points)` is the end.
        An empty batch claims nothing. Claimed records cannot be stolen, so a batch should not be large.
        """
        ...

    def try_split_at_position(self, position: P) -> bool:
        """Split the range. True: it now stops at `position`, and the caller owns [position, the previous stop).

        False if that position is consumed or not before the stop, before the first record, and after a refused claim.
        """
        ...

    def position_at_fraction(self, fraction: float) -> P:
        """Return the position at a fraction (0 to 1) of the current range, rounded up to a position."""
        ...

    def try_split_at_fraction(self, fraction: float) -> Any | None:
        """Return the residual range (`start`, `stop`) that is now the caller's, or None if the range was not split.

        The same as a split at `position_at_fraction(fraction)`, in one step. A range without an end has no fractions: None.
        """
        ...

    def split_points(self) -> tuple[int, int | None]:
        """Return the numbers of split points that are consumed with all that belongs to them, and that remain; None: not known.

        The one that is being read counts among the remaining.
        """
        ...


@attrs.define(eq=False, repr=False)
class PositionTracker(ABC, Generic[P]):
    """The state machine of RangeTracker, for positions of any kind. `_stop` is None where the range has no end.

    Fields have no validators: with them, attrs would check each of the assignments that a claim consists of.
    """

    _start: P
    _stop: P | None
    _last: P | None = attrs.field(init=False, default=None)
    _last_split_point: P | None = attrs.field(init=False, default=None)
    _claimed: int = attrs.field(init=False, default=0)
    _is_over: bool = attrs.field(init=False, default=False)
    _lock: Lock = attrs.field(init=False, factory=Lock)

    # Supplied for each kind of positions

    @property
    @abstractmethod
    def stop_position(self) -> P:
        """See RangeTracker."""

    @abstractmethod
    def _range(self, start: P, stop: P | None) -> Any:
        """Return a range in the type that users get."""

    @abstractmethod
    def _as_position(self, value: P) -> P:
        """Return a position in the type that is stored. Raises TypeError."""

    @abstractmethod
    def _after(self, position: P) -> P:
        """Return the smallest position after this one."""

    @abstractmethod
    def _fraction_at(self, position: P) -> float:
        """Return the fraction of the range at which a position before the stop lies."""

    @abstractmethod
    def _position_at(self, fraction: float) -> P:
        """See RangeTracker.position_at_fraction; raises UnboundedRange."""

    def _has_fractions(self) -> bool:
        return True

    # Shared by all kinds

    @property
    def start_position(self) -> P:
        """See RangeTracker."""
        return self._start

    def try_return_record_at(self, is_at_split_point: bool, record_start: P) -> bool:
        """See RangeTracker."""
        with self._lock:
            if is_at_split_point:
                if self._is_over:
                    return False
                last = self._last
                if last is None or record_start <= last:
                    self._check_split_point(record_start)
                stop = self._stop
                if stop is not None and record_start >= stop:
                    self._is_over = True
                    return False
                self._last_split_point = record_start
                self._claimed += 1
            else:
                last = self._last
                if last is None:
                    raise FirstNotSplitPoint(position=record_start, start=self._start, stop=self.stop_position)
                if record_start < last:
                    raise PositionsDecrease(position=record_start, last=last)
            self._last = record_start
            return True

    def try_return_batch_at(self, split_points: Sequence[P]) -> int:
        """See RangeTracker."""
        count = len(split_points)
        if not count:
            return 0
        first, last = self._as_position(split_points[0]), self._as_position(split_points[-1])
        with self._lock:
            if self._is_over:
                return 0
            self._check_split_point(first)
            if count > 1 and last <= first:
                raise (
                    SplitPointTwice(position=last, last=first) if last == first else PositionsDecrease(position=last, last=first)
                )
            stop = self._stop
            if stop is not None and last >= stop:
                self._is_over = True
                count = bisect_left(split_points, stop)
                if not count:
                    return 0
                last = self._as_position(split_points[count - 1])
            self._last = self._last_split_point = last
            self._claimed += count
            return count

    def _check_split_point(self, position: P) -> None:
        if self._last is None:
            if position < self._start:
                raise RecordBeforeRange(position=position, start=self._start)
        elif position == self._last_split_point:
            raise SplitPointTwice(position=position, last=self._last_split_point)
        elif position < self._last:
            raise PositionsDecrease(position=position, last=self._last)

    def try_split_at_position(self, position: P) -> bool:
        """See RangeTracker."""
        position = self._as_position(position)
        with self._lock:
            return self._try_split(position)

    def _try_split(self, position: P) -> bool:
        last, stop = self._last, self._stop
        if last is None or self._is_over or position <= last or (stop is not None and position >= stop):
            return False
        self._stop = position
        return True

    def position_at_fraction(self, fraction: float) -> P:
        """See RangeTracker. Raises NoFraction, UnboundedRange."""
        check_fraction(fraction)
        with self._lock:
            return self._position_at(fraction)

    def try_split_at_fraction(self, fraction: float) -> Any | None:
        """See RangeTracker. Raises NoFraction."""
        check_fraction(fraction)
        with self._lock:
            if not self._has_fractions():
                return None
            position, stop = self._position_at(fraction), self._stop
            return self._range(position, stop) if self._try_split(position) else None

    @property
    def fraction_consumed(self) -> float:
        """See RangeTracker."""
        with self._lock:
            last, stop = self._last, self._stop
            if self._is_over or (last is not None and stop is not None and last >= stop):
                return 1.0
            if last is None or not self._has_fractions():
                return 0.0
            return self._fraction_at(last)

    def split_points(self) -> tuple[int, int | None]:
        """See RangeTracker."""
        with self._lock:
            stop, last = self._stop, self._last
            if self._is_over:
                return self._claimed, 0
            if last is None:
                return 0, 0 if stop is not None and self._start >= stop else None
            return self._claimed - 1, 1 if stop is not None and self._after(last) >= stop else None

    def __repr__(self) -> str:
        with self._lock:
            last = "nothing returned" if self._last is None else f"last at {self._last}"
            return f"{type(self).__name__}({self._start!r}, {self.stop_position!r}: {last}{', over' if self._is_over else ''})"

    def __reduce__(self) -> Any:
        with self._lock:
            state = (self._last, self._last_split_point, self._claimed, self._is_over)
            return _rebuilt, (type(self), self._start, self.stop_position, state)


def _rebuilt(cls: type[PositionTracker[Any]], start: Any, stop: Any, state: tuple[Any, Any, int, bool]) -> PositionTracker[Any]:
    tracker = cls(start, stop)
    tracker._last, tracker._last_split_point, tracker._claimed, tracker._is_over = state
    return tracker


def check_fraction(fraction: float) -> None:
    """Raise NoFraction for numbers outside of 0 to 1, and for NaN."""
    if not 0.0 <= fraction <= 1.0:
        raise NoFraction(fraction=fraction)
