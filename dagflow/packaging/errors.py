"""Errors in packaging an application."""

from __future__ import annotations

from dagflow.errors import ConfigError, InfrastructureError
from dagflow.errors.base import error


@error("DF273", kw_only=True)
class LockUnusable(ConfigError, ValueError):
    """The file of requirements does not say exactly which libraries to install."""

    path: str
    reason: str
    remedy: str = "pip freeze > lock.txt"
    template = "{path} is not usable as a lock file: {reason}\n  help: make one: {remedy}"
    example = {"path": "requirements.txt", "reason": "line 3, 'attrs>=23', has no exact version: name==version"}


@error("DF274", kw_only=True)
class LibraryUnknown(ConfigError, ValueError):
    """A library that the package is to hold is not installed."""

    name: str
    asked_by: str
    template = "{asked_by} asks for {name}, which is not installed here\n  help: pip install {name}"
    example = {"name": "s3fs", "asked_by": "--package-with"}


@error("DF472", kw_only=True)
class InstallerMissing(InfrastructureError):
    """A lock file is to be installed, and there is neither uv nor pip."""

    path: str
    python: str
    template = (
        "{path} cannot be installed: there is no uv on PATH, and {python} has no pip\n"
        "  help: {python} -m ensurepip; or leave --package-lock out, to package what is installed here"
    )
    example = {"path": "lock.txt", "python": "/opt/app/bin/python"}


@error("DF473", kw_only=True)
class PackageNotMade(InfrastructureError):
    """The archive of an application could not be made."""

    doing: str
    reason: str
    remedy: str
    template = "the package could not be made: {doing}: {reason}\n  help: {remedy}"
    example = {"doing": "writing /var/cache/dagflow/packages", "reason": "no space left on device", "remedy": "free 1 GB"}
