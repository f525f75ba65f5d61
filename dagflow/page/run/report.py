"""The report of a launch, from its events and the decisions of its windows."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.ledger import EntryRef
from dagflow.page.errors import NoRun
from dagflow.page.run.data import RunReader
from dagflow.page.run.live import EventFiles, as_figures
from dagflow.page.run.place import find_run
from dagflow.runtime.events import (
    EntryAppended,
    Event,
    ReadersChanged,
    RunEnded,
    RunStarted,
    Stolen,
    TaskEnded,
    WindowDecided,
    WindowStarted,
    event_of,
)
from dagflow.runtime.run_folder.reports import OperatorFigures
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.runtime.run_report import ReaderFigures, RunReport, SinkFigures
from dagflow.runtime.stage.outcome import TaskOutcome, TimesByPurpose
from dagflow.storage import base_name, explained, open_store


def run_report(place: str) -> RunReport:
    """Return the report of a run's newest launch; where that found nothing new, of the newest one that committed a window.

    Raises NoRun, StorageError.
    """
    with explained(place, "reading the run"):
        return _report(place)


def _report(place: str) -> RunReport:
    where = find_run(place)
    if where.run_folder is None:
        raise NoRun(where.output, (where.why_not or "").partition("\n")[0])
    reader = RunReader(place)
    data = reader.data(rows=False)
    run, windows = data["run"], data["windows"]
    names = [windows["launches"][number] for number in windows["launch"]]
    launch = run["launch"] or (names[-1] if names else "")
    committed = {*names, *(each["launch"] for each in data["launches"] if each["windows"])}
    if launch not in committed and run["status"] == "done" and committed:
        launch = names[-1] if names else max(committed)
    log = WindowLog(open_store(where.run_folder, durable=False))
    names_of_operators = [node["name"] for node in data["graph"]["nodes"]] if data["graph"] is not None else data["operators"]
    operators = {name: OperatorFigures() for name in names_of_operators}
    first = RunReport(application=run["application"] or base_name(where.output), status="killed", operators=operators)
    fold = _Fold(first, log, set(operators))
    for each in EventFiles(where.run_folder).events(launch):
        if (event := event_of(each)) is not None:
            fold.add(event)
    for window, name in zip(windows["window"], names, strict=True):
        if name == launch:
            fold.count(window)
    report = fold.report
    if launch == run["launch"] or run["launch"] is None:
        report.status = run["status"]
        report.seconds = report.seconds or max(0.0, (run["last"] or 0.0) - (run["started"] or run["last"] or 0.0))
        if run["error"] is not None:
            report.error, report.error_code = _placed(run["error"]), run["error"]["code"]
    began = {each["launch"]: each["at"] or 0.0 for each in data["launches"]}
    report.later_launches = sum(at > began.get(launch, at) for at in began.values())
    report.run_folder, report.outputs = where.run_folder, run["outputs"]
    uncommitted = {name: as_figures(each) for name, each in data["live"].get("operators", {}).items() if name in operators}
    if report.status != "running" and launch == run["launch"]:
        report.show_uncommitted(uncommitted)
    if report.windows:
        report.readers = dict(_readers(reader.plan, data["graph"], fold.changes))
    report.warnings += [f"{each['what']}: {each['text']}" for each in data["problems"]]
    return report


@attrs.define
class _Fold:
    """A report, and what its events say until the window that they belong to is decided."""

    report: RunReport
    log: WindowLog
    operators: set[str]
    changes: dict[str, list[ReadersChanged]] = attrs.field(factory=lambda: defaultdict(list))
    _tasks: dict[int, list[TaskOutcome]] = attrs.field(factory=lambda: defaultdict(list))
    _counted: set[int] = attrs.field(factory=set)

    def add(self, event: Event) -> None:
        """Add an event."""
        report = self.report
        report.note(event)
        if isinstance(event, RunStarted):
            report.application, report.runner, report.ui = event.application, event.runner, event.ui
            report.sinks = {name: SinkFigures(destination) for name, destination in event.sinks.items()}
        elif isinstance(event, RunEnded):
            report.status, report.seconds, report.rebalancing = event.status, event.seconds, event.rebalancing
        elif isinstance(event, WindowStarted):
            self._tasks[event.window] = []  # of the attempt that counts
        elif isinstance(event, TaskEnded):
            times = TimesByPurpose(event.read, event.compute, event.write, event.wait)
            outcome = TaskOutcome(
                task=event.task, attempt=event.attempt, started=event.started, ended=event.ended, stage=event.stage, times=times
            )
            self._tasks[event.window].append(outcome)
        elif isinstance(event, WindowDecided):
            report.count_tasks(event.window, self._tasks.pop(event.window, []))
            self.count(event.window, event)
        elif isinstance(event, ReadersChanged):
            self.changes[event.operator].append(event)
        elif isinstance(event, Stolen):
            report.rebalanced += 1
            report.rebalanced_bytes += event.bytes
        elif isinstance(event, EntryAppended):
            report.ledgers[event.dataset] = str(EntryRef(event.entry, event.hash))

    def count(self, window: int, event: WindowDecided | None = None) -> None:
        """Add a window once: its decision, or where the run folder has it no longer, the event's figures."""
        if window in self._counted:
            return
        decision = None
        with suppress(DagflowError):  # a damaged one is a warning
            decision = self.log.read_decision(window, alone=True)
        if decision is not None:
            self.report.count(decision, self.operators)
        elif event is not None:
            self._count(event)
        else:
            return
        self._counted.add(window)

    def _count(self, event: WindowDecided) -> None:
        report = self.report
        report.windows += 1
        report.first_window = event.window if report.first_window is None else report.first_window
        report.files += event.files
        report.bytes_written += event.bytes
        operators = {name: as_figures(figures) for name, figures in event.operators.items()}
        for name, own in operators.items():
            report.operators.setdefault(name, OperatorFigures()).add(own)
        report.count_rows(operators)


def _readers(
    plan: WindowPlan | None, graph: dict[str, Any] | None, changes: dict[str, list[ReadersChanged]]
) -> list[tuple[str, ReaderFigures]]:
    """Return the numbers of readers: of the newest plan, and of the changes before it. The bounds are those of the stages."""
    bounds = {} if graph is None else {stage["head"]: (stage["min_readers"], stage["max_readers"]) for stage in graph["stages"]}
    figures = []
    for name, now in () if plan is None else plan.partitions.items():
        numbers = [now, *(number for change in changes.get(name, ()) for number in (change.before, change.readers))]
        lowest, highest = min(numbers), max(numbers)
        least, most = bounds.get(name, (None, None))
        newest = changes[name][-1].counters if changes.get(name) else {}
        figures.append((name, ReaderFigures(least or lowest, now, most or highest, lowest, highest, len(numbers) // 2, newest)))
    return figures


def _placed(error: dict[str, Any]) -> str:
    """Return the text of an error with its operator and window, which not every message names, and with its remedy."""
    text, operator, window = str(error["text"]), error["operator"], error["window"]
    if operator is not None and repr(operator) not in text:
        text += f"\n  operator {operator!r}" + (f", window {window}" if window is not None else "")
    return f"{text}\n  help: {error['remedy']}" if error["remedy"] else text
