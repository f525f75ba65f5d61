"""Spark's daemon of Python workers, with the imports of a task done once, before it forks: `python -m dagflow.spark.daemon`.

Spark forks each worker from a daemon, which imports nothing, since a fork copies only the thread that calls it: a lock that
another thread holds stays locked in the copy. This daemon imports pyarrow, dagflow and the operators of the library, and then
forks only if it has one thread. Else it becomes Spark's own daemon.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys

MODULE = "dagflow.spark.daemon"
SETTING = "spark.python.daemon.module"
PRELOAD = "_DAGFLOW_PRELOAD"
"""The variable with the modules of the operators, separated by commas."""

_JEMALLOC = "JE_ARROW_MALLOC_CONF"
_ALWAYS = ("pyspark.worker", "pyarrow.compute", "dagflow.spark.task", "dagflow.spark.dataframes.levels")


def prepare(modules: str = "") -> bool:
    """Import what tasks need. Return whether this process may fork: it has one thread, and Linux says so."""
    given = os.environ.get(_JEMALLOC)
    # pyarrow's jemalloc starts a thread when it is loaded; numpy's OpenBLAS has none of its own, as Spark sets OMP_NUM_THREADS
    os.environ[_JEMALLOC] = ",".join(filter(None, [given, "background_thread:false"]))
    for name in [*_ALWAYS, *filter(None, modules.split(","))]:
        with contextlib.suppress(Exception):  # the task that needs it says what is wrong
            importlib.import_module(name)
    if given is None:
        del os.environ[_JEMALLOC]
    else:
        os.environ[_JEMALLOC] = given
    os.register_at_fork(after_in_child=_seed_again)
    gc.collect()
    gc.freeze()  # a collection in a worker would copy the pages of all these objects
    return threads() == 1


def threads() -> int:
    """Return the number of threads of this process, native ones too; 0 where that cannot be asked."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def _seed_again() -> None:
    """Give a worker random numbers of its own: all are copies of one process. Python's `random` does so by itself."""
    if "numpy.random" in sys.modules:
        import numpy

        numpy.random.seed()


def main() -> None:
    """Be the daemon: a prepared one if that is sound, else Spark's own."""
    if prepare(os.environ.pop(PRELOAD, "")):
        from pyspark.daemon import manager

        manager()
    else:
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])


if __name__ == "__main__":
    main()
