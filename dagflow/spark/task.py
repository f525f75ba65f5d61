"""The function that Spark calls in its Python workers: it looks its task up by partition id, and executes it."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import pickle
import sys
import traceback
import types
from collections.abc import Iterable, Iterator

import attrs

from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.program import TaskSpec
from dagflow.runtime.task.execute import execute, keep_memory, outcome_bytes
from dagflow.spark.executors.check import Guard


@attrs.frozen
class SparkTasks:
    """The tasks of one window, as the function of one job (`Answers`). The answer of a task is its pickled outcome.

    `specs[i]` is the pickled TaskSpec of partition i; `programs` the programs by stage; `guard` checks the executor.
    """

    specs: tuple[bytes, ...]
    programs: dict[str, bytes]
    run_folder: str
    durable: bool
    guard: Guard | None = None

    def __call__(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """Run the tasks of one partition."""
        from pyspark import TaskContext

        keep_memory()
        tidy_output()
        if self.guard is not None:
            self.guard.check()
        context = TaskContext.get()
        attempt = str(context.taskAttemptId()) if context is not None else "0"
        again = context is not None and context.attemptNumber() > 0
        log = WindowLog.open(self.run_folder, self.durable)
        for number in numbers:
            spec: TaskSpec = pickle.loads(self.specs[number])  # came with this function, from the driver
            with spec.options.logs.in_worker():
                outcome = execute(self.programs[spec.stage], spec, log, attempt, again)
            yield outcome_bytes(outcome)
        settle()


def warm_up(numbers: Iterable[int]) -> Iterator[bytes]:
    """Do nothing, as the function of a job: it starts a worker, which imports this module."""
    tidy_output()
    for _ in numbers:
        yield b""


@functools.cache
def tidy_output() -> None:
    """Once in a worker: send all its output to one pipe, and keep it from complaining when Spark lets go of it.

    Spark passes on standard output and standard error in pieces of its own, each by a thread: lines of one would land in the
    middle of those of the other. Standard output is the one from which Spark collects log records if it is told to. Nothing
    changes for workers that no daemon has forked (Windows, `spark.python.use.daemon=false`).

    A worker is let go of when it is cancelled, idle for a minute, or at the end. Over Unix domain sockets its
    last words are lost then, and Spark's daemon, of which a worker is a fork, prints the traceback of that BrokenPipeError to the
    user's terminal. Only the daemon's own way to print it is changed, and only in this process.
    """
    daemon = sys.modules.get("pyspark.daemon", sys.modules["__main__"])  # behind dagflow.spark.daemon, or as a program
    if getattr(daemon, "traceback", None) is traceback and hasattr(daemon, "manager"):
        quiet = types.SimpleNamespace(**vars(traceback))
        quiet.print_exc = lambda *args, **kwargs: (
            None if isinstance(sys.exc_info()[1], BrokenPipeError) else traceback.print_exc(*args, **kwargs)
        )
        daemon.traceback = quiet  # type: ignore[attr-defined]
        with contextlib.suppress(OSError, ValueError):  # one of them is closed
            sys.stderr.flush()
            os.dup2(1, 2)


@functools.cache
def settle() -> None:
    """After a worker's first task: takes what has been imported by now out of garbage collection.

    Spark collects all garbage after every task of a reused worker. Looking through the 75,000 objects of our imports took 30 of
    the 36 ms of processor time that a small task cost.
    """
    gc.collect()
    gc.freeze()
