"""One task of one window as every runner executes it: run the program, publish the report."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import time
from collections.abc import Iterator

from dagflow.runtime.files import AttemptFiles
from dagflow.runtime.program import TaskOutcome, TaskSpec
from dagflow.runtime.report import TaskReport
from dagflow.runtime.task import failure_of, run_flow
from dagflow.runtime.window_log import WindowLog

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt


def execute(program: bytes, spec: TaskSpec, log: WindowLog, attempt: str) -> TaskOutcome:
    """Runs a task and publishes its report, create-if-absent. An error of user code comes back in the outcome.

    `attempt` is a name that no other attempt of any task has within this round.
    """
    started = time.time()
    files = AttemptFiles(spec.window, spec.round, f"{spec.name}-{attempt}", spec.durable, spec.base)
    try:
        with few_collections():
            flow = run_flow(program, spec, files)
        report = TaskReport(spec.name, len(spec.items), flow.figures(), files.finish(), flow.notes())
        log.report(spec.report_name, report)
    except BaseException as error:
        files.abandon()
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        return TaskOutcome(task=spec.name, attempt=attempt, started=started, ended=time.time(), error=failure_of(error))
    records = sum(figures.records_out for figures in report.operators.values())
    return TaskOutcome(task=spec.name, attempt=attempt, started=started, ended=time.time(), records=records)


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
