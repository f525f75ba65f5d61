"""What a task has before it, how long that will take, and which part of it is given away. Nothing here waits or writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import attrs

from dagflow.runtime.sharing.parts import Part
from dagflow.scaling.stealing import STEAL_COST, share

KNOWN_AFTER = 0.05  # seconds of work after which its pace says something
RECENT = 0.25  # seconds that the pace of a part at hand is taken from: it may be another one than at its start


@attrs.frozen
class Held:
    """A part of an item that a task has: the item as it travels and as its operator gets it, and the bounds of the part.

    Where it cannot be cut, they are 0 and its weight.
    """

    part: Part
    item: tuple[str, str, Any]
    value: Any
    start: int
    stop: int
    can_cut: bool

    @classmethod
    def of(cls, part: Part, item: Any, value: Any, operator: Any) -> Held:
        """What the operator says of an item: `can_split(value)` and `item_weight(value)`, where it has them."""
        can_split = getattr(operator, "can_split", None)
        if can_split is not None and can_split(value):
            start = value.start if part.start is None else part.start
            stop = value.stop if part.stop is None else part.stop
            return cls(part, item, value, start, stop, True)
        weigh = getattr(operator, "item_weight", None)
        return cls(part, item, value, 0, max(1, int(weigh(value))) if weigh is not None else 1, False)

    @property
    def weight(self) -> int:
        """How much it is."""
        return max(1, self.stop - self.start)

    @property
    def name(self) -> str:
        """What it is called where users read of it."""
        path = getattr(self.value, "file_path", None)
        if path is None:
            return f"an item of {self.item[0]!r}"
        start = getattr(self.value, "start", 0)
        return f"{path} from byte {start} on" if start else str(path)


@attrs.define
class Queue:
    """What a task has not begun, in order, and how much it is in all: there may be very many items, and it is asked often."""

    _held: deque[Held] = attrs.field(factory=deque)
    weight: int = 0

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
        held = self._held.popleft()
        self.weight -= held.weight
        return held

    def take_last(self) -> Held:
        """Takes what comes last."""
        held = self._held.pop()
        self.weight -= held.weight
        return held


@attrs.define
class Hand:
    """The part at hand: since when, its tracker, and when of late something was claimed: each time, and how much was before."""

    held: Held
    since: float
    tracker: Any = None
    is_read: bool = attrs.field(init=False, default=False)
    """Nothing of it is given away any more."""
    completes: bool = attrs.field(init=False, default=False)
    """Whether all of its item has been read with it."""
    _claims: deque[tuple[float, int]] = attrs.field(
        init=False, default=attrs.Factory(lambda self: deque([(self.since, 0)]), takes_self=True)
    )
    _claimed: int = attrs.field(init=False, default=0)

    def track(self, tracker: Any) -> None:
        """From now on it is read through a tracker; one of another range than the part's cannot be used."""
        if self.held.can_cut and (tracker.start_position, tracker.stop_position) == (self.held.start, self.held.stop):
            self.tracker = tracker

    def look(self, now: float) -> None:
        """Sees how far it is."""
        claimed, self._claimed = self._claimed, self.consumed
        if claimed != self._claimed:
            self._claims.append((now, claimed))
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
        return (now - began) / max(1, self.consumed - before)

    @property
    def consumed(self) -> int:
        """How much of it is claimed: up to which position, from its start. Of a fraction, which a split changes, just that."""
        if self.tracker is None:
            return 0
        position: int = round(self.tracker.fraction_consumed * (self.tracker.stop_position - self.held.start))
        return position

    @property
    def rest(self) -> int:
        """How much of it could be given away."""
        return 0 if self.tracker is None or self.is_read else int(self.tracker.stop_position) - self.held.start - self.consumed

    @property
    def cannot_be_split(self) -> bool:
        """Whether nothing can be split off any more: it cannot be cut, or all of it is claimed."""
        return not self.held.can_cut or (self.tracker is not None and self.rest <= 0)

    @property
    def key(self) -> str:
        """What names the present record."""
        return f"{self.held.part.number}:{self.held.start + self.consumed}"

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
        if self.tracker is not None and self.tracker.stop_position != self.held.stop:
            stop = self.tracker.stop_position
        return Part(part.number, part.start, stop, self.completes)

    def split(self, fraction: float) -> Part | None:
        """Splits off a fraction of what is not claimed; all of it, if that is 1."""
        tracker = self.tracker
        stop = tracker.stop_position
        first = self.held.start + self.consumed + 1
        cut = min(stop - 1, first + int((stop - first) * (1 - fraction)))
        if cut < first or not tracker.try_split_at_position(cut):
            return None
        end = self.held.part.stop if stop == self.held.stop else stop
        return Part(self.held.part.number, cut, end)


@attrs.define
class Pace:
    """How long what is finished has taken."""

    seconds: float = 0.0
    weight: float = 0.0

    def finished(self, hand: Hand, now: float) -> None:
        """A part has been read."""
        self.seconds += now - hand.since
        self.weight += max(1, hand.consumed) if hand.tracker is not None else hand.held.weight


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
    size, seconds = 0, 0.0
    while queue and seconds < wanted:
        held = queue.last
        own = held.weight * left.queue_rate
        if seconds + own <= wanted * 1.1 or (not held.can_cut and hand is not None and not parts):
            queue.take_last()
        elif held.can_cut and held.weight > 1 and wanted - seconds >= 2 * cost:
            cut = max(held.start + 1, held.stop - int(held.weight * (wanted - seconds) / own))
            queue.take_last()
            queue.put(attrs.evolve(held, part=Part(held.part.number, held.part.start, cut), stop=cut))
            held = attrs.evolve(held, part=Part(held.part.number, cut, held.part.stop), start=cut)
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
            size += int(before - hand.rest)
    return Given(tuple(parts), size) if parts else "nothing can be split off"
