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


@error(kw_only=True)
class RuleBroken(RunError, ValueError):
    """Rows do not keep a rule of their table: a constraint, an invariant or a generated column. `reason`: what its library says."""

    code: ClassVar[str] = "DF721"
    example = {"operator": "DeltaWriter", "table": "data/sales", "reason": "Invalid data found: 1 rows failed validation check."}

    operator: str
    table: str
    reason: str

    def message(self) -> str:
        return (
            f"{self.operator}: the table {self.table} refuses rows: {self.reason}\n"
            "  help: leave such rows out with Filter(…), or on_error='skip'; or drop the rule of the table"
        )


@error(kw_only=True)
class KeysNotUnique(RunError, ValueError):
    """Rows of a window that stand have the same keys, in a stream whose rows are taken back by their keys."""

    code: ClassVar[str] = "DF790"
    example = {"sink": "totals", "table": "data/totals", "window": 7, "keys": ("country",)}
    is_fatal: ClassVar[bool] = True

    sink: str
    table: str
    window: int
    keys: tuple[str, ...]

    def message(self) -> str:
        return (
            f"{self.sink}: {self.table}: several rows have the same {', '.join(self.keys)}, and rows are taken back by their keys; "
            f"window {self.window} is not decided\n"
            "  help: name keys that identify a row: the columns that the rows are grouped by, for example"
        )


@error(kw_only=True)
class ForeignChange(RunError):
    """Another writer has changed a table whose content each window replaces. `changes`: a phrase for each; `help`: what to do."""

    code: ClassVar[str] = "DF663"
    example = {"sink": "totals", "table": "data/totals", "window": 7, "changes": ("version 13: WRITE at 2026-03-01T12:00:00Z",)}
    general_remedy = "undo the change, or use mode='append' or 'upsert'"
    is_fatal: ClassVar[bool] = True

    sink: str
    table: str
    window: int
    changes: tuple[str, ...]
    help: str = "restore the version before, and launch again: the run resumes; let that writer have a table of its own"

    def message(self) -> str:
        return (
            f"{self.sink}: {self.table}: another writer has changed the table, and mode='replace' would remove its rows; "
            f"window {self.window} was not published\n    " + "\n    ".join(self.changes) + "\n"
            f"  help: {self.help}"
        )


@error(kw_only=True)
class ChangeTypeTaken(RunError, ValueError):
    """Rows have a column with the name of the one that a changelog writes the kinds of changes to."""

    code: ClassVar[str] = "DF815"
    example = {"operator": "changes.current"}
    is_fatal: ClassVar[bool] = True

    operator: str

    def message(self) -> str:
        return (
            f"{self.operator}: the rows have a column '_change_type', to which mode='changelog' writes the kind of each change\n"
            "  help: rename the column, or leave it out, with Map(…) before the sink"
        )
