"""Errors in packaging an application."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError, InfrastructureError
from dagflow.errors.base import error


@error(kw_only=True)
class LockUnusable(ConfigError, ValueError):
    """The file of requirements does not say exactly which libraries to install."""

    path: str
    reason: str
    remedy: str = "pip freeze > lock.txt"
    code: ClassVar[str] = "DF273"
    example = {"path": "requirements.txt", "reason": "line 3, 'attrs>=23', has no exact version: name==version"}

    def message(self) -> str:
        return f"{self.path} is not usable as a lock file: {self.reason}\n  help: make one: {self.remedy}"


@error(kw_only=True)
class LibraryUnknown(ConfigError, ValueError):
    """A library that the package is to hold is not installed."""

    name: str
    asked_by: str
    code: ClassVar[str] = "DF274"
    example = {"name": "s3fs", "asked_by": "--package-with"}

    def message(self) -> str:
        return f"{self.asked_by} asks for {self.name}, which is not installed here\n  help: pip install {self.name}"


@error(kw_only=True)
class InstallerMissing(InfrastructureError):
    """A lock file is to be installed, and there is neither uv nor pip."""

    path: str
    python: str
    code: ClassVar[str] = "DF472"
    example = {"path": "lock.txt", "python": "/opt/app/bin/python"}

    def message(self) -> str:
        return (
            f"{self.path} cannot be installed: there is no uv on PATH, and {self.python} has no pip\n"
            f"  help: {self.python} -m ensurepip; or leave --package-lock out, to package what is installed here"
        )


@error(kw_only=True)
class PackageNotMade(InfrastructureError):
    """The archive of an application could not be made."""

    doing: str
    reason: str
    remedy: str
    code: ClassVar[str] = "DF473"
    example = {"doing": "writing /var/cache/dagflow/packages", "reason": "no space left on device", "remedy": "free 1 GB"}

    def message(self) -> str:
        return f"the package could not be made: {self.doing}: {self.reason}\n  help: {self.remedy}"
