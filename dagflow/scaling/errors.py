"""Errors of partitioners."""

from __future__ import annotations

from dagflow.errors import RunError
from dagflow.errors.base import error


@error("DF365")
class PartitionerFailed(RunError):
    """The partitioner of an operator raised, or did not return partitions."""

    operator: str
    partitioner: str
    reason: str
    template = (
        "the partitioner of operator {operator!r} ({partitioner}) {reason}\n"
        "  help: define_partitions(partitions, context) returns a list of at least one dagflow.scaling.Partition;\n"
        "        dagflow.scaling.resized(partitions, count) makes one of any length"
    )
    example = {"operator": "reader", "partitioner": "MyPartitioner", "reason": "has returned None"}


@error("DF782")
class PolicyFailed(RunError):
    """The policy of an operator's readers raised, or did not return an integer."""

    operator: str
    policy: str
    reason: str
    where: str = ""
    fields: tuple[str, ...] = ()
    template = (
        "the policy {policy}{operator:? of operator {operator!r}} {reason}\n"
        "{where:?  at {where}\n}"
        "  help: readers(load) returns an integer; load has {fields}"
    )
    example = {
        "operator": "reader",
        "policy": "Third",
        "reason": "failed in readers(load): AttributeError: 'int' object has no attribute 'items'",
        "where": "app.py:8",
        "fields": ("backlog", "size", "readers"),
    }


_SHOWN = 10


@error("DF375")
class KeysMisassigned(RunError, ValueError):
    """A partitioner assigned keys to no partition, or to several. Records would be lost or duplicated.

    Keys are values of `hash & mask`. `missing`: those without a partition; `several`: those with more than one, and which.
    """

    operator: str
    port: str
    mask: int
    missing: tuple[int, ...]
    several: dict[int, tuple[int, ...]]
    example = {"operator": "count", "port": "input", "mask": 3, "missing": (2,), "several": {1: (0, 1)}}

    def message(self) -> str:
        wrong = []
        if self.missing:
            wrong.append(f"to no partition: {_few([str(key) for key in self.missing])}")
        if self.several:
            owners = [f"{key} (to {' and '.join(map(str, numbers))})" for key, numbers in self.several.items()]
            wrong.append(f"to several: {_few(owners)}")
        return (
            f"the keys of port {self.operator}.{self.port} (hash & {self.mask}) are not assigned to one partition each\n"
            + "".join(f"  {each}\n" for each in wrong)
            + "  help: each key from 0 to the mask belongs to the PartitionKeys of exactly one partition;\n"
            "        dagflow.scaling.assign_partition_keys(partitions, port) assigns them"
        )


def _few(items: list[str]) -> str:
    more = f" and {len(items) - _SHOWN:,} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more
