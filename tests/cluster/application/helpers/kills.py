"""Kills what runs a task, once."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def once(folder: str, victim: str, after: int = 0) -> None:
    """Kills the Python worker, or the executor that it belongs to: the parent of the parent of this process.

    `after`: so many calls, from any process, do nothing before that.
    """
    names = (*(f"before{n}" for n in range(after)), "killed")
    if next((name for name in names if _is_first(os.path.join(folder, name))), None) != "killed":
        return
    os.kill(os.getpid() if victim == "worker" else _parent(os.getppid()), signal.SIGKILL)
    time.sleep(60)  # Spark's daemon ends with the executor, and takes this worker along


def _is_first(file: str) -> bool:
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


def _parent(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.partition("PPid:")[2].split()[0])
