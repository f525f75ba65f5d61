"""Errors of tables: what has happened to a table between two windows, and rows that do not fit.

`window`: the one that was not published; None where a launch has noticed it before it had any.
"""

from __future__ import annotations

from dagflow.errors import RunError, error


@error("DF660", kw_only=True, is_fatal=True)
class TableDropped(RunError):
    """A table that earlier windows were published to is gone."""

    sink: str
    table: str
    window: int | None
    reason: str
    template = (
        "{sink}: {table}: the table is gone: {reason}{window:?; window {window} was not published}\n"
        "  help: bring the table back, with the folder _dagflow in it, and launch again: the run resumes;\n"
        "        to write all rows to a new table, launch with --fresh"
    )
    example = {"sink": "sales", "table": "data/sales", "window": 7, "reason": "window 6 was published to it as version 12"}


@error("DF661", kw_only=True, is_fatal=True)
class TableRecreated(RunError):
    """The table is another one than that which earlier windows were published to."""

    sink: str
    table: str
    window: int | None
    then: str
    now: str
    template = (
        "{sink}: {table}: the table was dropped and created again: its id is {now}, "
        "earlier windows were published to {then}{window:?; window {window} was not published}\n"
        "  help: bring the earlier table back, and launch again: the run resumes;\n"
        "        to write all rows to the new table, launch with --fresh"
    )
    example = {"sink": "sales", "table": "data/sales", "window": 7, "then": "5f1c", "now": "a3d8"}


@error("DF662", kw_only=True, is_fatal=True)
class TableRolledBack(RunError):
    """The table was set back to a state before windows that were published to it."""

    sink: str
    table: str
    window: int | None
    reason: str
    template = (
        "{sink}: {table}: the table was rolled back: {reason}{window:?; window {window} was not published}\n"
        "  help: restore the version that has all windows, and launch again: the run resumes;\n"
        "        to write all rows again, drop the table, and launch with --fresh"
    )
    example = {
        "sink": "sales",
        "table": "data/sales",
        "window": 7,
        "reason": "version 14 restored version 3, and window 6 was published as version 12",
    }


@error("DF664", kw_only=True, is_fatal=True)
class StagedFileGone(RunError):
    """A file that tasks have staged for a decided window is missing, or is not as it was written."""

    sink: str
    window: int
    file: str
    reason: str
    template = (
        "{sink}: a file that was staged for window {window} is lost: {file}: {reason}. Nothing of the window was published\n"
        "  help: if a cleaner removed it, restore it and launch again: the run resumes;\n"
        "        otherwise drop the table, and launch with --fresh"
    )
    example = {"sink": "sales", "window": 7, "file": "data/sales/_dagflow/tables/0.parquet", "reason": "it is not there"}


@error("DF665", kw_only=True, is_fatal=True)
class TableSchemaDiffers(RunError, TypeError):
    """The columns of a window do not fit those of the table. `differences`: a phrase for each."""

    sink: str
    table: str
    differences: tuple[str, ...]
    help: str = "cast or rename the columns before they come here, or change the table"
    template = "{sink}: {table}: rows do not fit the table: {differences:; }\n  help: {help}"
    example = {"sink": "sales", "table": "data/sales", "differences": ("column 'price' is string, and was double",)}
