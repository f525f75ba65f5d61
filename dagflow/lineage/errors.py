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
    example = {"dataset": "out", "run_folder": "out/_dagflow", "reason": "there is no such folder"}

    def message(self) -> str:
        where = (
            "nothing in the dataset names one" if self.run_folder is None else f"it names {self.run_folder}, but {self.reason}"
        )
        return (
            f"{self.dataset}: the run folder of its windows is not known: {where}\n"
            "  help: if the run folder has moved, name it: --run-folder PATH"
        )


@error
class WindowForgotten(NotTraceable):
    """The run folder no longer has the window."""

    run_folder: str
    window: int
    oldest: int | None
    code: ClassVar[str] = "DF352"
    example = {"run_folder": "out/_dagflow", "window": 3, "oldest": 120}

    def message(self) -> str:
        kept = "it keeps none" if self.oldest is None else f"the oldest is {self.oldest}"
        return (
            f"the run folder {self.run_folder} no longer keeps window {self.window}; {kept}\n"
            "  help: the setting retain_windows says how many it keeps"
        )


@error
class CodeNotNamed(ConfigError, NotTraceable):
    """A replay would run an application that only the run folder names. `folder`: where it was launched."""

    application: str
    folder: str
    run_folder: str
    definitions: tuple[str, ...] = ()
    code: ClassVar[str] = "DF267"
    example = {"application": "app.py", "folder": "demo", "run_folder": "out/_dagflow", "definitions": ("output=out",)}

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
    example = {"application": "demo", "window": 3, "differences": ("operator 'filter' is gone",)}

    def message(self) -> str:
        return (
            f"application {self.application!r} has changed since it ran window {self.window}: {'; '.join(self.differences)}\n"
            "  help: use its code of that time"
        )


@error
class MadeOnDriver(NotTraceable):
    """The row was written on the driver while its window was planned, and that cannot be repeated."""

    operator: str
    window: int
    code: ClassVar[str] = "DF355"
    example = {"operator": "files", "window": 3}
    general_remedy = "trace a row that was written in a task"

    def message(self) -> str:
        return (
            f"operator {self.operator!r} wrote it on the driver while window {self.window} was planned, which cannot be repeated"
        )


@error
class StateForgotten(NotTraceable):
    """A window cannot be replayed, since the State that it began with is no longer stored."""

    operators: tuple[str, ...]
    window: int
    code: ClassVar[str] = "DF356"
    example = {"operators": ("total",), "window": 3}

    def message(self) -> str:
        names = ", ".join(map(repr, self.operators))
        return (
            f"window {self.window} began with state of {names} that is no longer stored\n"
            "  help: the setting retain_windows says for how many windows it is kept. To compare older rows, launch the application "
            "on the same input into an empty folder"
        )


@error
class BehindExchange(NotTraceable):
    """The row was written behind an exchange, so a single task cannot be run again to find its record."""

    operator: str
    task: str
    code: ClassVar[str] = "DF372"
    example = {"operator": "count", "task": "window 3, level 1, partition 0"}

    def message(self) -> str:
        return (
            f"operator {self.operator!r} wrote it in task {self.task}, behind an exchange: its records came from many tasks, and may "
            "have been made of many\n  help: `dagflow verify --replay` runs the whole window again and compares its rows"
        )


@error
class SourceSilent(NotTraceable):
    """The source cannot read a single record again."""

    operator: str
    kind: str
    reason: str
    code: ClassVar[str] = "DF357"
    example = {"operator": "events", "kind": "MyInput", "reason": "it cannot read a record again"}
    general_remedy = "give the source a way to read one record again, or trace without --exact"

    def message(self) -> str:
        return f"operator {self.operator!r} ({self.kind}) cannot tell the record: {self.reason}"


@error
class SourceChanged(NotTraceable):
    """The source has changed since the window was planned."""

    window: int
    change: str
    code: ClassVar[str] = "DF359"
    example = {"window": 3, "change": "logs/a.txt has another length than when it was planned"}
    general_remedy = "put the source back as it was"

    def message(self) -> str:
        return f"{self.change}: window {self.window} cannot be made again"


@error
class ReplayDiffers(NotTraceable):
    """A replayed window gave other rows than the committed ones."""

    window: int
    seq: int
    file: str
    reason: str
    code: ClassVar[str] = "DF358"
    example = {"window": 3, "seq": 5, "file": "part-0.txt", "reason": "row 7 differs"}
    general_remedy = (
        "look for what differs between two runs on the same input: random numbers, clocks, the order of sets, changed code"
    )

    def message(self) -> str:
        return f"window {self.window} (entry {self.seq}), replayed, does not give {self.file} as it was committed: {self.reason}"


@error
class PortNotPeekable(ConfigError):
    """The records of a port cannot be shown."""

    port: str
    reason: str
    code: ClassVar[str] = "DF276"
    example = {"port": "join.right", "reason": "no stream leads to it"}

    def message(self) -> str:
        return f"cannot peek at {self.port}: {self.reason}\n  help: `dagflow peek APP` lists the ports that records flow through"
