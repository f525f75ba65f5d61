"""Paths and names that a stored record gives, and that dagflow does not follow."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors.base import RunError, error


@error
class PathOutside(RunError, ValueError):
    """A stored record names a path that does not lie in its folder. `leads`: where a symbolic link leads."""

    folder: str
    path: str
    leads: str | None = None
    code: ClassVar[str] = "DF377"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        if self.leads is not None:
            return (
                f"{self.folder}: {self.path!r} leads out of this folder, to {self.leads}\n"
                "  help: dagflow follows no link out of a folder of its own; put the folder or file itself in its place"
            )
        return (
            f"{self.folder}: a stored record names {self.path!r}, which is not a path of data inside this folder\n"
            "  help: dagflow writes no such record, and has read, moved and removed nothing there; restore the folder from a copy"
        )


@error
class FolderNotOwned(RunError, ValueError):
    """A stored record names a folder that is not an output of this run."""

    folder: str
    record: str
    run_folder: str
    code: ClassVar[str] = "DF379"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"{self.run_folder}: {self.record} names files of {self.folder}, which is not an output of this run\n"
            "  help: dagflow has moved and removed nothing there; restore the run folder from a copy. If the outputs have moved, "
            "launch with their present paths in the same order"
        )


@error
class BadRecordName(RunError, ValueError):
    """A record of a store is asked for by something that cannot be its name."""

    name: str
    code: ClassVar[str] = "DF383"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"{self.name!r} is not the name of a record: a name is words joined by '/', none of them empty or beginning with '.'\n"
            "  help: a stored record that names it is damaged; restore the folder from a copy"
        )
