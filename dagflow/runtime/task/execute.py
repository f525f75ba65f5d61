"""One task of one window as every runner executes it: run the program, publish the report."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from dagflow.model.plain import decode, encode
from dagflow.runtime.exchange.channels import Passing
from dagflow.runtime.rebalancing.ownership_log import AttemptFenced, OwnershipLog
from dagflow.runtime.rebalancing.peers import PeerView, gauge_of
from dagflow.runtime.rebalancing.stealing import StealingWork
from dagflow.runtime.rebalancing.yielding import YieldingWork, given
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import TaskSpec
from dagflow.runtime.task.attempt_files import AttemptFiles
from dagflow.runtime.task.crash_marker import Footprint, footprint
from dagflow.runtime.task.flow import Flow, failure_of, run_flow
from dagflow.state.task_states import TaskStates
from dagflow.storage import local_path

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt


def execute(
    program: bytes, spec: TaskSpec, log: WindowLog, attempt: str, again: bool = False, passing: Passing | None = None
) -> TaskOutcome:
    """Runs a task and publishes its report, create-if-absent. An error of user code comes back in the outcome.

    `attempt` is a name that no other attempt of any task has within this round. `again`: the runner has tried the task before.
    `passing`: what comes and goes over exchanges.
    """
    started = time.time()
    files = AttemptFiles(spec.window, spec.epoch, f"{spec.name}-{attempt}", spec.options.durable, spec.options.base)
    careful = footprint(log, spec) if again or spec.trace_crash else None
    heads = {item[0] for item in spec.work.items}
    ending = None
    try:
        if spec.work.shared:
            with shared_work(spec, log, attempt, again) as work:
                report = _shared(program, spec, files, work, careful, passing)
            heads |= work.operators
            ending = work.ending()
        else:
            with few_collections(), YieldingWork(spec, log.passing) if spec.work.yields else contextlib.nullcontext() as own:
                states = TaskStates(log.store, spec.options.durable, spec.window, spec.partition, spec.keys, spec.start)
                flow = run_flow(program, spec, files, states=states, footprint=careful, work=own, passing=passing, stages=True)
            report = _report(flow, spec, files, states=states.save(), parts=[] if own is None else own.parts())
            report = log.report(spec.report_name, report)
    except BaseException as error:
        files.abandon()
        if isinstance(error, AttemptFenced):
            raise RuntimeError(f"another attempt of task {spec.name} has begun, and takes its place") from error
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        return TaskOutcome(task=spec.name, attempt=attempt, started=started, ended=time.time(), error=failure_of(error))
    finally:
        if careful is not None:
            careful.leave()
    figures = [report.operators[name] for name in heads if name in report.operators]
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
        ending=ending,
        has_left=spec.work.yields and report.parts != [part.to_list() for part in given(spec)],
    )


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
        staged=flow.staged,
        **more,
    )


def _shared(
    program: bytes, spec: TaskSpec, files: AttemptFiles, work: StealingWork, careful: Footprint | None, passing: Passing | None
) -> TaskReport:
    """Runs a task whose work is shared, and reports in its log of claims."""
    if work.report_before is not None:  # an earlier attempt has done it all
        found: TaskReport = decode(work.report_before, TaskReport)
        if passing is not None:  # but what it sent is lost, or Spark would not ask again
            _send_again(program, work.again(spec, found.parts), files, passing)
        return found
    with few_collections():
        flow = run_flow(program, spec, files, footprint=careful, work=work, passing=passing, stages=True)
    report = _report(flow, spec, files, parts=work.parts())
    work.report(encode(report, spec.name))
    return report


def _send_again(program: bytes, spec: TaskSpec, files: AttemptFiles, passing: Passing) -> None:
    """Does again what a task has reported, for what it sends: the same parts of the same items in the same order."""
    with few_collections():
        run_flow(program, spec, files, passing=passing)
    files.abandon()


def shared_work(spec: TaskSpec, log: WindowLog, attempt: str, again: bool) -> StealingWork:
    """The work of a task at the logs of claims in the run folder, which is on this machine's disk or mounted there."""
    store, area = log.passing, spec.claims_area
    folder = local_path(store.url)
    assert folder is not None
    dealt = dict(zip(spec.work.numbers, spec.work.items, strict=True))
    claims = OwnershipLog(store, area, partition=spec.partition, partitions=spec.partitions, attempt=attempt, dealt=dealt)
    others = PeerView(store, folder, area, spec.slots_wanted, claims, spec.partitions)
    return StealingWork(claims, others, gauge_of(folder, area, spec.partition), spec.work.room, again)


@contextlib.contextmanager
def few_collections() -> Iterator[None]:
    """While this lasts, Python looks for garbage in cycles a hundred times less often.

    Readers make thousands of tuples for each piece, which die by themselves: with the default thresholds the collector goes
    through them again and again, which doubles the cost of a record (260 ns against 139 for making one).
    """
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@functools.cache
def keep_memory() -> None:
    """Tells glibc to keep the memory that a chunk has used for the next one; for processes that only run tasks.

    Without it, every piece of some hundred KiB is given back to the system and fetched again, page by page: joining and encoding
    8,192 lines took 105 to 215 ns a line instead of 10.
    """
    with contextlib.suppress(OSError, AttributeError):  # no glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, 256 << 20)
        mallopt(_MMAP_THRESHOLD, 64 << 20)
