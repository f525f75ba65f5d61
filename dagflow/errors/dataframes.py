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


@error
class TypeNotInSpark(DagError, TypeError):
    """A column of an operator with a body of DataFrames has a type that Spark has not.

    Attributes:
        what: `its input` or `its declared output`.
        instead: a type that Spark has and that holds the same values; empty where there is none.
    """

    operator: str
    what: str
    column: str
    type: str
    instead: str = ""
    where: str = ""
    code: ClassVar[str] = "DF048"

    def message(self) -> str:
        place = f" ({self.where})" if self.where else ""
        advice = f"declare {self.instead}" if self.instead else "make another column of it before, or leave it out"
        return (
            f"operator {self.operator!r}: {self.what} has column {self.column!r} as {self.type}, and Spark has no such type{place}\n"
            f"  help: {advice}" + (": what arrives is converted" if self.instead and self.what == "its input" else "")
        )


@error
class TimeNotInSpark(RunError, ValueError):
    """A time that comes to a body of DataFrames is finer than those of Spark, which are of microseconds."""

    operator: str
    column: str
    type: str
    reason: str
    code: ClassVar[str] = "DF381"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: its input has column {self.column!r} as {self.type}, and Spark's times are of "
            f"microseconds: {self.reason}\n"
            "  help: declare int64: nanoseconds as a number; or cut them before, Map or schema of the reader"
        )


@error
class NullMade(RunError, ValueError):
    """What a body of DataFrames returns has a null in a column that must have a value."""

    operator: str
    column: str
    code: ClassVar[str] = "DF382"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: what its body returns has a null in column {self.column!r}, but the column must have a value\n"
            f"  help: declare it optional ({self.column}: … | None), or return no such rows: .na.drop(subset=[{self.column!r}])"
        )
