"""Each key that a partitioner assigns belongs to exactly one partition; the error names those that do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import KeysMisassigned, PartitionerFailed
from dagflow.scaling import Partition, PartitionKeys, assign_partition_keys, key_owners, resized

OF = ("tally", "Mine")


def partitions(*assignments: tuple[int, set[int]] | None, port: str = "input") -> list[Partition]:
    """Partitions with mask and keys; None: without."""
    return [Partition(keys={} if each is None else {port: PartitionKeys(each[0], frozenset(each[1]))}) for each in assignments]


@given(st.integers(1, 200), st.integers(0, 1 << 64))
def test_owners_are_the_partitions_that_hold_the_keys(count: int, key_hash: int) -> None:
    assigned = resized([Partition()], count)
    assign_partition_keys(assigned, "input")
    owners = key_owners(assigned, ["input"], OF)
    assert assigned[owners[key_hash & (len(owners) - 1)]].keys["input"].holds(key_hash)


@pytest.mark.parametrize(
    ("assigned", "owners"),
    [
        (partitions(None, None), ()),
        (partitions((0, {0})), (0,)),
        (partitions((1, {1}), (1, {0})), (1, 0)),
        (partitions((1, {0}), (3, {1}), (3, {3})), (0, 1, 0, 2)),
        (partitions((2, {2}), (2, {0})), (1, 1, 0, 0)),
        (partitions((1, {0, 1}), None), (0, 0)),
    ],
    ids=["none", "all to one", "the other way round", "masks of different widths", "of the second bit", "one gets nothing"],
)
def test_owners(assigned: list[Partition], owners: tuple[int, ...]) -> None:
    assert key_owners(assigned, ["input"], OF) == owners


def test_keys_of_no_partition_and_of_several_are_named() -> None:
    with pytest.raises(KeysMisassigned) as caught:
        key_owners(partitions((3, {0, 1}), (3, {1}), None), ["input"], OF)
    error = caught.value
    assert (error.operator, error.port, error.mask, error.missing, error.several) == ("tally", "input", 3, (2, 3), {1: (0, 1)})
    assert error.message().splitlines()[:3] == [
        "the keys of port tally.input (hash & 3) are not assigned to one partition each",
        "  to no partition: 2, 3",
        "  to several: 1 (to 0 and 1)",
    ]


@pytest.mark.full
def test_of_many_keys_the_first_are_named() -> None:
    with pytest.raises(KeysMisassigned, match=r"to no partition: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 65,525 more\n"):
        key_owners(partitions((65_535, {0})), ["input"], OF)


def test_a_port_without_a_key() -> None:
    with pytest.raises(PartitionerFailed, match=r"\(Mine\) has assigned keys of port 'other', which has no key"):
        key_owners(partitions((0, {0}), port="other"), ["input"], OF)


def test_records_with_the_same_key_must_meet() -> None:
    two = resized([Partition()], 2)
    assign_partition_keys(two, "left")
    assert key_owners(two, ["left", "right"], OF) == (0, 1), "the other port goes along"
    two[0].keys["right"], two[1].keys["right"] = (PartitionKeys(3, {0, 2}), PartitionKeys(3, {1, 3}))
    assert key_owners(two, ["left", "right"], OF) == (0, 1), "the same assignment in other words"
    two[0].keys["right"], two[1].keys["right"] = two[1].keys["right"], two[0].keys["right"]
    with pytest.raises(PartitionerFailed, match="has assigned the keys of ports 'left' and 'right' to different partitions"):
        key_owners(two, ["left", "right"], OF)
