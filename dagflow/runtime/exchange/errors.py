"""Errors of records and columns that cross an exchange."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError
from dagflow.errors.base import error


@error
class CombinedKeyChanged(RunError, ValueError):
    """A combiner returned a record with another key than the records that it was given."""

    port: str
    key: str
    code: ClassVar[str] = "DF374"
    example = {"port": "count.input", "key": "'b'"}

    def message(self) -> str:
        return (
            f"the combiner of port {self.port} returned a record whose key, {self.key}, is not that of the records that it was given\n"
            "  help: the returned record must have the key of both records, so that it meets the others of that key"
        )


@error
class ExchangeBroken(RunError):
    """Rows of an exchange arrived at the wrong task. The window is not committed."""

    task: str
    reason: str
    code: ClassVar[str] = "DF371"
    example = {"task": "1 of level 1", "reason": "a row of task 0 has arrived"}
    general_remedy = "launch again: the window runs anew from its plan. If it happens again, report it"

    def message(self) -> str:
        return f"the exchange before task {self.task} is broken: {self.reason}"


@error
class ColumnsDiffer(RunError, TypeError):
    """The input or the result of a DataFrame operator does not have the declared columns.

    Attributes:
        what: `its input` or `the result of its body`.
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
    example = {
        "operator": "sort",
        "what": "the result of its body",
        "column": "count",
        "has": "int32",
        "wanted": "int64",
        "help": "cast it: frame.count.cast('long')",
    }
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        if self.has is None:
            difference = f"has no column {self.column!r} ({self.wanted})"
        elif self.wanted is None:
            difference = f"has a column {self.column!r} ({self.has}) that is not declared"
        else:
            difference = f"has column {self.column!r} as {self.has}, but {self.wanted} is declared"
        window = "" if self.window is None else f"\n  window  {self.window}"
        return f"operator {self.operator!r}: {self.what} {difference}{window}" + (f"\n  help: {self.help}" if self.help else "")


@error
class TimeNotInSpark(RunError, ValueError):
    """A time is more precise than the microseconds of Spark."""

    operator: str
    column: str
    type: str
    reason: str
    code: ClassVar[str] = "DF381"
    example = {"operator": "sort", "column": "time", "type": "timestamp[ns]", "reason": "12:00:00.123456789 has nanoseconds"}
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: its input has column {self.column!r} as {self.type}, and Spark's times are of "
            f"microseconds: {self.reason}\n"
            "  help: declare int64: nanoseconds as an integer; or truncate the time before, with Map or the schema of the reader"
        )


@error
class NullMade(RunError, ValueError):
    """The result of a DataFrame operator has a null in a column that must have a value."""

    operator: str
    column: str
    code: ClassVar[str] = "DF382"
    example = {"operator": "sort", "column": "count"}
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: the result of its body has a null in column {self.column!r}, but the column must have a value\n"
            f"  help: declare it optional ({self.column}: … | None), or drop such rows: .na.drop(subset=[{self.column!r}])"
        )
