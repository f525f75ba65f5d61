"""Errors of the window loop: a window that fails, is held up, or cannot be committed."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dagflow.errors import ConfigError, InfrastructureError, RunError, definition
from dagflow.errors.base import error
from dagflow.runtime.run_folder.errors import ExpectationResult


@error("DF287", kw_only=True)
class WindowNotRejectable(ConfigError):
    """`--reject-window` names a window that no sink has to leave out.

    `waiting`: the window that is to be published next; None if there is none. `is_published`: its sinks have the window.
    """

    window: int
    waiting: int | None
    run_folder: str
    is_published: bool = False
    example = {"window": 7, "waiting": 6, "run_folder": "out/_dagflow"}

    def message(self) -> str:
        if self.is_published:
            reason, remedy = "all sinks have its rows", "leave --reject-window out"
        elif self.waiting is None:
            reason, remedy = "no window is decided and not published", "leave --reject-window out"
        else:
            reason = f"window {self.waiting} is the one that is decided and not published"
            remedy = "launch without --reject-window, and see whether and why it cannot be published"
        return f"window {self.window} of {self.run_folder} cannot be rejected: {reason}\n  help: {remedy}"


@error("DF306")
class WindowFailed(RunError):
    """A window failed in all its attempts. `places`: where its dead tasks were; `look`: a command that shows what is there."""

    window: int
    attempts: int
    reason: str
    places: tuple[str, ...] = ()
    look: str | None = None
    template = (
        "window {window} failed {attempts:=1?once|{attempts} times}; the last time: {reason}"
        "{places:?\n  {places:\n  }}\n"
        "  help: {look:?`{look}` shows what is there; }launch again to resume from this window"
    )
    example = {"window": 3, "attempts": 3, "reason": "a task died", "look": "dagflow verify out"}


@error("DF395")
class ExpectationFailed(RunError):
    """An operator rejected more records of a window than its limit allows. Nothing of the window is committed.

    `results`: the verdicts that failed; `samples`: the first rejected records, by operator; `property`: sets the first limit. The
    window is not retried: it would fail again.
    """

    window: int
    results: tuple[ExpectationResult, ...]
    samples: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    property: str = ""
    example = {
        "window": 3,
        "results": (
            ExpectationResult(operator="number", name="max_rejects", records=400, rejected=5, max_share=0.01, status="failed"),
        ),
        "samples": {"number": ("ValueError: invalid literal for int() with base 10: 'x' ('x', logs/a.txt, position 120)",)},
        "property": "max_rejects",
    }

    def __attrs_post_init__(self) -> None:
        self.happened(operator=self.results[0].operator)

    def message(self) -> str:
        lines = [f"window {self.window} is not committed: operator {self.results[0].text()}"]
        lines += [f"  also     operator {result.text()}" for result in self.results[1:]]
        for operator in dict.fromkeys(result.operator for result in self.results):
            lines += [f"  rejected {sample}" for sample in self.samples.get(operator, ())]
        allow = f"allow more with {definition(self.results[0].operator, self.property, '…')}" if self.property else "allow more"
        help_text = f"correct the code that rejects them, or {allow}; then launch again, which resumes with this window"
        return "\n".join([*lines, f"  help: {help_text}"])


@error("DF440", is_transient=True)
class PlannedElsewhere(InfrastructureError):
    """A launch that held the run folder before has planned this window. The plan is read, and the window is run from it."""

    window: int
    folder: str
    template = "{folder}: a launch that held this folder before has planned window {window}, which is run from that plan"
    example = {"window": 3, "folder": "s3://logs/out/_dagflow"}
    general_remedy = "launch again; the run resumes from that plan"


@error("DF960")
class RunIsFinal(RunError):
    """A final launch keeps nothing, and is the only one of its run.

    Attributes:
        windows: the number of windows that the run has.
        is_last: whether the newest of them is that of a final launch.
        waits: whether it is planned, and not finished.
    """

    folder: str
    windows: int
    is_last: bool
    waits: bool
    example = {"folder": "out/_dagflow", "windows": 1, "is_last": True, "waits": False}

    def message(self) -> str:
        help_text = "start over with --fresh, which removes the files of the run first, and leaves the rows of tables"
        if self.waits:
            reason = f"window {self.windows - 1} is planned and not finished"
            help_text = f"launch once without {'--continuous' if self.is_last else '--final'}, which runs it"
        elif self.is_last:
            reason = "the last launch was final. It has kept nothing that another one could continue with"
        else:
            reason = "a final launch is the only one of its run, and this run has windows already"
        return f"{self.folder}: {reason}\n  help: {help_text}; or give another output"


@error("DF308", exit_code=130)
class Interrupted(RunError):
    """The run was stopped from outside."""

    by: str
    template = "stopped by {by}; launch again to resume from here"
    example = {"by": "SIGTERM"}
    general_remedy = "launch again; the run resumes"


@error("DF261")
class SchemasDiffer(ConfigError):
    """Two sinks write rows with different columns into one folder, which is one dataset."""

    folder: str
    first: str
    second: str
    one: str
    other: str
    template = (
        "output folder {folder} is one dataset, but two sinks write different rows into it\n"
        "  {first!r}: {one}\n"
        "  {second!r}: {other}\n"
        "  help: give each of them a folder of its own"
    )
    example = {
        "folder": "out",
        "first": "lines",
        "second": "counts",
        "one": "value: string",
        "other": "key: string, count: int64",
    }


@error("DF290")
class ModesDiffer(ConfigError):
    """Of two sinks that write files into one folder, one adds rows and one replaces them, or they replace or keep others."""

    folder: str
    first: str
    second: str
    template = (
        "output folder {folder} is one dataset, but sinks {first!r} and {second!r} have another mode or keep_replaced, or one of them\n"
        "has all rows that stand and the other one those of a launch or window\n"
        "  help: give both the same mode and keep_replaced, or each of them a folder of its own"
    )
    example = {"folder": "out", "first": "lines", "second": "counts"}


@error("DF262")
class DatasetTwice(ConfigError):
    """Two input operators read the same dataset into one output folder."""

    folder: str
    dataset: str
    first: str
    second: str
    template = (
        "operators {first!r} and {second!r} both read the dataset {dataset}, and both lead to the output folder {folder}\n"
        "  help: let {first!r} read it alone; one stream may lead to several readers"
    )
    example = {"folder": "out", "dataset": "in", "first": "one", "second": "other"}


@error("DF802")
class ChangesHeld(RunError):
    """Changes wait for an emission point, and the operators that keep them are not in the plan of this launch.

    Attributes:
        operators: the name of each, and how many changes it keeps.
    """

    run_folder: str
    window: int
    operators: tuple[tuple[str, int], ...]
    example = {"run_folder": "out/_dagflow", "window": 3, "operators": (("totals.held", 12),)}

    def message(self) -> str:
        waiting = ", ".join(f"{count:,} of {name.rpartition('.')[0]!r}" for name, count in self.operators)
        return (
            f"changes of earlier windows wait to be emitted ({waiting}, window {self.window} of {self.run_folder}), and this launch "
            "emits with each window, so that it keeps none\n"
            "  help: launch once without --continuous, which emits them; or give the time between emission points: --every 1min"
        )


@error("DF328", is_fatal=True)
class FileInTheWay(RunError):
    """A decided file cannot get its final name, since another file has it."""

    window: int
    path: str
    reason: str
    template = (
        "window {window} cannot be published: {path} is not the file that was decided ({reason})\n"
        "  help: move that file elsewhere, and launch again; nothing was replaced"
    )
    example = {"window": 3, "path": "out/part-3.txt", "reason": "it has 7 bytes, 12 were decided"}


@error("DF329", is_fatal=True)
class FileLost(RunError):
    """A decided file is neither in its staging place nor in its final place, and no ledger entry says that it was published."""

    window: int
    path: str
    attempt: str
    template = (
        "window {window} cannot be published: {path} is not there, nor is it where it was written, {attempt}\n"
        "  help: restore the file in one of the two places and launch again, or launch with --fresh to start over"
    )
    example = {"window": 3, "path": "out/part-3.txt", "attempt": "out/_dagflow/attempts/3/part-3.txt"}


@error("DF348", is_fatal=True)
class StagedFileDamaged(RunError):
    """A staged file has other bytes than its task wrote."""

    window: int
    path: str
    attempt: str
    reason: str
    template = (
        "window {window} cannot be published: {attempt}, which is to become {path}, is damaged ({reason})\n"
        "  help: restore the file from a copy and launch again, or launch with --fresh to start over"
    )
    example = {
        "window": 3,
        "path": "out/part-3.txt",
        "attempt": "out/_dagflow/attempts/3/part-3.txt",
        "reason": "its hash differs",
    }


@error("DF436")
class WindowHeldUp(InfrastructureError):
    """A step of a window on the driver failed in all its attempts, for transient reasons."""

    window: int
    doing: str
    attempts: int
    reason: str
    template = (
        "window {window}: {doing} failed {attempts:=1?once|{attempts} times}; the last time: {reason}\n"
        "  help: launch again when the storage answers: the run resumes from there"
    )
    example = {"window": 3, "doing": "writing its decision", "attempts": 3, "reason": "the store did not answer"}


@error("DF307")
class WindowIncomplete(RunError):
    """The tasks of a window ended without a report, or did not read exactly the work items of its plan."""

    window: int
    missing: tuple[str, ...]
    uncovered: tuple[str, ...] = ()
    example = {"window": 3, "missing": ("task 0 of level 1",)}
    general_remedy = "launch again: the window runs anew from its plan. If it happens again, report it"

    def message(self) -> str:
        if self.uncovered:
            more = f", and {len(self.uncovered) - 3} more" if len(self.uncovered) > 3 else ""
            return f"window {self.window}: its work items were not each read exactly once: {'; '.join(self.uncovered[:3])}{more}"
        return f"window {self.window}: no report from {', '.join(self.missing)}"


@error("DF668", kw_only=True, is_fatal=True)
class RunFolderOlder(RunError):
    """The store of a sink has windows of this run that the run folder does not know: the run folder is an older copy.

    `window`: the newest window in the store; `newest`: the newest decided one in the run folder, -1 for none.
    """

    sink: str
    store: str
    window: int
    newest: int
    run_folder: str
    example = {"sink": "sales", "store": "the Delta table data/sales", "window": 7, "newest": 5, "run_folder": "out/_dagflow"}

    def message(self) -> str:
        known = f"knows windows up to {self.newest}" if self.newest >= 0 else "knows no window"
        return (
            f"{self.sink}: {self.store} has window {self.window} of this run, and the run folder {self.run_folder} {known}: it is an "
            "older copy. The next window would be taken for one that is published, and its rows would be lost\n"
            "  help: bring the newest run folder back, and launch again: the run resumes; or restore both from copies of the same\n"
            "        time; or empty the store, and write all windows anew with --fresh"
        )


@error("DF740", kw_only=True, is_fatal=True)
class StoreOlder(RunError):
    """The store of a sink lacks windows that were published to it: it is an older copy.

    `window`: the newest window in the store, -1 for none; `published`: the newest one with rows that was published.
    """

    sink: str
    store: str
    window: int
    published: int
    run_folder: str
    example = {"sink": "sales", "store": "the Delta table data/sales", "window": 5, "published": 7, "run_folder": "out/_dagflow"}

    def message(self) -> str:
        ends = f"ends with window {self.window} of this run" if self.window >= 0 else "has no window of this run"
        return (
            f"{self.sink}: {self.store} {ends}, and window {self.published} was published to it: it is an older copy\n"
            f"  help: bring its newest state back, and launch again: the run resumes; or restore it and the run folder {self.run_folder}\n"
            "        from copies of the same time; or empty it, and write all windows anew with --fresh"
        )


@error("DF741", kw_only=True, is_fatal=True)
class HistoriesDiffer(RunError):
    """A store and the run folder have a window of the same number that come from different decisions: one is a copy of another time.

    Both have gone on since they were copied. `window`: the newest one in the store.
    """

    sink: str
    store: str
    window: int
    run_folder: str = ""
    template = (
        "{sink}: {store} has window {window} of this run, by another decision than that in the run "
        "folder{run_folder:? {run_folder}}: its rows may be other ones\n"
        "  help: one of them was restored from a copy, and has gone on since: "
        "bring the two that belong together back, and launch\n"
        "        again; or empty the store, and write all windows anew with --fresh"
    )
    example = {"sink": "sales", "store": "the Delta table data/sales", "window": 7, "run_folder": "out/_dagflow"}
