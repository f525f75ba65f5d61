"""Partitions of an operator: their counters, and the keys that each of them gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import attrs

from dagflow.model.types.keys import GROUPS
from dagflow.scaling.errors import KeysMisassigned, PartitionerFailed
from dagflow.scaling.stats import OperatorStats


def _frozen(keys: Iterable[int]) -> frozenset[int]:
    return frozenset(keys)


@attrs.frozen
class PartitionKeys:
    """The keys that a partition owns: it gets the records whose `hash & mask` is one of `keys`.

    The hash of a record is that of its key.

    >>> from dagflow.scaling import key_hash
    >>> PartitionKeys(mask=3, keys=frozenset({0, 3})).holds(7)
    True
    >>> [PartitionKeys(mask=1, keys=frozenset({n})).holds(key_hash("apple")) for n in (0, 1)]
    [False, True]

    Raises ValueError for a mask beyond 0 to 65,535 (the lowest 16 bits of a hash count), and for keys that no hash can have
    under it.
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
        """Return whether the partition owns the keys with this hash."""
        return key_hash & self.mask in self.keys


@attrs.frozen(eq=False)
class Partition:
    """One of n parallel copies of an operator.

    Attributes:
        operator: the operator of the DAG; tasks make their copies from it.
        stats: the newest figures of the partition.
        counters: its counters, merged with those of the partitions that it has replaced.
        keys: the keys that it owns, by the name of an input port that has a `partition_by`. If no partition has any, each one
            owns a run of neighbouring hashes.
    """

    operator: Any = None
    stats: OperatorStats | None = attrs.field(default=None, kw_only=True)
    counters: dict[str, int] = attrs.field(factory=dict, kw_only=True)
    keys: dict[str, PartitionKeys] = attrs.field(factory=dict, kw_only=True)


def resized(partitions: Sequence[Partition], count: int) -> list[Partition]:
    """Return `count` partitions. Those that stay keep their numbers; `partitions` itself is not changed.

    The counters of number p of those that go are added to those of number p % count, as their State is: totals never shrink.
    Keys stay only if the number of partitions does: with another number, they are assigned again.

    >>> three = [Partition("reader", counters={"blocks": n}) for n in (1, 2, 4)]
    >>> [partition.counters for partition in resized(three, 2)]
    [{'blocks': 5}, {'blocks': 2}]
    >>> len(resized(three, 5))
    5

    Raises ValueError for no partitions, and for a count below 1.
    """
    if not partitions:
        raise ValueError("there are no partitions to begin with: give at least one")
    if count < 1:
        raise ValueError(f"count is {count}, but must be at least 1")
    counters = [Counter[str]() for _ in range(count)]
    for number, partition in enumerate(partitions):
        counters[number % count].update(partition.counters)
    result = []
    stay = count == len(partitions)
    for number in range(count):
        source = partitions[number] if number < len(partitions) else Partition(partitions[0].operator)
        result.append(attrs.evolve(source, counters=dict(counters[number]), keys=dict(source.keys) if stay else {}))
    return result


def assign_partition_keys(partitions: Collection[Partition], port: str) -> None:
    """Assign each key of a port to exactly one partition, as in Apache Apex.

    The mask has as many bits as the number of partitions needs; the keys 0 to mask are assigned in turn, so that the
    first partitions get two if the number is not a power of two.

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


def key_owners(partitions: Sequence[Partition], ports: Sequence[str], of: tuple[str, str]) -> tuple[int, ...]:
    """Return the partition that owns each key of the widest mask, in the order of the keys; empty if no keys are assigned.

    `ports`: the input ports with a key (`partition_by`). A port without assigned keys follows the other ports, since records with
    the same key meet. `of`: the names of operator and partitioner, for errors.

    >>> from dagflow.scaling import assign_partition_keys, resized
    >>> three = resized([Partition("tally")], 3)
    >>> assign_partition_keys(three, "input")
    >>> key_owners(three, ["input"], ("tally", "Mine"))
    (0, 1, 2, 0)

    Raises KeysMisassigned for keys that belong to no partition, or to several; PartitionerFailed for a port that has no key, and
    where ports differ.
    """
    assigned_ports = sorted({port for partition in partitions for port in partition.keys})
    for port in assigned_ports:
        if port not in ports:
            raise PartitionerFailed(*of, f"has assigned keys of port {port!r}, which has no key (partition_by)")
    owners_by_port = {port: _owners(partitions, port, of[0]) for port in assigned_ports}
    mask = max((len(owners) for owners in owners_by_port.values()), default=0)
    repeated = {port: owners * (mask // len(owners)) for port, owners in owners_by_port.items()}
    if len(set(repeated.values())) > 1:
        names = " and ".join(map(repr, assigned_ports))
        raise PartitionerFailed(*of, f"has assigned the keys of ports {names} to different partitions")
    return next(iter(owners_by_port.values()), ())


def _owners(partitions: Sequence[Partition], port: str, operator: str) -> tuple[int, ...]:
    assignment = {number: partition.keys[port] for number, partition in enumerate(partitions) if port in partition.keys}
    size = 1 << max(each.mask.bit_length() for each in assignment.values())
    by_mask: dict[int, dict[int, list[int]]] = {}  # of each mask, the partitions that own each key
    for number, each in assignment.items():
        of_mask = by_mask.setdefault(each.mask, {})
        for key in each.keys:
            of_mask.setdefault(key, []).append(number)
    owners = [sorted(number for mask, own in by_mask.items() for number in own.get(key & mask, ())) for key in range(size)]
    if any(len(each) != 1 for each in owners):
        missing = tuple(key for key, each in enumerate(owners) if not each)
        several = {key: tuple(each) for key, each in enumerate(owners) if len(each) > 1}
        raise KeysMisassigned(operator, port, size - 1, missing, several)
    return tuple(each[0] for each in owners)
