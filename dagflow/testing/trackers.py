"""A tracker under observation: its answers must follow from the calls before, whichever thread reads or splits."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NoReturn

import attrs

from dagflow.errors.wording import shown
from dagflow.ranges import OFFSET_INFINITY, RangeTracker
from dagflow.ranges.errors import UnboundedRange

LAW = "7, trackers"
ROUNDING = 1e-12  # of fractions

Fail = Callable[[str, str], NoReturn]


def is_before(position: Any, stop: Any) -> bool:
    """Tell whether a position lies before a stop; without an end, every one does."""
    return stop in (b"", None) or bool(position < stop)


@attrs.define(eq=False)
class Watched:
    """A tracker whose answers are checked, and that notes which split points were claimed. One thread may read, another split.

    Args:
        inner: the tracker.
        fail: is called with the law that is broken, and how.
    """

    inner: RangeTracker[Any]
    fail: Fail
    claimed: set[Any] = attrs.field(factory=set)
    granted_splits: int = 0
    _last: Any = None  # the split point claimed last
    _is_over: bool = False
    _fraction: float = 0.0
    _name: str = attrs.field(init=False, default=attrs.Factory(lambda self: self._called(), takes_self=True))
    _lock: Lock = attrs.field(init=False, factory=Lock)

    def _called(self) -> str:
        return f"{type(self.inner).__name__}({shown(self.inner.start_position)}, {shown(self.inner.stop_position)})"

    def wrong(self, what: str) -> NoReturn:
        """Report that the tracker breaks its rules."""
        self.fail(LAW, f"{self._name} {what}")

    # Claims

    def try_return_record_at(self, is_at_split_point: bool, record_start: Any) -> bool:
        """See RangeTracker."""
        stop = self.inner.stop_position
        answer = self.inner.try_return_record_at(is_at_split_point, record_start)
        if is_at_split_point:
            self._claims([record_start], int(answer), stop)
        return answer

    def try_return_batch_at(self, split_points: Sequence[Any]) -> int:
        """See RangeTracker."""
        stop = self.inner.stop_position
        count = self.inner.try_return_batch_at(split_points)
        self._claims(split_points, count, stop)
        return count

    def _claims(self, points: Sequence[Any], granted: int, stop: Any) -> None:
        """`stop` was the tracker's before the claim: it only ever decreases."""
        if not 0 <= granted <= len(points):
            self.wrong(f"granted {granted} of {len(points)} split points")
        if granted:
            last = points[granted - 1]
            if self._is_over:
                self.wrong(f"granted the split point {shown(last)} after it had refused one: a refused claim is the end")
            if not is_before(last, stop):
                self.wrong(f"granted the split point {shown(last)}, which is not before its stop, {shown(stop)}")
            self._last = last
            self.claimed.update(points[:granted])
        if granted < len(points):
            refused, now = points[granted], self.inner.stop_position
            if not self._is_over and refused >= self.inner.start_position and is_before(refused, now):
                self.wrong(
                    f"refused the split point {shown(refused)}, which is before its stop, {shown(now)}: its record is lost"
                )
            self._is_over = True
        self.look()

    # Figures

    @property
    def fraction_consumed(self) -> float:
        """See RangeTracker."""
        return self.look()

    def look(self) -> float:
        """Check the consumed fraction: between 0 and 1, never less than before, 1 after a refused claim."""
        with self._lock:
            is_over, consumed = self._is_over, self.inner.fraction_consumed
            if not 0.0 <= consumed <= 1.0:
                self.wrong(f"says that {consumed} of it is consumed: a fraction is from 0.0 to 1.0")
            if consumed < self._fraction - ROUNDING:
                self.wrong(f"says that {consumed} of it is consumed, and said {self._fraction} before: the fraction never falls")
            if is_over and consumed != 1.0:
                self.wrong(f"says that {consumed} of it is consumed after it has refused a claim: then all of it is, 1.0")
            self._fraction = max(self._fraction, consumed)
            return consumed

    # Splits

    def try_split_at_position(self, position: Any) -> bool:
        """See RangeTracker."""
        last, is_over, stop = self._last, self._is_over, self.inner.stop_position
        answer = self.inner.try_split_at_position(position)
        now = self.inner.stop_position
        if not answer:
            self._keeps(stop, now, f"at {shown(position)}")
        elif now != position:
            self.wrong(f"granted a split at {shown(position)}, but its stop is {shown(now)}: both sides read what lies between")
        else:
            self._gives(position, stop, last, is_over)
        return answer

    def try_split_at_fraction(self, fraction: float) -> Any:
        """See RangeTracker."""
        last, is_over, stop = self._last, self._is_over, self.inner.stop_position
        residual = self.inner.try_split_at_fraction(fraction)
        now = self.inner.stop_position
        if residual is None:
            self._keeps(stop, now, f"at the fraction {fraction}")
        elif residual.start != now:
            self.wrong(
                f"was split at the fraction {fraction}: the residual starts at {shown(residual.start)}, its stop is {shown(now)}"
            )
        elif residual.stop != stop:
            self.wrong(
                f"was split at the fraction {fraction}: the residual stops at {shown(residual.stop)}, it stopped at {shown(stop)}"
            )
        else:
            self._gives(now, stop, last, is_over)
        return residual

    def _keeps(self, stop: Any, now: Any, where: str) -> None:
        if now != stop:
            self.wrong(
                f"refused a split {where}, but its stop moved from {shown(stop)} to {shown(now)}: what lies between is lost"
            )

    def _gives(self, position: Any, stop: Any, last: Any, is_over: bool) -> None:
        self.granted_splits += 1
        if last is not None and position <= last:
            self.wrong(f"granted a split at {shown(position)}, although all up to {shown(last)} is consumed: that comes twice")
        if not is_before(position, stop) or position <= self.inner.start_position:
            self.wrong(f"granted a split at {shown(position)}, which does not lie in it: it stops at {shown(stop)}")
        if is_over:
            self.wrong(f"granted a split at {shown(position)} after it had refused a claim: nothing is left of it")
        self.look()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def watched(make_tracker: Callable[[Any, Any], Any], start: Any, stop: Any, fail: Fail) -> Watched:
    """Return the tracker of a range, watched."""
    made = Watched(make_tracker(start, stop), fail)
    end = OFFSET_INFINITY if stop is None else stop
    if (made.inner.start_position, made.inner.stop_position) != (start, end):
        made.wrong(f"was made of [{shown(start)}, {shown(end)})")
    return made


def check_tracker(make_tracker: Callable[[Any, Any], Any], bounds: tuple[Any, Any], points: Sequence[Any], fail: Fail) -> None:
    """Check the rules of RangeTracker over these split points of a range: claims, figures, fractions, splits, copies."""
    start, stop = bounds

    tracker = watched(make_tracker, start, stop, fail)
    if tracker.look() != 0.0 and points:
        tracker.wrong(f"says that {tracker.look()} of it is consumed before anything is: 0.0")
    is_measured = _check_fractions(tracker)
    moved, before = False, 0.0
    granted = {"position": 0, "fraction": 0}
    for number, point in enumerate(points):
        tracker.try_return_record_at(True, point)
        for after in points[number + 1 : number + 2]:
            granted["position"] += Watched(copy.copy(tracker.inner), fail).try_split_at_position(after)
            residual = Watched(copy.copy(tracker.inner), fail).try_split_at_fraction((1 + tracker.look()) / 2)
            granted["fraction"] += residual is not None
        moved, before = moved or tracker.look() > before, tracker.look()
        _check_split_points(tracker, number + 1)
        _check_copy(tracker, point)
        for wrong in (start, point, *points[:1]):
            tracker.try_split_at_position(wrong)  # is refused, or fails
        if stop not in (b"", None):
            tracker.try_split_at_position(stop)
    for kind, count in granted.items():
        if not count and len(points) > 1 and (is_measured or kind == "position"):
            tracker.wrong(f"was to be split at a {kind} after each claim, and none succeeded: nothing of it can be given away")
    if is_measured and len(points) > 1 and not moved:
        tracker.wrong(f"says that {before} of it is consumed whatever is claimed: a fraction tells how far a reader is")
    if stop not in (b"", None):
        tracker.try_return_record_at(True, stop)  # behind the end
        tracker.try_return_record_at(True, stop)
        _check_split_points(tracker, len(points))
        for position in points[1:]:
            tracker.try_split_at_position(position)
        tracker.try_split_at_fraction(0.9)


def has_fractions(tracker: RangeTracker[Any]) -> bool:
    """Tell whether a range has an end, or its tracker knows fractions without one."""
    try:
        tracker.position_at_fraction(0.5)
    except UnboundedRange:
        return False
    return True


def _check_fractions(watched: Watched) -> bool:
    """Check that positions at fractions rise from the start to the stop. Return False if the range has no fractions."""
    inner = watched.inner
    last, stop = inner.start_position, inner.stop_position
    if not has_fractions(inner):
        return False
    ends = {0: last, 10: stop}
    for step in range(11):
        position = inner.position_at_fraction(step / 10)
        where = f"has {shown(position)} as its position at the fraction {step / 10}"
        if position != ends.get(step, position):
            watched.wrong(f"{where}, not its {'stop' if step else 'start'}")
        if position != stop and (position < last or not is_before(position, stop)):
            watched.wrong(f"{where}, and {shown(last)} before that: positions rise to the stop")
        last = position if position != stop else last
    return True


def _check_split_points(watched: Watched, claimed: int) -> None:
    consumed, remaining = watched.inner.split_points()
    if not 0 <= consumed <= claimed or (remaining is not None and remaining < 0):
        watched.wrong(f"has split points {(consumed, remaining)} when {claimed} were claimed: (consumed, remaining or None)")


def _check_copy(watched: Watched, point: Any) -> None:
    """Check that a copy is in the same state, and independent."""
    inner = watched.inner
    twin = copy.copy(inner)
    state = inner.start_position, inner.stop_position, inner.fraction_consumed
    if (twin.start_position, twin.stop_position, twin.fraction_consumed) != state:
        watched.wrong(f"has a copy in another state, after the split point {shown(point)} was claimed")
    twin.try_split_at_fraction((1 + twin.fraction_consumed) / 2)
    twin.try_return_record_at(True, twin.stop_position)
    if (inner.start_position, inner.stop_position, inner.fraction_consumed) != state:
        watched.wrong("changes when a copy of it is split or claimed")
