"""The runner for several slots: tasks run side by side, each in a worker process."""

from __future__ import annotations

import itertools
import pickle
import threading
from concurrent.futures import Future

import attrs

from dagflow.local.boot import ServerProcess
from dagflow.local.channel import ChannelClosed
from dagflow.local.pool import Worker, WorkerDied, WorkerPool
from dagflow.local.row_files import RowFiles
from dagflow.local.schedule import Attempt, JobSchedule
from dagflow.local.spool import TransformRunner, transform_runner
from dagflow.local.worker import TaskAnswer, TaskRequest
from dagflow.runtime.runner import TasksDied
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job

CANCELLED_WITHIN = 10.0  # seconds that killed processes get to end


@attrs.define(eq=False)
class _RunningJob:
    job: Job
    schedule: JobSchedule
    files: RowFiles
    pool: WorkerPool
    future: Future[list[TaskOutcome]] = attrs.field(factory=Future)


@attrs.define(eq=False)
class _Turn:
    """An attempt that a thread is at. Without `worker`, it is about to get one."""

    running: _RunningJob
    attempt: Attempt
    worker: Worker | None = None
    is_cancelled: bool = False


class ProcessRunner:
    """Runs tasks in processes of its own, `slots` at once. Jobs that came first go first.

    A thread for each slot takes the next attempt that is ready, sends it to a worker process and waits for the answer. A process
    that dies is replaced, and its task is tried again, as `JobSchedule` says.

    Args:
        server: the process that worker processes are forks of, where it has been started before.
    """

    name = "local"
    in_process = False
    rebalancing_obstacle: str | None = None
    grows = False
    warnings = ()
    ui = None
    address = None

    def __init__(self, slots: int, server: ServerProcess | None = None) -> None:
        self.slots = slots
        self._booted = server
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._jobs: list[_RunningJob] = []
        self._turns: list[_Turn] = []
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._pool: WorkerPool | None = None
        self._here: TransformRunner | None = None  # a local Spark, where an application has DataFrame transforms
        self._transforming = threading.Lock()

    def open(self, application: str, run_folder: str) -> None:
        """Start the process that worker processes are forks of, or tell it what this one has loaded by now."""
        self._is_closed = False
        booted, self._booted = self._booted, None
        self._pool = WorkerPool(booted)

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        """Start the tasks of a window in their order, as slots are free."""
        assert self._pool is not None, "it is not open"
        running = _RunningJob(job, JobSchedule(job), RowFiles(self._pool.folder, job.levels), self._pool)
        with self._changed:
            if not running.schedule.is_over:
                running.schedule.begin_level()
            self._jobs.append(running)
            self._end_jobs()
            for _ in range(len(self._threads), min(self.slots, sum(len(each.job.tasks) for each in self._jobs))):
                thread = threading.Thread(target=self._work, name=f"dagflow-slot-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify_all()
        return running.future

    def _end_jobs(self) -> None:
        """Tell the results of jobs that are over. The lock is held."""
        for running in [each for each in self._jobs if each.schedule.is_over]:
            self._jobs.remove(running)
            failure = running.schedule.failure
            if failure is None:
                running.future.set_result(running.schedule.outcomes)
            else:
                running.future.set_exception(failure)

    # The thread of a slot

    def _work(self) -> None:
        while (turn := self._next_turn()) is not None:
            running, is_level_over = turn.running, False
            try:
                answer = self._run(turn)
                outcome: TaskOutcome = pickle.loads(answer.outcome)  # made by our own process
                with self._changed:
                    running.files.add(answer.rows)
                    running.schedule.ended(turn.attempt, outcome)
                    is_level_over = running.schedule.is_between_levels
                if is_level_over:
                    self._transform(running)
            except WorkerDied as death:
                with self._changed:
                    running.schedule.died(turn.attempt, str(death))
            except Exception as error:  # noqa: BLE001  # of a DataFrame transform: raised where the result is awaited
                with self._changed:
                    running.schedule.fail(error)
            with self._changed:
                if is_level_over and not running.schedule.is_over:
                    running.schedule.begin_level()
                self._turns.remove(turn)
                self._end_jobs()
                self._changed.notify_all()
            if running.schedule.is_over:
                running.files.remove()

    def _next_turn(self) -> _Turn | None:
        """Wait for an attempt that is ready; None: the runner is closed."""
        with self._changed:
            while not self._is_closed:
                for running in self._jobs:
                    if (attempt := running.schedule.next()) is not None:
                        self._turns.append(_Turn(running, attempt))
                        return self._turns[-1]
                self._changed.wait()
        return None

    def _run(self, turn: _Turn) -> TaskAnswer:
        """Run an attempt in a worker process. Raises WorkerDied."""
        job, attempt, files, pool = turn.running.job, turn.attempt, turn.running.files, turn.running.pool
        worker = pool.take()
        name = str(next(self._numbers))
        request = TaskRequest(
            program=job.programs[attempt.spec.stage],
            spec=attempt.spec,
            run_folder=job.run_folder,
            durable=job.durable,
            attempt=name,
            again=attempt.number > 1,
            levels=job.levels,
            rows=tuple(files.rows_for(attempt.spec.layout.level, attempt.spec.layout.place)),
            rows_path=files.path_for(name),
        )
        with self._changed:
            turn.worker = worker
            if turn.is_cancelled:
                pool.kill(worker)
        try:
            answer = worker.run(request)
        except ChannelClosed:
            raise WorkerDied(pool.bury(worker)) from None
        pool.give_back(worker)
        if answer.failure:
            raise WorkerDied(f"it raised {answer.failure}")
        return answer

    def _transform(self, running: _RunningJob) -> None:
        """Run the DataFrame transforms before the next level of a job."""
        level = running.schedule.next_level
        with self._transforming:
            for transform in running.job.transforms.values():
                if transform.level == level:
                    self._here = self._here or transform_runner()
                    running.files.through(transform, self._here)

    # The end

    def cancel(self) -> None:
        """Kill the processes that are at tasks; return when they have ended."""
        with self._changed:
            for running in self._jobs:
                running.schedule.fail(TasksDied("cancelled"))
            self._end_jobs()
            for turn in self._turns:
                turn.is_cancelled = True
                if turn.worker is not None:
                    turn.running.pool.kill(turn.worker)
            self._changed.wait_for(lambda: not self._turns, CANCELLED_WITHIN)

    def close(self) -> None:
        """End all processes, and the Spark that DataFrame transforms have needed."""
        self.cancel()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.join(CANCELLED_WITHIN)
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        if self._here is not None:
            self._here.close()
            self._here = None
