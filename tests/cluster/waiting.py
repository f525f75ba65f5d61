"""Waiting for what other processes do."""

from __future__ import annotations

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


def held_by(hold: Path) -> list[int]:
    """The workers that wait for a file of the test application's."""
    return [int(note.suffix[1:]) for note in hold.parent.glob(f"{hold.name}.*")]
