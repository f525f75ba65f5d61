"""The items of a task: parts that have not begun, the part in progress, and the throughput so far. No files, no clock."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import attrs

from dagflow.model.plain import shown
from dagflow.model.protocols import DividesItems, WeighsItems
from dagflow.ranges import RangeTracker, SplitsItems
from dagflow.ranges.splitting import cut_at, cuts, fraction_at, split_off, tracker_between
from dagflow.runtime.stage.parts import Part, narrowed

LEAST = 64  # of a part that weighs less, a record that is being read is taken to be at least one of so many
NEXT_TO_NOTHING = (
    1e-9  # of an item: a part of it is at least that, also where its positions lie too near to one another for fractions
)
RECENT = 0.25  # seconds that the pace of a part at hand is taken from: it may be another one than at its start
NOISE = 1e-14  # relative: figures of consumed work that differ by less are those of one record, before and after a split


@attrs.frozen
class PendingItem:
    """A part of an item that a task has: the item as it travels and as its operator gets it, and how much the part is.

    `weight`: of a part, the item's share of what the operator says of all of it.
    """

    part: Part
    item: tuple[str, str, Any]
    value: Any
    operator: Any
    weight: float
    can_cut: bool

    @classmethod
    def of(cls, part: Part, item: Any, value: Any, operator: Any) -> PendingItem:
        """What the operator says of an item: `can_split(value)` and `item_weight(value)`, where it has them."""
        whole, can_cut = weight_of(operator, value), _can_cut(operator, value)
        weight = max(whole * NEXT_TO_NOTHING, whole * _share(operator, value, part)) if can_cut else whole
        return cls(part, item, value, operator, weight, can_cut)

    @property
    def start(self) -> Any:
        """The position at which it starts; None: the item says."""
        return getattr(self.value, "start", None) if self.part.start is None else self.part.start

    @property
    def stop(self) -> Any:
        """The position at which it stops; None: the item says."""
        return getattr(self.value, "stop", None) if self.part.stop is None else self.part.stop

    @property
    def least(self) -> float:
        """How much a record is taken to be while nothing else is known."""
        return min(1.0, self.weight / LEAST)

    def tracker(self) -> RangeTracker[Any] | None:
        """A new tracker of its range; None where it cannot be cut."""
        if not self.can_cut:
            return None
        return _tracker(self.operator, self.value if self.part.is_whole else narrowed(self.value, self.part))

    def cut(self, fraction: float) -> tuple[PendingItem, PendingItem] | None:
        """Two parts, cut at about a fraction; None: no position lies there."""
        tracker = self.tracker()
        position = None if tracker is None else cut_at(tracker, fraction)
        if tracker is None or position is None:
            return None
        first = fraction_at(tracker, position)
        number, start, stop = self.part[:3]
        return (
            attrs.evolve(self, part=Part(number, start, position), weight=self.weight * first),
            attrs.evolve(self, part=Part(number, position, stop), weight=self.weight * (1 - first)),
        )

    def pieces(self, count: int) -> list[PendingItem]:
        """At most so many parts, about equally large."""
        tracker = self.tracker()
        between = [] if tracker is None else list(cuts(tracker, count))
        number, start, stop = self.part[:3]
        bounds = [start, *between, stop]
        parts = [Part(number, bounds[n], bounds[n + 1]) for n in range(len(bounds) - 1)]
        return [PendingItem.of(part, self.item, self.value, self.operator) for part in parts]

    @property
    def name(self) -> str:
        """What it is called where users read of it."""
        path = getattr(self.value, "file_path", None)
        if path is None:
            return f"{shown(self.value)} of {self.item[0]!r}"
        start = getattr(self.value, "start", 0)
        return f"{path} from byte {start} on" if start else str(path)


def weight_of(operator: Any, value: Any) -> float:
    """How much an item is: what its operator says (`item_weight`), the size of a range of integers, else 1."""
    if _is(operator, WeighsItems):
        return max(1.0, float(operator.item_weight(value)))
    start, stop = getattr(value, "start", None), getattr(value, "stop", None)
    return float(max(1, stop - start)) if isinstance(start, int) and isinstance(stop, int) else 1.0


def _can_cut(operator: Any, value: Any) -> bool:
    return (
        _is(operator, DividesItems)
        and bool(operator.can_split(value))
        and (_is(operator, SplitsItems) or isinstance(value.start, int | bytes))
    )


def _is(operator: Any, protocol: Any) -> bool:
    kind: Any = type(operator)
    return _has(kind, protocol)


@functools.cache  # the test of a protocol costs microseconds
def _has(kind: Any, protocol: Any) -> bool:
    return issubclass(kind, protocol)


def _tracker(operator: Any, value: Any) -> RangeTracker[Any] | None:
    if _is(operator, SplitsItems):
        made: RangeTracker[Any] = operator.tracker_of(value)
        return made
    return tracker_between(value.start, value.stop)


def _share(operator: Any, value: Any, part: Part) -> float:
    """How much of an item a part of it is, from 0 to 1."""
    if part.is_whole:
        return 1.0
    whole = _tracker(operator, value)
    assert whole is not None
    first = 0.0 if part.start is None else fraction_at(whole, part.start)
    return (1.0 if part.stop is None else fraction_at(whole, part.stop)) - first


@attrs.define
class ItemQueue:
    """What a task has not begun, in order, and how much it is in all: there may be very many items, and it is asked often."""

    _held: deque[PendingItem] = attrs.field(factory=deque)
    weight: float = 0.0

    def __bool__(self) -> bool:
        return bool(self._held)

    def __iter__(self) -> Iterator[PendingItem]:
        return iter(self._held)

    @property
    def last(self) -> PendingItem:
        """What comes last."""
        return self._held[-1]

    def put(self, held: PendingItem) -> None:
        """Appends something."""
        self._held.append(held)
        self.weight += held.weight

    def first(self) -> PendingItem:
        """Takes what comes next."""
        return self._taken(self._held.popleft())

    def take_last(self) -> PendingItem:
        """Takes what comes last."""
        return self._taken(self._held.pop())

    def _taken(self, held: PendingItem) -> PendingItem:
        self.weight = self.weight - held.weight if self._held else 0.0
        return held


@attrs.define
class ItemInProgress:
    """The part at hand: since when, its tracker, and when of late something was claimed: each time, and how much was before.

    How much that is comes from the fractions of the tracker, which alone knows what positions are.
    """

    held: PendingItem
    since: float
    tracker: Any = None
    is_read: bool = attrs.field(init=False, default=False)
    """Nothing of it is given away any more."""
    completes: bool = attrs.field(init=False, default=False)
    """Whether all of its item has been read with it."""
    _untouched: Any = attrs.field(init=False, default=None)  # a tracker of the same range, of which nothing is consumed
    _span: tuple[Any, float] | None = attrs.field(init=False, default=None)  # a stop, and how much the part is up to it
    _claims: deque[tuple[float, float]] = attrs.field(
        init=False, default=attrs.Factory(lambda self: deque([(self.since, 0.0)]), takes_self=True)
    )
    _claimed: float = attrs.field(init=False, default=0.0)
    _split_points: int = attrs.field(init=False, default=0)
    _seen: int = attrs.field(init=False, default=0)

    def track(self, tracker: Any) -> None:
        """From now on it is read through a tracker; one of another range than the part's cannot be used."""
        untouched = self.held.tracker()
        bounds = None if untouched is None else (untouched.start_position, untouched.stop_position)
        if bounds == (tracker.start_position, tracker.stop_position):
            self.tracker, self._untouched = tracker, untouched

    def look(self, now: float) -> None:
        """Sees how far it is."""
        before, self._claimed = self._claimed, self.consumed
        points, self._split_points = self._split_points, self.split_points
        if points != self._split_points or abs(self._claimed - before) > NOISE * before:
            self._claims.append((now, before))
            self._seen += 1
        while len(self._claims) > 1 and now - self._claims[1][0] >= RECENT:
            self._claims.popleft()

    @property
    def claimed_at(self) -> float:
        """When the present record was claimed."""
        return self._claims[-1][0]

    def rate(self, now: float) -> float:
        """Seconds for each unit of its weight, of late."""
        if self.tracker is None:
            return (now - self.since) / self.held.weight
        began, before = self._claims[0]
        return (now - began) / max(self.held.least, self.consumed - before)

    @property
    def split_points(self) -> int:
        """How many split points have been read."""
        return 0 if self.tracker is None else int(self.tracker.split_points()[0])

    @property
    def consumed(self) -> float:
        """How much of it is claimed."""
        return 0.0 if self.tracker is None else float(self.tracker.fraction_consumed * self.span)

    @property
    def span(self) -> float:
        """How much it is up to where it stops now: a split changes that, and the fractions of its tracker with it."""
        stop = self.tracker.stop_position
        if self._span is None or self._span[0] != stop:
            is_whole = stop == self._untouched.stop_position
            self._span = stop, self.held.weight * (1.0 if is_whole else fraction_at(self._untouched, stop))
        return self._span[1]

    @property
    def rest(self) -> float:
        """How much of it could be given away."""
        return 0.0 if self.tracker is None or self.is_read else max(0.0, self.span - self.consumed)

    @property
    def cannot_be_split(self) -> bool:
        """Whether nothing can be split off any more: it cannot be cut, or all of it is claimed."""
        return not self.held.can_cut or (self.tracker is not None and self.rest <= 0)

    @property
    def key(self) -> str:
        """What names the present record."""
        return f"{self.held.part.number}:{crc32(repr(self.held.start).encode()):x}:{self._seen}"  # short: it stands in a gauge

    @property
    def held_up_since(self) -> float:
        """Since when nothing of it could be given away, at the end."""
        return self.since if self.tracker is None else self.claimed_at

    @property
    def held_up_by(self) -> str:
        """Why that was."""
        name = self.held.name
        return f"{name} cannot be split" if self.tracker is None else f"the last records of {name} had been begun"

    def read(self) -> Part:
        """The part that has been read, at the end."""
        part = self.held.part
        stop = part.stop
        if self.tracker is not None and self.tracker.stop_position != self._untouched.stop_position:
            stop = self.tracker.stop_position
        return Part(part.number, part.start, stop, self.completes)

    def split(self, fraction: float) -> Part | None:
        """Splits off a fraction of what is not claimed; all of it, if that is 1."""
        before = self.tracker.stop_position
        if not split_off(self.tracker, fraction):
            return None
        end = self.held.part.stop if before == self._untouched.stop_position else before
        return Part(self.held.part.number, self.tracker.stop_position, end)


@attrs.define
class Throughput:
    """How long what is finished has taken."""

    seconds: float = 0.0
    weight: float = 0.0

    def finished(self, hand: ItemInProgress, now: float) -> None:
        """A part has been read."""
        self.seconds += now - hand.since
        self.weight += max(hand.held.least, hand.consumed) if hand.tracker is not None else hand.held.weight
