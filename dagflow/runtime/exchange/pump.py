"""A task that hands rows on while it works, for a caller that asks for one row after the other: it works in a thread."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

R = TypeVar("R")

AHEAD = 4
"""Rows that a task may be ahead of who takes them: some MiB each."""


class _Abandoned(BaseException):
    """The rows are no longer taken. Not an `Exception`: the task's own code must not swallow it."""


class Pump(Generic[R]):
    """Runs `body(send)` in a thread, and iterates over what it sends. What it raises, the iteration raises.

    >>> list(Pump(lambda send: [send(1), send(2)]))
    [1, 2]
    """

    def __init__(self, body: Callable[[Callable[[R], None]], object]) -> None:
        self._body = body
        self._queue: queue.Queue[tuple[R] | None] = queue.Queue(maxsize=AHEAD)
        self._is_abandoned = False
        self._failure: BaseException | None = None

    def __iter__(self) -> Iterator[R]:
        thread = threading.Thread(target=self._run, name="dagflow-task", daemon=True)
        thread.start()
        try:
            while (sent := self._queue.get()) is not None:
                yield sent[0]
            thread.join()
            if self._failure is not None:
                raise self._failure
        finally:
            self._is_abandoned = True
            with contextlib.suppress(queue.Empty):
                while True:  # the thread may wait for room
                    self._queue.get_nowait()

    def _send(self, item: R) -> None:
        if self._is_abandoned:
            raise _Abandoned
        self._queue.put((item,))

    def _run(self) -> None:
        try:
            self._body(self._send)
        except _Abandoned:
            pass
        except BaseException as failure:  # noqa: BLE001  # it is raised where the rows are taken
            self._failure = failure
        finally:
            if not self._is_abandoned:
                self._queue.put(None)
