"""Partitions of an operator: their counters, and the keys that each of them gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import attrs

from dagflow.model.types.keys import GROUPS
from dagflow.scaling.stats import OperatorStats


def _frozen(keys: Iterable[int]) -> frozenset[int]:
    return frozenset(keys)


@attrs.frozen
class PartitionKeys:
    """Which records a partition gets: those of which `hash & mask` is one of `keys`. The hash of a record is that of its key.

    >>> from dagflow.scaling import key_hash
    >>> PartitionKeys(mask=3, keys=frozenset({0, 3})).holds(7)
    True
    >>> [PartitionKeys(mask=1, keys=frozenset({n})).holds(key_hash("apple")) for n in (0, 1)]
    [False, True]

    Raises ValueError for a mask beyond 0 to 65,535 (the lowest 16 bits of a hash count), and for keys that it cannot give.
    """

    mask: int = attrs.field()
    keys: frozenset[int] = attrs.field(converter=_frozen)

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.mask < GROUPS:
            raise ValueError(f"the mask is {self.mask}, but must be from 0 to {GROUPS - 1:,}")
        beyond = sorted(key for key in self.keys if key & self.mask != key)
        if beyond:
            raise ValueError(f"no hash & {self.mask} is ever {beyond[0]}: keys have no bits that the mask does not have")

    def holds(self, key_hash: int) -> bool:
        """Tell whether the partition gets the keys with this hash."""
        return key_hash & self.mask in self.keys


@attrs.frozen(eq=False)
class Partition:
    """One of n parallel copies of an operator.

    Attributes:
        operator: the operator as it stands in the DAG; the copies are made of it in the tasks.
        stats: what it has before it, as it was told last.
        counters: what it has counted, merged with those of the partitions that it has replaced.
        keys: by the name of an input port that has a `partition_by`, what it gets of that port's records. Where no partition has
            any, each has a run of neighbouring hashes.
    """

    operator: Any = None
    stats: OperatorStats | None = attrs.field(default=None, kw_only=True)
    counters: dict[str, int] = attrs.field(factory=dict, kw_only=True)
    keys: dict[str, PartitionKeys] = attrs.field(factory=dict, kw_only=True)


def resized(partitions: Sequence[Partition], count: int) -> list[Partition]:
    """As many partitions as wanted. Those that stay keep their numbers; the given ones are not changed.

    The counters of number p of those that go are added to those of number p % count, as their State is: totals never shrink.
    Keys stay only where the number of partitions does: another number has them dealt anew.

    >>> three = [Partition("reader", counters={"blocks": n}) for n in (1, 2, 4)]
    >>> [partition.counters for partition in resized(three, 2)]
    [{'blocks': 5}, {'blocks': 2}]
    >>> len(resized(three, 5))
    5

    Raises ValueError where there are none, or none are wanted.
    """
    if not partitions:
        raise ValueError("there are no partitions to begin with: give at least one")
    if count < 1:
        raise ValueError(f"{count} partitions are wanted, and must be at least 1")
    counters = [Counter[str]() for _ in range(count)]
    for number, partition in enumerate(partitions):
        counters[number % count].update(partition.counters)
    found = []
    stay = count == len(partitions)
    for number in range(count):
        source = partitions[number] if number < len(partitions) else Partition(partitions[0].operator)
        found.append(attrs.evolve(source, counters=dict(counters[number]), keys=dict(source.keys) if stay else {}))
    return found


def assign_partition_keys(partitions: Collection[Partition], port: str) -> None:
    """Assigns the keys of a port to partitions: each key to exactly one, as in Apache Apex.

    The mask has as many bits as the number of partitions needs; the keys 0 to mask are dealt in turn, so that the first
    partitions get two where the number is no power of two.

    >>> three = resized([Partition("reader")], 3)
    >>> assign_partition_keys(three, "input")
    >>> [(p.keys["input"].mask, sorted(p.keys["input"].keys)) for p in three]
    [(3, [0, 3]), (3, [1]), (3, [2])]
    """
    count = len(partitions)
    if count == 0:
        raise ValueError("there are no partitions to give keys to")
    mask = (1 << (count - 1).bit_length()) - 1
    for number, partition in enumerate(partitions):
        partition.keys[port] = PartitionKeys(mask, frozenset(range(number, mask + 1, count)))
