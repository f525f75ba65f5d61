"""The policy of idle readers, as a table: if they ask, which task, and how much they get."""

from __future__ import annotations

import pytest

from dagflow.runtime.rebalancing.policy import GRACE, NO_START, STEAL_COST, UNKNOWN, Choice, Peer, choose, share

LITTLE = 4 * STEAL_COST - 0.01


def working(partition: int, remaining: float | None, asked: bool = False, watched: float = 0.0, is_last: bool = False) -> Peer:
    return Peer(partition=partition, state="working", remaining=remaining, asked=asked, watched=watched, is_last=is_last)


WAITING, IDLE, DONE = (Peer(partition=n, state=state) for n, state in ((7, "waiting"), (8, "idle"), (9, "done")))


@pytest.mark.parametrize(
    ("readers", "room", "idle", "is_wanted", "expected"),
    [
        ([working(1, 3.0), working(2, 5.0)], 4, 0.0, False, ("ask", 2)),
        ([working(1, 3.0), working(2, 5.0)], 4, 0.0, True, ("ask", 2)),  # the sooner the window ends, the better for all
        ([working(1, 3.0), working(2, 5.0, asked=True)], 4, 0.0, False, ("ask", 1)),  # a slow record is not asked twice
        ([working(2, 5.0, asked=True, watched=60.0)], 4, 60.0, False, ("wait", None)),
        ([working(2, 5.0, asked=True, watched=60.0)], 4, 60.0, True, ("end", None)),
        ([working(1, 4 * STEAL_COST)], 4, 0.0, False, ("ask", 1)),
        ([working(1, LITTLE)], 4, 0.0, False, ("wait", None)),  # cheaper than the steal
        ([working(1, LITTLE, watched=GRACE)], 4, GRACE, False, ("end", None)),
        ([working(1, LITTLE, watched=0.1)], 4, 9.0, False, ("wait", None)),  # it has only just begun
        ([working(1, LITTLE), working(2, LITTLE, watched=GRACE)], 4, GRACE, False, ("wait", None)),
        ([working(1, LITTLE)], 4, 0.0, True, ("end", None)),
        ([working(1, 0.0, is_last=True)], 4, 0.0, False, ("end", None)),  # there never will be anything to take
        ([working(1, 0.0, is_last=True), working(2, LITTLE)], 4, 0.0, False, ("wait", None)),
        ([working(1, None)], 4, 0.0, True, ("wait", None)),
        ([working(1, None, watched=UNKNOWN)], 4, UNKNOWN, True, ("end", None)),
        ([working(1, None, watched=UNKNOWN)], 4, UNKNOWN, False, ("wait", None)),
        ([working(1, None, watched=GRACE)], 4, GRACE, False, ("end", None)),
        ([working(1, 9.0), WAITING], 2, 0.0, False, ("end", None)),  # who waits for the slot comes first
        ([working(1, 9.0), WAITING], 3, 0.0, False, ("ask", 1)),
        ([IDLE, WAITING], 2, 0.0, False, ("end", None)),  # an idle one has a slot, too
        ([IDLE, WAITING], 3, 0.0, False, ("wait", None)),
        ([working(1, 0.0), WAITING], 3, 0.0, False, ("wait", None)),  # there is a slot: it is about to start
        ([working(1, 0.0), WAITING], 3, NO_START, False, ("end", None)),
        ([DONE, IDLE], 4, 0.0, False, ("end", None)),
        ([], 1, 0.0, False, ("end", None)),
    ],
)
def test_choices(readers: list[Peer], room: int, idle: float, is_wanted: bool, expected: tuple[str, int | None]) -> None:
    found: Choice = choose(readers, room=room, idle=idle, is_wanted=is_wanted)
    assert (found.action, found.partition) == expected
    assert found.reason


@pytest.mark.parametrize(
    ("remaining", "record", "given"),
    [
        (10.0, 0.001, 0.5),
        (10.0, 4.0, 0.5),
        (10.0, 6.0, 1.0),  # one record is left: an idle reader takes it
        (0.19, 0.001, 0.0),  # cheaper than the steal
        (0.19, 60.0, 0.0),
        (0.2, 0.001, 0.5),
    ],
)
def test_shares(remaining: float, record: float, given: float) -> None:
    assert share(remaining, record) == given


def test_a_dearer_steal_needs_more_work() -> None:
    assert share(1.0, 0.001, cost=0.25) == 0.5
    assert share(0.99, 0.001, cost=0.25) == 0.0
    assert choose([working(1, 0.99, watched=9.0)], room=4, idle=9.0, cost=0.25).action == "end"
