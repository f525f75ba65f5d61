"""The processes that this one has started: Spark's JVM, its Python workers, and whatever they have started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess


def descendants() -> list[int]:
    """The ids of all processes below this one, parents before children."""
    children: dict[int, list[int]] = {}
    for process, parent in _processes():
        children.setdefault(parent, []).append(process)
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def kill_descendants() -> None:
    """Kill them all at once. A second look finds those started meanwhile."""
    for _ in range(3):
        found = descendants()
        if not found:
            return
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)


def _processes() -> list[tuple[int, int]]:
    """`(id, parent's id)` of all processes of this machine that are not dead yet."""
    if not os.path.isdir("/proc/self"):
        return _listed()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state != b"Z":
                    found.append((int(name), int(parent)))
    return found


def _listed() -> list[tuple[int, int]]:
    """The same where there is no /proc (macOS)."""
    try:
        answer = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    pairs = (line.split() for line in answer.stdout.splitlines())
    return [(int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 2]
