"""Ctrl-C and SIGTERM: the first one ends a run cleanly, a second one at once, with all processes that it has started."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import threading
from types import FrameType
from typing import Any

from dagflow.cli.exit_codes import INTERRUPTED
from dagflow.launching.run import Run

GRACE = 30.0  # seconds that a clean end may take before it becomes an end at once
GRACE_BEFORE = 5.0  # the same before the run has started
WORDS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


class Stopping:
    """While this context manager lasts, SIGINT and SIGTERM stop a run.

    `run` is the run to be stopped. Where it runs in the main thread (`interrupts`), the first signal raises KeyboardInterrupt,
    since no flag reaches a loop in an operator's code. Elsewhere it asks the run to stop, and the window loop cancels Spark's
    jobs; before the run has started, when nothing can be lost, it kills the JVM that is being started. If that has not ended
    the run after `GRACE` seconds, or at the second signal, all processes below this one are killed and this one ends.
    """

    def __init__(self, interrupts: bool, quiet: bool = False) -> None:
        self.by: str | None = None
        self.run: Run | None = None
        self._interrupts = interrupts
        self._quiet = quiet
        self._before: dict[int, Any] = {}
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():
            for number in WORDS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup and shells' background jobs want it so
                    self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.by is not None:
            end_at_once()
        self.by = WORDS[signal.Signals(number)]
        if not self._quiet:
            # not print: the signal may have come in the middle of one
            with contextlib.suppress(OSError):
                os.write(2, f"\n{self.by}: stopping; once more stops at once\n".encode())
        has_started = self.run is not None and self.run.view.started is not None  # then the window loop obeys requests to stop
        self._timer = threading.Timer(GRACE if has_started else GRACE_BEFORE, end_at_once)
        self._timer.daemon = True
        self._timer.start()
        if self.run is not None:
            self.run.stop(self.by)
        if self._interrupts:
            raise KeyboardInterrupt
        logging.getLogger("py4j").setLevel(logging.CRITICAL)  # from now on, calls to the JVM are expected to fail
        if not has_started:
            kill_descendants()


def end_at_once() -> None:
    """Kill all processes below this one, and end it. Windows that were decided stay; the next launch resumes behind them."""
    try:
        kill_descendants()
    finally:
        os._exit(INTERRUPTED)


def descendants() -> list[int]:
    """The ids of all processes below this one, parents before children."""
    children: dict[int, list[int]] = {}
    for process, parent in _processes():
        children.setdefault(parent, []).append(process)
    processes: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        processes += below
        todo += below
    return processes


def kill_descendants() -> None:
    """Kill them all at once. A second look finds those started meanwhile."""
    for _ in range(3):
        processes = descendants()
        if not processes:
            return
        for process in processes:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)


def _processes() -> list[tuple[int, int]]:
    """`(id, parent's id)` of all processes of this machine that are not dead yet."""
    if not os.path.isdir("/proc/self"):
        return _listed()
    pairs = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state != b"Z":
                    pairs.append((int(name), int(parent)))
    return pairs


def _listed() -> list[tuple[int, int]]:
    """The same where there is no /proc (macOS)."""
    try:
        answer = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    pairs = (line.split() for line in answer.stdout.splitlines())
    return [(int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 2]
