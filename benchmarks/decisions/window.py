"""One window on many slots: readers that work through what they were dealt and, when they are idle, ask others for work."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence

import attrs

from benchmarks.decisions.arrivals import Range
from dagflow.plan.deal import deal
from dagflow.scaling.stealing import GRACE, STEAL_COST, Reader, choose, share

SEEN = 16
"""An idle reader is shown so many of the others: those that have most left. The rest would not be chosen."""


@attrs.define
class _Working:
    """A reader at work: since when it has been at its range, and what lies behind it."""

    number: int
    at: float
    range_seconds: float = 0.0
    record: float = 0.0
    queue: deque[tuple[float, float]] = attrs.field(factory=deque)
    left: float = 0.0
    version: int = 0

    def ends(self) -> float:
        return self.at + self.range_seconds

    def remaining(self, now: float) -> float:
        """Seconds that could be given away: the record at hand cannot."""
        return max(0.0, self.left + self.ends() - now - self.record)


@attrs.frozen
class Outcome:
    """What a window was.

    Attributes:
        makespan: seconds from its start to its end.
        tasks: seconds of all readers, each from its own start to its own end.
        steals: how often a reader took from another.
    """

    makespan: float
    tasks: float
    steals: int


def run(work: Sequence[Range], readers: int, slots: int, *, starts: Sequence[float] = (), stealing: bool = True) -> Outcome:
    """Runs a window with the shipped deal and the shipped decision whether to ask, whom, and what part is given.

    `starts`: when readers can begin, where that is not at once. Readers beyond the slots begin when one has ended.
    """
    places = deal([each.size for each in work], readers)
    each = [_Working(number, 0.0) for number in range(readers)]
    for item, place in zip(work, places, strict=True):
        each[place].queue.append((item.seconds, item.record))
        each[place].left += item.seconds
    waiting = deque(each[slots:])
    events = [(starts[r.number] if r.number < len(starts) else 0.0, r.number, 0) for r in each[:slots]]
    heapq.heapify(events)
    working: dict[int, _Working] = {}
    finished, tasks, steals = 0.0, -sum(event[0] for event in events), 0
    while events:
        now, number, version = heapq.heappop(events)
        reader = each[number]
        if version != reader.version:
            continue
        working.pop(number, None)
        if reader.queue:
            _next(reader, now, working, events)
            continue
        finished = max(finished, now)
        victim = _asked(reader, working, bool(waiting), slots, now) if stealing else None
        if victim is not None and _gives(victim, reader, now, events):
            steals += 1
            reader.version += 1
            heapq.heappush(events, (now + STEAL_COST, number, reader.version))
            continue
        tasks += now
        if waiting:
            tasks -= now
            heapq.heappush(events, (now, waiting.popleft().number, 0))
    return Outcome(finished, tasks, steals)


def _next(reader: _Working, now: float, working: dict[int, _Working], events: list[tuple[float, int, int]]) -> None:
    seconds, record = reader.queue.popleft()
    reader.left -= seconds
    reader.at, reader.range_seconds, reader.record = now, seconds, record
    reader.version += 1
    working[reader.number] = reader
    heapq.heappush(events, (reader.ends(), reader.number, reader.version))


def _asked(reader: _Working, working: dict[int, _Working], others_wait: bool, slots: int, now: float) -> _Working | None:
    most = heapq.nlargest(SEEN, working.values(), key=lambda each: each.remaining(now))
    seen = [Reader(partition=each.number, state="working", remaining=each.remaining(now), watched=GRACE) for each in most]
    if others_wait:
        seen.append(Reader(partition=-1, state="waiting"))
    choice = choose(seen, room=min(slots, len(working) + 1), idle=0.0)
    return working[choice.partition] if choice.action == "ask" and choice.partition is not None else None


def _gives(victim: _Working, taker: _Working, now: float, events: list[tuple[float, int, int]]) -> bool:
    """Moves work from the end of what the victim has; whether there was any."""
    wanted = share(victim.remaining(now), victim.record) * victim.remaining(now)
    given = 0.0
    while victim.queue and given + victim.queue[-1][0] <= wanted:
        seconds, record = victim.queue.pop()
        victim.left -= seconds
        taker.queue.appendleft((seconds, record))
        taker.left += seconds
        given += seconds
    if given == 0 and not victim.queue:  # the rest of the range at hand is cut
        cut = min(wanted, victim.ends() - now - victim.record)
        if cut <= 0:
            return False
        victim.range_seconds -= cut
        victim.version += 1
        heapq.heappush(events, (victim.ends(), victim.number, victim.version))
        taker.queue.appendleft((cut, min(victim.record, cut)))
        taker.left += cut
        return True
    if given == 0:  # a whole range that has not been begun, though it is more than was wanted
        seconds, record = victim.queue.pop()
        victim.left -= seconds
        taker.queue.appendleft((seconds, record))
        taker.left += seconds
    return True
