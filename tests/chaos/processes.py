"""The processes of a launch: who they are, and signals to them. Linux only: it reads /proc."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from tests.local.processes import processes_below


@attrs.frozen
class Process:
    """A process, known by its number and its start: numbers are given again. `parent`: the one that started it."""

    pid: int
    parent: int
    started: bytes
    command: bytes

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The process that has this number now; None when there is none, or it is dead and not yet buried."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return None
        return None if fields[0] in (b"Z", b"X") else cls(pid, int(fields[1]), fields[19], command)

    @property
    def lives(self) -> bool:
        """True while the process exists."""
        found = Process.of(self.pid)
        return found is not None and found.started == self.started  # its parent may be another one by now

    def send(self, number: signal.Signals) -> bool:
        """Send a signal. Return False when the process is gone."""
        with contextlib.suppress(ProcessLookupError):
            if self.lives:
                os.kill(self.pid, number)
                return True
        return False


def is_java(process: Process) -> bool:
    """Return True for a JVM."""
    return process.command.split(b"\0")[0].endswith(b"/java")


def is_executor(process: Process) -> bool:
    """Return True for an executor of a cluster."""
    return is_java(process) and b"CoarseGrainedExecutorBackend" in process.command


_WORKERS = (b"dagflow.spark.daemon", b"pyspark.daemon", b"pyspark/daemon")


def is_python_worker(process: Process) -> bool:
    """Return True for a Python worker of Spark's, and for the process that forks them."""
    return any(name in process.command for name in _WORKERS)


def those_below(pid: int, kind: Callable[[Process], bool] = lambda _: True) -> list[Process]:
    """The processes of a kind that a process has started, directly or through others; the oldest first."""
    found = [process for each in processes_below(pid) if (process := Process.of(each)) is not None]
    return sorted((process for process in found if kind(process)), key=lambda process: (int(process.started), process.pid))


def ended(processes: Iterable[Process], seconds: float) -> list[Process]:
    """Wait until all of them have ended, and return those that still run."""
    waiting = list(processes)
    deadline = time.monotonic() + seconds
    while (waiting := [process for process in waiting if process.lives]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return waiting


def stands_still(pid: int, seconds: float) -> bool:
    """Waits until a process that got SIGSTOP has stopped, all its threads; False when it has ended instead, or does not stop."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        states = set()
        try:
            for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
                states.add(stat.read_bytes().rpartition(b")")[2].split()[0])
        except OSError:  # a thread that has just ended
            continue
        if states <= {b"T", b"t"} or states & {b"Z", b"X"}:
            return bool(states) and states <= {b"T", b"t"}
        time.sleep(0.001)
    return False
