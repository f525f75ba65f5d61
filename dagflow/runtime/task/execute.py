"""One task of one window as every runner executes it: its program runs, its report is published."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import pickle
import time
from collections import Counter
from collections.abc import Collection
from typing import Any

import attrs

from dagflow.logs import within
from dagflow.runtime.exchange.channels import TaskChannels
from dagflow.runtime.garbage import few_collections
from dagflow.runtime.live.task import LiveTask
from dagflow.runtime.rebalancing.forms import open_work
from dagflow.runtime.rebalancing.ownership_log import AttemptFenced
from dagflow.runtime.run_folder.reports import OperatorFigures, TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.errors import OperatorFailed
from dagflow.runtime.stage.failure import describe
from dagflow.runtime.stage.node import operator_at_work
from dagflow.runtime.stage.outcome import TaskOutcome, TimesByPurpose
from dagflow.runtime.stage.program import TaskSpec
from dagflow.runtime.stage.task_time import TaskTime
from dagflow.runtime.task.attempt_files import AttemptFiles
from dagflow.runtime.task.crash_marker import open_crash_marker
from dagflow.runtime.task.flow import Flow, failure_of, run_flow
from dagflow.state.task_states import MapCache, TaskStates

MAPS = MapCache()
"""The maps of keyed operators that this process keeps from one window to the next."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt


def execute(
    program: bytes, spec: TaskSpec, log: WindowLog, attempt: str, again: bool = False, channels: TaskChannels | None = None
) -> TaskOutcome:
    """Run a task and publish its report, create-if-absent. An error of user code comes back in the outcome.

    `attempt` is a name that no other attempt of any task has within this epoch. `again`: the runner has tried the task before.
    `channels`: the rows of exchanges.
    """
    started, task_time = time.time(), TaskTime()
    files = AttemptFiles(spec.window, spec.epoch, f"{spec.name}-{attempt}", spec.options.durable, spec.options.base)
    crash_marker = open_crash_marker(log, spec) if again or spec.trace_crash else None
    try:
        with (
            logging_in(spec),
            open_work(spec, log, attempt, again) as work,
            few_collections(),
            LiveTask(spec, log, attempt, task_time) as live,
        ):
            if work.previous_report is not None:  # an earlier attempt has done it all
                report = work.previous_report
                if channels is not None:  # but what it sent is lost, or Spark would not ask again
                    run_flow(program, work.repeated(), files, channels=channels)
                    files.abandon()
            else:
                states = TaskStates(log.store, spec.options.durable, spec.window, spec.partition, spec.keys, spec.start, MAPS)
                flow = run_flow(
                    program,
                    spec,
                    files,
                    states=states,
                    crash_marker=crash_marker,
                    work=work,
                    channels=channels,
                    stages=True,
                    time=task_time,
                    live=live,
                )
                with task_time.charging(task_time.storing):
                    report = work.publish(_report(flow, spec, files, states=states.save(), parts=work.parts()))
    except BaseException as error:
        files.abandon()
        if isinstance(error, AttemptFenced):
            raise RuntimeError(f"another attempt of task {spec.name} has begun, and takes its place") from error
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        return TaskOutcome(task=spec.name, attempt=attempt, started=started, ended=time.time(), error=failure_of(error))
    finally:
        if crash_marker is not None:
            crash_marker.leave()
    figures = [report.operators[name] for name in work.operators if name in report.operators]
    records = sum(head.counters.get("records", head.records_out) for head in figures)  # a reader may emit its blocks too
    return TaskOutcome(
        task=spec.name,
        attempt=attempt,
        started=started,
        ended=time.time(),
        records=records,
        records_in=sum(head.records_in for head in figures),
        parts=len(report.parts),
        counters=dict(sum((Counter(head.counters) for head in figures), Counter())),
        end_stats=work.end_stats(),
        has_left=work.has_left(report),
        is_retry=again,
        stage=spec.stage,
        partition=spec.partition,
        times=_times(task_time, report, work.operators if spec.layout.level == 0 else ()),
        operators={name: _figures(figures) for name, figures in report.operators.items()},
    )


def _times(time: TaskTime, report: TaskReport, readers: Collection[str]) -> TimesByPurpose:
    """Return the time of a task by purpose. `readers`: the operators that got its work items."""
    writers = {file.operator for file in report.files} | set(report.staged)
    total = time.total()
    read = time.loading.seconds + sum(report.operators[name].seconds for name in readers if name in report.operators)
    write = time.storing.seconds + sum(report.operators[name].seconds for name in writers - set(readers))
    wait = time.waiting.seconds
    compute = max(0.0, total - read - write - wait)
    return TimesByPurpose(read=round(read, 4), compute=round(compute, 4), write=round(write, 4), wait=round(wait, 4))


def _figures(figures: OperatorFigures) -> dict[str, float]:
    return {
        "records_in": figures.records_in,
        "records_out": figures.records_out,
        "errors": figures.errors,
        "seconds": round(figures.seconds, 4),
    }


def logging_in(spec: TaskSpec) -> contextlib.AbstractContextManager[None]:
    """Log from a task while this lasts."""
    return within(run=spec.options.run, window=spec.window, task=spec.name, operator=None, at_work=operator_at_work)


def outcome_bytes(outcome: TaskOutcome) -> bytes:
    """Pickle an outcome for the driver. Errors of user code may be of classes that came by value, or may not pickle at all."""
    if outcome.error is None:
        return pickle.dumps(outcome)
    from dagflow.runtime.stage.by_value import dumps

    try:
        return dumps(outcome)
    except Exception:  # noqa: BLE001  # picklers raise anything
        failed = OperatorFailed(operator="(unknown)", doing="a task", error=describe(outcome.error))
        return pickle.dumps(attrs.evolve(outcome, error=failed))


def _report(flow: Flow, spec: TaskSpec, files: AttemptFiles, **more: Any) -> TaskReport:
    figures, notes = flow.figures(), flow.notes()
    return TaskReport(
        task=spec.name,
        items=len(spec.work.items),
        operators=figures,
        files=files.finish(),
        notes=notes,
        exchanges=flow.exchanges(),
        event_times=flow.event_times(),
        held=flow.held(),
        staged=flow.staged,
        **more,
    )


@functools.cache
def keep_memory() -> None:
    """Tell glibc to keep the memory that a chunk has used for the next one; for processes that only run tasks.

    Without it, every piece of some hundred KiB is given back to the system and fetched again, page by page: joining and encoding
    8,192 lines took 105 to 215 ns a line instead of 10.
    """
    with contextlib.suppress(OSError, AttributeError):  # no glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, 256 << 20)
        mallopt(_MMAP_THRESHOLD, 64 << 20)
