"""Whether an idle reader asks another one for work, whom, and how much that one gives: pure functions of a few figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

STEAL_COST = 0.05  # seconds: the question, its answer, opening the file and finding the first record
GRACE = 1.0  # seconds that an idle reader stays although nothing is worth to be taken: estimates may turn out wrong
NO_START = 2.0  # seconds after which readers that have not started are taken to wait for the idle one's slot


@attrs.frozen(kw_only=True)
class Reader:
    """Another reader of the window, as an idle one sees it.

    Attributes:
        partition: its number.
        state: `waiting` (not started, or silent for long), `working` or `done`.
        remaining: seconds of work that it could give away; None: not known yet.
        asked: whether it has been asked during its present record, and has answered.
    """

    partition: int
    state: Literal["waiting", "working", "done"]
    remaining: float | None = None
    asked: bool = False


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


def choose(readers: Sequence[Reader], *, slots: int, idle: float, cost: float = STEAL_COST) -> Choice:
    """What a reader does that has been idle for so many seconds, on one of so many slots.

    It asks whoever has most left, never twice during one record: that one would only have the same answer. It keeps no slot from
    a reader that waits for one.

    >>> choose([Reader(partition=1, state="working", remaining=3.0), Reader(partition=2, state="working", remaining=5.0)],
    ...     slots=3, idle=0.0)
    Choice(action='ask', reason='5.0 s left', partition=2)
    """
    working = [r for r in readers if r.state == "working"]
    waiting = sum(r.state == "waiting" for r in readers)
    if waiting and len(working) + 1 >= slots:
        return Choice("end", "another reader waits for the slot")
    worth = [r for r in working if r.remaining is not None and is_worth(r.remaining, cost)]
    free = [r for r in worth if not r.asked]
    if free:
        most = max(free, key=lambda r: r.remaining or 0.0)
        return Choice("ask", f"{most.remaining:.1f} s left", most.partition)
    if waiting:
        return Choice("end", "another reader waits for the slot") if idle >= NO_START else Choice("wait", "another reader starts")
    if not working:
        return Choice("end", "nobody works any more")
    if worth:
        return Choice("wait", "all have answered during their present records")
    return Choice("end", "nothing is worth to be taken") if idle >= GRACE else Choice("wait", "the others may turn out slow")


def share(remaining: float, record: float, cost: float = STEAL_COST) -> float:
    """Which part (0 to 1) of the work that it has not begun a reader gives away: half of it; all of it, if that is one record.

    `remaining`: seconds of that work; `record`: seconds that the present record has taken so far. 0: nothing is worth it.

    >>> share(10.0, 0.01), share(10.0, 9.0), share(0.1, 0.0)
    (0.5, 1.0, 0.0)
    """
    if not is_worth(remaining, cost):
        return 0.0
    return 1.0 if remaining < 2 * record else 0.5
