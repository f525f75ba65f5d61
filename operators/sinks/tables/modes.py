"""The modes of sinks that write tables: what a window does to the rows that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import attrs

from dagflow import Operator
from operators.aggregate.current_rows import CurrentRows
from operators.sinks.tables.changelog import Changelog

Mode = Literal["append", "upsert", "replace"]
"""`append` adds the rows of a window. `upsert` puts each in the place of the row with the same keys, or adds it; with `keys="*"`
it adds each row, and removes an equal one for each that is taken back. `replace` puts the rows of a window in the place of all
rows. A window without rows changes nothing, whatever the mode. Without a mode, a sink appends rows that stay, and keeps the
current result of a stream whose rows may be taken back, as `replace` does."""

MODES: tuple[Mode, ...] = get_args(Mode)

WHOLE_ROW = ("*",)
"""The `keys` of an upsert whose rows are found by all of their columns."""

FileMode = Literal["append", "replace", "changelog"]
"""The modes of sinks that write files. `changelog` adds the changes of each window as rows, with their kind in `_change_type`."""

FILE_MODES: tuple[FileMode, ...] = get_args(FileMode)

OnSchemaChange = Literal["fail", "evolve"]
"""The reaction to columns that the table does not have, or to wider types: refuse the window, or change the table."""

ON_SCHEMA_CHANGE: tuple[OnSchemaChange, ...] = get_args(OnSchemaChange)


LogMode = Literal["append", "changelog"]
"""The modes of sinks that publish messages, which stay as they are."""

LOG_MODES: tuple[LogMode, ...] = get_args(LogMode)


def behind_current(
    sink: Operator, mode: str | None, keys: tuple[str, ...] = (), partition_columns: tuple[str, ...] = ()
) -> tuple[Operator, Operator] | None:
    """Return what `Operator.behind_current` returns for a sink with a mode.

    `keys`: of its changelog; `partition_columns`: of the partitions of its result, where each is replaced by itself.
    """
    if mode == "changelog":
        return Changelog[Any](keys=keys), sink
    if mode not in (None, "replace"):
        return None
    replacing: Any = attrs.evolve(sink)
    replacing.mode = "replace"
    if "__orig_class__" in sink.__dict__:
        replacing.__dict__["__orig_class__"] = sink.__dict__["__orig_class__"]
    return CurrentRows[Any](partition_columns=partition_columns), replacing


def keys_of(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that identify a row; none where all do."""
    return () if keys == WHOLE_ROW else keys


def mode_of_rows(mode: Mode, keys: Sequence[str]) -> Mode:
    """Return what a mode does to rows that stay: an upsert without keys appends them."""
    return "append" if mode == "upsert" and not keys else mode


def mode_problems(mode: Mode | FileMode | LogMode | None, keys: Sequence[str]) -> list[str]:
    """Return what is wrong with the keys of a mode.

    >>> mode_problems("upsert", [])
    ["keys is empty: mode 'upsert' needs the columns that identify a row, or '*' for all"]
    >>> mode_problems("append", ["id"]), mode_problems("upsert", ["id"]), mode_problems("upsert", "*")
    (["keys is of no use with mode 'append'"], [], [])
    """
    problems = []
    if mode == "upsert" and not keys:
        problems.append("keys is empty: mode 'upsert' needs the columns that identify a row, or '*' for all")
    if "*" in keys and (mode != "upsert" or len(keys) > 1):
        problems.append("keys has '*', which stands alone, for all columns, and needs mode 'upsert'")
    elif mode not in ("upsert", "changelog") and keys:
        problems.append(f"keys is of no use with mode {mode or 'append'!r}")
    if len(set(keys)) < len(keys):
        problems.append(f"keys names a column twice: {', '.join(keys)}")
    return problems
