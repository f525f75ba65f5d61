"""Whether the work of a window was even, and if not, why nothing was taken over, by what its tasks tell at their ends."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import attrs

from dagflow.runtime.rebalancing.policy import is_worth
from dagflow.runtime.stage.outcome import TaskEndStats


@attrs.frozen
class Imbalance:
    """A reader had nothing to do for so many seconds while another one worked; and why it took nothing over."""

    seconds: float
    reason: str

    def __str__(self) -> str:
        return f"{self.reason}; a reader had nothing to do for {self.seconds:.1f} s"


def imbalance(endings: Sequence[TaskEndStats]) -> Imbalance | None:
    """Why the tasks of a window, none of which has taken over anything, did not end together; None: the work was even.

    A task that began when all slots had been used took that of the first one that had ended. So it is the last tasks of the slots
    that are compared: the work was even if, while the last one worked, none had nothing to do for longer than is worth a steal.

    >>> from dagflow.runtime.stage.outcome import BusyInterval
    >>> big = BusyInterval(0.0, 9.0, "big.gz cannot be split")
    >>> long, short = (TaskEndStats(begun=0.0, until=until, longest=big, room=2) for until in (9.0, 1.0))
    >>> print(imbalance([long, short]))
    big.gz cannot be split; a reader had nothing to do for 8.0 s
    >>> imbalance([long, short, TaskEndStats(begun=1.0, until=8.9, room=2)])
    """
    slots: list[tuple[float, int]] = []
    for number, each in sorted(enumerate(endings), key=lambda e: e[1].begun):
        if len(slots) < each.room or each.begun < slots[0][0]:  # there may be more by now
            heapq.heappush(slots, (each.until, number))
        else:
            heapq.heapreplace(slots, (each.until, number))
    if not slots:
        return None
    idle, last = endings[slots[0][1]], max(endings, key=lambda e: e.until)
    seconds = last.until - max(idle.until, last.begun)
    return Imbalance(seconds, _reason(idle, last, seconds)) if is_worth(seconds) else None


def _reason(idle: TaskEndStats, last: TaskEndStats, seconds: float) -> str:
    held = last.longest
    if held is not None and held.until - max(held.since, idle.until) >= seconds / 2:
        return held.reason
    if idle.vain:
        return f"asked {idle.vain} times in vain, at last: {idle.refusal}"
    return idle.stopped
