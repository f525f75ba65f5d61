"""Errors in tracing and replaying past windows."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError
from dagflow.errors.base import error
from dagflow.launching.errors import NotTraceable


@error
class RunFolderMissing(NotTraceable):
    """The run folder is not where the dataset says, or belongs to another application."""

    dataset: str
    run_folder: str | None
    reason: str
    code: ClassVar[str] = "DF351"

    def message(self) -> str:
        where = "nothing in it says" if self.run_folder is None else f"it names {self.run_folder}, but {self.reason}"
        return (
            f"{self.dataset}: which run folder has its windows? {where[0].upper()}{where[1:]}\n"
            "  help: if the run folder has moved, say where it is: --run-folder PATH"
        )


@error
class WindowForgotten(NotTraceable):
    """The run folder does not keep the window any longer."""

    run_folder: str
    window: int
    oldest: int | None
    code: ClassVar[str] = "DF352"

    def message(self) -> str:
        kept = "it keeps none" if self.oldest is None else f"the oldest is {self.oldest}"
        return (
            f"the run folder {self.run_folder} no longer keeps window {self.window}; {kept}\n"
            "  help: the setting keep_windows says how many it keeps"
        )


@error
class CodeNotNamed(ConfigError, NotTraceable):
    """Running windows again would run an application that only the run folder names. `folder`: where it was launched."""

    application: str
    folder: str
    run_folder: str
    definitions: tuple[str, ...] = ()
    code: ClassVar[str] = "DF267"

    def message(self) -> str:
        settings = f"\n  with the settings {', '.join(self.definitions)}" if self.definitions else ""
        return (
            f"this would run the application {self.application!r} of {self.folder}, which only the run folder {self.run_folder} names; "
            f"nothing was run{settings}\n"
            "  help: if the dataset and this code are yours, allow it: --trust. Or name the application: --app APP -D KEY=VALUE …"
        )


@error
class ApplicationChanged(NotTraceable):
    """The application has other operators or streams than the one that made the window."""

    application: str
    window: int
    differences: tuple[str, ...]
    code: ClassVar[str] = "DF354"

    def message(self) -> str:
        return (
            f"application {self.application!r} is no longer what made window {self.window}: {'; '.join(self.differences)}\n"
            "  help: take its code as it was then"
        )


@error
class MadeOnDriver(NotTraceable):
    """The row was made while its window was planned, by operators that cannot be asked again."""

    operator: str
    window: int
    code: ClassVar[str] = "DF355"

    def message(self) -> str:
        return f"operator {self.operator!r} wrote it on the driver while window {self.window} was planned; that is not done again"


@error
class StateForgotten(NotTraceable):
    """Operators began the window with State of the windows before, which is no longer kept."""

    operators: tuple[str, ...]
    window: int
    code: ClassVar[str] = "DF356"

    def message(self) -> str:
        names = ", ".join(map(repr, self.operators))
        return (
            f"window {self.window} began with what {names} had kept of the windows before, which is no longer there: of a State, "
            "only what the next window needs is sure to be kept\n"
            "  help: to see whether it comes out the same, launch the application on the same input into an empty folder, and compare"
        )


@error
class BehindExchange(NotTraceable):
    """The row was written behind an exchange: no single task can be run again to find its record."""

    operator: str
    task: str
    code: ClassVar[str] = "DF372"

    def message(self) -> str:
        return (
            f"operator {self.operator!r} wrote it in task {self.task}, behind an exchange: its records came from many tasks, and may "
            "have been made of many\n  help: `dagflow verify --replay` runs the whole window again and compares its rows"
        )


@error
class SourceSilent(NotTraceable):
    """The source cannot be asked for a record again."""

    operator: str
    kind: str
    reason: str
    code: ClassVar[str] = "DF357"

    def message(self) -> str:
        return f"operator {self.operator!r} ({self.kind}) cannot tell the record: {self.reason}"


@error
class SourceChanged(NotTraceable):
    """The source is another one than when the window was planned, which its reader does not mind."""

    window: int
    change: str
    code: ClassVar[str] = "DF359"

    def message(self) -> str:
        return f"{self.change}: window {self.window} cannot be made again"


@error
class ReplayDiffers(NotTraceable):
    """A window that was run again from its plan came out differently."""

    window: int
    seq: int
    file: str
    reason: str
    code: ClassVar[str] = "DF358"

    def message(self) -> str:
        return f"window {self.window} (entry {self.seq}), run again, does not make {self.file} as it was committed: {self.reason}"
