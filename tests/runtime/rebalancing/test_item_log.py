"""One of the parts of an item completes it, after all of the others, whichever tasks read them and die."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dagflow.runtime.rebalancing.item_log import is_all
from dagflow.runtime.rebalancing.ownership_log import OwnershipLog
from dagflow.runtime.stage.parts import Part
from dagflow.storage import MemoryStore

PARTS = [Part(0, None, 10), Part(0, 10, 30), Part(0, 30, None)]


def begun(store: MemoryStore, partition: int, attempt: str) -> OwnershipLog:
    claims = OwnershipLog(store, "claims/0000000000.r.s0", partition=partition, partitions=3, attempt=attempt, assigned={})
    claims.begin()
    return claims


@given(st.sets(st.integers(1, 99), max_size=5), st.randoms(use_true_random=False))
def test_parts_are_all_of_an_item_if_none_is_missing(cuts: set[int], chance: st.DataObject) -> None:
    bounds = [None, *sorted(cuts), None]
    parts = [Part(0, start, stop) for start, stop in pairwise(bounds)]
    some = [*parts, *parts[: len(cuts)]]
    chance.shuffle(some)  # type: ignore[attr-defined]
    assert is_all(some)
    assert not is_all([part for part in some if part != some[0]])


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=12))
def test_one_attempt_that_counts_completes_it(steps: list[tuple[int, bool]]) -> None:
    """Each of three tasks reads its part when its turn comes; or dies, and reads it again later."""
    store = MemoryStore()
    attempts = [begun(store, n, f"{n}.0") for n in range(3)]
    told: list[bool | None] = [None] * 3
    read: set[int] = set()
    for number, (task, dies) in enumerate([*steps, (0, False), (1, False), (2, False)]):
        if dies:
            attempts[task], told[task] = begun(store, task, f"{task}.{number + 1}"), None
        elif told[task] is None:
            read.add(task)
            told[task] = attempts[task].finish(PARTS[task])
            assert not told[task] or len(read) == 3
    assert told.count(True) == 1
