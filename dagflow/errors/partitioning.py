"""What can be wrong with how a DAG is partitioned, and with the records that cross an exchange."""

from __future__ import annotations

import difflib
from typing import ClassVar

from dagflow.errors.base import DagError, RunError, error
from dagflow.errors.dag import nearest

_TOLD = 10
HASHABLE = (
    "make keys of None, bool, int, float, str, bytes, dates, times, Decimal, UUID, enums,\n"
    "        or of tuples, attrs classes and dataclasses of these that compare their fields"
)


@error
class UnrelatedPartitions(DagError):
    """An operator is to be parallel with operators whose partitions have nothing in common.

    Attributes:
        ports: its input ports, each with the operator whose partitions its records come from.
    """

    operator: str
    ports: tuple[tuple[str, str], ...]
    where: str
    code: ClassVar[str] = "DF040"

    def message(self) -> str:
        lines = "\n".join(f"  {port}  gets records from the partitions of {head!r}" for port, head in self.ports)
        one = self.ports[-1][0]
        return (
            f"operator {self.operator!r} cannot be parallel with operators whose partitions are not related ({self.where})\n{lines}\n"
            f"  help: let an exchange bring them together: dag.set_attributes(operator, partition_by=…) where equal keys must meet,\n"
            f"        partitioner=StatelessPartitioner(n) where they need not; or partition_parallel=False for port {one}"
        )


@error
class KeyConflict(DagError):
    """A port has a key and is told to be parallel: it cannot be both."""

    port: str
    key: str
    where: str
    code: ClassVar[str] = "DF041"

    def message(self) -> str:
        return (
            f"port {self.port} is partitioned by {self.key}, and told to be parallel with the operator upstream ({self.where})\n"
            "  help: remove one of partition_by and partition_parallel=True"
        )


@error
class KeyMissing(DagError):
    """Some ports of an operator have a key and others do not: records that belong together would not meet."""

    operator: str
    keyed: tuple[str, ...]
    missing: tuple[str, ...]
    where: str
    code: ClassVar[str] = "DF042"

    def message(self) -> str:
        return (
            f"operator {self.operator!r} is partitioned by the key of port {', '.join(self.keyed)}, "
            f"but port {', '.join(self.missing)} has none ({self.where})\n"
            f"  help: dag.set_port_attributes(operator.{self.missing[0]}, partition_by=…), or partition_by for the whole operator"
        )


@error
class KeyRefused(DagError, TypeError):
    """What stands as a key is none: neither a function of the record nor names of columns that it has."""

    port: str
    key: str
    reason: str
    known: tuple[str, ...]
    where: str
    code: ClassVar[str] = "DF043"

    def message(self) -> str:
        known = nearest(self.key.strip("'"), self.known)
        advice = "give a function of the record, the name of a column (a field of its class), or a tuple of names"
        if "," in self.key and all(name.strip() in self.known for name in self.key.strip("'").split(",")):
            names = ", ".join(f'"{name.strip()}"' for name in self.key.strip("'").split(","))
            advice = f"for the key of several columns, give a tuple, ({names}); on the command line a list, '[{names}]'"
        return f"port {self.port} cannot be partitioned by {self.key}: {self.reason} ({self.where}).{known}\n  help: {advice}"


@error
class KeyFixed(DagError):
    """A port has another key from outside than that which its operator works by: what it makes would come in parts."""

    port: str
    key: str
    own: str
    where: str
    code: ClassVar[str] = "DF044"

    def message(self) -> str:
        return (
            f"port {self.port} cannot be partitioned by {self.key}: its operator works by a key of its own, {self.own} ({self.where})\n"
            "  help: remove partition_by, and say with the operator's own properties (`by` of an aggregate) what belongs together"
        )


@error
class KeyTypeRefused(DagError, TypeError):
    """A port is partitioned by keys of a type whose values have no hash that agrees with `==`: equal keys would not meet."""

    port: str
    key: str
    reason: str
    where: str
    code: ClassVar[str] = "DF050"

    def message(self) -> str:
        return (
            f"port {self.port} cannot be partitioned by {self.key}, since equal keys might not meet: {self.reason} ({self.where})\n"
            f"  help: {HASHABLE}"
        )


@error
class KeyNotHashable(RunError, TypeError):
    """A key is of a type whose values have no hash that is the same in every process and agrees with `==`."""

    port: str
    key: str
    reason: str
    code: ClassVar[str] = "DF370"

    def message(self) -> str:
        return f"the key {self.key} of port {self.port} has no hash: {self.reason}\n  help: {HASHABLE}"


@error
class KeysMisdealt(RunError, ValueError):
    """A partitioner has dealt keys of a port to no partition, or to several: records would be lost, or come twice.

    `nobody`: the keys without a partition; `several`: those with more than one, and which; of `hash & mask`.
    """

    operator: str
    port: str
    mask: int
    nobody: tuple[int, ...]
    several: dict[int, tuple[int, ...]]
    code: ClassVar[str] = "DF375"

    def message(self) -> str:
        wrong = []
        if self.nobody:
            wrong.append(f"to no partition: {_few([str(key) for key in self.nobody])}")
        if self.several:
            told = [f"{key} (to {' and '.join(map(str, numbers))})" for key, numbers in self.several.items()]
            wrong.append(f"to several: {_few(told)}")
        return (
            f"the keys of port {self.operator}.{self.port} (hash & {self.mask}) are not dealt to one partition each\n"
            + "".join(f"  {each}\n" for each in wrong)
            + "  help: each key from 0 to the mask belongs to the PartitionKeys of exactly one partition;\n"
            "        dagflow.scaling.assign_partition_keys(partitions, port) deals them so"
        )


def _few(told: list[str]) -> str:
    more = f" and {len(told) - _TOLD:,} more" if len(told) > _TOLD else ""
    return ", ".join(told[:_TOLD]) + more


@error
class ForeignStateKey(RunError, KeyError):
    """A keyed operator has assigned an entry whose key belongs to another partition."""

    operator: str
    state: str
    key: str
    code: ClassVar[str] = "DF373"

    def message(self) -> str:
        return (
            f"operator {self.operator!r} keeps {self.key} in its MapState {self.state!r}, which is no key of its partition\n"
            "  help: entries go with the records: their keys must be what the operator's records are partitioned by,\n"
            "        or a function says so: MapState(partition_by=lambda key: …)"
        )


@error
class CombinedKeyChanged(RunError, ValueError):
    """A combiner has made a record with another key than those that it was given."""

    port: str
    key: str
    code: ClassVar[str] = "DF374"

    def message(self) -> str:
        return (
            f"the combiner of port {self.port} has made a record whose key, {self.key}, is not that of the records that it was given\n"
            "  help: what it returns must have the key of both records, so that it meets the others of that key"
        )


@error
class ExchangeBroken(RunError):
    """Rows of an exchange arrived where they do not belong: nothing of the window counts."""

    task: str
    reason: str
    code: ClassVar[str] = "DF371"

    def message(self) -> str:
        return f"the exchange before task {self.task} is broken: {self.reason}"


@error
class ColumnNotThere(RunError, LookupError):
    """A column is named that the batches which arrive do not have.

    Attributes:
        by: what names it.
        columns: the names and types of what arrived; `side`: at which of several inputs, or empty.
    """

    by: str
    column: str
    columns: tuple[tuple[str, str], ...]
    side: str = ""
    code: ClassVar[str] = "DF376"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        near = difflib.get_close_matches(self.column, [name for name, _ in self.columns], n=1)
        known = ", ".join(f"{name} ({kind})" for name, kind in self.columns) or "none"
        return (
            f"there is no column {self.column!r}, which {self.by} names\n"
            f"  columns{self.side and f' of the {self.side} side'}  {known}"
            + (f"\n  help: did you mean {near[0]!r}?" if near else "")
        )
