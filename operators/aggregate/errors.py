"""Errors of keys and values in aggregates, time windows and kept state."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError, error


@error(kw_only=True)
class KeyColumnRefused(RunError, TypeError):
    """Records cannot be grouped by a column of lists or structs."""

    code: ClassVar[str] = "DF389"
    example = {"column": "tags", "type": "list<item: string>"}
    is_fatal: ClassVar[bool] = True

    column: str
    type: str

    def message(self) -> str:
        return (
            f"records cannot be grouped by the column {self.column!r}: its values are {self.type}, which cannot be keys\n"
            f"  help: give a function that turns it into a string or a tuple: by=lambda record: tuple(record.{self.column})"
        )


@error(kw_only=True)
class ValueNotKept(RunError, TypeError):
    """A key or a value cannot be kept over windows, since it would come back as another value."""

    code: ClassVar[str] = "DF390"
    example = {"type": "Color"}
    is_fatal: ClassVar[bool] = True

    type: str

    def message(self) -> str:
        return (
            f"a key or a value of type {self.type} cannot be kept over windows: it would not come back as it was\n"
            "  help: give a function in `by` or `of` that turns it into plain data (an enumeration's value, a tuple of a class's\n"
            "        fields): None, bool, int, float, str, bytes, decimals, dates, times and durations of `datetime`, UUIDs,\n"
            "        and lists, tuples and dicts with string keys of these"
        )


@error(kw_only=True)
class WindowsReopened(RunError, ValueError):
    """`Tumbling` would keep windows open longer than in the previous launch, and so reopen closed ones.

    Attributes:
        wait, kept: the properties that keep windows open after their end, now and in the previous launch.
    """

    code: ClassVar[str] = "DF391"
    example = {"operator": "tumbling", "wait": "allowed_lateness=1h", "kept": "allowed_lateness=1min"}
    is_fatal: ClassVar[bool] = True

    operator: str
    wait: str
    kept: str

    def message(self) -> str:
        return (
            f"{self.operator} has {self.wait} now, and had {self.kept}: windows that were closed then "
            "would be reopened without their records\n"
            "  help: restore these settings (together they may become shorter, not longer); or start over with --fresh and an empty output"
        )


@error(kw_only=True)
class ValueColumnRefused(RunError, TypeError):
    """The values of a column cannot be aggregated. `lack`: the missing operation, `added up` or `compared`."""

    code: ClassVar[str] = "DF394"
    example = {"column": "name", "type": "string", "lack": "added up"}
    is_fatal: ClassVar[bool] = True

    column: str
    type: str
    lack: str

    def message(self) -> str:
        return (
            f"an aggregate is of the column {self.column!r}, whose values are {self.type}: these cannot be {self.lack}\n"
            f"  help: aggregate another column, or cast it first: Select('*', {self.column}=col({self.column!r}).cast('float64')).\n"
            f"        A column without any value is read as text: give its type to the reader, schema='{self.column}: float64'"
        )


@error(kw_only=True)
class TotalNotHeld(RunError, OverflowError):
    """The total of a group is larger than what its column holds."""

    code: ClassVar[str] = "DF784"
    example = {"name": "revenue", "type": "int64", "total": "9223372036854775808"}
    is_fatal: ClassVar[bool] = True

    name: str
    type: str
    total: str

    def message(self) -> str:
        return (
            f"{self.name!r} is {self.total} in a group, which a column of {self.type} cannot hold\n"
            "  help: read the column as decimal128(38, 0) or float64, or divide it before"
        )


@error(kw_only=True)
class ColumnTypeChanged(RunError, TypeError):
    """Files have a column that is aggregated with different types."""

    code: ClassVar[str] = "DF785"
    example = {"column": "price", "before": "int64", "now": "double"}
    is_fatal: ClassVar[bool] = True

    column: str
    before: str
    now: str

    def message(self) -> str:
        return (
            f"the column {self.column!r} is {self.now}, and was {self.before} before: what was kept of it cannot be continued\n"
            f"  help: give the reader the type that it had: ScanReader(…, schema={{{self.column!r}: {self.before!r}}}). For another\n"
            "        one, start over: dagflow launch --fresh"
        )


@error(kw_only=True)
class OtherColumns(RunError, TypeError):
    """All columns of rows are compared, and rows have others."""

    code: ClassVar[str] = "DF796"
    example = {"operator": "Distinct", "before": ("shop", "price"), "now": ("shop",)}
    is_fatal: ClassVar[bool] = True

    operator: str
    before: tuple[str, ...]
    now: tuple[str, ...]

    def message(self) -> str:
        return (
            f"{self.operator} compares all columns, and rows have others\n"
            f"  now     {', '.join(self.now)}\n  before  {', '.join(self.before)}\n"
            f"  help: name those to compare: {self.operator}({', '.join(map(repr, self.before))}), or give the reader one schema"
        )


@error(kw_only=True)
class RowsNotKept(RunError, ValueError):
    """An operator has kept other rows than it needs now, since rows of its input may be taken back, or could be. `now`: `may`."""

    code: ClassVar[str] = "DF787"
    example = {"now": "may"}
    is_fatal: ClassVar[bool] = True

    now: str

    def message(self) -> str:
        return (
            f"rows that come here {self.now} be taken back, which was otherwise in earlier launches: what is kept was kept for that\n"
            "  help: put the operators before it back as they were, or start over with --fresh"
        )


@error(kw_only=True)
class KeysKeptOtherwise(RunError, TypeError):
    """An aggregate by named columns got rows with columns, and has kept the groups of records without, or the other way round."""

    code: ClassVar[str] = "DF797"
    example = {"now": "columns"}
    is_fatal: ClassVar[bool] = True

    now: str

    def message(self) -> str:
        before, now = ("records", "columns") if self.now == "columns" else ("columns", "records")
        return (
            f"the groups that are kept have keys of {before}, and {now} come now: equal keys would be two groups\n"
            f"  help: let the operator before emit {before} as it did (annotate what it returns with an attrs class for columns),"
            " or begin again: dagflow launch --fresh"
        )


@error(kw_only=True)
class WindowColumnRefused(RunError, TypeError):
    """A column has no times by which rows could be in time windows, or only dates where windows do not begin with days."""

    code: ClassVar[str] = "DF945"
    example = {"column": "day", "type": "date32[day]", "window": "window('day', '10min')"}
    is_fatal: ClassVar[bool] = True

    column: str
    type: str
    window: str

    def message(self) -> str:
        lack = "windows of dates have whole days" if self.type.startswith("date") else "time windows are of timestamps or dates"
        return (
            f"{self.window} is of the column {self.column!r}, which is {self.type}: {lack}\n"
            f"  help: cast it first: Select('*', {self.column}=col({self.column!r}).cast('timestamp[us]')). Integers are taken as\n"
            "        microseconds since the epoch then; or give the type to the reader, schema='…: timestamp[us]'"
        )
