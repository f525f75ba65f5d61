"""Kills what runs a task, once."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def once(folder: str, victim: str) -> None:
    """Kills the Python worker, or the executor that it belongs to: the parent of the parent of this process."""
    try:
        os.close(os.open(os.path.join(folder, "killed"), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return
    os.kill(os.getpid() if victim == "worker" else _parent(os.getppid()), signal.SIGKILL)
    time.sleep(60)  # Spark's daemon ends with the executor, and takes this worker along


def _parent(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.partition("PPid:")[2].split()[0])
