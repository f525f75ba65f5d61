"""Errors of tables that are read: tables that are missing, and changes that cannot be followed."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError, RunError, definition, error


@error(kw_only=True)
class InputTableMissing(ConfigError):
    """There is no table where an input reads one. `reason`: what is there instead."""

    code: ClassVar[str] = "DF297"
    example = {"operator": "orders", "table": "data/orders", "reason": "the folder has no _delta_log"}

    operator: str
    table: str
    reason: str
    waits: bool = False

    def message(self) -> str:
        if self.waits:
            remedy = "`wait` applies to continuous runs only; with --once, the run would never end"
        else:
            remedy = f"a continuous run waits for it with {definition(self.operator, 'wait', 'true')}"
        return (
            f"operator {self.operator!r}: there is no table {self.table}: {self.reason}\n"
            f"  help: name a table; if it was dropped, bring it back, or launch with --fresh once there is another one\n"
            f"        {remedy}"
        )


@error(kw_only=True)
class InputTableReplaced(RunError):
    """The table is another one than that which was read so far. `before`, `after`: their ids."""

    code: ClassVar[str] = "DF690"
    example = {"operator": "orders", "table": "data/orders", "before": "5f1c", "after": "a3d8"}
    general_remedy = "bring the earlier table back, or begin again with --fresh"
    is_fatal: ClassVar[bool] = True

    operator: str
    table: str
    before: str
    after: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: {self.table} was dropped and created again: it is another table than was read so far\n"
            f"  before  {self.before}\n  now     {self.after}\n"
            "  help: bring the earlier table back, and launch again: the run resumes;\n"
            "        to read all rows of the new table, launch with --fresh"
        )


@error(kw_only=True)
class InputTableRolledBack(RunError):
    """The table was set back to a state before rows that were read. `read`: the version up to which it was read."""

    code: ClassVar[str] = "DF691"
    example = {"operator": "orders", "table": "data/orders", "read": "version 12", "reason": "version 14 restored version 3"}
    general_remedy = "set the table back to the version that was read, or begin again with --fresh"
    is_fatal: ClassVar[bool] = True

    operator: str
    table: str
    read: str
    reason: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: {self.table} was rolled back: {self.reason}, and {self.read} was read before\n"
            f"  help: bring {self.read} back, and launch again: the run resumes;\n"
            "        to read the table as it is now, launch with --fresh"
        )


@error(kw_only=True)
class InputTableChanged(RunError):
    """Rows of a table that were read before were removed or changed, which an input cannot take back.

    `version`: that did it; `change`: what it did; `undo`: the version to which the table may be set back.
    """

    code: ClassVar[str] = "DF692"
    example = {
        "operator": "orders",
        "table": "data/orders",
        "version": "version 13",
        "change": "DELETE at 2026-03-01T12:00:00Z removed 2 files",
        "undo": "version 12",
    }
    general_remedy = "set the table back to the version before, or begin again with --fresh"
    is_fatal: ClassVar[bool] = True

    operator: str
    table: str
    version: str
    change: str
    undo: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: {self.version} of {self.table} did more than append rows: {self.change}\n"
            f"  help: only appended rows are read; set the table back to {self.undo}, and launch again: the run resumes;\n"
            "        to read the table as it is now, launch with --fresh"
        )


@error(kw_only=True)
class InputTableHistoryGone(RunError):
    """The log of a table no longer tells what was appended since it was read."""

    code: ClassVar[str] = "DF693"
    example = {
        "operator": "orders",
        "table": "data/orders",
        "read": "version 12",
        "reason": "version 13 is no longer in its log",
    }
    general_remedy = "begin again with --fresh, and keep the log for longer than the time between two launches"
    is_fatal: ClassVar[bool] = True

    operator: str
    table: str
    read: str
    reason: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: {self.table} was read up to {self.read}, and {self.reason}\n"
            "  help: launch with --fresh, which reads the table as it is now;\n"
            "        let the table keep its history for longer than the time between two launches"
        )


@error(kw_only=True)
class InputTableFileGone(RunError):
    """A file of a table is missing, or is not as the log of the table says."""

    code: ClassVar[str] = "DF694"
    example = {
        "operator": "orders",
        "table": "data/orders",
        "version": "version 13",
        "file": "data/orders/part-0.parquet",
        "reason": "it is not there",
    }
    general_remedy = "restore the file, or begin again with --fresh"
    is_fatal: ClassVar[bool] = True

    operator: str
    table: str
    version: str
    file: str
    reason: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: a file of {self.table}, {self.version}, is lost: {self.file}: {self.reason}\n"
            "  help: files that were compacted are removed by cleaning (VACUUM, expired snapshots): to read the table as it is\n"
            "        now, launch with --fresh, and keep files for longer than the time between two launches"
        )


@error(kw_only=True)
class InputTableUnsupported(RunError):
    """A table uses a feature of its format with which its files alone do not say what its rows are."""

    code: ClassVar[str] = "DF695"
    example = {
        "operator": "orders",
        "table": "data/orders",
        "feature": "deletion vectors",
        "reason": "2 files of version 13 have one",
        "remedy": "purge them: REORG TABLE … APPLY (PURGE)",
    }
    is_fatal: ClassVar[bool] = True

    operator: str
    table: str
    feature: str
    reason: str
    remedy: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: {self.table} has {self.feature}, which is not supported: {self.reason}\n"
            f"  help: {self.remedy}"
        )
