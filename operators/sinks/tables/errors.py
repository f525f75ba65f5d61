"""Errors of all sinks that write tables."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError, error


@error(kw_only=True)
class TableHasRows(RunError):
    """A launch with `--fresh` would append all rows again to a table that has the rows of an earlier run.

    `table`: its name and place; `windows`: how many windows that run has published.
    """

    code: ClassVar[str] = "DF669"
    example = {"sink": "sales", "table": "'sales' in localhost:5432/shop", "windows": 12}
    general_remedy = "empty the table, then launch with --fresh"
    is_fatal: ClassVar[bool] = True

    sink: str
    table: str
    windows: int

    def message(self) -> str:
        windows = "a window" if self.windows == 1 else f"{self.windows:,} windows"
        return (
            f"{self.sink}: --fresh writes all rows again, and {self.table} has those of {windows} of the runs before: "
            "they would be there twice. Nothing was removed\n"
            "  help: empty the table, or drop it, and launch with --fresh again; to keep its rows and add to them, set another\n"
            "        run_folder and launch without --fresh"
        )
