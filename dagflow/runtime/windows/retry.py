"""The retry policy for transient errors: a number of attempts, with growing pauses that a request to stop ends at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dagflow.errors import DagflowError
from dagflow.model.operator.context import Clock
from dagflow.runtime.events import EventStream, StepRetried
from dagflow.runtime.stage.failure import describe
from dagflow.runtime.windows.errors import Interrupted, WindowHeldUp
from dagflow.storage import FolderLock, is_transient

LONGEST = 60.0  # seconds that a pause lasts at the most
LOOKS = 12  # reads of the lock after decisions, at most, in the time of its lease: short windows share one
POLL = 0.05  # seconds between looks whether the run is to be stopped
_NOTHING = 1e-6  # seconds

Result = TypeVar("Result")


class RetryPolicy:
    """Retries the steps of a window that fail with transient errors.

    Args:
        attempts: the number of attempts in all.
        delay: seconds before the second attempt; each further pause is twice as long, up to a minute.
        stopping: returns the source of a request to stop the run, None without one.
        lock: of the run folder. No step that writes begins once another launch is known to hold it.
    """

    def __init__(
        self,
        *,
        attempts: int,
        delay: float,
        clock: Clock,
        events: EventStream,
        stopping: Callable[[], str | None],
        lock: FolderLock,
    ) -> None:
        self.attempts = attempts
        self._delay = delay
        self._clock = clock
        self._events = events
        self._stopping = stopping
        self._lock = lock

    def check_stop(self) -> None:
        """Raise Interrupted if the run is to be stopped, LeaseLost if another launch has taken over."""
        self._lock.raise_if_lost()
        by = self._stopping()
        if by is not None:
            raise Interrupted(by)

    def delay_after(self, attempt: int) -> float:
        """Return the seconds to wait after attempt number `attempt`, counted from 1, has failed."""
        return min(self._delay * 2.0 ** min(attempt - 1, 30), LONGEST)

    def pause(self, seconds: float) -> None:
        """Wait. Raises Interrupted as soon as the run is to be stopped."""
        until = self._clock.monotonic() + seconds
        while True:
            self.check_stop()
            left = until - self._clock.monotonic()
            if left <= _NOTHING:
                return
            self._clock.sleep(min(left, POLL))

    def retry(self, window: int, doing: str, action: Callable[[], Result]) -> Result:
        """Call `action` until it returns or raises an error that is not transient, and return its result.

        Raises WindowHeldUp after the last attempt; other errors, LeaseLost and Interrupted at once.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                return action()
            except Exception as error:
                if not is_transient(error):
                    raise
                delay = self.next_delay(window, doing, attempt, error)
            self.pause(delay)

    def retry_step(self, window: int, doing: str, action: Callable[[], Result]) -> Result:
        """Do what `retry` does with an action that writes. Each attempt begins with a look at the lock. Raises LeaseLost."""

        def checked() -> Result:
            self._lock.check()
            return action()

        return self.retry(window, doing, checked)

    def next_delay(self, window: int, doing: str, attempt: int, error: Exception) -> float:
        """Report that a step failed with a transient error, and return the seconds to wait before the next attempt.

        `attempt` counts from 1. Raises WindowHeldUp after the last one.
        """
        reason = error.message() if isinstance(error, DagflowError) else describe(error)
        if attempt >= self.attempts:
            raise WindowHeldUp(window=window, doing=doing, attempts=attempt, reason=reason) from error
        delay = self.delay_after(attempt)
        self._events.send(StepRetried(window=window, doing=doing, attempt=attempt + 1, reason=reason, delay=delay))
        return delay
