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
