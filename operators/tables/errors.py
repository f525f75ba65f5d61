"""Errors of tables that are read: tables that are missing, and changes that cannot be followed."""

from __future__ import annotations

from dagflow.errors import ConfigError, RunError, error


@error("DF297", kw_only=True)
class InputTableMissing(ConfigError):
    """There is no table where an input reads one. `reason`: what is there instead."""

    operator: str
    table: str
    reason: str
    waits: bool = False
    template = (
        "operator {operator!r}: there is no table {table}: {reason}\n"
        "  help: name a table; if it was dropped, bring it back, or launch with --fresh once there is another one\n"
        "        {waits:?`wait` applies to continuous runs only; with --once, the run would never end"
        "|a continuous run waits for it with {operator:-D wait=true}}"
    )
    example = {"operator": "orders", "table": "data/orders", "reason": "the folder has no _delta_log"}


@error("DF690", kw_only=True, is_fatal=True)
class InputTableReplaced(RunError):
    """The table is another one than that which was read so far. `before`, `after`: their ids."""

    operator: str
    table: str
    before: str
    after: str
    template = (
        "operator {operator!r}: {table} was dropped and created again: it is another table than was read so far\n"
        "  before  {before}\n"
        "  now     {after}\n"
        "  help: bring the earlier table back, and launch again: the run resumes;\n"
        "        to read all rows of the new table, launch with --fresh"
    )
    example = {"operator": "orders", "table": "data/orders", "before": "5f1c", "after": "a3d8"}


@error("DF691", kw_only=True, is_fatal=True)
class InputTableRolledBack(RunError):
    """The table was set back to a state before rows that were read. `read`: the version up to which it was read."""

    operator: str
    table: str
    read: str
    reason: str
    template = (
        "operator {operator!r}: {table} was rolled back: {reason}, and {read} was read before\n"
        "  help: bring {read} back, and launch again: the run resumes;\n"
        "        to read the table as it is now, launch with --fresh"
    )
    example = {"operator": "orders", "table": "data/orders", "read": "version 12", "reason": "version 14 restored version 3"}


@error("DF692", kw_only=True, is_fatal=True)
class InputTableChanged(RunError):
    """Rows of a table that were read before were removed or changed, which an input cannot take back.

    `version`: that did it; `change`: what it did; `undo`: the version to which the table may be set back.
    """

    operator: str
    table: str
    version: str
    change: str
    undo: str
    template = (
        "operator {operator!r}: {version} of {table} did more than append rows: {change}\n"
        "  help: only appended rows are read; set the table back to {undo}, and launch again: the run resumes;\n"
        "        to read the table as it is now, launch with --fresh"
    )
    example = {
        "operator": "orders",
        "table": "data/orders",
        "version": "version 13",
        "change": "DELETE at 2026-03-01T12:00:00Z removed 2 files",
        "undo": "version 12",
    }


@error("DF693", kw_only=True, is_fatal=True)
class InputTableHistoryGone(RunError):
    """The log of a table no longer tells what was appended since it was read."""

    operator: str
    table: str
    read: str
    reason: str
    template = (
        "operator {operator!r}: {table} was read up to {read}, and {reason}\n"
        "  help: launch with --fresh, which reads the table as it is now;\n"
        "        let the table keep its history for longer than the time between two launches"
    )
    example = {
        "operator": "orders",
        "table": "data/orders",
        "read": "version 12",
        "reason": "version 13 is no longer in its log",
    }


@error("DF694", kw_only=True, is_fatal=True)
class InputTableFileGone(RunError):
    """A file of a table is missing, or is not as the log of the table says."""

    operator: str
    table: str
    version: str
    file: str
    reason: str
    template = (
        "operator {operator!r}: a file of {table}, {version}, is lost: {file}: {reason}\n"
        "  help: files that were compacted are removed by cleaning (VACUUM, expired snapshots): to read the table as it is\n"
        "        now, launch with --fresh, and keep files for longer than the time between two launches"
    )
    example = {
        "operator": "orders",
        "table": "data/orders",
        "version": "version 13",
        "file": "data/orders/part-0.parquet",
        "reason": "it is not there",
    }


@error("DF695", kw_only=True, is_fatal=True)
class InputTableUnsupported(RunError):
    """A table uses a feature of its format with which its files alone do not say what its rows are."""

    operator: str
    table: str
    feature: str
    reason: str
    remedy: str
    template = "operator {operator!r}: {table} has {feature}, which is not supported: {reason}\n  help: {remedy}"
    example = {
        "operator": "orders",
        "table": "data/orders",
        "feature": "deletion vectors",
        "reason": "2 files of version 13 have one",
        "remedy": "purge them: REORG TABLE … APPLY (PURGE)",
    }
