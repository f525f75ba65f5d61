"""Errors of the window loop: a window that fails, is held up, or cannot be committed."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError, InfrastructureError, RunError
from dagflow.errors.base import error


@error
class WindowFailed(RunError):
    """A window failed as often as it may. `places`: where its dead tasks were; `look`: a command that shows what is there."""

    window: int
    attempts: int
    reason: str
    places: tuple[str, ...] = ()
    look: str | None = None
    code: ClassVar[str] = "DF306"

    def message(self) -> str:
        times = "once" if self.attempts == 1 else f"{self.attempts} times"
        lines = [f"window {self.window} failed {times}; the last time: {self.reason}", *(f"  {place}" for place in self.places)]
        see = f"`{self.look}` shows what is there; " if self.look else ""
        return "\n".join([*lines, f"  help: {see}launch again to go on from this window"])


@error
class Interrupted(RunError):
    """The run was stopped from outside."""

    by: str
    code: ClassVar[str] = "DF308"
    exit_code: ClassVar[int] = 130

    def message(self) -> str:
        return f"stopped by {self.by}; launch again to go on from here"


@error
class SchemasDiffer(ConfigError):
    """Two sinks write rows of different kinds into one folder, which is one dataset."""

    folder: str
    first: str
    second: str
    one: str
    other: str
    code: ClassVar[str] = "DF261"

    def message(self) -> str:
        return (
            f"output folder {self.folder} is one dataset, but sink {self.first!r} writes rows of ({self.one}) into it, "
            f"sink {self.second!r} rows of ({self.other})\n"
            "  help: give each of them a folder of its own"
        )


@error
class DatasetTwice(ConfigError):
    """Two input operators read the same dataset into one output."""

    folder: str
    dataset: str
    first: str
    second: str
    code: ClassVar[str] = "DF262"

    def message(self) -> str:
        return (
            f"operators {self.first!r} and {self.second!r} both read the dataset {self.dataset}, and both lead to the output folder "
            f"{self.folder}\n"
            f"  help: let {self.first!r} read it alone; one stream may lead to several readers"
        )


@error
class FileInTheWay(RunError):
    """A decided file cannot get its final name: another file has it."""

    window: int
    path: str
    reason: str
    code: ClassVar[str] = "DF328"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"window {self.window} cannot be published: {self.path} is not the file that was decided ({self.reason})\n"
            "  help: move that file elsewhere, and launch again; nothing was replaced"
        )


@error
class FileLost(RunError):
    """A decided file is neither where it was written nor where it belongs, and no ledger entry says that it was published."""

    window: int
    path: str
    attempt: str
    code: ClassVar[str] = "DF329"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"window {self.window} cannot be published: {self.path} is not there, nor is it where it was written, {self.attempt}\n"
            "  help: bring the file back to one of the two places, and launch again; or launch with --fresh to start over"
        )


@error
class StagedFileDamaged(RunError):
    """A file that waits for its final name has other bytes than its task has written."""

    window: int
    path: str
    attempt: str
    reason: str
    code: ClassVar[str] = "DF348"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"window {self.window} cannot be published: {self.attempt}, which is to become {self.path}, is damaged ({self.reason})\n"
            "  help: bring the file back from a copy, and launch again; or launch with --fresh to start over"
        )


@error
class WindowHeldUp(InfrastructureError):
    """What the driver does for a window failed as often as it may, each time for a reason that might have passed."""

    code: ClassVar[str] = "DF436"

    window: int
    doing: str
    attempts: int
    reason: str

    def message(self) -> str:
        """The window, what was being done for it, and why it failed the last time."""
        times = "once" if self.attempts == 1 else f"{self.attempts} times"
        return (
            f"window {self.window}: {self.doing} failed {times}; the last time: {self.reason}\n"
            "  help: launch again when the storage answers: the run goes on from there"
        )


@error
class WindowIncomplete(RunError):
    """A window's tasks ended, but not all of them reported, or what they have read is not the window's plan."""

    window: int
    missing: tuple[str, ...]
    uncovered: tuple[str, ...] = ()
    code: ClassVar[str] = "DF307"

    def message(self) -> str:
        if self.uncovered:
            more = f", and {len(self.uncovered) - 3} more" if len(self.uncovered) > 3 else ""
            return f"window {self.window}: its tasks have not read all of it once: {'; '.join(self.uncovered[:3])}{more}"
        return f"window {self.window}: no report from {', '.join(self.missing)}"
