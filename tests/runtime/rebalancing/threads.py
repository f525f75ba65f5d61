"""Runners whose tasks work side by side, in threads of this process: they die and are tried again, or live on as zombies."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.runner import TasksDied
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job, TaskSpec
from dagflow.runtime.task.execute import execute

ATTEMPTS = 4


class Killed(KeyboardInterrupt):
    """The attempt is dead: it does nothing any more."""


class ThreadRunner:
    """Runs tasks in threads. `rebalancing_obstacle`: why they cannot share their work."""

    name = "threads"
    in_process = False
    grows = False
    warnings = ()
    ui = None
    address = None

    def __init__(self, slots: int = 2, rebalancing_obstacle: str | None = None) -> None:
        self.slots = slots
        self.rebalancing_obstacle = rebalancing_obstacle
        self.deaths = 0
        self.at_work: dict[int, str] = {}
        """The names of the tasks, by thread."""
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
            except BaseException as error:  # noqa: BLE001  # whatever ends it is told to the test
                future.set_exception(TasksDied(repr(error)))

        threading.Thread(target=collect, daemon=True).start()
        return future

    def _attempts(self, program: bytes, spec: TaskSpec, log: WindowLog) -> TaskOutcome:
        self.at_work[threading.get_ident()] = spec.name
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


class ZombieRunner(ThreadRunner):
    """Another attempt of a task begins when the first one comes to a step, once; both go on then.

    Set `steps.hook` to `at`. The thread that gives works for all tasks: at its steps, it is `giver` that is begun again.
    """

    GIVING = ("asked", "narrowed", "after grant", "after refuse")

    def __init__(self, step: str, giver: str) -> None:
        super().__init__()
        self._step, self._giver = step, giver
        self._known: dict[str, tuple[bytes, TaskSpec, WindowLog]] = {}
        self._twins: dict[str, Future[TaskOutcome]] = {}
        self._once = threading.Lock()
        self._twin_threads = ThreadPoolExecutor(1)
        self._twin_thread = 0
        self._has_begun = threading.Event()
        self.fenced = 0

    @property
    def was_doubled(self) -> bool:
        """True if a task came to the step."""
        return bool(self._twins)

    def at(self, step: str) -> None:
        """A task has come to a step."""
        ident = threading.get_ident()
        if ident == self._twin_thread and step == "after start":
            self._has_begun.set()
        if step != self._step or (ident not in self.at_work and step not in self.GIVING):
            return
        name = self._giver if step in self.GIVING else self.at_work[ident]
        if self._once.acquire(blocking=False):
            self._twins[name] = self._twin_threads.submit(self._twin, name)
            self._has_begun.wait(10)

    def _twin(self, name: str) -> TaskOutcome:
        self._twin_thread = threading.get_ident()
        try:
            return execute(*self._known[name], f"twin of {name}", again=True)
        finally:
            self._has_begun.set()  # it does not begin where it finds the report of the first one

    def _attempts(self, program: bytes, spec: TaskSpec, log: WindowLog) -> TaskOutcome:
        self.at_work[threading.get_ident()] = spec.name
        self._known[spec.name] = program, spec, log
        found = []
        with self._unless_fenced():
            found.append(execute(program, spec, log, str(next(self._names))))
        twin = self._twins.get(spec.name)
        if twin is not None:
            with self._unless_fenced():
                found.append(twin.result())
        return found[-1] if found else execute(program, spec, log, str(next(self._names)), again=True)

    @contextlib.contextmanager
    def _unless_fenced(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if "another attempt of task" not in str(error):
                raise
            self.fenced += 1
