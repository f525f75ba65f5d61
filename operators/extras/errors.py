"""Errors of the packages of table formats: one is missing, or cannot open a table."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import InfrastructureError, error


@error(kw_only=True)
class TablePackageMissing(InfrastructureError):
    """The package of a table format is not installed."""

    code: ClassVar[str] = "DF446"
    example = {"operator": "DeltaWriter", "package": "deltalake", "extra": "delta"}
    general_remedy = "install the package here, and where the tasks run"
    is_fatal: ClassVar[bool] = True

    operator: str
    package: str
    extra: str

    def message(self) -> str:
        return (
            f"{self.operator} needs the package {self.package}, which is not installed. Install it here, and where the tasks run:\n"
            f"  pip install 'dagflow[{self.extra}]'"
        )


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
