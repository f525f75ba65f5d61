"""Errors of sources that are tables of a database."""

from __future__ import annotations

from dagflow.errors import ConfigError, RunError, definition, error


@error("DF294", kw_only=True)
class SourceTableRefused(ConfigError):
    """The table of a `PostgresInput` is missing, is a materialized view or foreign table, or its key or `lag` does not fit.

    A key is an integer, without a `lag`, or a timestamp with time zone, with one.
    `help`: what to do.
    """

    operator: str
    table: str
    database: str
    reason: str
    help: str
    template = "operator {operator!r}: table {table!r} in {database}: {reason}\n  help: {help}"
    example = {
        "operator": "sales.ranges",
        "table": "sales",
        "database": "localhost:5432/shop",
        "reason": "there is no such table, or its schema is not in the search path",
        "help": "name it as schema.table",
    }


@error("DF670", kw_only=True, is_fatal=True)
class ColumnsNotReadable(RunError, TypeError):
    """Columns of a table have types that Arrow has no form for. `columns`: a phrase for each; `cast`: one that would be read."""

    operator: str
    table: str
    columns: tuple[str, ...]
    cast: str
    template = (
        "operator {operator!r}: table {table!r} has columns that cannot be read: {columns:; }\n"
        '  help: cast them in the list of columns, or leave them out: columns = ["{cast}", …]'
    )
    example = {
        "operator": "sales.reader",
        "table": "public.sales",
        "columns": ("column 'price' is numeric",),
        "cast": "price::numeric(38,10)",
    }


@error("DF671", kw_only=True, is_fatal=True)
class KeyNull(RunError, ValueError):
    """Rows of a table have no key, so no range of keys holds them. `rows`: their number."""

    operator: str
    table: str
    key: str
    rows: int
    template = (
        "operator {operator!r}: {rows:,} {rows:=1?row has|rows have} a null in the key {key!r} of table {table!r}: "
        "they would never be read\n"
        "  help: give these rows a key, or read a view without them: CREATE VIEW … AS SELECT * FROM … WHERE {key} IS NOT NULL"
    )
    example = {"operator": "sales.ranges", "table": "public.sales", "key": "id", "rows": 3}


@error("DF672", kw_only=True, is_fatal=True)
class SourceColumnsChanged(RunError, TypeError):
    """The columns of a table are not those that earlier windows had. `differences`: a phrase for each; `help`: what to do."""

    operator: str
    table: str
    differences: tuple[str, ...]
    help: str
    template = "operator {operator!r}: the columns of table {table!r} have changed: {differences:; }\n  help: {help}"
    example = {
        "operator": "sales.reader",
        "table": "public.sales",
        "differences": ("column 'vat' is new",),
        "help": "drift.extra = ignore leaves new columns out",
    }


@error("DF673", kw_only=True)
class ValueNotReadable(RunError, ValueError):
    """A value of a table has no form in Arrow: an infinite date, NaN in a numeric, a nested array. `rows`: where it is."""

    operator: str
    table: str
    rows: str
    reason: str
    template = (
        "operator {operator!r}: table {table!r} has a value that cannot be read, in {rows}: {reason}\n"
        '  help: read the column as text: columns = ["COLUMN::text", …]; or read a view that leaves such rows out'
    )
    example = {
        "operator": "sales.reader",
        "table": "public.sales",
        "rows": "rows with id from 1 to 900",
        "reason": "column 'day': 'infinity' is not a valid date32",
    }


@error("DF674", kw_only=True, is_fatal=True)
class RangeChanged(RunError):
    """A range of keys has another number of rows than when its window was planned. `rows`: the range, in words."""

    operator: str
    table: str
    rows: str
    planned: int
    found: int
    example = {
        "operator": "sales.reader",
        "table": "public.sales",
        "rows": "rows with id from 1 to 900",
        "planned": 900,
        "found": 899,
    }

    def message(self) -> str:
        what = (
            "were deleted, or their keys were changed" if self.found < self.planned else "came late, or their keys were changed"
        )
        return (
            f"operator {self.operator!r}: table {self.table!r} had {self.planned:,} {self.rows} when the window was planned, and has "
            f"{self.found:,} now: rows {what}\n"
            "  help: a growing key promises that rows of a range stay as they are; to take them as they are now, and count the\n"
            f"        difference: {definition(self.operator, 'on_rows_changed', 'count')}"
        )


@error("DF675", kw_only=True, is_fatal=True)
class SourceTableReplaced(RunError):
    """A table is not the one that earlier windows have read: it was created again, and its keys begin anew."""

    operator: str
    table: str
    last: str
    newest: str
    template = (
        "operator {operator!r}: table {table!r} was created again since the last window: keys were read up to {last}, "
        "and the newest one is {newest} now\n"
        "  help: bring the table back; or read the new one from its start, with --fresh"
    )
    example = {"operator": "sales.ranges", "table": "public.sales", "last": "900", "newest": "12"}
