"""Whether an idle reader asks another one for work, whom, and how much that one gives: pure functions of a few figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

from dagflow.runtime.rebalancing.items import ItemInProgress, ItemQueue, Throughput
from dagflow.runtime.stage.parts import Part

KNOWN_AFTER = 0.05  # seconds of work after which its pace says something
STEAL_COST = 0.05  # seconds: the question, its answer, opening the file and finding the first record
GRACE = 1.0  # seconds that an idle reader watches one whose work seems not to be worth a steal: estimates may turn out wrong
UNKNOWN = 0.25  # seconds within which a reader's pace is known; so long it is watched even where others want the slot
NO_START = 2.0  # seconds after which readers that have not started are taken to wait for the idle one's slot
SLOT_IS_WANTED = "another reader waits for the slot"
"""Why a reader ends that may not keep its slot."""


@attrs.frozen(kw_only=True)
class Peer:
    """Another reader of the window, as an idle one sees it.

    Attributes:
        partition: its number.
        state: `waiting` (not started, or silent for long), `working`, `idle` (it has a slot) or `done`.
        remaining: seconds of work that it could give away; None: not known yet.
        is_last: it works on the last that it has, which cannot be split: whatever it costs, there is nothing to give away.
        asked: whether it has been asked by the idle one during its present record, and has answered; or has refused anybody.
        watched: for how many seconds the idle one has seen it work.
    """

    partition: int
    state: Literal["waiting", "working", "idle", "done"]
    remaining: float | None = None
    is_last: bool = False
    asked: bool = False
    watched: float = 0.0


@attrs.frozen
class Choice:
    """What an idle reader does: `ask` the reader of a partition, `wait`, or `end`; and why."""

    action: Literal["ask", "wait", "end"]
    reason: str
    partition: int | None = None


def is_worth(remaining: float, cost: float = STEAL_COST) -> bool:
    """Whether so many seconds of work are worth to be shared: half of them is no less than twice the cost of a steal.

    >>> is_worth(0.1), is_worth(0.2)
    (False, True)
    """
    return remaining >= 4 * cost


def choose(readers: Sequence[Peer], *, room: int, idle: float, is_wanted: bool = False, cost: float = STEAL_COST) -> Choice:
    """What a reader does that has been idle for so many seconds.

    It asks whoever has most left, never twice during one record: that one would only have the same answer. It keeps no slot from
    a reader of its window that waits for one. Where nothing is worth a steal, it waits a little, as estimates may turn out wrong;
    not where tasks of others want its slot, and not where nothing can be given away.

    `room`: how many slots the readers of the window have for themselves; `is_wanted`: tasks of another window or stage wait for
    slots; `cost`: seconds that a steal takes.

    >>> choose([Peer(partition=1, state="working", remaining=3.0), Peer(partition=2, state="working", remaining=5.0)],
    ...     room=3, idle=0.0)
    Choice(action='ask', reason='5.0 s left', partition=2)
    """
    working = [r for r in readers if r.state == "working"]
    waiting = any(r.state == "waiting" for r in readers)
    if waiting and 1 + sum(r.state != "done" for r in readers) > room:
        return Choice("end", SLOT_IS_WANTED)
    worth = [r for r in working if r.remaining is not None and is_worth(r.remaining, cost)]
    free = [r for r in worth if not r.asked]
    if free:
        most = max(free, key=lambda r: r.remaining or 0.0)
        return Choice("ask", f"{most.remaining:.1f} s left", most.partition)
    if waiting:
        return Choice("wait", "another reader starts") if idle < NO_START else Choice("end", SLOT_IS_WANTED)
    unknown = [r for r in working if r.remaining is None and r.watched < UNKNOWN]
    if unknown:
        return Choice("wait", "nobody knows yet how long it takes")
    if is_wanted:
        return Choice("end", "nothing is worth to be taken, and others want the slot")
    if worth:
        return Choice("wait", "all have answered during their present records")
    if any(r.watched < GRACE and not r.is_last for r in working):
        return Choice("wait", "the others may turn out slow")
    return Choice("end", "nothing is worth to be taken" if working else "nobody works any more")


def share(remaining: float, record: float, cost: float = STEAL_COST) -> float:
    """Which part (0 to 1) of the work that it has not begun a reader gives away: half of it; all of it, if that is one record.

    `remaining`: seconds of that work; `record`: seconds that the present record has taken so far. 0: nothing is worth it.

    >>> share(10.0, 0.01), share(10.0, 9.0), share(0.1, 0.0)
    (0.5, 1.0, 0.0)
    """
    if not is_worth(remaining, cost):
        return 0.0
    return 1.0 if remaining < 2 * record else 0.5


@attrs.frozen
class _Left:
    """Seconds of work: at hand, per unit of weight there, and in the queue, per unit there."""

    hand: float
    hand_rate: float
    queue_rate: float
    queue: float


def _left(hand: ItemInProgress | None, queue: ItemQueue, pace: Throughput, now: float) -> _Left | None:
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


def remaining(hand: ItemInProgress | None, queue: ItemQueue, pace: Throughput, now: float) -> float | None:
    """Seconds of work that could be given away; None: not known yet."""
    if hand is None and not queue:
        return 0.0
    left = _left(hand, queue, pace, now)
    return None if left is None else left.hand + left.queue


@attrs.frozen
class StolenParts:
    """What is given away; nothing of it can be read here any more."""

    parts: tuple[Part, ...]
    size: int


def steal_from(
    hand: ItemInProgress | None, queue: ItemQueue, pace: Throughput, now: float, cost: float = STEAL_COST
) -> StolenParts | str | None:
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
    return StolenParts(tuple(parts), round(size)) if parts else "nothing can be split off"
