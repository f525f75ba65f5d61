"""What can be wrong with operators whose body is a function of DataFrames."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors.base import DagError, RunError, error


@error
class ColumnsUnknown(DagError):
    """Nothing says which columns a port of an operator with a body of DataFrames has."""

    operator: str
    class_name: str
    port: str
    type: str
    where: str
    code: ClassVar[str] = "DF045"

    def message(self) -> str:
        return (
            f"operator {self.operator!r} works on DataFrames, but nothing says the columns of its port {self.port}: {self.type} has none ({self.where})\n"
            f"  help: name the classes of its records, {self.class_name}[In, Out](…), or give the columns: {self.port}_schema={{'name': 'string', …}}"
        )


@error
class BodyPartitioned(DagError):
    """An operator with a body of DataFrames is told how to be partitioned by key, or not at all."""

    operator: str
    asked: str
    where: str
    code: ClassVar[str] = "DF046"

    def message(self) -> str:
        return (
            f"operator {self.operator!r} cannot have {self.asked}: Spark itself partitions what a body of DataFrames works on ({self.where})\n"
            "  help: remove it; where the body needs equal keys together, frame.repartition(…) says so"
        )


@error
class ColumnsDiffer(RunError, TypeError):
    """What comes to, or out of, a body of DataFrames has not the columns that were declared.

    Attributes:
        what: `its input` or `what its body returns`.
        column: the one that differs; `has`, `wanted`: its type, None where it is not there.
    """

    operator: str
    what: str
    column: str
    has: str | None
    wanted: str | None
    help: str = ""
    window: int | None = None
    code: ClassVar[str] = "DF380"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        if self.has is None:
            difference = f"has no column {self.column!r} ({self.wanted})"
        elif self.wanted is None:
            difference = f"has a column {self.column!r} ({self.has}) that is not declared"
        else:
            difference = f"has column {self.column!r} as {self.has}, declared is {self.wanted}"
        window = "" if self.window is None else f"\n  window  {self.window}"
        return f"operator {self.operator!r}: {self.what} {difference}{window}" + (f"\n  help: {self.help}" if self.help else "")
