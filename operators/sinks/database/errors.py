"""Errors of sinks that write to a database."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError, error


@error(kw_only=True)
class TableRefused(RunError, TypeError):
    """A table does not fit the rows of a window. `differences`: a phrase for each; `help`: what to do.

    `window`: None where that was noticed at launch.
    """

    code: ClassVar[str] = "DF396"
    example = {
        "table": "sales",
        "database": "localhost:5432/shop",
        "window": 3,
        "differences": ("column 'vat' (numeric) is not in the table",),
    }
    is_fatal: ClassVar[bool] = True

    table: str
    database: str
    window: int | None = None
    differences: tuple[str, ...]
    help: str = "alter the table, or set on_schema_change='evolve'; then launch again: the window is published"

    def message(self) -> str:
        rows = "the rows that will come" if self.window is None else f"window {self.window}"
        return f"table {self.table!r} in {self.database} does not fit {rows}: {'; '.join(self.differences)}\n  help: {self.help}"


@error(kw_only=True)
class TableReplaced(RunError):
    """A table, or the record of its windows, is not the one that earlier windows were published to.

    It was dropped, recreated, or restored from a backup. `window`: the one that waits to be published; None where a launch has
    noticed it before it had any. `reason`: what is different; `accept`: the statement that accepts it.
    """

    code: ClassVar[str] = "DF397"
    example = {
        "table": "sales",
        "database": "localhost:5432/shop",
        "window": 3,
        "reason": "it was dropped and created again since window 2",
        "accept": "UPDATE …",
    }
    is_fatal: ClassVar[bool] = True

    table: str
    database: str
    window: int | None
    reason: str
    accept: str

    def message(self) -> str:
        waiting = "" if self.window is None else f"; window {self.window} is decided, and not published"
        return (
            f"table {self.table!r} in {self.database}: {self.reason}{waiting}\n"
            "  help: bring the table back and launch again; or empty it, and write all windows anew with --fresh; or, if the table is\n"
            f"        right as it is, run this in the database and launch again: {self.accept}"
        )


@error(kw_only=True)
class RowsRefused(RunError, ValueError):
    """A database refuses rows of a window, because of a constraint or the range of a type. Nothing of the window is in.

    `reason`: the message of the database; `help`: what to do.
    """

    code: ClassVar[str] = "DF398"
    example = {
        "table": "sales",
        "database": "localhost:5432/shop",
        "window": 3,
        "reason": 'null value in column "day" violates not-null constraint',
    }
    is_fatal: ClassVar[bool] = True

    table: str
    database: str
    window: int
    reason: str
    help: str = (
        "the window is decided: change the table so that it takes them, and launch again; or leave such rows out\n"
        "        upstream, empty the table, and write all windows anew with --fresh"
    )

    def message(self) -> str:
        return f"table {self.table!r} in {self.database} refuses rows of window {self.window}: {self.reason}\n  help: {self.help}"


@error(kw_only=True)
class StagedRowsMissing(RunError):
    """Rows that tasks have staged for a decided window are not in the database. `staged`: the tables that held them."""

    code: ClassVar[str] = "DF399"
    example = {"table": "sales", "database": "localhost:5432/shop", "window": 3, "staged": ("_dagflow_staged_1",)}
    is_fatal: ClassVar[bool] = True

    table: str
    database: str
    window: int
    staged: tuple[str, ...]

    def message(self) -> str:
        return (
            f"{self.database}: the rows of window {self.window} for table {self.table!r} are not as its tasks have staged them, in "
            f"{', '.join(self.staged)}\n"
            "  help: bring these tables back (the database may be an older copy), or empty the table, and write all windows anew with\n"
            "        --fresh"
        )
