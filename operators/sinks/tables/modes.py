"""The modes of sinks that write tables: what a window does to the rows that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import attrs

from dagflow import Operator
from operators.aggregate.current_rows import CurrentRows

Mode = Literal["append", "upsert", "replace"]
"""`append` adds the rows of a window. `upsert` puts each in the place of the row with the same keys, or adds it. `replace` puts
the rows of a window in the place of all rows. A window without rows changes nothing, whatever the mode. Without a mode, a sink
appends rows that stay, and keeps the current result of a stream whose rows may be taken back, as `replace` does."""

MODES: tuple[Mode, ...] = get_args(Mode)

FileMode = Literal["append", "replace"]
"""The modes of sinks that write files. Rows in files have no keys to be found by."""

FILE_MODES: tuple[FileMode, ...] = get_args(FileMode)

OnSchemaChange = Literal["fail", "evolve"]
"""The reaction to columns that the table does not have, or to wider types: refuse the window, or change the table."""

ON_SCHEMA_CHANGE: tuple[OnSchemaChange, ...] = get_args(OnSchemaChange)


def behind_current(sink: Operator, mode: str | None) -> tuple[Operator, Operator] | None:
    """Return what `Operator.behind_current` returns for a sink with a mode."""
    if mode not in (None, "replace"):
        return None
    replacing: Any = attrs.evolve(sink)
    replacing.mode = "replace"
    if "__orig_class__" in sink.__dict__:
        replacing.__dict__["__orig_class__"] = sink.__dict__["__orig_class__"]
    return CurrentRows[Any](), replacing


def mode_problems(mode: Mode | None, keys: Sequence[str]) -> list[str]:
    """Return what is wrong with the keys of a mode.

    >>> mode_problems("upsert", []), mode_problems("append", ["id"]), mode_problems("upsert", ["id"])
    (["keys is empty: mode 'upsert' needs the columns that identify a row"], ["keys is of no use with mode 'append'"], [])
    """
    problems = []
    if mode == "upsert" and not keys:
        problems.append("keys is empty: mode 'upsert' needs the columns that identify a row")
    if mode != "upsert" and keys:
        problems.append(f"keys is of no use with mode {mode or 'append'!r}")
    if len(set(keys)) < len(keys):
        problems.append(f"keys names a column twice: {', '.join(keys)}")
    return problems
