"""Errors in how a DAG is partitioned: keys of ports and columns."""

from __future__ import annotations

from typing import Any

from dagflow.errors import DagError, RunError
from dagflow.errors.base import error
from dagflow.errors.wording import did_you_mean, known_names, suggest

HASHABLE = (
    "make keys of None, bool, int, float, str, bytes, dates, times, Decimal, UUID, enums,\n"
    "        or of tuples, attrs classes and dataclasses of these that compare their fields"
)


@error("DF041")
class KeyConflict(DagError):
    """A port has both a key and `partition_parallel=True`, which contradict each other."""

    port: str
    key: str
    where: str
    template = (
        "port {port} has both the key {key} and partition_parallel=True ({where})\n"
        "  help: remove one of partition_by and partition_parallel=True"
    )
    example = {"port": "count.input", "key": "'country'", "where": "app.py:12"}


@error("DF042")
class KeyMissing(DagError):
    """Some ports of an operator have a key and others do not, so records with equal keys would not meet."""

    operator: str
    keyed: tuple[str, ...]
    missing: tuple[str, ...]
    where: str
    example = {"operator": "join", "keyed": ("left",), "missing": ("right",), "where": "app.py:12"}

    def message(self) -> str:
        return (
            f"operator {self.operator!r} is partitioned by the key of port {', '.join(self.keyed)}, "
            f"but port {', '.join(self.missing)} has none ({self.where})\n"
            f"  help: dag.set_port_attributes(operator.{self.missing[0]}, partition_by=…), or partition_by for the whole operator"
        )


@error("DF043")
class KeyRefused(DagError, TypeError):
    """A key is neither a function of the record nor the name of a column that the records have."""

    port: str
    key: str
    reason: str
    known: tuple[str, ...]
    where: str
    example = {
        "port": "count.input",
        "key": "'contry'",
        "reason": "its records have no such column",
        "known": ("country", "city"),
        "where": "app.py:12",
    }

    def message(self) -> str:
        known = did_you_mean(self.key.strip("'"), self.known, otherwise=known_names(self.known))
        advice = "give a function of the record, the name of a column (a field of its class), or a tuple of names"
        if "," in self.key and all(name.strip() in self.known for name in self.key.strip("'").split(",")):
            names = ", ".join(f'"{name.strip()}"' for name in self.key.strip("'").split(","))
            advice = f"for the key of several columns, give a tuple, ({names}); on the command line a list, '[{names}]'"
        return f"port {self.port} cannot be partitioned by {self.key}: {self.reason} ({self.where}).{known}\n  help: {advice}"


@error("DF044")
class KeyFixed(DagError):
    """A port has another key than its operator, whose key is fixed."""

    port: str
    key: str
    own: str
    where: str
    template = (
        "port {port} cannot be partitioned by {key}: the key of its operator is fixed to {own} ({where})\n"
        "  help: remove partition_by, and set the key with the operator's own property (`by` of an aggregate)"
    )
    example = {"port": "count.input", "key": "'city'", "own": "'country'", "where": "app.py:12"}


@error("DF050")
class KeyTypeRefused(DagError, TypeError):
    """A port is partitioned by keys of a type whose hash does not agree with `==`, so equal keys would not meet."""

    port: str
    key: str
    reason: str
    where: str
    template = (
        "port {port} cannot be partitioned by {key}, since equal keys might not meet: {reason} ({where})\n  help: " + HASHABLE
    )
    example = {"port": "count.input", "key": "'tags'", "reason": "list[str] has no hash", "where": "app.py:12"}


@error("DF370")
class KeyNotHashable(RunError, TypeError):
    """The type of a key has no hash that is stable across processes and agrees with `==`."""

    port: str
    key: str
    reason: str
    template = "the key {key} of port {port} has no hash: {reason}\n  help: " + HASHABLE
    example = {"port": "count.input", "key": "['a']", "reason": "lists have no hash"}


@error("DF376", is_fatal=True)
class ColumnNotThere(RunError, LookupError):
    """An operator names a column that the records do not have.

    Attributes:
        by: the property that names it.
        columns: the names and types of the columns that arrived.
        side: the input at which they arrived, if the operator has several.
    """

    by: str
    column: str
    columns: tuple[tuple[str, str], ...]
    side: str = ""
    example = {"by": "`by` of operator 'count'", "column": "contry", "columns": (("country", "string"), ("city", "string"))}

    @classmethod
    def of(cls, by: str, column: str, schema: Any, side: str = "") -> ColumnNotThere:
        """Return the error of records with the columns of a schema of Arrow."""
        return cls(by, column, tuple((field.name, str(field.type)) for field in schema), side)

    def message(self) -> str:
        near = suggest(self.column, [name for name, _ in self.columns])
        known = ", ".join(f"{name} ({kind})" for name, kind in self.columns) or "none"
        return (
            f"there is no column {self.column!r}, which {self.by} names\n"
            f"  columns{self.side and f' of the {self.side} side'}  {known}"
            + (f"\n  help: did you mean {near!r}?" if near else "")
        )
