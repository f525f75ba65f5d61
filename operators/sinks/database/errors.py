"""Errors of sinks that write to a database."""

from __future__ import annotations

from dagflow.errors import RunError, error


@error("DF396", kw_only=True, is_fatal=True)
class TableRefused(RunError, TypeError):
    """A table does not fit the rows of a window. `differences`: a phrase for each; `help`: what to do.

    `window`: None where that was noticed at launch.
    """

    table: str
    database: str
    window: int | None = None
    differences: tuple[str, ...]
    help: str = "alter the table, or set on_schema_change='evolve'; then launch again: the window is published"
    template = (
        "table {table!r} in {database} does not fit {window:?window {window}|the rows that will come}: {differences:; }\n"
        "  help: {help}"
    )
    example = {
        "table": "sales",
        "database": "localhost:5432/shop",
        "window": 3,
        "differences": ("column 'vat' (numeric) is not in the table",),
    }


@error("DF397", kw_only=True, is_fatal=True)
class TableReplaced(RunError):
    """A table, or the record of its windows, is not the one that earlier windows were published to.

    It was dropped, recreated, or restored from a backup. `window`: the one that waits to be published; None where a launch has
    noticed it before it had any. `reason`: what is different; `accept`: the statement that accepts it, empty where the table is
    gone.
    """

    table: str
    database: str
    window: int | None
    reason: str
    accept: str
    template = (
        "table {table!r} in {database}: {reason}{window:?; window {window} is decided, and not published}\n"
        "  help: bring the table back and launch again; or {accept:?empty it, and |}write all windows anew with --fresh"
        "{accept:?; or, if the table is\n        right as it is, run this in the database and launch again: {accept}}"
    )
    example = {
        "table": "sales",
        "database": "localhost:5432/shop",
        "window": 3,
        "reason": "it was dropped and created again since window 2",
        "accept": "UPDATE …",
    }


@error("DF398", kw_only=True, is_fatal=True)
class RowsRefused(RunError, ValueError):
    """A database refuses rows of a window, because of a constraint or the range of a type. Nothing of the window is in.

    `reason`: the message of the database; `help`: what to do.
    """

    table: str
    database: str
    window: int
    reason: str
    help: str = (
        "the window is decided: change the table so that it takes them, and launch again; or leave such rows out\n"
        "        upstream, empty the table, and write all windows anew with --fresh"
    )
    template = "table {table!r} in {database} refuses rows of window {window}: {reason}\n  help: {help}"
    example = {
        "table": "sales",
        "database": "localhost:5432/shop",
        "window": 3,
        "reason": 'null value in column "day" violates not-null constraint',
    }


@error("DF399", kw_only=True, is_fatal=True)
class StagedRowsMissing(RunError):
    """Rows that tasks have staged for a decided window are not in the database. `staged`: the tables that held them."""

    table: str
    database: str
    window: int
    staged: tuple[str, ...]
    template = (
        "{database}: the rows of window {window} for table {table!r} are not as its tasks have staged them, in {staged}\n"
        "  help: bring these tables back (the database may be an older copy), or empty the table, "
        "and write all windows anew with\n"
        "        --fresh"
    )
    example = {"table": "sales", "database": "localhost:5432/shop", "window": 3, "staged": ("_dagflow_staged_1",)}
