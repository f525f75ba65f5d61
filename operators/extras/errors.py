"""Errors of tables that cannot be opened, or whose log is damaged."""

from __future__ import annotations

import re
from typing import Any

from dagflow.errors import InfrastructureError, RunError, error

_ANSI = re.compile(r"\x1b\[[0-9;]*m")  # libraries in Rust colour their errors


@error("DF447", kw_only=True, is_transient=True)
class TableUnreachable(InfrastructureError):
    """A table, or the catalog that has it, cannot be opened or written.

    `reason`: the first line of the package's message; `doing`: `opened` or `written`.
    """

    operator: str
    table: str
    reason: str
    doing: str = "opened"
    template = (
        "{operator}: {table} cannot be {doing}: {reason}\n"
        "  help: start the catalog or store, or correct its address and credentials; then launch again: the run resumes"
    )
    example = {"operator": "sales", "table": "shop.sales", "reason": "OperationalError: connection to server at 127.0.0.1 failed"}

    @classmethod
    def of(cls, error: Exception, **fields: Any) -> TableUnreachable:
        """Return the error for that of a package."""
        reason = f"{type(error).__name__}: {_ANSI.sub('', str(error)).strip().partition(chr(10))[0]}"
        return cls(reason=reason, **fields)


@error("DF742", kw_only=True, is_fatal=True)
class TableLogDamaged(RunError):
    """An entry in the log of a Delta table has no bytes. Readers take it for a version without rows."""

    operator: str
    table: str
    file: str
    template = (
        "{operator}: the log of {table} is damaged: {file} has no bytes or only zeros, and rows of that version are missing\n"
        "  help: restore the file from a copy of the table, and launch again: the run resumes"
    )
    example = {"operator": "sales", "table": "data/sales", "file": "data/sales/_delta_log/00000000000000000012.json"}
