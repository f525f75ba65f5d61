"""Errors in tracing and replaying past windows."""

from __future__ import annotations

from dagflow.errors import ConfigError
from dagflow.errors.base import error
from dagflow.launching.errors import NotTraceable


@error("DF351")
class RunFolderMissing(NotTraceable):
    """The run folder is not where the dataset says, or belongs to another application."""

    dataset: str
    run_folder: str | None
    reason: str
    template = (
        "{dataset}: the run folder of its windows is not known: "
        "{run_folder:?it names {run_folder}, but {reason}|nothing in the dataset names one}\n"
        "  help: if the run folder has moved, name it: --run-folder PATH"
    )
    example = {"dataset": "out", "run_folder": "out/_dagflow", "reason": "there is no such folder"}


@error("DF352")
class WindowForgotten(NotTraceable):
    """The run folder no longer has the window."""

    run_folder: str
    window: int
    oldest: int | None
    template = (
        "the run folder {run_folder} no longer keeps window {window}; {oldest:?the oldest is {oldest}|it keeps none}\n"
        "  help: the setting retain_windows says how many it keeps"
    )
    example = {"run_folder": "out/_dagflow", "window": 3, "oldest": 120}


@error("DF267")
class CodeNotNamed(ConfigError, NotTraceable):
    """A replay would run an application that only the run folder names. `folder`: where it was launched."""

    application: str
    folder: str
    run_folder: str
    definitions: tuple[str, ...] = ()
    template = (
        "this would run the application {application!r} of {folder}, which only the run folder {run_folder} names; "
        "nothing was run{definitions:?\n  with the settings {definitions}}\n"
        "  help: if the dataset and this code are yours, allow it: --trust. Or name the application: --app APP -D KEY=VALUE …"
    )
    example = {"application": "app.py", "folder": "demo", "run_folder": "out/_dagflow", "definitions": ("output=out",)}


@error("DF354")
class ApplicationChanged(NotTraceable):
    """The application has other operators or streams than the one that made the window."""

    application: str
    window: int
    differences: tuple[str, ...]
    template = (
        "application {application!r} has changed since it ran window {window}: {differences:; }\n"
        "  help: use its code of that time"
    )
    example = {"application": "demo", "window": 3, "differences": ("operator 'filter' is gone",)}


@error("DF355")
class MadeOnDriver(NotTraceable):
    """The row was written on the driver while its window was planned, and that cannot be repeated."""

    operator: str
    window: int
    template = "operator {operator!r} wrote it on the driver while window {window} was planned, which cannot be repeated"
    example = {"operator": "files", "window": 3}
    general_remedy = "trace a row that was written in a task"


@error("DF356")
class StateForgotten(NotTraceable):
    """A window cannot be replayed, since the State that it began with is no longer stored."""

    operators: tuple[str, ...]
    window: int
    template = (
        "window {window} began with state of {operators!r} that is no longer stored\n"
        "  help: the setting retain_windows says for how many windows it is kept. To compare older rows, "
        "launch the application on the same input into an empty folder"
    )
    example = {"operators": ("total",), "window": 3}


@error("DF372")
class BehindExchange(NotTraceable):
    """The row was written behind an exchange, so a single task cannot be run again to find its record."""

    operator: str
    task: str
    template = (
        "operator {operator!r} wrote it in task {task}, behind an exchange: its records came from many tasks, "
        "and may have been made of many\n"
        "  help: `dagflow verify --replay` runs the whole window again and compares its rows"
    )
    example = {"operator": "count", "task": "window 3, level 1, partition 0"}


@error("DF357")
class SourceSilent(NotTraceable):
    """The source cannot read a single record again."""

    operator: str
    kind: str
    reason: str
    template = "operator {operator!r} ({kind}) cannot tell the record: {reason}"
    example = {"operator": "events", "kind": "MyInput", "reason": "it cannot read a record again"}
    general_remedy = "give the source a way to read one record again, or trace without --exact"


@error("DF359")
class SourceChanged(NotTraceable):
    """The source has changed since the window was planned."""

    window: int
    change: str
    template = "{change}: window {window} cannot be made again"
    example = {"window": 3, "change": "logs/a.txt has another length than when it was planned"}
    general_remedy = "put the source back as it was"


@error("DF358")
class ReplayDiffers(NotTraceable):
    """A replayed window gave other rows than the committed ones."""

    window: int
    seq: int
    file: str
    reason: str
    template = "window {window} (entry {seq}), replayed, does not give {file} as it was committed: {reason}"
    example = {"window": 3, "seq": 5, "file": "part-0.txt", "reason": "row 7 differs"}
    general_remedy = (
        "look for what differs between two runs on the same input: random numbers, clocks, the order of sets, changed code"
    )


@error("DF276")
class PortNotPeekable(ConfigError):
    """The records of a port cannot be shown."""

    port: str
    reason: str
    template = "cannot peek at {port}: {reason}\n  help: `dagflow peek APP` lists the ports that records flow through"
    example = {"port": "join.right", "reason": "no stream leads to it"}
