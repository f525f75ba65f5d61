"""The time of a task by operator: at any moment, one account is charged.

Accounts change when a chunk of records or a batch is handed over, not with each record, so that measuring costs nothing that can
be seen: two readings of the clock per operator and chunk.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


class TimeAccount:
    """Seconds that have been charged for one purpose."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0


class TaskTime:
    """The time of one task.

    Attributes:
        own: the account of the framework, which is charged first; operators have accounts of their own (`Node.account`).
        loading, storing, waiting: for states that are read, for files and reports that are written, and for rows of exchanges and
            further work.
        current: the account that is charged now.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.own, self.loading, self.storing, self.waiting = TimeAccount(), TimeAccount(), TimeAccount(), TimeAccount()
        self.current = self.own
        self._clock = clock
        self._began = self._since = clock()

    def total(self) -> float:
        """Return the seconds since the beginning."""
        return self._clock() - self._began

    def so_far(self, account: TimeAccount) -> float:
        """Return the seconds of an account until now. For other threads; may be wrong by the time of a chunk."""
        running = self._clock() - self._since if self.current is account else 0.0
        return account.seconds + max(0.0, running)

    def charge(self, account: TimeAccount) -> TimeAccount:
        """Charge an account from now on. Return the one that was charged until now."""
        now, before = self._clock(), self.current
        before.seconds += now - self._since
        self._since, self.current = now, account
        return before

    @contextlib.contextmanager
    def charging(self, account: TimeAccount) -> Iterator[None]:
        """Charge an account while this lasts."""
        before = self.charge(account)
        try:
            yield
        finally:
            self.charge(before)

    def during(self, account: TimeAccount, items: Iterable[T]) -> Iterator[T]:
        """Iterate over items, and charge an account while the next one is awaited."""
        iterator = iter(items)
        while True:
            with self.charging(account):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item
