"""From reports to a decision, and roll forward: final names, `committed`, cleaning up. Each step may be repeated."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import attrs

from dagflow.ledger import LedgerEntry
from dagflow.model.operator.base import Operator
from dagflow.model.operator.context import Cursor
from dagflow.model.operator.sink import PublishesWindows, Sink, StagedWindow
from dagflow.runtime.rebalancing.forms import collect
from dagflow.runtime.run_folder.files import named
from dagflow.runtime.run_folder.reports import StagedFile, Steal, TaskReport, summed, summed_exchanges
from dagflow.runtime.run_folder.window_log import Decision, WindowLog, WindowPlan
from dagflow.runtime.stage.failure import abort
from dagflow.runtime.stage.parts import Part, part_of, uncovered
from dagflow.runtime.stage.program import TaskSpec
from dagflow.runtime.windows.datasets import Datasets
from dagflow.runtime.windows.directories import Directories, sweep_staging
from dagflow.runtime.windows.errors import WindowIncomplete
from dagflow.runtime.windows.event_time import latest
from dagflow.state import PartitionStates, task_states
from dagflow.state.references import states_after
from dagflow.storage import file_system, is_transient

Retry = Callable[[int, str, Callable[[], Any]], Any]


def decide(
    log: WindowLog,
    plan: WindowPlan,
    round: str,
    tasks: Iterable[TaskSpec],
    now: float,
    durable: bool = True,
    before: PartitionStates | None = None,
    last: Decision | None = None,
) -> Decision:
    """Check that the reports cover the plan exactly, and publish the decision: the commit. Raises WindowIncomplete.

    `before`: the states of partitions after the last decision, which is `last`.
    """
    tasks = tuple(tasks)
    done, steals = reports_of(log, plan, tasks)
    reports = [plan.driver, *done]
    notes: dict[str, list[str]] = {}
    for report in reports:
        for name, lines in report.notes.items():
            notes.setdefault(name, []).extend(lines)
    files = named(plan.window, reports)
    if durable:
        for folder in {file.attempt.rpartition("/")[0] for file in files}:
            above = folder.rpartition("/")[0]
            if above not in log.secured:  # the staging folder itself, which a task has made
                file_system(above).sync_folder(above)
                log.secured.add(above)
            file_system(folder).sync_folder(folder)
    return log.decide(
        Decision(
            window=plan.window,
            round=round,
            files=files,
            operators=summed(report.operators for report in reports),
            notes=notes,
            states=plan.states,
            partition_states=states_after(before or {}, [report.states for report in reports[1:]]),
            agreed=plan.agreed,
            advanced=plan.advanced,
            watermarks=plan.watermarks,
            inputs=plan.inputs,
            decided_at=now,
            parts=moved_parts(tasks, done),
            steals=steals,
            event_times=latest({} if last is None else last.event_times, *(report.event_times for report in done)),
            exchanges=summed_exchanges(report.exchanges for report in done),
            staged=_staged(reports),
        )
    )


def _staged(reports: Iterable[TaskReport]) -> dict[str, list[Any]]:
    """Collect what the tasks have staged, by sink."""
    by_sink: dict[str, list[Any]] = {}
    for report in reports:
        for name, staged in report.staged.items():
            by_sink.setdefault(name, []).append(staged)
    return by_sink


@attrs.frozen
class RollForwardResult:
    """The results of a roll-forward: the entries of ledgers by folder, and the files that were taken away since."""

    entries: list[tuple[str, LedgerEntry]]
    taken_away: list[StagedFile]


def roll_forward(
    log: WindowLog,
    decision: Decision,
    operators: dict[str, Operator],
    durable: bool,
    again: bool = False,
    datasets: Datasets | None = None,
    retry: Retry | None = None,
) -> RollForwardResult:
    """Complete what follows from a decision, as often as needed: names, entries, `committed`, `show`, sweeping, the mark of done.

    `again`: another launch may have done some of it. `retry`: runs a step, again where an error is transient.
    Raises FileLost and FileInTheWay where a decided file is not there, unless its ledger says that it was published.
    """
    window, retry = decision.window, retry or _once
    entries: dict[str, LedgerEntry] = {}
    tries = itertools.count()

    def append() -> None:
        if datasets is not None:  # a try begins with all ledgers anew, and finds what those before it have appended
            entries.update(datasets.follow(decision, log.decision_hash(window), again or next(tries) > 0))

    files = Directories(durable, again) if datasets is None else Directories(durable, again, datasets.has_window)
    application = "" if datasets is None else datasets.app_id
    sinks: list[tuple[str, PublishesWindows, StagedWindow]] = [
        ("giving its files their final names", files, StagedWindow(application, window, tuple(decision.files)))
    ]
    for name, operator in operators.items():
        if isinstance(operator, Sink):
            staged = tuple(decision.staged.get(name, ()))
            sinks.append((f"publishing it to {name!r}", _Guarded(name, operator), StagedWindow(application, window, staged)))
    for doing, sink, staged_window in sinks:
        retry(window, doing, functools.partial(_publish, sink, staged_window, again))
    retry(window, "appending its ledger entries", append)
    for name, operator in operators.items():
        _tell(name, window, "committed()", functools.partial(operator.committed, window))
        if (lines := decision.notes.get(name)) is not None:
            _tell(name, window, "show()", functools.partial(operator.show, lines, window))
    retry(window, "marking it as done", lambda: _finish(log, decision))
    for _, sink, staged_window in sinks:
        retry(window, "removing what has been staged before", functools.partial(sink.sweep, staged_window))
    return RollForwardResult(list(entries.items()), files.taken_away)


def _publish(sink: PublishesWindows, window: StagedWindow, again: bool) -> None:
    if not (again and sink.is_published(window)):
        sink.publish(window)


@attrs.frozen
class _Guarded:
    """A sink of users' code: errors that are not transient name the operator and the window."""

    name: str
    sink: Sink

    def publish(self, window: StagedWindow) -> None:
        self._call(self.sink.publish, window)

    def is_published(self, window: StagedWindow) -> bool:
        return bool(self._call(self.sink.is_published, window))

    def sweep(self, window: StagedWindow) -> None:
        self._call(self.sink.sweep, window)

    def _call(self, method: Callable[[StagedWindow], Any], window: StagedWindow) -> Any:
        try:
            return method(window)
        except Exception as error:
            if is_transient(error):
                raise
            raise abort(self.name, window.number, f"{method.__name__}()", error, None, Cursor()) from error


def _tell(operator: str, window: int, doing: str, call: Callable[[], None]) -> None:
    """Call an operator's own code. Raises Abort; a closed pipe of our output is not a failure of the operator."""
    try:
        call()
    except BrokenPipeError:
        raise
    except Exception as error:
        raise abort(operator, window, doing, error, None, Cursor()) from error


def _once(window: int, doing: str, action: Callable[[], Any]) -> Any:
    return action()


def _finish(log: WindowLog, decision: Decision) -> None:
    task_states.sweep(log.unsynced, decision.window, decision.partition_states)
    log.done(decision.window)
    log.forget({decision.window - 1})  # so the folder of reports never becomes empty, and is not removed and made again


def sweep(log: WindowLog, windows: Collection[int], folders: Iterable[str]) -> None:
    """Remove reports and attempt files of finished windows, including those that zombie attempts have left since."""
    log.forget(windows)
    sweep_staging(folders, windows)


def reports_of(log: WindowLog, plan: WindowPlan, tasks: Sequence[TaskSpec]) -> tuple[list[TaskReport], list[Steal]]:
    """Return the reports of a window's tasks if they cover its plan, each byte of each item once, and the steals among the tasks.

    Raises WindowIncomplete.
    """
    collected, steals = collect(log, tasks)
    pairs = list(zip(tasks, collected, strict=True))
    missing = tuple(t.name for t, report in pairs if report is None or report.items != len(t.work.items))
    if missing:
        raise WindowIncomplete(plan.window, missing)
    reports = [report for _, report in pairs if report is not None]
    parts: dict[str, list[Part]] = {}
    for task, report in zip(tasks, reports, strict=True):
        if task.work.moves:
            parts.setdefault(task.head, []).extend(part_of(part) for part in report.parts)
    wrong = [problem for head, read in parts.items() for problem in uncovered(read, len(plan.items[head]))]
    if wrong:
        raise WindowIncomplete(plan.window, (), tuple(wrong))
    return reports, steals


def moved_parts(tasks: Sequence[TaskSpec], reports: Sequence[TaskReport]) -> dict[str, list[list[Any]]]:
    """Return the parts read by each task that did not read exactly its assignment, by `HEAD-PARTITION`."""
    return {
        place_of(task.head, task.partition): report.parts
        for task, report in zip(tasks, reports, strict=True)
        if task.work.parts or (task.work.moves and report.parts != [[n, None, None] for n in task.work.numbers])
    }


def place_of(head: str, partition: int) -> str:
    """Return the key of a partition among the parts of a decision."""
    return f"{head}-{partition:04d}"
