from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from dagflow.planning.assignment import assign, assign_groups


@given(weights=st.lists(st.integers(0, 100), max_size=50), partitions=st.integers(1, 12))
def test_every_item_has_a_partition_and_neighbours_stay_together(weights: list[int], partitions: int) -> None:
    places = assign(weights, partitions)
    assert len(places) == len(weights)
    assert all(0 <= place < partitions for place in places)
    assert places == sorted(places)


@given(weights=st.lists(st.integers(1, 100), min_size=1, max_size=50), partitions=st.integers(1, 12))
def test_no_partition_gets_more_than_its_share_and_one_item(weights: list[int], partitions: int) -> None:
    places = assign(weights, partitions)
    share = sum(weights) / partitions
    for place in set(places):
        load = sum(w for w, p in zip(weights, places, strict=True) if p == place)
        assert load <= share + max(weights)


@given(count=st.integers(1, 60), partitions=st.integers(1, 12))
def test_equal_items_are_spread_evenly(count: int, partitions: int) -> None:
    sizes = [len(list(group)) for _, group in itertools.groupby(assign([1] * count, partitions))]
    assert len(sizes) == min(count, partitions)
    assert max(sizes) - min(sizes) <= 1


def test_items_without_weight_count_alike() -> None:
    assert assign([0, 0, 0, 0], 2) == [0, 0, 1, 1]
    assert assign([], 3) == []
    assert assign([1, 10], 5) == [0, 1]


@given(
    items=st.lists(st.tuples(st.integers(0, 100), st.none() | st.sampled_from("abcdef")), max_size=50),
    partitions=st.integers(1, 12),
    before=st.dictionaries(st.sampled_from("abcxyz"), st.integers(0, 20)),
)
def test_groups_are_never_torn_apart(items: list[tuple[int, str | None]], partitions: int, before: dict[str, int]) -> None:
    groups = [group for _, group in items]
    places = assign_groups([weight for weight, _ in items], groups, partitions, before)
    assert len(places) == len(items)
    assert all(0 <= place < partitions for place in places)
    found: dict[str, set[int]] = {}
    for group, place in zip(groups, places, strict=True):
        if group is not None:
            found.setdefault(group, set()).add(place)
    for group, taken in found.items():
        assert len(taken) == 1
        assert before.get(group, partitions) >= partitions or taken == {before[group]}


def test_items_without_group_are_dealt_one_by_one() -> None:
    assert assign_groups([1] * 4, [None] * 4, 2) == assign([1] * 4, 2)
    assert assign_groups([1, 1, 4], [None, "a", None], 2) == [0, 0, 1]
