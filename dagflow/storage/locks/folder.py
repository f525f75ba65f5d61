"""One launch at a time on a run folder.

On disks this is a lock of the operating system (`flock`), which vanishes with its process, however that dies. On object stores,
and on file systems without `flock`, it is a numbered record with a lease (`numbers`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
import uuid
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from dagflow.storage.explain import explained
from dagflow.storage.local.files import sync_descriptor
from dagflow.storage.locks.holder import Holder
from dagflow.storage.locks.numbers import LEASE, NumberedLock, in_use, newest_holder
from dagflow.storage.open import open_store
from dagflow.storage.records.bounded import max_bytes, read_regular
from dagflow.storage.urls import local_path

_FILE = ".lock"
_NO_FLOCK = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL})


class FolderLock:
    """A lock on a run folder (path or URL), held by this process: a context manager, or `acquire` and `release`.

    After `acquire`, `abandoned_by` is the holder that did not release the lock; None if the last one released it. It has died, or
    it is on another host and has not renewed its lease. Such a holder may continue later. So a holder calls `check` before it
    writes, with a short `max_age` between a commit and what follows from it, and `confirm` in the end.

    `is_before_boot`: the machine has started since the lock was last held (on a disk). A power cut may have taken what that
    holder did not sync, even if it released the lock.

    Args:
        who: shown to launches that are refused. It must not be a command line, which may hold secrets.
        lease: the seconds that a lock on an object store lasts unless it is renewed, which a thread does.
        durable: whether `abandoned_by` tells of a holder that a power cut has ended, too: one sync of the disk.
        now: the seconds since the epoch, for messages.
        clock, sleep: the seconds from any moment on, by a clock that does not go back; and waiting by it.
        waiting: called with a holder on another host, before `acquire` waits whether it renews its lease.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, FolderLock(folder, who="the first"):  # doctest: +ELLIPSIS
    ...     FolderLock(folder).acquire()
    Traceback (most recent call last):
    dagflow.storage.errors.FolderInUse: ... in use by process ... (the first): two launches cannot use the same folder. ...

    Children made by fork do not inherit the lock. The lock file stays when the lock is released, and must stay while others use
    the folder: a caller that removes the folder's contents leaves `.lock` and `_lock`.
    """

    def __init__(
        self,
        folder: str,
        *,
        who: str = "",
        lease: float = LEASE,
        durable: bool = False,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        waiting: Callable[[Holder], None] = lambda holder: None,
    ) -> None:
        self.folder = folder
        self.who = who
        self.lease = lease
        self.durable = durable
        self.abandoned_by: Holder | None = None
        self.is_before_boot = False
        self._now = now
        self._clock = clock
        self._sleep = sleep
        self._waiting = waiting
        self._descriptor: int | None = None
        self._numbers: NumberedLock | None = None

    @property
    def is_held(self) -> bool:
        """Return whether this object holds the folder."""
        return self._descriptor is not None or self._numbers is not None

    def acquire(self) -> None:
        """Lock the folder, which is made if need be.

        Raises FolderInUse if another launch holds it: at once on disks, and if that launch is on this host; else once it renews
        its lease.
        """
        if self.is_held:
            raise RuntimeError(f"this lock on {self.folder} is held already")
        plain = local_path(self.folder)
        if plain is None or not self._acquire_flock(plain, Holder.this_process(now=self._now(), who=self.who)):
            numbers = NumberedLock(
                self.folder,
                open_store(self.folder, durable=False),
                lease=self.lease,
                clock=self._clock,
                sleep=self._sleep,
                waiting=self._waiting,
            )
            token = uuid.uuid4().hex
            self.abandoned_by = numbers.acquire(Holder.this_process(now=self._now(), who=self.who, lease=self.lease, token=token))
            numbers.keep_renewing()
            self._numbers = numbers
        _HELD.add(self)

    def renew(self) -> None:
        """Renew the lease of a lock on an object store, as a thread does by itself. Raises LeaseLost."""
        if self._numbers is not None:
            self._numbers.renew()

    def check(self, max_age: float | None = None) -> None:
        """Raise LeaseLost if another launch is known to hold the folder.

        Reads only if the last read or renewal of the lease was more than `max_age` seconds ago; None: if a renewal is overdue.
        """
        if self._numbers is not None:
            self._numbers.check(max_age)

    def confirm(self) -> None:
        """Raise LeaseLost if another launch holds the folder. One read on object stores, nothing on disks."""
        if self._numbers is not None:
            self._numbers.confirm()

    def raise_if_lost(self) -> None:
        """Raise LeaseLost if another launch is known to hold the folder. Never reads."""
        if self._numbers is not None:
            self._numbers.raise_if_lost()

    def release(self) -> None:
        """Unlock the folder, if it is held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):  # a failing disk: the next holder looks after what this one seems to have left
                os.ftruncate(descriptor, 0)
            os.close(descriptor)
        numbers, self._numbers = self._numbers, None
        if numbers is not None:
            numbers.release()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def _acquire_flock(self, folder: str, me: Holder) -> bool:
        """Lock by `flock`. Return False if the file system does not support it."""
        path = os.path.join(folder, _FILE)
        with explained(path, "taking the run folder's lock"):
            os.makedirs(folder or ".", exist_ok=True)
            while True:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
                try:
                    if not self._try_flock(descriptor):
                        return False
                    if _is_file(descriptor, path):
                        # A holder that has released the lock leaves an empty file.
                        self.abandoned_by = Holder.from_bytes(_content(descriptor))
                        # by the clocks of the machine; the monotonic one may stand still while it sleeps, which does no harm
                        self.is_before_boot = os.fstat(descriptor).st_mtime < time.time() - time.monotonic()
                        os.ftruncate(descriptor, 0)
                        os.pwrite(descriptor, me.to_bytes(), 0)
                        if self.durable:
                            sync_descriptor(descriptor)
                        self._descriptor = descriptor
                        return True
                    # Another process removed the file between opening and locking: the lock is on nothing.
                finally:
                    if self._descriptor != descriptor:
                        os.close(descriptor)

    def _try_flock(self, descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise in_use(self.folder, self._read_holder(descriptor)) from None
        except OSError as error:
            if error.errno in _NO_FLOCK:
                return False
            raise
        return True

    def _read_holder(self, descriptor: int) -> Holder | None:
        """Return the holder of a lock that was refused. It may not have written its name yet, so try for a moment."""
        for _ in range(25):
            holder = Holder.from_bytes(_content(descriptor))
            if holder is not None and not holder.is_dead():
                return holder
            self._sleep(0.01)
        return None


def lock_holder(folder: str) -> Holder | None:
    """Return the process that has noted itself as the holder of a run folder, which may be dead; None for none. Locks nothing."""
    plain = local_path(folder)
    if plain is not None:
        with suppress(OSError):
            if (holder := Holder.from_bytes(read_regular(os.path.join(plain, _FILE), max_bytes(_FILE)))) is not None:
                return holder
    return newest_holder(open_store(folder, durable=False))


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, 65536, 0)


def _is_file(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


_HELD: weakref.WeakSet[FolderLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """Let go of the locks in a child made by fork: it shares them, and would keep them after the death of the parent."""
    for lock in list(_HELD):
        descriptor, lock._descriptor = lock._descriptor, None
        lock._numbers = None
        if descriptor is not None:
            os.close(descriptor)


os.register_at_fork(after_in_child=_let_go_in_child)
