"""The imbalance of a window in which nothing was stolen, and the reason for it, from the figures of its tasks at their ends."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import attrs

from dagflow.runtime.rebalancing.policy import is_worth
from dagflow.runtime.stage.outcome import TaskEndStats


@attrs.frozen
class Imbalance:
    """Seconds for which a reader was idle while another one worked, and the reason why it stole nothing."""

    seconds: float
    reason: str

    def __str__(self) -> str:
        return f"{self.reason}; a reader was idle for {self.seconds:.1f} s"


def imbalance(stats: Sequence[TaskEndStats]) -> Imbalance | None:
    """The reason why the tasks of a window, none of which has stolen anything, did not end together; None: the work was even.

    A task that began when all slots were in use took the slot of the first one that had ended. So the last tasks of the slots
    are compared: the work was even if none of them was idle, while the last one worked, for longer than is worth a steal.

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
    return Imbalance(seconds, _reason(idle, last, seconds)) if is_worth(seconds) else None


def _reason(idle: TaskEndStats, last: TaskEndStats, seconds: float) -> str:
    longest = last.longest
    if longest is not None and longest.until - max(longest.since, idle.until) >= seconds / 2:
        return longest.reason
    if idle.refusals:
        times = "once" if idle.refusals == 1 else f"{idle.refusals} times"
        return f"asked {times} in vain, the last answer: {idle.refusal}"
    return idle.stopped
