"""Which partition has each key that a partitioner has dealt: exactly one."""

from __future__ import annotations

from collections.abc import Sequence

from dagflow.scaling.errors import KeysMisdealt, PartitionerFailed
from dagflow.scaling.partition import Partition


def dealt_keys(partitions: Sequence[Partition], ports: Sequence[str], of: tuple[str, str]) -> tuple[int, ...]:
    """The partition of each key of the widest mask, in the order of the keys; nothing where no partition has been given keys.

    `ports`: the input ports whose records go by key. Those of which no keys are dealt have the partitions of the others, as what
    has the same key meets. `of`: the names of operator and partitioner, for errors.

    >>> from dagflow.scaling import assign_partition_keys, resized
    >>> three = resized([Partition("tally")], 3)
    >>> assign_partition_keys(three, "input")
    >>> dealt_keys(three, ["input"], ("tally", "Mine"))
    (0, 1, 2, 0)

    Raises KeysMisdealt for keys that belong to no partition, or to several; PartitionerFailed for a port that has no key, and
    where ports differ.
    """
    dealt = sorted({port for partition in partitions for port in partition.keys})
    for port in dealt:
        if port not in ports:
            raise PartitionerFailed(*of, f"has dealt keys of port {port!r}, whose records do not go by key (partition_by)")
    found = {port: _owners(partitions, port, of[0]) for port in dealt}
    mask = max((len(owners) for owners in found.values()), default=0)
    wide = {port: owners * (mask // len(owners)) for port, owners in found.items()}
    if len(set(wide.values())) > 1:
        raise PartitionerFailed(*of, f"has dealt the keys of ports {' and '.join(map(repr, dealt))} to different partitions")
    return next(iter(found.values()), ())


def _owners(partitions: Sequence[Partition], port: str, operator: str) -> tuple[int, ...]:
    given = {number: partition.keys[port] for number, partition in enumerate(partitions) if port in partition.keys}
    size = 1 << max(each.mask.bit_length() for each in given.values())
    owners = [[number for number, each in given.items() if each.holds(key)] for key in range(size)]
    if any(len(each) != 1 for each in owners):
        missing = tuple(key for key, each in enumerate(owners) if not each)
        several = {key: tuple(each) for key, each in enumerate(owners) if len(each) > 1}
        raise KeysMisdealt(operator, port, size - 1, missing, several)
    return tuple(each[0] for each in owners)
