"""The state of the machine: load, processor seconds, memory of processes. Linux; other systems tell less."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import time
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_SET_CHILD_SUBREAPER = 36
PROC = Path("/proc")


def load() -> float:
    """Return how many processes wanted a processor in the last minute, ours included."""
    return os.getloadavg()[0]


def busy(seconds: float) -> float:
    """The share of the processors that others use at the moment: watches for so many seconds. 0 where nothing tells."""
    if not (PROC / "stat").exists():
        return 0.0
    before = _idle_and_all()
    time.sleep(seconds)
    after = _idle_and_all()
    return 1 - (after[0] - before[0]) / max(1, after[1] - before[1])


def _idle_and_all() -> tuple[int, int]:
    ticks = [int(word) for word in (PROC / "stat").read_text().partition("\n")[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def describe() -> str:
    """Processor, number of cores, memory, system."""
    model = platform.processor() or platform.machine()
    memory = ""
    if (PROC / "cpuinfo").exists():
        names = [
            line.partition(":")[2].strip()
            for line in (PROC / "cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
        kib = int((PROC / "meminfo").read_text().split()[1])
        memory = f", {kib / 1024**2:.0f} GiB of memory"
    return f"{model}, {os.cpu_count()} cores{memory}, {platform.system()}, Python {platform.python_version()}"


def _stat(pid: str) -> list[str]:
    try:
        return (PROC / pid / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _children() -> dict[int, list[int]]:
    """The children of each process that has any."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir(PROC) if PROC.exists() else ():
        if entry.isdigit() and (fields := _stat(entry)):
            parents.setdefault(int(fields[1]), []).append(int(entry))
    return parents


def children() -> set[int]:
    """The processes that this process has started or adopted."""
    return set(_children().get(os.getpid(), ()))


def descendants(of: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    parents = _children()
    found, left = [], [of]
    while left:
        mine = parents.get(left.pop(), [])
        found += mine
        left += mine
    return found


def processor_seconds() -> float:
    """Return the processor seconds of this process and of all that it has started (a JVM and its Python workers, say)."""
    total = 0.0
    for pid in (os.getpid(), *descendants(os.getpid())):
        fields = _stat(str(pid))
        total += sum(map(int, fields[11:15])) / _TICK if fields else 0.0  # own and of children that have ended
    return total


def adopt_orphans() -> None:
    """Become the parent of processes whose own parent ends before them, so that `bury_orphans` counts them. Linux only."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def bury_orphans(others: set[int], seconds: float = 10.0) -> None:
    """Wait for the end of adopted processes, such as a JVM that its launch did not wait for.

    `others`: children that this process had before the launch; a test run may have started some.
    """
    deadline = time.monotonic() + seconds
    while (left := children() - others) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)


def python_workers() -> list[int]:
    """The Python workers of Spark below this process."""
    found = []
    for pid in descendants(os.getpid()):
        try:
            command = (PROC / str(pid) / "cmdline").read_bytes()
        except OSError:
            continue
        if b"pyspark" in command and b"daemon" in command:
            found.append(pid)
    return found


def memory(pid: int, field: str) -> int:
    """Bytes of `VmRSS` (resident now) or `VmHWM` (the most so far); 0 for a process that is gone."""
    try:
        for line in (PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def forget_peak(pid: int) -> None:
    """From now on, VmHWM counts anew."""
    (PROC / str(pid) / "clear_refs").write_text("5")
