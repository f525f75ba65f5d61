"""The error of a package that is not installed, for all layers: operators and stores load packages of extras where they are used."""

from __future__ import annotations

from dagflow.errors.base import InfrastructureError, error


@error("DF446", kw_only=True)
class PackageMissing(InfrastructureError, ImportError):
    """An operator, a file or a URL needs a package that is not installed.

    `needed_by`: the name of the operator's class, the file or the URL; `install`: what to give to `pip install`.
    """

    needed_by: str
    package: str
    install: str
    reason: str = ""
    template = (
        "{needed_by} needs the package {package}, which is not installed{reason:? ({reason})}\n"
        "  help: install it here, and where the tasks run: pip install {install}"
    )
    example = {"needed_by": "DeltaWriter", "package": "deltalake", "install": "'dagflow[delta]'"}
