"""The result of `dagflow verify`, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.errors.shown import visible, without_secrets
from dagflow.ledger import EntryRef, VerifyReport
from dagflow.lineage.replay import ReplayReport
from dagflow.lineage.sinks import SinkCheck
from dagflow.render.datasets.ledger import counted_entries
from dagflow.render.errors import error_json
from dagflow.render.style import Style, table
from dagflow.render.words import counted
from dagflow.runtime.run_folder.verify import FolderReport
from dagflow.storage.errors import StorageError

VERSION = 1


@attrs.frozen(kw_only=True)
class Checked:
    """The parts of a dataset that `dagflow verify` checked, and the results.

    Attributes:
        files: whether files were read.
        inputs: where the inputs were found that were checked too, by their ids.
        missing_inputs: where the others were looked for; "" where that is not known.
        input_problems: why inputs that are there could not be read.
        replay: what running windows again has shown, if that was asked for.
        run_folder: what reading the run folder has shown; a text says why it was not read, None that there is none.
        sinks: what the tables, databases and logs have; a text says why they were not looked at, None that it was not asked for.
        report: None for a run folder alone.
    """

    dataset: str
    report: VerifyReport | None = None
    files: bool = True
    inputs: Mapping[str, str] = attrs.field(factory=dict)
    missing_inputs: Mapping[str, str] = attrs.field(factory=dict)
    input_problems: tuple[DagflowError, ...] = ()
    replay: ReplayReport | None = None
    run_folder: FolderReport | str | None = None
    sinks: tuple[SinkCheck, ...] | str | None = None

    @property
    def problems(self) -> tuple[DagflowError, ...]:
        """All that is damaged, or came out differently."""
        replayed = () if self.replay is None else self.replay.problems
        own = () if self.report is None else self.report.problems
        return (*own, *self.run_folder_problems, *self.sink_problems, *self.input_problems, *replayed)

    @property
    def sink_problems(self) -> tuple[DagflowError, ...]:
        """Why tables, databases and logs do not fit the run folder."""
        checks = self.sinks if isinstance(self.sinks, tuple) else ()
        return tuple(each.problem for each in checks if each.problem is not None)

    @property
    def run_folder_problems(self) -> tuple[DagflowError, ...]:
        """The damage in the run folder."""
        return self.run_folder.problems if isinstance(self.run_folder, FolderReport) else ()


def verify_text(checked: Checked, style: Style | None = None) -> str:
    """Return what was checked, and how to note it, without the problems.

    >>> print(verify_text(Checked(dataset="out", report=VerifyReport(entries=3, rows=10, files=1, head=EntryRef(2, "sha256:ab"),
    ...     problems=()))))
    out: clean
      entries  3 entries: links and rules
      rows     10 rows
      files    1 file: sizes and hashes
      newest   2:sha256:ab
    <BLANKLINE>
    Note the newest entry elsewhere: `--noted SEQ:HASH` then shows whether all of the ledger was written anew.
    """
    style, checked = style or Style(), visible(checked)
    report = checked.report
    state = style.paint("bold red", "damaged")
    if report is None:
        if checked.sink_problems and not checked.run_folder_problems:
            state = style.paint("bold red", "clean, but not its tables")
        elif not checked.problems and isinstance(checked.run_folder, FolderReport):
            state = style.paint("green", "clean")
    elif report.problems and all(isinstance(problem, StorageError) for problem in report.problems):
        state = style.paint("yellow", "not all of it could be read")
    elif report.is_clean:
        state = style.paint("green", "clean")
        if checked.run_folder_problems:
            state = style.paint("bold red", "clean, but not its run folder")
        elif checked.sink_problems:
            state = style.paint("bold red", "clean, but not its tables")
        elif checked.problems:
            state = style.paint("yellow", "clean, but not its inputs" if checked.input_problems else "clean, but not made again")
    problems = f", {counted(len(checked.problems), 'problem')}" if checked.problems else ""
    rows: list[list[str]] = []
    if report is not None:
        rows += [["entries", f"{counted_entries(report.entries)}: links and rules"], ["rows", counted(report.rows, "row")]]
        what = "file" if report.files == 1 else "files"
        rows.append(["files", f"{report.files:,} {what}: sizes and hashes" if checked.files else "not read (--no-files)"])
    if isinstance(checked.run_folder, FolderReport):
        records = counted(checked.run_folder.records, "record")
        rows.append(["records", f"{records} of the run folder {checked.run_folder.folder}: seals and links"])
        if undecided := checked.run_folder.undecided:
            which = f"window {undecided[0]} is" if len(undecided) == 1 else f"windows {undecided[0]} to {undecided[-1]} are"
            rows.append(["undecided", f"{which} planned and not committed: a launch runs now, or launch again to resume"])
        for number, rejection in enumerate(checked.run_folder.rejected):
            rows.append(["rejected" if not number else "", rejection.text()])
    elif checked.run_folder is not None:
        rows.append(["records", f"not checked: {checked.run_folder}"])
    rows += _sinks(checked)
    for number, (name, place) in enumerate(sorted(checked.inputs.items())):
        rows.append(["inputs" if not number else "", f"{name}: {place}"])
    for number, (name, place) in enumerate(sorted(checked.missing_inputs.items())):
        where = f"it is not at {place}" if place else "its place is not known"
        rows.append(["inputs" if not number and not checked.inputs else "", f"{name}: not checked, {where} (--input PATH)"])
    if checked.replay is not None:
        rows += _replay(checked.replay)
    if report is not None and report.head is not None:
        rows.append(["newest", noted(report.head)])
    lines = [f"{style.paint('bold', checked.dataset)}: {state}{problems}", *(f"  {line}" for line in table(rows, "ll"))]
    if report is not None and report.head is not None and report.is_clean:
        lines += [
            "",
            "Note the newest entry elsewhere: `--noted SEQ:HASH` then shows whether all of the ledger was written anew.",
        ]
    return "\n".join(lines)


def verify_json(checked: Checked) -> dict[str, Any]:
    """The same as plain data, with the problems; `v` is the version of the form."""
    checked = without_secrets(checked)
    report = checked.report
    return {
        "v": VERSION,
        "ok": not checked.problems,
        "dataset": checked.dataset,
        "entries": None if report is None else report.entries,
        "rows": None if report is None else report.rows,
        "files": report.files if report is not None and checked.files else None,
        "run_folder": _run_folder_json(checked.run_folder),
        "sinks": _sinks_json(checked.sinks),
        "inputs": dict(checked.inputs),
        "missing_inputs": dict(checked.missing_inputs),
        "newest": None if report is None or report.head is None else noted(report.head),
        "replay": None if checked.replay is None else _replay_json(checked.replay),
        "problems": [single for problem in checked.problems for single in error_json(problem)],
    }


def _sinks(checked: Checked) -> list[list[str]]:
    """Return the rows of tables, databases and logs."""
    if checked.sinks is None:
        return [] if checked.report is not None else [["tables", "not looked at: name the application with --app, or --trust"]]
    if isinstance(checked.sinks, str):
        return [["tables", f"not looked at: {checked.sinks}"]]
    rows: list[list[str]] = []
    for check in checked.sinks:
        if check.problem is not None:
            state = "does not fit the run folder, or was not read"
        elif check.window is None:
            state = "not compared: its sink keeps no marks"
        else:
            state = f"window {check.window} is its newest, as decided" if check.window >= 0 else "no window yet"
        rows.append(["tables" if not rows else "", f"{check.sink}: {check.store}: {state}"])
    return rows


def _sinks_json(checks: tuple[SinkCheck, ...] | str | None) -> Any:
    if isinstance(checks, str):
        return {"not_checked": checks}
    return checks and [{"sink": c.sink, "store": c.store, "window": c.window, "ok": c.problem is None} for c in checks]


def _replay(report: ReplayReport) -> list[list[str]]:
    rows = []
    if report.windows:
        rows.append(["replayed", f"{counted(report.windows, 'window')}, {counted(report.rows, 'row')}: as they were committed"])
    reasons: dict[str, list[int]] = {}
    for window, error in report.left_out:
        reasons.setdefault(visible(error.message().partition("\n")[0]), []).append(window)
    for reason, windows in reasons.items():
        which = f"window {windows[0]}" if len(windows) == 1 else f"{len(windows):,} windows (the last is {max(windows)})"
        rows.append(["not replayed", f"{which}: {reason}"])
    return rows


def _run_folder_json(checked: FolderReport | str | None) -> dict[str, Any] | None:
    if isinstance(checked, FolderReport):
        return {
            "path": checked.folder,
            "records": checked.records,
            "undecided": list(checked.undecided),
            "rejected": [{"window": each.window, "rows": each.rows} for each in checked.rejected],
        }
    return None if checked is None else {"not_checked": checked}


def _replay_json(report: ReplayReport) -> dict[str, Any]:
    left_out = [{"window": window, **single} for window, error in report.left_out for single in error_json(error)]
    return {"windows": report.windows, "rows": report.rows, "left_out": left_out}


def noted(ref: EntryRef) -> str:
    """An entry as `--noted` takes it."""
    return f"{ref.seq}:{ref.hash}"
