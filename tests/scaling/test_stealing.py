"""Whether an idle reader asks, whom, and how much it gets: a table."""

from __future__ import annotations

import pytest

from dagflow.scaling.stealing import GRACE, NO_START, STEAL_COST, Choice, Reader, choose, share


def working(partition: int, remaining: float | None, asked: bool = False) -> Reader:
    return Reader(partition=partition, state="working", remaining=remaining, asked=asked)


WAITING, DONE = Reader(partition=8, state="waiting"), Reader(partition=9, state="done")


@pytest.mark.parametrize(
    ("readers", "slots", "idle", "expected"),
    [
        ([working(1, 3.0), working(2, 5.0)], 4, 0.0, ("ask", 2)),
        ([working(1, 3.0), working(2, 5.0, asked=True)], 4, 0.0, ("ask", 1)),  # a slow record is not asked twice
        ([working(2, 5.0, asked=True)], 4, 60.0, ("wait", None)),
        ([working(1, 4 * STEAL_COST)], 4, 0.0, ("ask", 1)),
        ([working(1, 4 * STEAL_COST - 0.01)], 4, 0.0, ("wait", None)),  # cheaper than the steal
        ([working(1, 4 * STEAL_COST - 0.01)], 4, GRACE, ("end", None)),
        ([working(1, None)], 4, 0.0, ("wait", None)),
        ([working(1, None)], 4, GRACE, ("end", None)),
        ([working(1, 9.0), WAITING], 2, 0.0, ("end", None)),  # who waits for the slot comes first
        ([working(1, 9.0), WAITING], 3, 0.0, ("ask", 1)),
        ([working(1, 0.0), WAITING], 3, 0.0, ("wait", None)),  # there is a slot: it is about to start
        ([working(1, 0.0), WAITING], 3, NO_START, ("end", None)),
        ([DONE], 4, 0.0, ("end", None)),
        ([], 1, 0.0, ("end", None)),
    ],
)
def test_choices(readers: list[Reader], slots: int, idle: float, expected: tuple[str, int | None]) -> None:
    found: Choice = choose(readers, slots=slots, idle=idle)
    assert (found.action, found.partition) == expected
    assert found.reason


@pytest.mark.parametrize(
    ("remaining", "record", "given"),
    [
        (10.0, 0.001, 0.5),
        (10.0, 4.0, 0.5),
        (10.0, 6.0, 1.0),  # one record is left: whoever is idle has it
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
    assert choose([working(1, 0.99)], slots=4, idle=9.0, cost=0.25).action == "end"
