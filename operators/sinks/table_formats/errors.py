"""Errors of tables: what has happened to a table between two windows, and rows that do not fit.

`window`: the one that was not published; None where a launch has noticed it before it had any.
"""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError, error


def _unpublished(window: int | None) -> str:
    return "" if window is None else f"; window {window} was not published"


@error(kw_only=True)
class TableDropped(RunError):
    """A table that earlier windows were published to is gone."""

    code: ClassVar[str] = "DF660"
    example = {"sink": "sales", "table": "data/sales", "window": 7, "reason": "window 6 was published to it as version 12"}
    general_remedy = "bring the table back, or begin again with --fresh"
    is_fatal: ClassVar[bool] = True

    sink: str
    table: str
    window: int | None
    reason: str

    def message(self) -> str:
        return (
            f"{self.sink}: {self.table}: the table is gone: {self.reason}{_unpublished(self.window)}\n"
            "  help: bring the table back, with the folder _dagflow in it, and launch again: the run resumes;\n"
            "        to write all rows to a new table, launch with --fresh"
        )


@error(kw_only=True)
class TableRecreated(RunError):
    """The table is another one than that which earlier windows were published to."""

    code: ClassVar[str] = "DF661"
    example = {"sink": "sales", "table": "data/sales", "window": 7, "then": "5f1c", "now": "a3d8"}
    general_remedy = "bring the earlier table back, or begin again with --fresh"
    is_fatal: ClassVar[bool] = True

    sink: str
    table: str
    window: int | None
    then: str
    now: str

    def message(self) -> str:
        return (
            f"{self.sink}: {self.table}: the table was dropped and created again: its id is {self.now}, earlier windows were "
            f"published to {self.then}{_unpublished(self.window)}\n"
            "  help: bring the earlier table back, and launch again: the run resumes;\n"
            "        to write all rows to the new table, launch with --fresh"
        )


@error(kw_only=True)
class TableRolledBack(RunError):
    """The table was set back to a state before windows that were published to it."""

    code: ClassVar[str] = "DF662"
    example = {
        "sink": "sales",
        "table": "data/sales",
        "window": 7,
        "reason": "version 14 restored version 3, and window 6 was published as version 12",
    }
    general_remedy = "restore the version that has all windows, or begin again with --fresh"
    is_fatal: ClassVar[bool] = True

    sink: str
    table: str
    window: int | None
    reason: str

    def message(self) -> str:
        return (
            f"{self.sink}: {self.table}: the table was rolled back: {self.reason}{_unpublished(self.window)}\n"
            "  help: restore the version that has all windows, and launch again: the run resumes;\n"
            "        to write all rows again, drop the table, and launch with --fresh"
        )


@error(kw_only=True)
class StagedFileGone(RunError):
    """A file that tasks have staged for a decided window is missing, or is not as it was written."""

    code: ClassVar[str] = "DF664"
    example = {"sink": "sales", "window": 7, "file": "data/sales/_dagflow/tables/0.parquet", "reason": "it is not there"}
    general_remedy = "restore the file; or begin again with --fresh"
    is_fatal: ClassVar[bool] = True

    sink: str
    window: int
    file: str
    reason: str

    def message(self) -> str:
        return (
            f"{self.sink}: a file that was staged for window {self.window} is lost: {self.file}: {self.reason}. "
            "Nothing of the window was published\n"
            "  help: if a cleaner removed it, restore it and launch again: the run resumes;\n"
            "        otherwise drop the table, and launch with --fresh"
        )


@error(kw_only=True)
class TableSchemaDiffers(RunError, TypeError):
    """The columns of a window do not fit those of the table. `differences`: a phrase for each."""

    code: ClassVar[str] = "DF665"
    example = {"sink": "sales", "table": "data/sales", "differences": ("column 'price' is string, and was double",)}
    is_fatal: ClassVar[bool] = True

    sink: str
    table: str
    differences: tuple[str, ...]
    help: str = "cast or rename the columns before they come here, or change the table"

    def message(self) -> str:
        return f"{self.sink}: {self.table}: rows do not fit the table: {'; '.join(self.differences)}\n  help: {self.help}"
