"""A clock that stands still until it is told to go on."""

from __future__ import annotations

import threading


class FakeClock:
    """A clock for tests: `sleep` and `advance` move it, nothing else does. May be shared by threads.

    Args:
        now: seconds since the epoch at the beginning.

    Attributes:
        slept: what `sleep` was called with, in order.

    >>> clock = FakeClock(now=100.0)
    >>> clock.sleep(2.5)
    >>> clock.now(), clock.monotonic(), clock.slept
    (102.5, 2.5, [2.5])
    """

    def __init__(self, now: float = 1_000_000_000.0) -> None:
        self._begin = now
        self._passed = 0.0
        self._lock = threading.Lock()
        self.slept: list[float] = []

    def now(self) -> float:
        """Seconds since the epoch."""
        with self._lock:
            return self._begin + self._passed

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        with self._lock:
            return self._passed

    def sleep(self, seconds: float) -> None:
        """Moves the clock, and returns at once. Raises ValueError for negative seconds, as `time.sleep`."""
        self.advance(seconds)
        with self._lock:
            self.slept.append(seconds)

    def advance(self, seconds: float) -> None:
        """Moves the clock. Raises ValueError for negative seconds: a monotonic clock never goes back."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} s")
        with self._lock:
            self._passed += seconds
