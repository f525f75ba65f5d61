"""The background thread of a process: it answers for the tasks at work there."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Protocol

POLL = 0.02  # seconds between two rounds of tasks that answer others
IDLE = 0.25  # seconds between two rounds at most
LINGER = 10.0  # seconds without a task after which the thread ends


class BackgroundTask(Protocol):
    """A task at work, or something else that is looked after meanwhile."""

    @property
    def every(self) -> float:
        """The seconds between two calls of `tick`, at most `IDLE`."""
        ...

    def tick(self) -> None:
        """Do what is due: called every `every` seconds or more often, never by two threads at once. Must not raise."""
        ...


class BackgroundThread:
    """One thread for all tasks of a process. It stays for a while without a task: starting one costs as much as a small task."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: list[BackgroundTask] = []
        self._thread: threading.Thread | None = None
        self._hurry = threading.Event()
        self._pause = IDLE

    def add(self, task: BackgroundTask) -> None:
        """Begin to call a task's `tick`."""
        with self._lock:
            self._tasks.append(task)
            if self._thread is None or not self._thread.is_alive():  # a thread does not survive a fork
                self._thread = threading.Thread(target=self._run, name="dagflow-background", daemon=True)
                self._thread.start()
            elif task.every < self._pause:
                self._hurry.set()

    def remove(self, task: BackgroundTask) -> None:
        """Stop calling a task. A call that has begun still ends."""
        with self._lock:
            self._tasks.remove(task)

    @contextlib.contextmanager
    def looking_after(self, task: BackgroundTask) -> Iterator[None]:
        """Call a task's `tick` while this lasts."""
        self.add(task)
        try:
            yield
        finally:
            self.remove(task)

    def _run(self) -> None:
        until = time.monotonic() + LINGER
        while True:
            with self._lock:
                self._hurry.clear()
                self._pause = min((task.every for task in self._tasks), default=IDLE)
            self._hurry.wait(self._pause)
            with self._lock:
                tasks = tuple(self._tasks)
                if not tasks and time.monotonic() >= until:
                    self._thread = None
                    return
            for task in tasks:
                task.tick()
                until = time.monotonic() + LINGER


BACKGROUND = BackgroundThread()
