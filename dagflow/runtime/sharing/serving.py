"""The thread that looks after the tasks at work in this process, as long as there are any."""

from __future__ import annotations

import threading
from typing import Protocol

POLL = 0.02  # seconds between two looks


class Served(Protocol):
    """A task at work."""

    def serve(self) -> None:
        """Called now and then, never by two threads at once. Raises nothing."""
        ...


class Serving:
    """One thread for all tasks of a process, which sleeps while there are none: starting one costs as much as a small task."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._served: list[Served] = []
        self._thread: threading.Thread | None = None

    def begin(self, task: Served) -> None:
        """From now on a task is looked after."""
        with self._changed:
            self._served.append(task)
            if self._thread is None or not self._thread.is_alive():  # it does not live on in a process that was forked
                self._thread = threading.Thread(target=self._run, name="dagflow-sharing", daemon=True)
                self._thread.start()
            elif len(self._served) == 1:
                self._changed.notify()

    def end(self, task: Served) -> None:
        """A task is looked after no longer, but for a look that has begun."""
        with self._changed:
            self._served.remove(task)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._served:
                    self._changed.wait()
                self._changed.wait(POLL)
                served = tuple(self._served)
            for task in served:
                task.serve()


SERVING = Serving()
