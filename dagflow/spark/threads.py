"""Threads that wait for Spark's jobs, and are used again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class JobThreads:
    """Runs calls side by side, each in a thread that waits for the next one afterwards.

    A new thread a job would cost 10 ms: pyspark opens a connection to the JVM for each, and makes a thread there. Unlike those of
    a ThreadPoolExecutor these are daemons: a job that never ends does not keep Python from ending.

    >>> threads = JobThreads("jobs")
    >>> threads.submit(lambda: 6 * 7).result()
    42
    >>> threads.close()
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Calls `function` in a thread that is idle, or in a new one."""
        future: Future[T] = Future()

        def call() -> None:
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001  # handed to the caller that waits
                self._rest()
                future.set_exception(error)
            else:
                self._rest()
                future.set_result(result)

        with self._lock:
            is_new = not self._idle
            if is_new:
                self._threads += 1
            else:
                self._idle -= 1
        self._calls.put(call)
        if is_new:
            threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        return future

    def close(self) -> None:
        """Lets the threads end, each when it has nothing to do."""
        for _ in range(self._threads):
            self._calls.put(None)

    def _rest(self) -> None:
        # before the result is known: a caller that has waited for it finds the thread idle
        with self._lock:
            self._idle += 1

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
