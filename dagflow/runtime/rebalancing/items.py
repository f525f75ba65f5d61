"""The items of a task: parts that have not begun, the part in progress, and the throughput so far. No files, no clock."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import attrs

from dagflow.model.operator.protocols import DividesItems, HasRange, NamesFile, WeighsItems
from dagflow.model.types.plain_data import shown
from dagflow.ranges import RangeTracker, SplitsItems
from dagflow.ranges.splitting import cut_at, cuts, fraction_at, split_off, tracker_between
from dagflow.runtime.stage.parts import Part, narrowed

LEAST = 64  # a part that weighs less counts as having so many records
NEXT_TO_NOTHING = 1e-9  # the least share of an item that a part of it has, also where its positions are too close for fractions
RECENT = 0.25  # seconds over which the rate of an item in progress is measured: the rate may change
NOISE = 1e-14  # relative: figures of consumed work that differ by less are those of one record, before and after a split


@attrs.frozen
class PendingItem:
    """A part of an item that a task owns: the item as it travels and as its operator gets it, and the weight of the part.

    `weight`: the part's share of the weight that the operator gives the item.
    """

    part: Part
    item: tuple[str, str, Any]
    value: Any
    operator: Any
    weight: float
    can_cut: bool

    @classmethod
    def of(cls, part: Part, item: Any, value: Any, operator: Any) -> PendingItem:
        """Make it with the answers of the operator's `can_split(value)` and `item_weight(value)`, if it has them."""
        whole, can_cut = weight_of(operator, value), _can_cut(operator, value)
        weight = max(whole * NEXT_TO_NOTHING, whole * _share(operator, value, part)) if can_cut else whole
        return cls(part, item, value, operator, weight, can_cut)

    @property
    def start(self) -> Any:
        """The position at which it starts; None: the item says."""
        return range_of(self.value)[0] if self.part.start is None else self.part.start

    @property
    def stop(self) -> Any:
        """The position at which it stops; None: the item says."""
        return range_of(self.value)[1] if self.part.stop is None else self.part.stop

    @property
    def least(self) -> float:
        """The assumed weight of a record while nothing else is known."""
        return min(1.0, self.weight / LEAST)

    def tracker(self) -> RangeTracker[Any] | None:
        """Return a new tracker of its range; None if it cannot be split."""
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
        """The name of the item in reports."""
        if not isinstance(self.value, NamesFile):
            return f"{shown(self.value)} of {self.item[0]!r}"
        start, _ = range_of(self.value)
        return f"{self.value.file_path} from byte {start} on" if start else self.value.file_path


def weight_of(operator: Any, value: Any) -> float:
    """Return the weight of an item: its operator's `item_weight`, the size of a range of integers, or 1."""
    if _is(operator, WeighsItems):
        return max(1.0, float(operator.item_weight(value)))
    start, stop = range_of(value)
    return float(max(1, stop - start)) if isinstance(start, int) and isinstance(stop, int) else 1.0


def range_of(value: Any) -> tuple[Any, Any]:
    """Return the bounds of an item that is a range; None and None for another item."""
    return (value.start, value.stop) if isinstance(value, HasRange) else (None, None)


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
        tracker: RangeTracker[Any] = operator.tracker_of(value)
        return tracker
    return tracker_between(value.start, value.stop)


def _share(operator: Any, value: Any, part: Part) -> float:
    """Return the share of a part in its item, from 0 to 1."""
    if part.is_whole:
        return 1.0
    whole = _tracker(operator, value)
    assert whole is not None
    first = 0.0 if part.start is None else fraction_at(whole, part.start)
    return (1.0 if part.stop is None else fraction_at(whole, part.stop)) - first


@attrs.define
class ItemQueue:
    """The pending items of a task in order, and their total weight, which is asked for often."""

    _pending: deque[PendingItem] = attrs.field(factory=deque)
    weight: float = 0.0

    def __bool__(self) -> bool:
        return bool(self._pending)

    def __iter__(self) -> Iterator[PendingItem]:
        return iter(self._pending)

    @property
    def last(self) -> PendingItem:
        """The last item."""
        return self._pending[-1]

    def put(self, item: PendingItem) -> None:
        """Append an item."""
        self._pending.append(item)
        self.weight += item.weight

    def first(self) -> PendingItem:
        """Take the next item."""
        return self._taken(self._pending.popleft())

    def take_last(self) -> PendingItem:
        """Take the last item."""
        return self._taken(self._pending.pop())

    def _taken(self, item: PendingItem) -> PendingItem:
        self.weight = self.weight - item.weight if self._pending else 0.0
        return item


@attrs.define
class ItemInProgress:
    """The item that a task reads: its tracker, and the times of recent claims, each with the weight that was claimed before.

    Weights follow from the fractions of the tracker, since only the tracker understands positions.
    """

    pending: PendingItem
    since: float
    tracker: Any = None
    is_read: bool = attrs.field(init=False, default=False)
    """It has been read to its end, so nothing of it can be stolen."""
    completes: bool = attrs.field(init=False, default=False)
    """All of its item has been read with it."""
    _untouched: Any = attrs.field(init=False, default=None)  # a tracker of the same range, of which nothing is consumed
    _span: tuple[Any, float] | None = attrs.field(init=False, default=None)  # a stop position, and the weight up to it
    _claims: deque[tuple[float, float]] = attrs.field(
        init=False, default=attrs.Factory(lambda self: deque([(self.since, 0.0)]), takes_self=True)
    )
    _claimed: float = attrs.field(init=False, default=0.0)
    _split_points: int = attrs.field(init=False, default=0)
    _seen: int = attrs.field(init=False, default=0)

    def track(self, tracker: Any) -> None:
        """Use a tracker from now on, unless its range is not that of the part."""
        untouched = self.pending.tracker()
        bounds = None if untouched is None else (untouched.start_position, untouched.stop_position)
        if bounds == (tracker.start_position, tracker.stop_position):
            self.tracker, self._untouched = tracker, untouched

    def look(self, now: float) -> None:
        """Note the progress at a time."""
        before, self._claimed = self._claimed, self.consumed
        points, self._split_points = self._split_points, self.split_points
        if points != self._split_points or abs(self._claimed - before) > NOISE * before:
            self._claims.append((now, before))
            self._seen += 1
        while len(self._claims) > 1 and now - self._claims[1][0] >= RECENT:
            self._claims.popleft()

    @property
    def claimed_at(self) -> float:
        """The time at which the present record was claimed."""
        return self._claims[-1][0]

    def rate(self, now: float) -> float:
        """Recent seconds per unit of weight."""
        if self.tracker is None:
            return (now - self.since) / self.pending.weight
        began, before = self._claims[0]
        return (now - began) / max(self.pending.least, self.consumed - before)

    @property
    def split_points(self) -> int:
        """The number of split points that have been read."""
        return 0 if self.tracker is None else int(self.tracker.split_points()[0])

    @property
    def consumed(self) -> float:
        """The weight that has been claimed."""
        return 0.0 if self.tracker is None else float(self.tracker.fraction_consumed * self.span)

    @property
    def span(self) -> float:
        """The weight up to the present stop position, which a split changes together with the tracker's fractions."""
        stop = self.tracker.stop_position
        if self._span is None or self._span[0] != stop:
            is_whole = stop == self._untouched.stop_position
            self._span = stop, self.pending.weight * (1.0 if is_whole else fraction_at(self._untouched, stop))
        return self._span[1]

    @property
    def rest(self) -> float:
        """The weight that could be stolen."""
        return 0.0 if self.tracker is None or self.is_read else max(0.0, self.span - self.consumed)

    @property
    def cannot_be_split(self) -> bool:
        """Return whether nothing can be split off any more: it cannot be cut, or all of it has been claimed."""
        return not self.pending.can_cut or (self.tracker is not None and self.rest <= 0)

    @property
    def key(self) -> str:
        """The name of the present record."""
        return (
            f"{self.pending.part.number}:{crc32(repr(self.pending.start).encode()):x}:{self._seen}"  # short: it stands in a gauge
        )

    @property
    def unsplittable_since(self) -> float:
        """The time since which nothing of it could be stolen, once it has been read."""
        return self.since if self.tracker is None else self.claimed_at

    @property
    def unsplittable_because(self) -> str:
        """The reason for that."""
        name = self.pending.name
        return f"{name} cannot be split" if self.tracker is None else f"the last records of {name} had been claimed"

    def read(self) -> Part:
        """Return the part that has been read."""
        part = self.pending.part
        stop = part.stop
        if self.tracker is not None and self.tracker.stop_position != self._untouched.stop_position:
            stop = self.tracker.stop_position
        return Part(part.number, part.start, stop, self.completes)

    def split(self, fraction: float) -> Part | None:
        """Split off a fraction of the range that has not been claimed; 1.0: all of it."""
        before = self.tracker.stop_position
        if not split_off(self.tracker, fraction):
            return None
        end = self.pending.part.stop if before == self._untouched.stop_position else before
        return Part(self.pending.part.number, self.tracker.stop_position, end)


@attrs.define
class Throughput:
    """Seconds and weight of the finished items."""

    seconds: float = 0.0
    weight: float = 0.0

    def finished(self, item: ItemInProgress, now: float) -> None:
        """Add an item that has been read."""
        self.seconds += now - item.since
        self.weight += max(item.pending.least, item.consumed) if item.tracker is not None else item.pending.weight
