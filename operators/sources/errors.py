"""Errors of sources that are tables of a database."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError, RunError, definition, error


@error(kw_only=True)
class SourceTableRefused(ConfigError):
    """The table of a `PostgresInput` is missing, is a materialized view or foreign table, or its key or `lag` does not fit.

    A key is an integer, without a `lag`, or a timestamp with time zone, with one.
    `help`: what to do.
    """

    code: ClassVar[str] = "DF294"
    example = {
        "operator": "sales.ranges",
        "table": "sales",
        "database": "localhost:5432/shop",
        "reason": "there is no such table, or its schema is not in the search path",
        "help": "name it as schema.table",
    }

    operator: str
    table: str
    database: str
    reason: str
    help: str

    def message(self) -> str:
        return f"operator {self.operator!r}: table {self.table!r} in {self.database}: {self.reason}\n  help: {self.help}"


@error(kw_only=True)
class ColumnsNotReadable(RunError, TypeError):
    """Columns of a table have types that Arrow has no form for. `columns`: a phrase for each; `cast`: one that would be read."""

    code: ClassVar[str] = "DF670"
    example = {
        "operator": "sales.reader",
        "table": "public.sales",
        "columns": ("column 'price' is numeric",),
        "cast": "price::numeric(38,10)",
    }
    is_fatal: ClassVar[bool] = True

    operator: str
    table: str
    columns: tuple[str, ...]
    cast: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: table {self.table!r} has columns that cannot be read: {'; '.join(self.columns)}\n"
            f'  help: cast them in the list of columns, or leave them out: columns = ["{self.cast}", …]'
        )


@error(kw_only=True)
class KeyNull(RunError, ValueError):
    """Rows of a table have no key, so no range of keys holds them. `rows`: their number."""

    code: ClassVar[str] = "DF671"
    example = {"operator": "sales.ranges", "table": "public.sales", "key": "id", "rows": 3}
    is_fatal: ClassVar[bool] = True

    operator: str
    table: str
    key: str
    rows: int

    def message(self) -> str:
        are = "row has" if self.rows == 1 else "rows have"
        return (
            f"operator {self.operator!r}: {self.rows:,} {are} a null in the key {self.key!r} of table {self.table!r}: "
            "they would never be read\n"
            "  help: give these rows a key, or read a view without them: CREATE VIEW … AS SELECT * FROM … "
            f"WHERE {self.key} IS NOT NULL"
        )


@error(kw_only=True)
class SourceColumnsChanged(RunError, TypeError):
    """The columns of a table are not those that earlier windows had. `differences`: a phrase for each; `help`: what to do."""

    code: ClassVar[str] = "DF672"
    example = {
        "operator": "sales.reader",
        "table": "public.sales",
        "differences": ("column 'vat' is new",),
        "help": "drift.extra = ignore leaves new columns out",
    }
    is_fatal: ClassVar[bool] = True

    operator: str
    table: str
    differences: tuple[str, ...]
    help: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: the columns of table {self.table!r} have changed: {'; '.join(self.differences)}\n"
            f"  help: {self.help}"
        )


@error(kw_only=True)
class ValueNotReadable(RunError, ValueError):
    """A value of a table has no form in Arrow: an infinite date, NaN in a numeric, a nested array. `rows`: where it is."""

    code: ClassVar[str] = "DF673"
    example = {
        "operator": "sales.reader",
        "table": "public.sales",
        "rows": "rows with id from 1 to 900",
        "reason": "column 'day': 'infinity' is not a valid date32",
    }

    operator: str
    table: str
    rows: str
    reason: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: table {self.table!r} has a value that cannot be read, in {self.rows}: {self.reason}\n"
            '  help: read the column as text: columns = ["COLUMN::text", …]; or read a view that leaves such rows out'
        )


@error(kw_only=True)
class RangeChanged(RunError):
    """A range of keys has another number of rows than when its window was planned. `rows`: the range, in words."""

    code: ClassVar[str] = "DF674"
    example = {
        "operator": "sales.reader",
        "table": "public.sales",
        "rows": "rows with id from 1 to 900",
        "planned": 900,
        "found": 899,
    }
    is_fatal: ClassVar[bool] = True

    operator: str
    table: str
    rows: str
    planned: int
    found: int

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


@error(kw_only=True)
class SourceTableReplaced(RunError):
    """A table is not the one that earlier windows have read: it was created again, and its keys begin anew."""

    code: ClassVar[str] = "DF675"
    example = {"operator": "sales.ranges", "table": "public.sales", "last": "900", "newest": "12"}
    is_fatal: ClassVar[bool] = True

    operator: str
    table: str
    last: str
    newest: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: table {self.table!r} was created again since the last window: keys were read up to "
            f"{self.last}, and the newest one is {self.newest} now\n"
            "  help: bring the table back; or read the new one from its start, with --fresh"
        )
