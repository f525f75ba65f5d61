"""Waiting for what other processes do."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

SLOW = 120.0


def until(condition: Callable[[], object], process: subprocess.Popen[str] | None = None, seconds: float = SLOW) -> None:
    """Waits until something is so, as long as the process lives."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("it never happened")


def lives(process: int) -> bool:
    """Return True if a process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def below(process: int) -> list[int]:
    """The processes that a process has started, and those that they have started."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(name))
    found, todo = [], [process]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def held_by(hold: Path) -> list[int]:
    """The workers that wait for a file of the test application's."""
    return [int(note.suffix[1:]) for note in hold.parent.glob(f"{hold.name}.*")]
