"""Errors of records and columns that cross an exchange."""

from __future__ import annotations

from dagflow.errors import RunError
from dagflow.errors.base import error


@error("DF374")
class CombinedKeyChanged(RunError, ValueError):
    """A combiner returned a record with another key than the records that it was given."""

    port: str
    key: str
    template = (
        "the combiner of port {port} returned a record whose key, {key}, is not that of the records that it was given\n"
        "  help: the returned record must have the key of both records, so that it meets the others of that key"
    )
    example = {"port": "count.input", "key": "'b'"}


@error("DF371")
class ExchangeBroken(RunError):
    """Rows of an exchange arrived at the wrong task. The window is not committed."""

    task: str
    reason: str
    template = "the exchange before task {task} is broken: {reason}"
    example = {"task": "1 of level 1", "reason": "a row of task 0 has arrived"}
    general_remedy = "launch again: the window runs anew from its plan. If it happens again, report it"


@error("DF380", is_fatal=True)
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
    example = {
        "operator": "sort",
        "what": "the result of its body",
        "column": "count",
        "has": "int32",
        "wanted": "int64",
        "help": "cast it: frame.count.cast('long')",
    }

    def message(self) -> str:
        if self.has is None:
            difference = f"has no column {self.column!r} ({self.wanted})"
        elif self.wanted is None:
            difference = f"has a column {self.column!r} ({self.has}) that is not declared"
        else:
            difference = f"has column {self.column!r} as {self.has}, but {self.wanted} is declared"
        window = "" if self.window is None else f"\n  window  {self.window}"
        return f"operator {self.operator!r}: {self.what} {difference}{window}" + (f"\n  help: {self.help}" if self.help else "")


@error("DF381", is_fatal=True)
class TimeNotInSpark(RunError, ValueError):
    """A time is more precise than the microseconds of Spark."""

    operator: str
    column: str
    type: str
    reason: str
    template = (
        "operator {operator!r}: its input has column {column!r} as {type}, and Spark's times are of microseconds: {reason}\n"
        "  help: declare int64: nanoseconds as an integer; or truncate the time before, with Map or the schema of the reader"
    )
    example = {"operator": "sort", "column": "time", "type": "timestamp[ns]", "reason": "12:00:00.123456789 has nanoseconds"}


@error("DF382", is_fatal=True)
class NullMade(RunError, ValueError):
    """The result of a DataFrame operator has a null in a column that must have a value."""

    operator: str
    column: str
    template = (
        "operator {operator!r}: the result of its body has a null in column {column!r}, but the column must have a value\n"
        "  help: declare it optional ({column}: … | None), or drop such rows: .na.drop(subset=[{column!r}])"
    )
    example = {"operator": "sort", "column": "count"}
