"""Errors of records and columns that cross an exchange."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError
from dagflow.errors.base import error


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
