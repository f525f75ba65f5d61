"""What a task has before it, how long that will take, and which part of it is given away. Nothing here waits or writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import attrs

from dagflow.ranges.splitting import fraction_at, split_off
from dagflow.runtime.rebalancing.held import Held
from dagflow.runtime.stage.parts import Part
from dagflow.scaling.stealing import STEAL_COST, share

KNOWN_AFTER = 0.05  # seconds of work after which its pace says something
RECENT = 0.25  # seconds that the pace of a part at hand is taken from: it may be another one than at its start
NOISE = 1e-14  # relative: figures of consumed work that differ by less are those of one record, before and after a split


@attrs.define
class Queue:
    """What a task has not begun, in order, and how much it is in all: there may be very many items, and it is asked often."""

    _held: deque[Held] = attrs.field(factory=deque)
    weight: float = 0.0

    def __bool__(self) -> bool:
        return bool(self._held)

    def __iter__(self) -> Iterator[Held]:
        return iter(self._held)

    @property
    def last(self) -> Held:
        """What comes last."""
        return self._held[-1]

    def put(self, held: Held) -> None:
        """Appends something."""
        self._held.append(held)
        self.weight += held.weight

    def first(self) -> Held:
        """Takes what comes next."""
        return self._taken(self._held.popleft())

    def take_last(self) -> Held:
        """Takes what comes last."""
        return self._taken(self._held.pop())

    def _taken(self, held: Held) -> Held:
        self.weight = self.weight - held.weight if self._held else 0.0
        return held


@attrs.define
class Hand:
    """The part at hand: since when, its tracker, and when of late something was claimed: each time, and how much was before.

    How much that is comes from the fractions of the tracker, which alone knows what positions are.
    """

    held: Held
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
class Pace:
    """How long what is finished has taken."""

    seconds: float = 0.0
    weight: float = 0.0

    def finished(self, hand: Hand, now: float) -> None:
        """A part has been read."""
        self.seconds += now - hand.since
        self.weight += max(hand.held.least, hand.consumed) if hand.tracker is not None else hand.held.weight


@attrs.frozen
class _Left:
    """Seconds of work: at hand, per unit of weight there, and in the queue, per unit there."""

    hand: float
    hand_rate: float
    queue_rate: float
    queue: float


def _left(hand: Hand | None, queue: Queue, pace: Pace, now: float) -> _Left | None:
    known = pace.seconds / pace.weight if pace.weight and pace.seconds > 0 else None
    hand_rate = known
    if hand is not None and (known is None or now - hand.since >= KNOWN_AFTER):
        if now - hand.since < KNOWN_AFTER:
            return None
        hand_rate = hand.rate(now)
        known = known if known is not None else hand_rate
    if known is None or hand_rate is None:
        return None
    return _Left(hand.rest * hand_rate if hand is not None else 0.0, hand_rate, known, queue.weight * known)


def remaining(hand: Hand | None, queue: Queue, pace: Pace, now: float) -> float | None:
    """Seconds of work that could be given away; None: not known yet."""
    if hand is None and not queue:
        return 0.0
    left = _left(hand, queue, pace, now)
    return None if left is None else left.hand + left.queue


@attrs.frozen
class Given:
    """What is given away; nothing of it can be read here any more."""

    parts: tuple[Part, ...]
    size: int


def given_away(hand: Hand | None, queue: Queue, pace: Pace, now: float, cost: float = STEAL_COST) -> Given | str | None:
    """Takes from a queue's end, and from the part at hand, what is given to somebody who asks: about half of the time.

    Text: nothing, and why. None: nobody knows yet; the question waits. `cost`: seconds that a steal takes.
    """
    if hand is None and not queue:
        return "nothing left"
    left = _left(hand, queue, pace, now)
    if left is None:
        return None
    record = now - hand.claimed_at if hand is not None else 0.0
    part_of_it = share(left.hand + left.queue, record, cost)
    wanted = part_of_it * (left.hand + left.queue)
    if not wanted:
        return "not worth it"
    parts: list[Part] = []
    size, seconds = 0.0, 0.0
    while queue and seconds < wanted:
        held = queue.last
        own = held.weight * left.queue_rate
        if seconds + own <= wanted * 1.1 or (not held.can_cut and hand is not None and not parts):
            queue.take_last()
        elif held.can_cut and wanted - seconds >= 2 * cost and (halves := held.cut(1 - (wanted - seconds) / own)) is not None:
            queue.take_last()
            queue.put(halves[0])
            held = halves[1]
            own = held.weight * left.queue_rate
        else:
            break
        parts.append(held.part)
        size += held.weight
        seconds += own
    if hand is not None and hand.tracker is not None and left.hand and (not parts or wanted - seconds >= 2 * cost):
        before = hand.rest
        fraction = 1.0 if part_of_it == 1.0 else min(1.0, (wanted - seconds) / left.hand)
        part = hand.split(fraction) if fraction > 0 else None
        if part is not None:
            parts.append(part)
            size += before - hand.rest
    return Given(tuple(parts), round(size)) if parts else "nothing can be split off"
