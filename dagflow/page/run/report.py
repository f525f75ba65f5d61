"""The report of a launch, from its events and the decisions of its windows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from dagflow.errors import DagflowError
from dagflow.page.errors import NoRun
from dagflow.page.run.data import RunReader
from dagflow.page.run.live import EventFiles
from dagflow.page.run.place import find_run
from dagflow.runtime.events import WindowDecided
from dagflow.runtime.run_folder.reports import OperatorFigures
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.runtime.run_report import ReaderFigures, RunReport
from dagflow.runtime.run_view import RunView
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
    report = RunReport(application=run["application"] or base_name(where.output), status="killed", operators=operators)
    view, counted = RunView(report, launch), set[int]()
    for event in EventFiles(where.run_folder).events(launch):
        view(event)
        if isinstance(event, WindowDecided):
            _count(report, log, event.window, event)
            counted.add(event.window)
    for window, name in zip(windows["window"], names, strict=True):
        if name == launch and window not in counted:
            _count(report, log, window)
    if launch == run["launch"] or run["launch"] is None:
        report.status = run["status"]
        report.seconds = report.seconds or max(0.0, (run["last"] or 0.0) - (run["started"] or run["last"] or 0.0))
        if run["error"] is not None:
            report.error, report.error_code = _placed(run["error"]), run["error"]["code"]
    began = {each["launch"]: each["at"] or 0.0 for each in data["launches"]}
    report.later_launches = sum(at > began.get(launch, at) for at in began.values())
    report.run_folder, report.outputs = where.run_folder, run["outputs"]
    if report.status != "running" and launch == run["launch"]:
        view.show_uncommitted()
    if report.windows:
        report.readers = dict(_readers(reader.plan, data["graph"], view.readers))
    report.warnings += [f"{each['what']}: {each['text']}" for each in data["problems"]]
    return report


def _count(report: RunReport, log: WindowLog, window: int, event: WindowDecided | None = None) -> None:
    """Add a decided window: its decision, or where the run folder has it no longer, the event's figures."""
    decision = None
    with suppress(DagflowError):  # a damaged one is a warning
        decision = log.read_decision(window, alone=True)
    if decision is not None:
        report.count_decision(decision, report.operators)
    elif event is not None:
        operators = {name: OperatorFigures.of_event(own) for name, own in event.operators.items()}
        report.count(window, operators, event.files, event.bytes)


def _readers(
    plan: WindowPlan | None, graph: dict[str, Any] | None, changed: dict[str, ReaderFigures]
) -> Iterator[tuple[str, ReaderFigures]]:
    """Yield the numbers of readers: of the newest plan, and of the changes before it. The bounds are those of the stages."""
    bounds = {} if graph is None else {stage["head"]: (stage["min_readers"], stage["max_readers"]) for stage in graph["stages"]}
    for name, now in () if plan is None else plan.partitions.items():
        own = changed.get(name, ReaderFigures(now, now, now, now, now))
        lowest, highest = min(now, own.lowest), max(now, own.highest)
        least, most = bounds.get(name, (None, None))
        yield name, ReaderFigures(least or lowest, now, most or highest, lowest, highest, own.changes, own.counters)


def _placed(error: dict[str, Any]) -> str:
    """Return the text of an error with its operator and window, which not every message names, and with its remedy."""
    text, operator, window = str(error["text"]), error["operator"], error["window"]
    if operator is not None and repr(operator) not in text:
        text += f"\n  operator {operator!r}" + (f", window {window}" if window is not None else "")
    return f"{text}\n  help: {error['remedy']}" if error["remedy"] else text
