"""From reports to a decision, and roll forward: final names, `committed`, cleaning up. Each step may be repeated."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from dagflow.errors import RunError
from dagflow.ledger import LedgerEntry
from dagflow.logs import within
from dagflow.model.operator.base import Operator
from dagflow.model.operator.context import Cursor
from dagflow.model.operator.protocols import RejectLimit
from dagflow.model.operator.sink import PublishesWindows, Sink, StagedWindow
from dagflow.planning.partial_aggregation import PARTIAL
from dagflow.runtime.events import Event, Warned
from dagflow.runtime.garbage import few_collections
from dagflow.runtime.rebalancing.forms import collect
from dagflow.runtime.run_folder.errors import ExpectationResult
from dagflow.runtime.run_folder.files import Replaces, named
from dagflow.runtime.run_folder.layout import swept_after
from dagflow.runtime.run_folder.reports import (
    SAMPLES,
    ExchangeFigures,
    OperatorFigures,
    StagedFile,
    Steal,
    TaskReport,
    summed,
    summed_exchanges,
)
from dagflow.runtime.run_folder.window_log import Decision, WindowLog, WindowPlan
from dagflow.runtime.run_report import RunReport
from dagflow.runtime.stage.failure import Abort, abort
from dagflow.runtime.stage.parts import uncovered
from dagflow.runtime.stage.program import TaskSpec
from dagflow.runtime.windows.datasets import Datasets
from dagflow.runtime.windows.directories import Directories, sweep_staging, sweep_uploads
from dagflow.runtime.windows.emission import held_after
from dagflow.runtime.windows.errors import ExpectationFailed, WindowIncomplete
from dagflow.runtime.windows.event_time import latest
from dagflow.runtime.windows.rejection import rejection_of, remedy
from dagflow.runtime.windows.sinks import GuardedSink, Retry, once, staged_for
from dagflow.state import PartitionStates, task_states
from dagflow.state.references import states_after
from dagflow.storage import file_system


@few_collections()
def decide(
    log: WindowLog,
    plan: WindowPlan,
    round: str,
    tasks: Iterable[TaskSpec],
    now: float,
    durable: bool = True,
    before: PartitionStates | None = None,
    last: Decision | None = None,
    limits: Mapping[str, Sequence[RejectLimit]] | None = None,
    replacing: Mapping[str, Replaces] | None = None,
    operators: Mapping[str, Operator] | None = None,
    application: str = "",
) -> Decision:
    """Check that the reports cover the plan exactly, and publish the decision: the commit.

    `before`: the states of partitions after the last decision, which is `last`; `limits`: of rejected records, by operator;
    `replacing`: the operators whose files replace those of earlier windows; `operators`: the driver's half of each, whose sinks
    may refuse the window (`Sink.check_window`).

    Raises WindowIncomplete, and ExpectationFailed if more records were rejected than a limit allows.
    """
    tasks = tuple(tasks)
    done, steals = reports_of(log, plan, tasks)
    reports = [plan.driver, *done]
    notes: dict[str, list[str]] = {}
    for report in reports:
        for name, lines in report.notes.items():
            notes.setdefault(name, []).extend(lines)
    figures = summed(report.operators for report in reports)
    exchanges = summed_exchanges(report.exchanges for report in done)
    staged = _staged(reports)
    expectations = verdicts(plan.window, limits or {}, figures, exchanges)
    for name, parts in staged.items():
        if isinstance(sink := (operators or {}).get(name), Sink):
            GuardedSink(name, sink).check_window(StagedWindow(application, plan.window, tuple(parts), name))
    files = named(plan.window, reports, replacing)
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
            operators=figures,
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
            exchanges=exchanges,
            staged=staged,
            expectations=expectations,
            held=held_after(last, tasks[0].facts.withheld if tasks else (), done),
            last_staged={**({} if last is None else last.last_staged), **dict.fromkeys(staged, plan.window)},
        )
    )


def verdicts(
    window: int,
    limits: Mapping[str, Sequence[RejectLimit]],
    figures: Mapping[str, OperatorFigures],
    exchanges: Mapping[str, ExchangeFigures],
) -> list[ExpectationResult]:
    """Compare the rejected records of a window with the limits of their operators. Raises ExpectationFailed for a breach."""
    results: list[ExpectationResult] = []
    failed: list[tuple[ExpectationResult, RejectLimit]] = []
    samples: dict[str, tuple[str, ...]] = {}
    for operator, each in limits.items():
        rejected, records, shown = _rejects(operator, figures, exchanges)
        samples[operator] = tuple(shown)
        for limit in each:
            is_breached = limit.is_breached(rejected, records)
            results.append(
                ExpectationResult(
                    operator=operator,
                    name=limit.name,
                    records=records,
                    rejected=rejected,
                    max_share=limit.max_share,
                    max_count=limit.max_count,
                    status="ok" if not is_breached else "warned" if limit.on_breach == "warn" else "failed",
                )
            )
            if results[-1].status == "failed":
                failed.append((results[-1], limit))
    if failed:
        raise ExpectationFailed(window, tuple(result for result, _ in failed), samples, failed[0][1].property)
    return results


def _rejects(
    operator: str, figures: Mapping[str, OperatorFigures], exchanges: Mapping[str, ExchangeFigures]
) -> tuple[int, int, list[str]]:
    """Return how many records an operator has rejected in a window, of how many, and samples of them.

    Records that were combined before they came to it count one by one. A reader's records count, not its items.
    """
    own = figures.get(operator, OperatorFigures())
    partial = figures.get(f"{operator}.{PARTIAL}", OperatorFigures())
    rejected = own.errors + partial.errors
    if "records" in own.counters:
        records = own.counters["records"] + own.counters.get("dropped", 0) + rejected
    else:
        combined = sum(each.before - each.records for port, each in exchanges.items() if port.rpartition(".")[0] == operator)
        records = own.records_in + combined + partial.records_in - partial.records_out
    return rejected, max(records, rejected), (partial.samples + own.samples)[:SAMPLES]


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
    window, retry = decision.window, retry or once
    entries: dict[str, LedgerEntry] = {}
    tries = itertools.count()

    def append() -> None:
        if datasets is not None:  # a try begins with all ledgers anew, and finds what those before it have appended
            entries.update(datasets.follow(decision, log.decision_hash(window), again or next(tries) > 0))

    files = Directories(durable, again, datasets)
    application = "" if datasets is None else datasets.app_id
    rejection = log.read_rejection(window) if again else None
    rejected = () if rejection is None else rejection.rows
    sinks: list[tuple[str, PublishesWindows, StagedWindow]] = [
        ("giving its files their final names", files, StagedWindow(application, window, tuple(decision.files)))
    ]
    for name, operator in operators.items():
        if isinstance(operator, Sink):
            staged_window = staged_for(name, decision, application, log)
            sinks.append((f"publishing it to {name!r}", GuardedSink(name, operator), staged_window))
    for doing, sink, staged_window in sinks:
        is_rejected = staged_window.sink in rejected
        what = attrs.evolve(staged_window, staged=()) if is_rejected else staged_window  # the sink gets to know the number
        try:
            retry(window, doing, functools.partial(_publish, sink, what, again))
        except (Abort, RunError) as error:
            cause = error.error if isinstance(error, Abort) else error
            if what.staged and isinstance(sink, GuardedSink) and isinstance(cause, RunError):
                cause.add_note(remedy(rejection_of(log, decision, operators, application)))
            raise
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


def _tell(operator: str, window: int, doing: str, call: Callable[[], None]) -> None:
    """Call an operator's own code. Raises Abort; a closed pipe of our output is not a failure of the operator."""
    try:
        with within(operator=operator, window=window):
            call()
    except BrokenPipeError:
        raise
    except Exception as error:
        raise abort(operator, window, doing, error, None, Cursor()) from error


def _finish(log: WindowLog, decision: Decision) -> None:
    windows = swept_after(log.unsynced.url, decision.window)
    task_states.sweep_attempts(log.unsynced, decision.window, decision.partition_states, lists=bool(windows))
    log.done(decision.window)
    log.forget(windows)  # not of this one: so the folder of reports never becomes empty, and is not removed and made again


def sweep(log: WindowLog, windows: Collection[int], folders: Collection[str]) -> str | None:
    """Remove reports and attempt files of finished windows, including those that zombie attempts have left since.

    Return a warning where a store does not let unfinished uploads be removed.
    """
    log.forget(windows)
    sweep_staging(folders, windows)
    return sweep_uploads(folders, windows)


def sweep_done(log: WindowLog, done: Sequence[int], report: RunReport, send: Callable[[Event], None]) -> None:
    """Do what `sweep` does for all windows that are done. Its warning is sent once in a launch."""
    warning = sweep(log, range(done[-1] + 1 if done else 0), report.outputs)  # marks of old windows are not kept
    if warning is not None and warning not in report.warnings:
        send(Warned(text=warning))


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
    parts: dict[str, list[list[Any]]] = {}
    for task, report in zip(tasks, reports, strict=True):
        if task.work.moves:
            parts.setdefault(task.head, []).extend(report.parts)
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
