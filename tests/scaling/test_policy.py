"""The tables of the policies: backlog in, readers out; and that nothing flaps under a steady load."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.scaling import POLICIES, Load, PowerOfTwo, Steady, policy_named
from dagflow.scaling.policy import LARGE_BLOCK

# readers now → backlog: readers wanted, from 1 to 16, on 6 slots
STEADY = {
    1: {0: 1, 1: 1, 2: 2, 3: 3, 5: 5, 8: 8, 11: 11, 12: 12, 13: 12, 100_000: 12},
    2: {0: 0, 1: 1, 2: 2, 3: 3, 12: 12},
    8: {0: 0, 1: 1, 3: 3, 4: 4, 5: 8, 8: 8, 9: 9, 12: 12, 13: 12},
    12: {0: 0, 5: 5, 6: 6, 7: 12, 11: 12, 12: 12, 13: 12},
    16: {0: 0, 8: 8, 9: 16, 100: 16},  # it had more slots once
}


@pytest.mark.parametrize(("now", "backlog"), [(now, backlog) for now, row in STEADY.items() for backlog in row])
def test_steady(now: int, backlog: int) -> None:
    assert Steady().readers(Load(backlog=backlog, readers=now, slots=6)) == STEADY[now][backlog]


def test_a_large_block_counts_as_several() -> None:
    assert Steady().readers(Load(backlog=1, size=5 * LARGE_BLOCK, slots=6)) == 5
    assert Steady().readers(Load(backlog=5, size=5 * LARGE_BLOCK, slots=6)) == 5
    assert Steady().readers(Load(backlog=1, size=100 * LARGE_BLOCK, slots=6)) == 12


@pytest.mark.parametrize(("shares", "most"), [(True, 6), (False, 12)])
def test_readers_that_take_over_from_each_other_are_no_more_than_slots(shares: bool, most: int) -> None:
    assert [Steady().readers(Load(backlog=n, slots=6, shares=shares)) for n in (1, 6, 12, 100)] == [1, 6, most, most]


@pytest.mark.parametrize(
    ("backlog", "readers"), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (10, 5), (16, 8), (1_000, 445), (100_000, 44_445)]
)
def test_where_readers_have_to_be_started_about_two_blocks_share_one(backlog: int, readers: int) -> None:
    assert Steady().readers(Load(backlog=backlog, grows=True, slots=4)) == readers


def test_where_nothing_is_known_of_slots_each_block_has_a_reader() -> None:
    assert Steady().readers(Load(backlog=1_000)) == 1_000


# the original's table, with its bounds held in all cells
POWER_OF_TWO = {
    (1, 16): {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 7: 4, 8: 8, 12: 8, 15: 8, 16: 16, 17: 16},
    (2, 16): {0: 2, 1: 2, 2: 2, 3: 2, 4: 4},
    (3, 16): {0: 3, 1: 3, 2: 3, 3: 3, 4: 4, 7: 4},
    (4, 12): {0: 4, 1: 4, 7: 4, 8: 8, 12: 8, 13: 12, 17: 12},
    (5, 5): {0: 5, 1: 5, 5: 5, 6: 5, 17: 5},
}


@pytest.mark.parametrize(("bounds", "backlog"), [(bounds, backlog) for bounds, row in POWER_OF_TWO.items() for backlog in row])
def test_power_of_two(bounds: tuple[int, int], backlog: int) -> None:
    load = Load(backlog=backlog, min_readers=bounds[0], max_readers=bounds[1])
    assert load.clamped(PowerOfTwo().readers(load)) == POWER_OF_TWO[bounds][backlog]


@given(
    low=st.integers(1, 10_000),
    swings=st.lists(st.floats(0, 0.99), min_size=2, max_size=40),
    before=st.integers(1, 200),
    bounds=st.tuples(st.integers(1, 40), st.integers(0, 200)),
    slots=st.none() | st.integers(1, 100),
    grows=st.booleans(),
)
def test_steady_never_goes_up_and_down_while_the_backlog_stays_within_a_factor_of_two(
    low: int, swings: list[float], before: int, bounds: tuple[int, int], slots: int | None, grows: bool
) -> None:
    before = max(bounds[0], min(before, sum(bounds)))  # readers are always between the bounds
    readers, found = before, []
    for swing in swings:
        load = Load(
            backlog=int(low * (1 + swing)),
            readers=readers,
            min_readers=bounds[0],
            max_readers=bounds[0] + bounds[1],
            slots=slots,
            grows=grows,
        )
        readers = load.clamped(Steady().readers(load))
        found.append(readers)
    falls = sum(b < a for a, b in itertools.pairwise([before, *found]))
    assert falls <= 1, "once, from what was there before; from then on the number stays, or goes up"


@given(backlog=st.integers(0, 100_000), now=st.integers(1, 100))
def test_under_the_same_load_steady_stays_where_it_is(backlog: int, now: int) -> None:
    first = Load(backlog=backlog, readers=now, slots=20)
    settled = first.clamped(Steady().readers(first))
    again = Load(backlog=backlog, readers=settled, slots=20)
    assert again.clamped(Steady().readers(again)) == settled


def test_policies_have_names() -> None:
    assert {name: policy.name for name, policy in POLICIES.items()} == {"steady": "steady", "power_of_two": "power_of_two"}
    assert policy_named("power_of_two") == PowerOfTwo()
    own = PowerOfTwo()
    assert policy_named(own) is own


@pytest.mark.parametrize(
    ("given_name", "text"),
    [
        ("stedy", "policy is 'stedy', but must be 'steady' or 'power_of_two': did you mean 'steady'?"),
        (3, "policy is 3, but must be 'steady' or 'power_of_two', or an object with readers(load)"),
    ],
)
def test_what_is_no_policy(given_name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        policy_named(given_name)
