"""One window on many slots: readers that work through their assignment and, when they are idle, ask others for work.

Time and work are simulated. Who asks whom, what is left, and what is given away, the shipped code decides.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from typing import Any

import attrs

from benchmarks.decisions.arrivals import Range
from dagflow.planning.assignment import assign
from dagflow.ranges import OffsetRangeTracker
from dagflow.runtime.rebalancing.items import RECENT, ItemInProgress, ItemQueue, PendingItem, Throughput
from dagflow.runtime.rebalancing.policy import STEAL_COST, Peer, StolenParts, choose, remaining, steal_from
from dagflow.runtime.stage.parts import Part

SEEN = 16
"""An idle reader is shown so many of the others: those that it may ask and that really have most left. The rest would not be
chosen."""
LOOKS = 0.25
"""Seconds between looks at the others, of a reader that waits; the shipped one looks more often."""


@attrs.frozen
class Stealing:
    """Work stealing: on or off, and the cost in seconds that readers assume for a steal."""

    is_on: bool = True
    cost: float = STEAL_COST


SHIPPED = Stealing()


class _Splitting:
    """The operator, as far as shared work asks it: all ranges can be split."""

    def can_split(self, item: Any) -> bool:
        return True


@attrs.frozen
class _Block:
    """A range as a work item: its bytes, and how long it really takes. Its slowest record is its first."""

    range: Range
    start: int
    stop: int

    def seconds_to(self, start: int, stop: int) -> float:
        """Return the seconds that reading [start, stop) of it takes."""
        whole = self.range
        return (whole.record if start == 0 else 0.0) + (stop - start) * (whole.seconds - whole.record) / whole.size

    def position_after(self, start: int, seconds: float) -> int:
        """Return the position that is read after so many seconds."""
        whole = self.range
        left = seconds - (whole.record if start == 0 else 0.0)
        return start + max(0, int(left * whole.size / max(1e-9, whole.seconds - whole.record)))


@attrs.define
class _Reader:
    """A reader: what it has, and since when it is idle. `ends` is when it is through with what is at hand."""

    number: int
    queue: ItemQueue = attrs.field(factory=ItemQueue)
    pace: Throughput = attrs.field(factory=Throughput)
    hand: Any = None
    left: float = 0.0  # seconds, really, of what has not begun
    ends: float = 0.0
    idle_since: float | None = None
    version: int = 0
    asked: dict[int, str] = attrs.field(factory=dict)  # during which record of others it has asked them
    refused: str = ""  # during which of its own it has refused another reader

    def put(self, part: Part, blocks: Sequence[_Block]) -> None:
        held = PendingItem.of(part, ("reader", "blocks", None), blocks[part.number], _Splitting())
        self.queue.put(held)
        self.left += blocks[part.number].seconds_to(held.start, held.stop)

    def begin(self, now: float) -> None:
        """Begins with what comes next."""
        held = self.queue.first()
        self.left -= held.value.seconds_to(held.start, held.stop)
        self.hand = ItemInProgress(held, now)
        self.hand.track(OffsetRangeTracker(held.start, held.stop))
        self.hand.tracker.try_return_record_at(True, held.start)
        self.ends = now + held.value.seconds_to(held.start, held.stop)

    def see(self, now: float) -> None:
        """Brings the tracker to where the reader is now, as if it had been looked at all the time."""
        hand, held = self.hand, self.hand.pending
        last = held.start + round(hand.consumed)
        for moment in (max(hand.since, now - RECENT), now):
            at = min(held.value.position_after(held.start, moment - hand.since), hand.tracker.stop_position - 1)
            if at > last:
                hand.tracker.try_return_record_at(True, at)
                last = at
            hand.look(moment)

    def finish(self, now: float) -> None:
        """Has read what was at hand."""
        tracker = self.hand.tracker
        tracker.try_return_record_at(True, tracker.stop_position)
        self.pace.finished(self.hand, now)
        self.hand = None

    def has_answer_of(self, other: _Reader) -> bool:
        """Return whether another reader has been asked during its present record, or has refused a request in it."""
        asked = self.asked.get(other.number)
        return (asked is not None or other.refused != "") and other.hand.key in (asked, other.refused)

    def really_left(self, now: float) -> float:
        return self.left + self.ends - now


@attrs.frozen
class Outcome:
    """The result of a window.

    Attributes:
        makespan: seconds from its start to its end.
        tasks: seconds of all readers, each from its own start to its own end.
        steals: how often a reader took from another.
    """

    makespan: float
    tasks: float
    steals: int


@attrs.define
class _Window:
    blocks: Sequence[_Block]
    stealing: Stealing
    waiting: deque[_Reader]
    working: dict[int, _Reader] = attrs.field(factory=dict)
    events: list[tuple[float, int, int]] = attrs.field(factory=list)
    steals: int = 0

    def at(self, time: float, reader: _Reader) -> None:
        """Something happens to a reader at a time, and nothing else before."""
        reader.version += 1
        heapq.heappush(self.events, (time, reader.number, reader.version))

    def goes_on(self, reader: _Reader, now: float) -> bool:
        """The reader begins with what comes next, asks, or waits; False: it ends."""
        if reader.hand is not None:
            reader.finish(now)
            del self.working[reader.number]
        if reader.queue:
            reader.idle_since = None
            reader.begin(now)
            self.working[reader.number] = reader
            self.at(reader.ends, reader)
            return True
        return self.stealing.is_on and self._seeks(reader, now)

    def _seeks(self, reader: _Reader, now: float) -> bool:
        reader.idle_since = now if reader.idle_since is None else reader.idle_since
        idle = now - reader.idle_since
        others = heapq.nlargest(SEEN, self.working.values(), lambda r: (not reader.has_answer_of(r), r.really_left(now)))
        seen = [self._seen(reader, each, idle, now) for each in others]
        room = len(seen) + 1  # who waits has no slot
        seen += [Peer(partition=-1, state="waiting")] if self.waiting else []
        choice = choose(seen, room=room, idle=idle, cost=self.stealing.cost)
        if choice.action == "ask" and choice.partition is not None:
            victim = self.working[choice.partition]
            reader.asked[victim.number] = victim.hand.key
            found = steal_from(victim.hand, victim.queue, victim.pace, now, cost=self.stealing.cost)
            if isinstance(found, StolenParts):
                self._moves(found, victim, reader)
                self.at(now + STEAL_COST, reader)
                return True
            victim.refused = victim.hand.key if isinstance(found, str) else victim.refused
        if choice.action == "end":
            return False
        self.at(now + LOOKS, reader)
        return True

    def _seen(self, asker: _Reader, other: _Reader, idle: float, now: float) -> Peer:
        other.see(now)
        left = remaining(other.hand, other.queue, other.pace, now)
        is_last = not other.queue and other.hand.cannot_be_split
        asked = asker.has_answer_of(other)
        return Peer(partition=other.number, state="working", remaining=left, is_last=is_last, asked=asked, watched=idle)

    def _moves(self, given: StolenParts, victim: _Reader, taker: _Reader) -> None:
        self.steals += 1
        for part in given.parts:
            taker.put(part, self.blocks)
        held = victim.hand.pending
        ends = victim.hand.since + held.value.seconds_to(held.start, victim.hand.tracker.stop_position)
        victim.left = sum(each.value.seconds_to(each.start, each.stop) for each in victim.queue)
        if ends != victim.ends:
            victim.ends = ends
            self.at(ends, victim)


def run(
    work: Sequence[Range], readers: int, slots: int, *, starts: Sequence[float] = (), stealing: Stealing = SHIPPED
) -> Outcome:
    """Runs a window with the shipped deal, and the shipped decisions of who asks whom and what is given.

    `starts`: when readers can begin, where that is not at once. Readers beyond the slots begin when one has ended.
    """
    blocks = [_Block(each, 0, each.size) for each in work]
    each = [_Reader(number) for number in range(readers)]
    for number, place in enumerate(assign([item.size for item in work], readers)):
        each[place].put(Part(number), blocks)
    window = _Window(blocks, stealing, deque(each[slots:]))
    begun = 0.0
    for reader in each[:slots]:
        start = starts[reader.number] if reader.number < len(starts) else 0.0
        begun += start
        window.at(start, reader)
    finished, tasks = 0.0, -begun
    while window.events:
        now, number, version = heapq.heappop(window.events)
        reader = each[number]
        if version != reader.version:
            continue
        finished = now if reader.hand is not None else finished
        if window.goes_on(reader, now):
            continue
        tasks += now
        if window.waiting:
            tasks -= now
            window.at(now, window.waiting.popleft())
    return Outcome(finished, tasks, window.steals)
