"""Holds a task in the middle of its work."""

from __future__ import annotations

import os
import time
from pathlib import Path


def while_exists(file: str) -> None:
    """Waits as long as a file exists; leaves a note beside it who waits."""
    Path(f"{file}.{os.getpid()}").touch()
    while os.path.exists(file):
        time.sleep(0.02)


def first_is_slow(file: str) -> None:
    """Notes who comes here; who comes first takes a while."""
    note = Path(f"{file}.{os.getpid()}")
    is_first = not list(note.parent.glob(f"{Path(file).name}.*"))
    note.touch()
    if is_first:
        time.sleep(8)
