"""The lock of stores that have no locks: numbered records, of which the newest names the holder, and a lease.

The holder of number *n* renews its lease by creating *n + 1*. A launch that follows it creates the same name, so of a renewal and
a takeover exactly one succeeds. Clocks of two machines are never compared: a launch that waits measures by its own clock for how
long the holder has not renewed.

Two rules make a takeover safe whatever a paused launch does when it continues:

- Numbers are removed in ascending order, and a launch that takes over removes all numbers before its own before it does anything
  else. So a holder whose record is still there has not been followed, and one read is enough to know that (`confirm`).
- A number that was created although it had been removed before is known by the number before it, which is then gone, too, or
  is not the record that was followed. Before number 1 is removed, number 0 is created, which stays: it tells that number 1 was
  there. A launch that died before it looked for number 0 has left a number 1 that no other launch may follow.

Listings may be old: numbers that are listed are followed by name to the newest one, and a listing of numbers that are gone is
asked for again. What is not known: a launch that was paused and died right after it had created a number that was removed, if
the listings of the launch that follows end with that very number each time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NoReturn

from dagflow.storage.errors import FolderInUse, LeaseLost, StorageBusy
from dagflow.storage.locks.holder import Holder
from dagflow.storage.store import Store
from dagflow.storage.transient import is_transient
from dagflow.storage.urls import join

FOLDER = "_lock"
LEASE = 60.0
"""Seconds that a lease lasts unless it is renewed."""

_RENEWALS = 3  # in the time of a lease
_LOOKS = 12  # in the time of a lease, of a launch that waits
_DONE = b"done\n"
_CROWD = 8  # numbers that may pile up before they are removed: most launches pay for no removal
_LISTINGS = 20  # until a store whose listings stay old is given up
_PAUSE = 0.25  # seconds between them
_NOTHING = 1e-6  # seconds


class NumberedLock:
    """A lock in a store.

    Args:
        folder: the run folder, for messages.
        lease: seconds after which another launch may follow this one, unless it has renewed.
        clock, sleep: seconds from any moment on, by a clock that does not go back; and waiting by it.
        waiting: called with a holder that cannot be observed from here, before its lease is waited for.
    """

    def __init__(
        self,
        folder: str,
        store: Store,
        *,
        lease: float = LEASE,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        waiting: Callable[[Holder], None] = lambda holder: None,
    ) -> None:
        self.folder = folder
        self.store = store
        self.number = 0
        self.lease = lease
        self._clock = clock
        self._sleep = sleep
        self._waiting = waiting
        self._data = b""
        self._before = b""
        self._older: list[int] = []
        self._is_settled = False
        self._has_walked = False
        self._confirmed = 0.0
        self._renewed = 0.0
        self._lost: LeaseLost | None = None
        self._failure = ""
        self._mutex = threading.Lock()
        self._ended = threading.Event()

    def acquire(self, me: Holder) -> Holder | None:
        """Take the next number. Return the holder that did not release the lock, None if the last one did.

        Raises FolderInUse if a launch holds the lock: at once if it can be observed from here, else once it renews.
        """
        self._data = me.to_bytes()
        number, data = self._newest()
        seen: Holder | None = None
        while True:
            holder: Holder | None = None
            if data is not None and data != _DONE and (following := self.store.read(_name(number + 1))) is not None:
                number, data, self._has_walked = number + 1, following, True  # the listing was old
                continue
            if data is not None and data != _DONE:
                holder = self._not_alive(number, data, seen)
                if not holder.is_dead():
                    newest, data = self._watch(number, holder)
                    self._has_walked = True
                    if newest != number:
                        number, seen = newest, holder
                        continue
            self._before = data or b""
            if self._take(number + 1, holder):
                return holder
            following = self.store.read(_name(number + 1))
            if following is None or (number == 0 and self._is_over()):
                number, data = self._newest(pause=True)
            else:
                number, data, self._has_walked = number + 1, following, True

    def _take(self, number: int, followed: Holder | None) -> bool:
        """Create a number, and return whether it was the next one. `followed`: the holder before, which may continue."""
        self._confirmed = self._renewed = self._clock()
        if not self.store.create(_name(number), self._data):
            return False
        try:
            if number == 1 and self._is_over():  # the listing that showed no numbers was old
                self.store.discard(_name(number))
                return False
            self.number = number
            # what is left of launches that have ended is removed with the first window, unless it piles up
            if followed is None and len(self._older) <= _CROWD:
                return True
            return self._settle(followed=followed is not None)
        except BaseException:
            with suppress(Exception):
                self.store.discard(_name(number))  # the launch ends, and the one before may still be at work
            raise

    def keep_renewing(self) -> None:
        """Renew the lease from a thread of its own, until the lock is released or lost."""
        threading.Thread(target=self._renew_often, name="dagflow-lease", daemon=True).start()

    def renew(self) -> None:
        """Take the next number. Raises LeaseLost."""
        with self._mutex:
            if self._ended.is_set():
                return
            self.raise_if_lost()
            if not self._is_settled and not self._settle():
                self._lose()
            began, following = self._clock(), _name(self.number + 1)
            if not self.store.create(following, self._data) and self.store.read(following) != self._data:
                self._lose()
            if self.store.read(_name(self.number)) != self._data:  # the next number was free because it had been removed
                self.store.discard(following)
                self._lose()
            self._remove([self.number - 1])  # a launch that watches this number looks for the next one
            self.number += 1
            self._confirmed = self._renewed = began

    def confirm(self) -> None:
        """Make sure that no other launch has followed this one. Raises LeaseLost."""
        with self._mutex:
            self.raise_if_lost()
            began = self._clock()
            is_held = self._settle() if not self._is_settled else self.store.read(_name(self.number)) == self._data
            if not is_held:
                self._lose()
            self._confirmed = began

    def check(self, max_age: float | None = None) -> None:
        """Do what `confirm` does, but read only if the last read or renewal was more than `max_age` seconds ago.

        None: half a lease, so that there is no read as long as renewals succeed. Raises LeaseLost.
        """
        self.raise_if_lost()
        if not self._is_settled or self._clock() - self._confirmed > (self.lease / 2 if max_age is None else max_age):
            self.confirm()

    def raise_if_lost(self) -> None:
        """Raise LeaseLost if another launch is known to have followed."""
        if self._lost is not None:
            raise self._lost

    def release(self) -> None:
        """Let the next launch follow at once."""
        self._ended.set()
        with self._mutex:
            if self._lost is not None:
                return
            if self._is_late() and not self._is_settled and not self._settle():
                return
            following = _name(self.number + 1)
            is_created = self.store.create(following, _DONE)
            if is_created and self._is_late() and self.store.read(_name(self.number)) != self._data:
                self.store.discard(following)  # another launch has followed: the next number was free because it had been removed

    # ------------------------------------------------------------------------------------------------------------- others

    def _not_alive(self, number: int, data: bytes, seen: Holder | None) -> Holder:
        """Return a holder unless it is known to be alive. Raises FolderInUse. `seen`: the holder of the number before."""
        holder = Holder.from_bytes(data)
        if holder is None:
            raise in_use(self.folder, None, remove=join(self.folder, _name(number)))
        if holder.is_dead():
            return holder
        has_renewed = seen is not None and holder.token == seen.token
        if holder.is_observable() or has_renewed:
            raise in_use(self.folder, holder)
        if not holder.lease:  # of a version without leases
            raise in_use(self.folder, holder, remove=join(self.folder, _name(number)))
        return holder

    def _watch(self, number: int, holder: Holder) -> tuple[int, bytes | None]:
        """Wait for the end of a holder's lease, or for another number. Return the newest number and its record."""
        self._waiting(holder)
        end = self._clock() + holder.lease
        while (left := end - self._clock()) > _NOTHING:
            self._sleep(min(left, holder.lease / _LOOKS))
            try:
                following = self.store.read(_name(number + 1))
            except Exception as error:
                if not is_transient(error):
                    raise
                continue  # a renewal that is not seen is found when the next number is taken
            if following is not None:
                return number + 1, following
        return self._newest()  # renewals that came faster than the looks

    def _newest(self, pause: bool = False) -> tuple[int, bytes | None]:
        """Return the newest number and its record, 0 and None without one. A listing with records that are gone is old."""
        looks = 0
        for attempt in range(_LISTINGS):
            if pause or attempt:
                self._sleep(_PAUSE)
            self._older = self._numbers()
            newest = max(self._older, default=0)
            if not self._older and not (pause and self._is_over()):
                return 0, None
            looks += self._older == [0]
            data = self.store.read(_name(newest)) if newest else None
            if newest == 1 and data is not None and self._is_over():
                if self.store.read(_name(2)) is None:  # of a launch that died before it looked for number 0
                    self.store.discard(_name(1))
            elif data is not None:
                return newest, data
        if looks == _LISTINGS:  # the others were removed by hand
            raise in_use(self.folder, None, remove=join(self.folder, _name(0)))
        reason = "its listings show records that are no longer there"
        raise StorageBusy(path=self.folder, doing="taking the run folder's lock", reason=reason)

    def _is_over(self) -> bool:
        """Return whether number 1 was followed and removed, or is about to be."""
        return self.store.read(_name(0)) is not None

    def _numbers(self) -> list[int]:
        words = (name.rpartition("/")[2] for name in self.store.names(f"{FOLDER}/"))
        return sorted(int(word) for word in words if word.isdecimal())

    # ---------------------------------------------------------------------------------------------------------- this launch

    def _settle(self, followed: bool = False) -> bool:
        """Return whether this launch's number is the newest, and remove those before; `followed`: their holder may continue."""
        before = self.number - 1
        # a launch that follows removes number 1
        is_newest = self.store.read(_name(before or self.number)) == (self._before if before else self._data)
        if is_newest and (followed or self._has_walked):
            is_newest = max(self._numbers(), default=0) <= self.number
        if not is_newest:
            self.store.discard(_name(self.number))
            return False
        if followed:  # all that can be there: a listing may be old
            self._remove(range(before - 2 * _CROWD, self.number))
        elif len(self._older) > _CROWD:
            self._remove(number for number in self._older if number < self.number)
        self._is_settled = True
        return True

    def _is_late(self) -> bool:
        """Return whether another launch may have followed: the newest number is not from just now."""
        return self._clock() - self._renewed > self.lease / 2

    def _remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number == 1:
                self.store.create(_name(0), _DONE)
            if number > 0:
                self.store.discard(_name(number))

    def _renew_often(self) -> None:
        pause = self.lease / _RENEWALS
        while not self._ended.wait(pause):
            try:
                self.renew()
                pause, self._failure = self.lease / _RENEWALS, ""
            except LeaseLost:  # the run's thread finds it at its next step
                return
            except Exception as error:  # noqa: BLE001  # the store may work again before the lease ends
                pause, self._failure = self.lease / _LOOKS, f"{type(error).__name__}: {error}"

    def _lose(self) -> NoReturn:
        """Note that another launch has followed, and raise LeaseLost with its name."""
        holder: Holder | None = None
        with suppress(Exception):  # the store may not answer: then the message says less
            holder = newest_holder(self.store)
        who: dict[str, Any] = {}
        if holder is not None:
            who = {"pid": holder.pid, "host": holder.host, "since": holder.since, "who": holder.who}
        self._lost = LeaseLost(folder=self.folder, lease=self.lease, reason=self._failure, **who)
        raise self._lost


def newest_holder(store: Store) -> Holder | None:
    """Return the holder of the newest number, which may be dead; None if it was released, or without numbers."""
    names = store.names(f"{FOLDER}/")
    return Holder.from_bytes(store.read(names[-1]) or b"") if names else None


def in_use(folder: str, holder: Holder | None, remove: str | None = None) -> FolderInUse:
    """Return the error for a folder that another launch holds."""
    if holder is None:
        return FolderInUse(folder=folder, remove=remove)
    return FolderInUse(folder=folder, pid=holder.pid, host=holder.host, since=holder.since, who=holder.who, remove=remove)


def _name(number: int) -> str:
    return f"{FOLDER}/{number:010d}"
