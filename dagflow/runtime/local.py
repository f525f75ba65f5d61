"""The in-process runner: every task in the calling thread, so that a breakpoint works. No JVM."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from dagflow.runtime.execute import execute
from dagflow.runtime.program import Job, TaskOutcome
from dagflow.runtime.window_log import WindowLog


class LocalRunner:
    """Runs tasks one after the other."""

    name = "local"
    in_process = True
    sharing: str | None = "tasks run one after the other"
    slots = 1
    grows = False
    ui = None

    def __init__(self) -> None:
        self._attempts = 0
        self.stopping: Callable[[], bool] = lambda: False  # asked between tasks

    def open(self, application: str, run_folder: str) -> None:
        """Nothing to get ready."""

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        """Runs all tasks before it returns; stops at the first that fails."""
        log = WindowLog.open(job.run_folder, job.durable)
        outcomes = []
        for spec in job.tasks:
            if self.stopping():
                break
            self._attempts += 1
            outcomes.append(execute(job.programs[spec.stage], spec, log, str(self._attempts)))
            if outcomes[-1].error is not None:
                break
        future: Future[list[TaskOutcome]] = Future()
        future.set_result(outcomes)
        return future

    def cancel(self) -> None:
        """Nothing runs between calls."""

    def close(self) -> None:
        """Nothing to let go of."""
