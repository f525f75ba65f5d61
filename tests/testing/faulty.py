"""Trackers with one fault each, which proofs must find."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dagflow.ranges import OffsetRangeTracker
from dagflow.ranges.offsets import OffsetRange


class SplitsConsumed(OffsetRangeTracker):
    """The position of the last record may be given away."""

    def _try_split(self, position: int) -> bool:
        if self._last is None or position < self._last or position >= self.stop_position:
            return False
        self._stop = position
        return True


class KeepsItsStop(OffsetRangeTracker):
    """A split is granted, and the stop stays."""

    def try_split_at_position(self, position: int) -> bool:
        stop = self._stop
        answer = super().try_split_at_position(position)
        self._stop = stop
        return answer


class KeepsItsStopAtAFraction(OffsetRangeTracker):
    """A split at a fraction is granted, and the stop stays."""

    def try_split_at_fraction(self, fraction: float) -> Any:
        stop = self._stop
        residual = super().try_split_at_fraction(fraction)
        self._stop = stop
        return residual


class SplitsElsewhere(OffsetRangeTracker):
    """The stop is one behind the position that was asked for."""

    def _try_split(self, position: int) -> bool:
        return super()._try_split(position + 1)


class StartsOneTooLate(OffsetRangeTracker):
    """The residual lacks its first position."""

    def try_split_at_fraction(self, fraction: float) -> Any:
        residual = super().try_split_at_fraction(fraction)
        return None if residual is None else OffsetRange(residual.start + 1, residual.stop)


class ForgetsTheEnd(OffsetRangeTracker):
    """The residual lacks its last positions."""

    def _range(self, start: int, stop: int | None) -> Any:
        return super()._range(start, None if stop is None else stop - 4)


class MovesWhereItRefuses(OffsetRangeTracker):
    """The stop moves, and the answer is no."""

    def try_split_at_position(self, position: int) -> bool:
        super().try_split_at_position(position)
        return False


class SplitsBehindItsStop(OffsetRangeTracker):
    """A defect: it gives away ranges that others own already."""

    def try_split_at_position(self, position: int) -> bool:
        if self._last is not None and position >= self.stop_position:
            self._stop = position
            return True
        return super().try_split_at_position(position)


class SplitsWhenOver(OffsetRangeTracker):
    """A refused claim is not the end of splits."""

    def _try_split(self, position: int) -> bool:
        self._is_over, is_over = False, self._is_over
        answer = super()._try_split(position)
        self._is_over = is_over
        return answer


class NeverSplitsAtAFraction(OffsetRangeTracker):
    """Only positions are granted: those that ask for work know fractions."""

    def try_split_at_fraction(self, fraction: float) -> Any:
        return None


class NeverSplitsAtAPosition(OffsetRangeTracker):
    """Only fractions are granted."""

    def try_split_at_position(self, position: int) -> bool:
        return False


class ClaimsItsStop(OffsetRangeTracker):
    """The stop belongs to the range."""

    def try_return_record_at(self, is_at_split_point: bool, record_start: int) -> bool:
        if is_at_split_point and record_start == self._stop and self._last is not None:
            return True
        return super().try_return_record_at(is_at_split_point, record_start)


class RefusesItsLast(OffsetRangeTracker):
    """The last positions of a range are refused."""

    def try_return_record_at(self, is_at_split_point: bool, record_start: int) -> bool:
        if is_at_split_point and self._last is not None and record_start >= self.stop_position - 3:
            self._is_over = True
            return False
        return super().try_return_record_at(is_at_split_point, record_start)


class GrantsAgain(OffsetRangeTracker):
    """A refused claim is forgotten: what follows is granted."""

    def try_return_record_at(self, is_at_split_point: bool, record_start: int) -> bool:
        if self._is_over:
            return True
        return super().try_return_record_at(is_at_split_point, record_start)


class GrantsWholeBatches(OffsetRangeTracker):
    """A batch that straddles the stop is granted whole."""

    def try_return_batch_at(self, split_points: Sequence[int]) -> int:
        super().try_return_batch_at(split_points)
        return len(split_points)


class ConsumesFive(OffsetRangeTracker):
    """A fraction of 5.0."""

    @property
    def fraction_consumed(self) -> float:
        return 5.0


class ConsumesLess(OffsetRangeTracker):
    """A defect: the fraction that remains, not the one that is consumed."""

    @property
    def fraction_consumed(self) -> float:
        return 1.0 - super().fraction_consumed


class ConsumesNothing(OffsetRangeTracker):
    """The fraction says nothing."""

    @property
    def fraction_consumed(self) -> float:
        return 1.0 if self._is_over else 0.0


class ConsumesNoNumber(OffsetRangeTracker):
    """The fraction is NaN."""

    @property
    def fraction_consumed(self) -> float:
        return math.nan


class IsNeverDone(OffsetRangeTracker):
    """After a refused claim, not all is consumed."""

    @property
    def fraction_consumed(self) -> float:
        return min(0.99, super().fraction_consumed)


class Sawtooth(OffsetRangeTracker):
    """The fraction falls now and then."""

    @property
    def fraction_consumed(self) -> float:
        found = super().fraction_consumed
        return found if found in (0.0, 1.0) else found * 10 % 1.0


class CopiesItself(OffsetRangeTracker):
    """A copy is the tracker itself."""

    def __copy__(self) -> CopiesItself:
        return self


class CopiesItsStart(OffsetRangeTracker):
    """A copy begins anew."""

    def __copy__(self) -> CopiesItsStart:
        return type(self)(self._start, self._stop)


class FallingPositions(OffsetRangeTracker):
    """Positions at fractions fall."""

    def _position_at(self, fraction: float) -> int:
        return super()._position_at(fraction if fraction in (0.0, 1.0) else 1.0 - fraction)


class PositionsOutside(OffsetRangeTracker):
    """The position at 1.0 is not the stop."""

    def _position_at(self, fraction: float) -> int:
        return super()._position_at(fraction) + 1


class CountsTooMany(OffsetRangeTracker):
    """More split points are consumed than were claimed."""

    def split_points(self) -> tuple[int, int | None]:
        consumed, remaining = super().split_points()
        return consumed + 2, remaining


class HasAnotherStart(OffsetRangeTracker):
    """Its range is not the one that it was made of."""

    def __init__(self, start: int, stop: int | float | None) -> None:
        super().__init__(start, stop if stop is None else max(start, stop - 1))


FAULTS: list[tuple[Any, str]] = [
    (SplitsConsumed, "7, trackers: .* granted a split at 0, although all up to 0 is consumed"),
    (KeepsItsStop, r"7, trackers: .* granted a split at \d+, but its stop is \d+"),
    (KeepsItsStopAtAFraction, r"7, trackers: .* was split at the fraction .*: the residual starts at \d+, its stop is \d+"),
    (SplitsElsewhere, "7, trackers: .* granted a split at"),
    (StartsOneTooLate, r"7, trackers: .*: the residual starts at \d+, its stop is \d+"),
    (ForgetsTheEnd, r"7, trackers: .*: the residual stops at \d+, it stopped at \d+"),
    (MovesWhereItRefuses, r"7, trackers: .* refused a split .*, but its stop moved from \d+ to \d+"),
    (SplitsBehindItsStop, r"7, trackers: .* granted a split at 29, which does not lie in it: it stops at 29"),
    (SplitsWhenOver, "7, trackers: .* granted a split .* after it had refused a claim"),
    (NeverSplitsAtAFraction, "7, trackers: .* at a fraction after each claim, and none succeeded"),
    (NeverSplitsAtAPosition, "7, trackers: .* at a position after each claim, and none succeeded"),
    (ClaimsItsStop, r"7, trackers: .* granted the split point \d+, which is not before its stop"),
    (RefusesItsLast, r"7, trackers: .* refused the split point \d+, which is before its stop"),
    (GrantsAgain, r"7, trackers: .* granted the split point \d+ after it had refused one"),
    (ConsumesFive, "7, trackers: .* 5.0 of it is consumed: a fraction is from 0.0 to 1.0"),
    (ConsumesLess, "7, trackers: .* 1.0 of it is consumed|of it is consumed, and said"),
    (ConsumesNothing, "7, trackers: .* 0.0 of it is consumed whatever is claimed"),
    (ConsumesNoNumber, "7, trackers: .* nan of it is consumed"),
    (IsNeverDone, "7, trackers: .* 0.99 of it is consumed after it has refused a claim"),
    (Sawtooth, "7, trackers: .* of it is consumed, and said .* before: the fraction never falls"),
    (CopiesItself, "7, trackers: .* changes when a copy of it is split or claimed"),
    (CopiesItsStart, "7, trackers: .* has a copy in another state"),
    (FallingPositions, "7, trackers: .* before that: positions rise"),
    (PositionsOutside, "7, trackers: .* as its position at the fraction 0.0, not its start"),
    (CountsTooMany, r"7, trackers: .* has split points \(\d+, None\) when \d+ were claimed"),
    (HasAnotherStart, r"7, trackers: .* was made of \[0, 29\)"),
]
"""Each tracker, and what the proof says of it."""
