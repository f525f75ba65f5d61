"""A runner whose tasks work side by side, in threads of this process, and are tried again when they die."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from dagflow.runtime.execute import execute
from dagflow.runtime.program import Job, TaskOutcome, TaskSpec
from dagflow.runtime.runner import TasksDied
from dagflow.runtime.window_log import WindowLog

ATTEMPTS = 4


class Killed(KeyboardInterrupt):
    """The attempt is dead: it does nothing any more."""


class ThreadRunner:
    """Runs tasks in threads. `sharing`: why they cannot share their work."""

    name = "threads"
    in_process = False
    grows = False
    ui = None

    def __init__(self, slots: int = 2, sharing: str | None = None) -> None:
        self.slots = slots
        self.sharing = sharing
        self.deaths = 0
        self._names = itertools.count(1)
        self._pool = ThreadPoolExecutor(slots)

    def open(self, application: str, run_folder: str) -> None:
        """Nothing to get ready."""

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        """Begins the tasks in their order, as slots are free."""
        log = WindowLog.open(job.run_folder, job.durable)
        running = [self._pool.submit(self._attempts, job.programs[spec.stage], spec, log) for spec in job.tasks]
        future: Future[list[TaskOutcome]] = Future()

        def collect() -> None:
            try:
                future.set_result([each.result() for each in running])
            except BaseException as error:  # noqa: BLE001
                future.set_exception(TasksDied(repr(error)))

        threading.Thread(target=collect, daemon=True).start()
        return future

    def _attempts(self, program: bytes, spec: TaskSpec, log: WindowLog) -> TaskOutcome:
        for attempt in range(ATTEMPTS):
            try:
                return execute(program, spec, log, str(next(self._names)), again=attempt > 0)
            except Killed:
                self.deaths += 1
        raise RuntimeError(f"{spec.name} died {ATTEMPTS} times")

    def cancel(self) -> None:
        """Tasks run to their ends."""

    def close(self) -> None:
        """Waits for all."""
        self._pool.shutdown()
