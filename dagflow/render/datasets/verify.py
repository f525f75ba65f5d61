"""The result of `dagflow verify`, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.errors.shown import visible, without_secrets
from dagflow.ledger import EntryRef, VerifyReport
from dagflow.lineage.replay import ReplayReport
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
    """

    dataset: str
    report: VerifyReport
    files: bool = True
    inputs: Mapping[str, str] = attrs.field(factory=dict)
    missing_inputs: Mapping[str, str] = attrs.field(factory=dict)
    input_problems: tuple[DagflowError, ...] = ()
    replay: ReplayReport | None = None
    run_folder: FolderReport | str | None = None

    @property
    def problems(self) -> tuple[DagflowError, ...]:
        """All that is damaged, or came out differently."""
        replayed = () if self.replay is None else self.replay.problems
        return (*self.report.problems, *self.run_folder_problems, *self.input_problems, *replayed)

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
    if report.problems and all(isinstance(problem, StorageError) for problem in report.problems):
        state = style.paint("yellow", "not all of it could be read")
    elif report.is_clean:
        state = style.paint("green", "clean")
        if checked.run_folder_problems:
            state = style.paint("bold red", "clean, but not its run folder")
        elif checked.problems:
            state = style.paint("yellow", "clean, but not its inputs" if checked.input_problems else "clean, but not made again")
    problems = f", {counted(len(checked.problems), 'problem')}" if checked.problems else ""
    rows = [["entries", f"{counted_entries(report.entries)}: links and rules"], ["rows", counted(report.rows, "row")]]
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
    for number, (name, place) in enumerate(sorted(checked.inputs.items())):
        rows.append(["inputs" if not number else "", f"{name}: {place}"])
    for number, (name, place) in enumerate(sorted(checked.missing_inputs.items())):
        where = f"it is not at {place}" if place else "its place is not known"
        rows.append(["inputs" if not number and not checked.inputs else "", f"{name}: not checked, {where} (--input PATH)"])
    if checked.replay is not None:
        rows += _replay(checked.replay)
    if report.head is not None:
        rows.append(["newest", noted(report.head)])
    lines = [f"{style.paint('bold', checked.dataset)}: {state}{problems}", *(f"  {line}" for line in table(rows, "ll"))]
    if report.head is not None and report.is_clean:
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
        "entries": report.entries,
        "rows": report.rows,
        "files": report.files if checked.files else None,
        "run_folder": _run_folder_json(checked.run_folder),
        "inputs": dict(checked.inputs),
        "missing_inputs": dict(checked.missing_inputs),
        "newest": None if report.head is None else noted(report.head),
        "replay": None if checked.replay is None else _replay_json(checked.replay),
        "problems": [single for problem in checked.problems for single in error_json(problem)],
    }


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
