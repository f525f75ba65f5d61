"""Partitions that come and go keep their counters; keys are dealt to exactly one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.scaling import Partition, PartitioningContext, PartitionKeys, StatelessPartitioner, assign_partition_keys, resized

COUNTS = st.lists(st.integers(1, 40), min_size=1, max_size=10)


@given(COUNTS, st.lists(st.integers(0, 1_000), min_size=1, max_size=40))
def test_totals_never_shrink(counts: list[int], blocks: list[int]) -> None:
    partitions = [Partition("reader", counters={"blocks": n}) for n in blocks]
    for count in counts:
        partitions = resized(partitions, count)
        assert len(partitions) == count
        assert sum(partition.counters.get("blocks", 0) for partition in partitions) == sum(blocks)


def test_eight_that_become_one_bring_what_they_have_counted() -> None:
    """As the original's test has it."""
    eight = [Partition("reader", counters={"BLOCKS": 1}) for _ in range(8)]
    (one,) = resized(eight, 1)
    assert one.counters == {"BLOCKS": 8}


def test_those_that_are_given_stay_as_they_are() -> None:
    before = [Partition("reader", counters={"blocks": 1}), Partition("reader", counters={"blocks": 2})]
    (after,) = resized(before, 1)
    after.counters["blocks"] = 10
    assert [partition.counters for partition in before] == [{"blocks": 1}, {"blocks": 2}]


@pytest.mark.parametrize(
    ("count", "mask", "keys"),
    [
        (1, 0, [{0}]),
        (2, 1, [{0}, {1}]),
        (3, 3, [{0, 3}, {1}, {2}]),
        (5, 7, [{0, 5}, {1, 6}, {2, 7}, {3}, {4}]),
        (6, 7, [{0, 6}, {1, 7}, {2}, {3}, {4}, {5}]),
        (12, 15, [{0, 12}, {1, 13}, {2, 14}, {3, 15}, *({n} for n in range(4, 12))]),
    ],
)
def test_keys_and_masks(count: int, mask: int, keys: list[set[int]]) -> None:
    partitions = resized([Partition("reader")], count)
    assign_partition_keys(partitions, "input")
    assert [set(partition.keys["input"].keys) for partition in partitions] == keys
    assert {partition.keys["input"].mask for partition in partitions} == {mask}


@given(st.integers(1, 100), st.lists(st.integers(-(1 << 40), 1 << 40), max_size=50))
def test_every_key_belongs_to_exactly_one(count: int, hashes: list[int]) -> None:
    partitions = resized([Partition("reader")], count)
    assign_partition_keys(partitions, "input")
    for key_hash in hashes:
        assert sum(partition.keys["input"].holds(key_hash) for partition in partitions) == 1
    assert max(Counter(len(partition.keys["input"].keys) for partition in partitions)) <= 2


def test_what_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"^count is 0, but must be at least 1$"):
        resized([Partition("reader")], 0)
    with pytest.raises(ValueError, match=r"^there are no partitions to begin with: give at least one$"):
        resized([], 1)
    with pytest.raises(ValueError, match=r"^there are no partitions to give keys to$"):
        assign_partition_keys([], "input")


@pytest.mark.parametrize(("count", "before"), [(1, 1), (5, 1), (5, 9)])
def test_a_stateless_partitioner(count: int, before: int) -> None:
    context = PartitioningContext(input_ports=("one", "other"))
    found = StatelessPartitioner(count).define_partitions(resized([Partition("value 5")], before), context)
    assert [partition.operator for partition in found] == ["value 5"] * count
    assert all(partition.keys["one"] == partition.keys["other"] for partition in found), "what has the same key meets"


def test_keys_stay_only_where_the_number_does() -> None:
    two = resized([Partition("reader")], 2)
    assign_partition_keys(two, "input")
    assert [partition.keys for partition in resized(two, 2)] == [partition.keys for partition in two]
    assert not any(partition.keys for count in (1, 3) for partition in resized(two, count))


@pytest.mark.parametrize(
    ("mask", "keys", "reason"),
    [
        (-1, [], r"^the mask is -1, but must be from 0 to 65,535$"),
        (1 << 16, [], r"^the mask is 65536, but must be from 0 to 65,535$"),
        (3, [1, 4], r"^no hash & 3 is ever 4: keys have no bits that the mask does not have$"),
        (4, [-1], r"^no hash & 4 is ever -1: "),
    ],
)
def test_keys_that_cannot_be(mask: int, keys: list[int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        PartitionKeys(mask, frozenset(keys))


@pytest.mark.parametrize("count", [0, -1, True, "4", 1.5])
def test_a_stateless_partitioner_of_nothing(count: int) -> None:
    with pytest.raises(ValueError, match=f"^partition_count is {count!r}, but must be an integer, 1 or more$"):
        StatelessPartitioner(count)
