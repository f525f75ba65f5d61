"""The in-process runner: every task in the calling thread, so that a breakpoint works. No JVM."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future

import attrs

from dagflow.local.spool import Spool, TransformRunner, transform_runner
from dagflow.runtime.rebalancing.background import BACKGROUND
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job, TaskSpec
from dagflow.runtime.task.execute import execute


@attrs.frozen(eq=False)
class _Look:
    runner: LocalRunner
    every: float = 0.25  # see `BackgroundTask`

    def tick(self) -> None:
        with contextlib.suppress(Exception):  # nothing that counts depends on it
            self.runner.looking()


class LocalRunner:
    """Runs tasks one after the other."""

    name = "local"
    in_process = True
    rebalancing_obstacle: str | None = "tasks run one after the other"
    slots = 1
    grows = False
    warnings = ()
    ui = None
    address = None

    def __init__(self) -> None:
        self._attempts = 0
        self._here: TransformRunner | None = None  # a local Spark, where an application has DataFrame transforms
        self.stopping: Callable[[], bool] = lambda: False  # asked between tasks
        self.looking: Callable[[], None] = lambda: None  # called while tasks run, by another thread

    def open(self, application: str, run_folder: str) -> None:
        """Nothing to get ready."""

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        """Runs all tasks before it returns, one level after the other; stops at the first that fails."""
        future: Future[list[TaskOutcome]] = Future()
        try:
            with BACKGROUND.looking_after(_Look(self)):
                future.set_result(self._ran(job))
        except Exception as error:  # noqa: BLE001  # of a DataFrame transform: raised where the result is awaited, as Spark's are
            future.set_exception(error)
        return future

    def _ran(self, job: Job) -> list[TaskOutcome]:
        log = WindowLog.open(job.run_folder, job.durable)
        outcomes: list[TaskOutcome] = []
        with Spool() as spool:
            for spec in job.tasks:
                if self.stopping():
                    break
                self._attempts += 1
                if spec.partition == 0 and spec.stage in job.transforms:
                    self._here = self._here or transform_runner()
                    spool.through(job.transforms[spec.stage], self._here)
                outcomes.append(self._run(job, spec, log, spool))
                if outcomes[-1].error is not None:
                    break
        return outcomes

    def _run(self, job: Job, spec: TaskSpec, log: WindowLog, spool: Spool) -> TaskOutcome:
        channels = spool.channels(spec, job.levels) if job.levels else None
        return execute(job.programs[spec.stage], spec, log, str(self._attempts), channels=channels)

    def cancel(self) -> None:
        """Nothing runs between calls."""

    def close(self) -> None:
        """Ends the Spark that DataFrame transforms have needed."""
        if self._here is not None:
            self._here.close()
            self._here = None
