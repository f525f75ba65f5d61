"""Spark's daemon of Python workers, with the imports of a task done once, before it forks: `python -m dagflow.spark.daemon`.

Spark forks each worker from a daemon, which imports nothing, since a fork copies only the thread that calls it: a lock that
another thread holds stays locked in the copy. This daemon imports pyarrow, dagflow and the operators of the library, and then
forks only if it has one thread. Else it becomes Spark's own daemon.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence

MODULE = "dagflow.spark.daemon"
SETTING = "spark.python.daemon.module"
PRELOAD = "_DAGFLOW_PRELOAD"
"""The variable with the modules of the operators, separated by commas."""

AHEAD = "_DAGFLOW_AHEAD"
"""The variable with the address of the process that was started ahead."""

_WAITING = 120.0  # seconds that it waits for Spark
_AT_START = ("PYTHONHASHSEED", "OMP_", "OPENBLAS_", "MKL_", "ARROW_", "JE_", "MALLOC_", "LD_")
"""Beginnings of variables that are read when a process or a library starts."""

_OF_SPARK = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "YES"}
"""The variables that Spark gives its daemon, as far as they count at the start."""

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


def start_ahead(modules: Sequence[str]) -> str:
    """Start a process that prepares itself. Return the address at which it waits for Spark; raises OSError.

    It ends when this process does, and when Spark has not come for two minutes.
    """
    address = os.path.join(tempfile.mkdtemp(prefix="dagflow-workers-"), "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(address)
            listener.listen(1)
        except OSError:  # the path is too long
            os.rmdir(os.path.dirname(address))
            raise
        process = subprocess.Popen(
            [sys.executable, "-m", MODULE, "pyspark.worker"],
            stdin=subprocess.PIPE,  # it ends when this closes
            stdout=sys.__stderr__.fileno() if sys.__stderr__ is not None else subprocess.DEVNULL,
            env={**_OF_SPARK, **os.environ, "PYTHONUNBUFFERED": "YES", PRELOAD: ",".join(modules), AHEAD: str(listener.fileno())},
            pass_fds=[listener.fileno()],
            process_group=0,  # Ctrl-C is for the launch
        )
    threading.Thread(target=_wait_for, args=(process, address), name="dagflow-workers", daemon=True).start()
    return address


def _wait_for(process: subprocess.Popen[bytes], address: str) -> None:
    """Wait for the end of a process, so that it leaves no zombie. Clean up what this process and a killed one leave open."""
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
    _remove(address)


def _remove(address: str) -> None:
    """Remove a socket, and the folder that was made for it."""
    with contextlib.suppress(OSError):
        os.unlink(address)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(address))


def wait_for_spark(listener: socket.socket, is_sound: bool) -> None:
    """Become Spark's daemon as soon as another process asks for that; return if none does."""
    address = listener.getsockname()
    try:
        if listener.fileno() not in select.select([0, listener.fileno()], [], [], _WAITING)[0]:
            return
        spark, _ = listener.accept()
    finally:
        listener.close()
        _remove(address)
    data, pipes, _, _ = socket.recv_fds(spark, 1 << 16, 3)
    while not data.endswith(b"\n"):
        data += spark.recv(1 << 16)
    given = json.loads(data)
    if not (is_sound and is_alike(given["environ"], given["path"])):
        return
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
        os.close(pipe)
    os.environ.clear()
    os.environ.update(given["environ"])
    sys.path[:], sys.argv[1:] = given["path"], given["arguments"]
    os.register_at_fork(after_in_child=spark.close)
    spark.sendall(b"y")
    _manage()


def is_alike(environ: Mapping[str, str], path: Sequence[str]) -> bool:
    """Return whether what this process has imported is what one with this environment and path would import."""

    def at_start(variables: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in variables.items() if name.startswith(_AT_START)}

    more = [place for place in path if place not in sys.path and os.path.exists(place)]
    home = os.path.join(environ.get("SPARK_HOME") or "no folder", "")
    is_path_alike = [place for place in path if place in sys.path] == sys.path and all(each.startswith(home) for each in more)
    return is_path_alike and at_start(environ) == at_start(os.environ)


def hand_over(address: str) -> bool:
    """Let the process at an address be Spark's daemon, and wait until it ends. Return False if it refuses, or is not there."""
    given = {"environ": dict(os.environ), "path": sys.path, "arguments": sys.argv[1:]}
    with socket.socket(socket.AF_UNIX) as ahead:
        try:
            ahead.connect(address)
            data = json.dumps(given).encode() + b"\n"
            ahead.sendall(data[socket.send_fds(ahead, [data], [0, 1, 2]) :])
            if ahead.recv(1) != b"y":
                return False
            for number in (0, 1):  # Spark's pipes close with that process
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            ahead.recv(1)
        except OSError:
            return False
    return True


def _manage() -> None:
    from pyspark.daemon import manager

    manager()


def main() -> None:
    """Be the daemon: a prepared one if that is sound, else Spark's own."""
    modules, ahead = os.environ.pop(PRELOAD, ""), os.environ.pop(AHEAD, "")
    if ahead.isdigit():
        with socket.socket(fileno=int(ahead)) as listener:
            wait_for_spark(listener, prepare(modules))
        return
    if ahead and hand_over(ahead):
        return
    if prepare(modules):
        _manage()
    else:
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])


if __name__ == "__main__":
    main()
