"""The background thread of a process: it answers for the tasks at work there."""

from __future__ import annotations

import threading
import time
from typing import Protocol

POLL = 0.02  # seconds between two rounds
LINGER = 10.0  # seconds without a task after which the thread ends


class BackgroundTask(Protocol):
    """A task at work."""

    def tick(self) -> None:
        """Do what is due: called every `POLL` seconds, never by two threads at once. Must not raise."""
        ...


class BackgroundThread:
    """One thread for all tasks of a process. It stays for a while without a task: starting one costs as much as a small task."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: list[BackgroundTask] = []
        self._thread: threading.Thread | None = None

    def add(self, task: BackgroundTask) -> None:
        """Begin to call a task's `tick`."""
        with self._lock:
            self._tasks.append(task)
            if self._thread is None or not self._thread.is_alive():  # a thread does not survive a fork
                self._thread = threading.Thread(target=self._run, name="dagflow-rebalancing", daemon=True)
                self._thread.start()

    def remove(self, task: BackgroundTask) -> None:
        """Stop calling a task. A call that has begun still ends."""
        with self._lock:
            self._tasks.remove(task)

    def _run(self) -> None:
        until = time.monotonic() + LINGER
        while True:
            time.sleep(POLL)
            with self._lock:
                tasks = tuple(self._tasks)
                if not tasks and time.monotonic() >= until:
                    self._thread = None
                    return
            for task in tasks:
                task.tick()
                until = time.monotonic() + LINGER


BACKGROUND = BackgroundThread()
