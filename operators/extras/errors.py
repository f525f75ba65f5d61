"""The error of a table that cannot be opened."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import InfrastructureError, error


@error(kw_only=True)
class TableUnreachable(InfrastructureError):
    """A table, or the catalog that has it, cannot be opened. `reason`: the first line of the package's message."""

    code: ClassVar[str] = "DF447"
    example = {"operator": "sales", "table": "shop.sales", "reason": "OperationalError: connection to server at 127.0.0.1 failed"}
    general_remedy = "start the catalog or store, or correct its address and credentials; then launch again"
    is_fatal: ClassVar[bool] = True
    is_transient: ClassVar[bool] = True  # checks before a launch are not repeated

    operator: str
    table: str
    reason: str

    def message(self) -> str:
        return (
            f"{self.operator}: {self.table} cannot be opened: {self.reason}\n"
            "  help: start the catalog or store, or correct its address and credentials; then launch again: the run resumes"
        )
