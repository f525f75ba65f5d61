"""The error of a package that is not installed, for all layers: operators and stores load packages of extras where they are used."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors.base import InfrastructureError, error


@error(kw_only=True)
class PackageMissing(InfrastructureError, ImportError):
    """An operator, a file or a URL needs a package that is not installed.

    `needed_by`: the name of the operator's class, the file or the URL; `install`: what to give to `pip install`.
    """

    code: ClassVar[str] = "DF446"
    example = {"needed_by": "DeltaWriter", "package": "deltalake", "install": "'dagflow[delta]'"}
    is_fatal: ClassVar[bool] = True  # a record at which it is found missing is not to blame

    needed_by: str
    package: str
    install: str
    reason: str = ""

    def message(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return (
            f"{self.needed_by} needs the package {self.package}, which is not installed{reason}\n"
            f"  help: install it here, and where the tasks run: pip install {self.install}"
        )
