"""The thread that looks after the tasks at work in this process, as long as there are any, and a while longer."""

from __future__ import annotations

import threading
import time
from typing import Protocol

POLL = 0.02  # seconds between two looks
LINGER = 10.0  # seconds without any task after which the thread ends


class BackgroundTask(Protocol):
    """A task at work."""

    def tick(self) -> None:
        """Called now and then, never by two threads at once. Raises nothing."""
        ...


class BackgroundThread:
    """One thread for all tasks of a process. It lives on for a while without any: waking one costs as much as a small task."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._served: list[BackgroundTask] = []
        self._thread: threading.Thread | None = None

    def begin(self, task: BackgroundTask) -> None:
        """From now on a task is looked after."""
        with self._lock:
            self._served.append(task)
            if self._thread is None or not self._thread.is_alive():  # it does not live on in a process that was forked
                self._thread = threading.Thread(target=self._run, name="dagflow-sharing", daemon=True)
                self._thread.start()

    def end(self, task: BackgroundTask) -> None:
        """A task is looked after no longer, but for a look that has begun."""
        with self._lock:
            self._served.remove(task)

    def _run(self) -> None:
        until = time.monotonic() + LINGER
        while True:
            time.sleep(POLL)
            with self._lock:
                served = tuple(self._served)
                if not served and time.monotonic() >= until:
                    self._thread = None
                    return
            for task in served:
                task.tick()
                until = time.monotonic() + LINGER


BACKGROUND = BackgroundThread()
