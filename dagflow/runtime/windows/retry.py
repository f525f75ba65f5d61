"""Patience with what passes: so many attempts, with a longer pause before each; a request to stop ends a pause at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dagflow.errors import DagflowError
from dagflow.model.context import Clock
from dagflow.runtime.events import EventStream, StepRetried
from dagflow.runtime.stage.failure import describe
from dagflow.runtime.windows.errors import Interrupted, WindowHeldUp
from dagflow.storage import passes

LONGEST = 60.0  # seconds that a pause lasts at the most
POLL = 0.05  # seconds between looks whether the run is to be stopped
_NOTHING = 1e-6  # seconds

Result = TypeVar("Result")


class Patience:
    """How often something is tried for a window, and how long to wait before it is tried again.

    Args:
        attempts: how often in all.
        delay: seconds before the second attempt; each further pause is twice as long, up to a minute.
        stopping: says by whom the run is to be stopped.
    """

    def __init__(
        self, *, attempts: int, delay: float, clock: Clock, events: EventStream, stopping: Callable[[], str | None]
    ) -> None:
        self.attempts = attempts
        self._delay = delay
        self._clock = clock
        self._events = events
        self._stopping = stopping

    def check_stop(self) -> None:
        """Raises Interrupted when the run is to be stopped."""
        by = self._stopping()
        if by is not None:
            raise Interrupted(by)

    def delay_after(self, attempt: int) -> float:
        """Seconds to wait after attempt number `attempt`, from 1, has failed."""
        return min(self._delay * 2.0 ** min(attempt - 1, 30), LONGEST)

    def pause(self, seconds: float) -> None:
        """Waits. Raises Interrupted as soon as the run is to be stopped."""
        until = self._clock.monotonic() + seconds
        while True:
            self.check_stop()
            left = until - self._clock.monotonic()
            if left <= _NOTHING:
                return
            self._clock.sleep(min(left, POLL))

    def keep_trying(self, window: int, doing: str, action: Callable[[], Result]) -> Result:
        """What `action` returns, which may be called several times: as long as what it raises may pass.

        Raises WindowHeldUp once it has failed as often as it may; what cannot pass, and Interrupted, at once.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                return action()
            except Exception as error:
                if not passes(error):
                    raise
                delay = self.allow(window, doing, attempt, error)
            self.pause(delay)

    def allow(self, window: int, doing: str, attempt: int, error: Exception) -> float:
        """Tells that a step has failed at an attempt, from 1, for what may pass; the seconds to wait before the next one.

        Raises WindowHeldUp when that was the last.
        """
        reason = error.message() if isinstance(error, DagflowError) else describe(error)
        if attempt >= self.attempts:
            raise WindowHeldUp(window=window, doing=doing, attempts=attempt, reason=reason) from error
        delay = self.delay_after(attempt)
        self._events.send(StepRetried(window=window, doing=doing, attempt=attempt + 1, reason=reason, delay=delay))
        return delay
