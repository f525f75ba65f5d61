"""Errors of keys and values in aggregates, time windows and kept state."""

from __future__ import annotations

from dagflow.errors import RunError, error


@error("DF389", kw_only=True, is_fatal=True)
class KeyColumnRefused(RunError, TypeError):
    """Records cannot be grouped by a column of lists or structs."""

    column: str
    type: str
    template = (
        "records cannot be grouped by the column {column!r}: its values are {type}, which cannot be keys\n"
        "  help: give a function that turns it into a string or a tuple: by=lambda record: tuple(record.{column})"
    )
    example = {"column": "tags", "type": "list<item: string>"}


@error("DF390", kw_only=True, is_fatal=True)
class ValueNotKept(RunError, TypeError):
    """A key or a value cannot be kept over windows, since it would come back as another value."""

    type: str
    template = (
        "a key or a value of type {type} cannot be kept over windows: it would not come back as it was\n"
        "  help: give a function in `by` or `of` that turns it into plain data (an enumeration's value, a tuple of a class's\n"
        "        fields): None, bool, int, float, str, bytes, decimals, dates, times and durations of `datetime`, UUIDs,\n"
        "        and lists, tuples and dicts with string keys of these"
    )
    example = {"type": "Color"}


@error("DF391", kw_only=True, is_fatal=True)
class WindowsReopened(RunError, ValueError):
    """`Tumbling` would keep windows open longer than in the previous launch, and so reopen closed ones.

    Attributes:
        wait, kept: the properties that keep windows open after their end, now and in the previous launch.
    """

    operator: str
    wait: str
    kept: str
    template = (
        "{operator} has {wait} now, and had {kept}: windows that were closed then would be reopened without their records\n"
        "  help: restore these settings (together they may become shorter, not longer); "
        "or start over with --fresh and an empty output"
    )
    example = {"operator": "tumbling", "wait": "allowed_lateness=1h", "kept": "allowed_lateness=1min"}


@error("DF394", kw_only=True, is_fatal=True)
class ValueColumnRefused(RunError, TypeError):
    """The values of a column cannot be aggregated. `lack`: the missing operation, `added up` or `compared`."""

    column: str
    type: str
    lack: str
    template = (
        "an aggregate is of the column {column!r}, whose values are {type}: these cannot be {lack}\n"
        "  help: aggregate another column, or cast it first: Select('*', {column}=col({column!r}).cast('float64')).\n"
        "        A column without any value is read as text: give its type to the reader, schema='{column}: float64'"
    )
    example = {"column": "name", "type": "string", "lack": "added up"}


@error("DF784", kw_only=True)
class TotalNotHeld(RunError, OverflowError):
    """The total of a group is larger than what its column holds."""

    name: str
    type: str
    total: str
    template = (
        "{name!r} is {total} in a group, which a column of {type} cannot hold\n"
        '  help: read the column as decimal128(38, 0) or float64, or divide it before; on_error="skip" leaves the group out as long\n'
        "        as it is too large"
    )
    example = {"name": "revenue", "type": "int64", "total": "9223372036854775808"}


@error("DF785", kw_only=True, is_fatal=True)
class ColumnTypeChanged(RunError, TypeError):
    """Files have a column that is aggregated with different types."""

    column: str
    before: str
    now: str
    template = (
        "the column {column!r} is {now}, and was {before} before: what was kept of it cannot be continued\n"
        "  help: give the reader the type that it had: ScanReader(…, schema={{{column!r}: {before!r}}}). For another\n"
        "        one, start over: dagflow launch --fresh"
    )
    example = {"column": "price", "before": "int64", "now": "double"}


@error("DF796", kw_only=True, is_fatal=True)
class OtherColumns(RunError, TypeError):
    """All columns of rows are compared, and rows have others."""

    operator: str
    before: tuple[str, ...]
    now: tuple[str, ...]
    template = (
        "{operator} compares all columns, and rows have others\n"
        "  now     {now}\n"
        "  before  {before}\n"
        "  help: name those to compare: {operator}({before!r}), or give the reader one schema"
    )
    example = {"operator": "Distinct", "before": ("shop", "price"), "now": ("shop",)}


@error("DF787", kw_only=True, is_fatal=True)
class RowsNotKept(RunError, ValueError):
    """An operator has kept other rows than it needs now, since rows of its input may be taken back, or could be. `now`: `may`."""

    now: str
    template = (
        "rows that come here {now} be taken back, which was otherwise in earlier launches: what is kept was kept for that\n"
        "  help: put the operators before it back as they were, or start over with --fresh"
    )
    example = {"now": "may"}


@error("DF797", kw_only=True, is_fatal=True)
class KeysKeptOtherwise(RunError, TypeError):
    """An aggregate by named columns got rows with columns, and has kept the groups of records without, or the other way round."""

    now: str
    template = (
        "the groups that are kept have keys of {now:=columns?records|columns}, and {now:=columns?columns|records} come now: "
        "equal keys would be two groups\n"
        "  help: let the operator before emit {now:=columns?records|columns} as it did (annotate what it returns with an attrs "
        "class for columns), or begin again: dagflow launch --fresh"
    )
    example = {"now": "columns"}


@error("DF945", kw_only=True, is_fatal=True)
class WindowColumnRefused(RunError, TypeError):
    """A column has no times by which rows could be in time windows, or only dates where windows do not begin with days."""

    column: str
    type: str
    window: str
    example = {"column": "day", "type": "date32[day]", "window": "window('day', '10min')"}

    def message(self) -> str:
        lack = "windows of dates have whole days" if self.type.startswith("date") else "time windows are of timestamps or dates"
        return (
            f"{self.window} is of the column {self.column!r}, which is {self.type}: {lack}\n"
            f"  help: cast it first: Select('*', {self.column}=col({self.column!r}).cast('timestamp[us]')). Integers are taken as\n"
            "        microseconds since the epoch then; or give the type to the reader, schema='…: timestamp[us]'"
        )
