"""The stealing policy: if an idle task steals, from which task, and how much; why nothing was stolen. Pure functions."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Literal

import attrs

from dagflow.runtime.rebalancing.items import ItemInProgress, ItemQueue, Throughput
from dagflow.runtime.stage.outcome import TaskEndStats
from dagflow.runtime.stage.parts import Part

KNOWN_AFTER = 0.05  # seconds of work after which its rate says something
STEAL_COST = 0.05  # seconds: request, answer, opening the file and finding the first record
GRACE = 1.0  # seconds for which an idle reader watches one with little left: estimates may be wrong
UNKNOWN = 0.25  # seconds within which a reader's rate becomes known; it is watched so long even if the slot is wanted
NO_START = 2.0  # seconds after which a reader that has not started is taken to wait for the slot
EVEN = 4 * STEAL_COST  # seconds for which a reader may be idle while the work still counts as even: no steal would be worth it
SLOT_IS_WANTED = "another reader waits for the slot"
"""The reason for which a reader ends that must not keep its slot."""


@attrs.frozen(kw_only=True)
class Peer:
    """Another reader of the window, as an idle one sees it.

    Attributes:
        partition: its number.
        state: `waiting` (not started, or silent for long), `working`, `idle` (it has a slot) or `done`.
        remaining: seconds of its work that could be stolen; None: not known yet.
        is_last: it reads its last item, which cannot be split, so nothing can be stolen.
        asked: it has answered the idle reader during its present record, or has refused another one.
        watched: seconds for which the idle reader has seen it work.
    """

    partition: int
    state: Literal["waiting", "working", "idle", "done"]
    remaining: float | None = None
    is_last: bool = False
    asked: bool = False
    watched: float = 0.0


@attrs.frozen
class Choice:
    """The next step of an idle reader: `ask` the reader of a partition, `wait`, or `end`; and the reason."""

    action: Literal["ask", "wait", "end"]
    reason: str
    partition: int | None = None


def is_worth(remaining: float, cost: float = STEAL_COST) -> bool:
    """Return whether so many seconds of work are worth stealing from: half of them cost at least as much as two steals.

    >>> is_worth(0.1), is_worth(0.2)
    (False, True)
    """
    return remaining >= 4 * cost


def choose(readers: Sequence[Peer], *, room: int, idle: float, is_wanted: bool = False, cost: float = STEAL_COST) -> Choice:
    """Choose the next step of a reader that has been idle for so many seconds.

    It asks the reader with the most work left, and never twice during one record, since the answer would be the same. It
    gives up its slot if a reader of its window waits for one. If nothing is worth stealing it waits a little, as estimates may
    be wrong, unless its slot is wanted or nothing can be split.

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
        return Choice("wait", "the time that is left is not known yet")
    if is_wanted:
        return Choice("end", "nothing was worth stealing, and the slot was wanted")
    if worth:
        return Choice("wait", "all have answered during their present records")
    if any(r.watched < GRACE and not r.is_last for r in working):
        return Choice("wait", "the others may turn out slow")
    return Choice("end", "nothing was worth stealing" if working else "no reader works any more")


def share(remaining: float, record: float, cost: float = STEAL_COST) -> float:
    """Return the share (0 to 1) of a reader's remaining work to steal: half of it, or all if that takes as long as one record.

    `remaining`: seconds of that work; `record`: seconds that the present record has taken so far. 0: not worth a steal.

    >>> share(10.0, 0.01), share(10.0, 9.0), share(0.1, 0.0)
    (0.5, 1.0, 0.0)
    """
    if not is_worth(remaining, cost):
        return 0.0
    return 1.0 if remaining < 2 * record else 0.5


@attrs.frozen
class _Left:
    """Seconds of work in the item in progress and in the queue, and seconds per unit of weight in each."""

    item: float
    item_rate: float
    queue: float
    queue_rate: float


def _left(item: ItemInProgress | None, queue: ItemQueue, throughput: Throughput, now: float) -> _Left | None:
    rate = throughput.seconds / throughput.weight if throughput.weight and throughput.seconds > 0 else None
    item_rate = rate
    if item is not None and (rate is None or now - item.since >= KNOWN_AFTER):
        if now - item.since < KNOWN_AFTER:
            return None
        item_rate = item.rate(now)
        rate = rate if rate is not None else item_rate
    if rate is None or item_rate is None:
        return None
    return _Left(item.rest * item_rate if item is not None else 0.0, item_rate, queue.weight * rate, rate)


def remaining(item: ItemInProgress | None, queue: ItemQueue, throughput: Throughput, now: float) -> float | None:
    """Return the seconds of work that could be stolen; None if unknown yet."""
    if item is None and not queue:
        return 0.0
    left = _left(item, queue, throughput, now)
    return None if left is None else left.item + left.queue


@attrs.frozen
class StolenParts:
    """The parts that a steal moves, and their weight; their former owner no longer reads them."""

    parts: tuple[Part, ...]
    size: int


def steal_from(
    item: ItemInProgress | None, queue: ItemQueue, throughput: Throughput, now: float, cost: float = STEAL_COST
) -> StolenParts | str | None:
    """Take about half of the remaining time from the end of a task's queue and from its item in progress.

    A string: nothing, and the reason. None: not known yet, so the request waits. `cost`: seconds that a steal takes.
    """
    if item is None and not queue:
        return "nothing left"
    left = _left(item, queue, throughput, now)
    if left is None:
        return None
    record = now - item.claimed_at if item is not None else 0.0
    share_of_it = share(left.item + left.queue, record, cost)
    wanted = share_of_it * (left.item + left.queue)
    if not wanted:
        return "not worth it"
    parts: list[Part] = []
    size, seconds = 0.0, 0.0
    while queue and seconds < wanted:
        last = queue.last
        takes = last.weight * left.queue_rate
        if seconds + takes <= wanted * 1.1 or (not last.can_cut and item is not None and not parts):
            queue.take_last()
        elif last.can_cut and wanted - seconds >= 2 * cost and (halves := last.cut(1 - (wanted - seconds) / takes)) is not None:
            queue.take_last()
            queue.put(halves[0])
            last = halves[1]
            takes = last.weight * left.queue_rate
        else:
            break
        parts.append(last.part)
        size += last.weight
        seconds += takes
    if item is not None and item.tracker is not None and left.item and (not parts or wanted - seconds >= 2 * cost):
        before = item.rest
        fraction = 1.0 if share_of_it == 1.0 else min(1.0, (wanted - seconds) / left.item)
        part = item.split(fraction) if fraction > 0 else None
        if part is not None:
            parts.append(part)
            size += before - item.rest
    return StolenParts(tuple(parts), round(size)) if parts else "nothing can be split off"


@attrs.frozen
class Imbalance:
    """Seconds for which a reader was idle while another one worked, and the reason why it stole nothing."""

    seconds: float
    reason: str

    def __str__(self) -> str:
        return f"{self.reason}; a reader was idle for {self.seconds:.1f} s"


def imbalance(stats: Sequence[TaskEndStats]) -> Imbalance | None:
    """Return the reason why the tasks of a window without steals did not end together; None if the work was even.

    A task that began when all slots were in use got the slot of the first task that had ended. So the last tasks of the slots
    are compared. The work was even if none of them was idle for longer than a steal is worth while the last one worked.

    >>> from dagflow.runtime.stage.outcome import BusyInterval
    >>> big = BusyInterval(0.0, 9.0, "big.gz cannot be split")
    >>> long, short = (TaskEndStats(begun=0.0, until=until, longest=big, room=2) for until in (9.0, 1.0))
    >>> print(imbalance([long, short]))
    big.gz cannot be split; a reader was idle for 8.0 s
    >>> imbalance([long, short, TaskEndStats(begun=1.0, until=8.9, room=2)])
    """
    slots: list[tuple[float, int]] = []
    for number, each in sorted(enumerate(stats), key=lambda e: e[1].begun):
        if len(slots) < each.room or each.begun < slots[0][0]:  # there may be more by now
            heapq.heappush(slots, (each.until, number))
        else:
            heapq.heapreplace(slots, (each.until, number))
    if not slots:
        return None
    idle, last = stats[slots[0][1]], max(stats, key=lambda e: e.until)
    seconds = last.until - max(idle.until, last.begun)
    return Imbalance(seconds, _reason(idle, last, seconds)) if seconds >= EVEN else None


def _reason(idle: TaskEndStats, last: TaskEndStats, seconds: float) -> str:
    longest = last.longest
    if longest is not None and longest.until - max(longest.since, idle.until) >= seconds / 2:
        return longest.reason
    if idle.refusals:
        times = "once" if idle.refusals == 1 else f"{idle.refusals} times"
        return f"asked {times} in vain, the last answer: {idle.refusal}"
    return idle.stopped
