"""One launch at a time on a run folder.

On disks this is a lock of the operating system (`flock`), which vanishes with its process, however that dies. On object stores
launches number themselves: the launch that creates the next number holds the folder, and only a holder that is certainly dead, or
that has reported its end, is followed by another.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Self

from dagflow.storage.errors import FolderInUse
from dagflow.storage.explain import explained
from dagflow.storage.holder import Holder
from dagflow.storage.open import open_store
from dagflow.storage.store import Store
from dagflow.storage.urls import join, local_path

_FILE = ".lock"
_NUMBERS = "_lock"
_DONE = b"done\n"
_NO_FLOCK = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL})


class FolderLock:
    """A lock on a run folder (path or URL), held by this process: a context manager, or `acquire` and `release`.

    After `acquire`, `abandoned_by` is the holder that died without releasing; None if the last one released it. `who` is shown to
    launches that are refused. It must not be a command line, which may hold secrets.

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
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.folder = folder
        self.who = who
        self.abandoned_by: Holder | None = None
        self._now = now
        self._sleep = sleep
        self._descriptor: int | None = None
        self._numbers: _NumberedLock | None = None

    @property
    def is_held(self) -> bool:
        """Return whether this object holds the folder."""
        return self._descriptor is not None or self._numbers is not None

    def acquire(self) -> None:
        """Lock the folder, which is made if need be. Raises FolderInUse at once if another launch holds it."""
        if self.is_held:
            raise RuntimeError(f"this lock on {self.folder} is held already")
        me = Holder.this_process(now=self._now(), who=self.who)
        plain = local_path(self.folder)
        if plain is None or not self._acquire_flock(plain, me):
            numbers = _NumberedLock(self.folder, open_store(self.folder, durable=False))
            self.abandoned_by = numbers.acquire(me)
            self._numbers = numbers
        _HELD.add(self)

    def release(self) -> None:
        """Unlock the folder, if it is held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.ftruncate(descriptor, 0)
            finally:
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
                        os.ftruncate(descriptor, 0)
                        os.pwrite(descriptor, me.to_bytes(), 0)
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
            raise _in_use(self.folder, self._read_holder(descriptor)) from None
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


class _NumberedLock:
    """The launches of a folder, numbered by create-if-absent; the highest number is the holder.

    A number is never taken away from a holder, only followed: so two that find the same dead holder cannot both succeed it.
    """

    def __init__(self, folder: str, store: Store) -> None:
        self.folder = folder
        self.store = store
        self.number = -1

    def acquire(self, me: Holder) -> Holder | None:
        abandoned: Holder | None = None
        while True:
            numbers = self._numbers()
            last = numbers[-1] if numbers else 0
            if numbers:
                abandoned = self._refuse_if_alive(last)
            if self.store.create(self._name(last + 1), me.to_bytes()):
                # The list may have been old: a number far below the newest was free because it had been cleared away.
                if self._numbers()[-1] == last + 1:
                    self.number = last + 1
                    for old in numbers:
                        self.store.discard(self._name(old))
                    return abandoned
                self.store.discard(self._name(last + 1))

    def release(self) -> None:
        self.store.create(self._name(self.number + 1), _DONE)
        self.store.discard(self._name(self.number))

    def _refuse_if_alive(self, number: int) -> Holder | None:
        """Return the holder if it is dead; None if it has released the lock. Raises FolderInUse if it may be alive."""
        name = self._name(number)
        data = self.store.read(name)
        if data is None or data == _DONE:
            return None
        holder = Holder.from_bytes(data)
        if holder is None or not holder.is_dead():
            # A process on this machine is known to be alive; for others, the user has to decide.
            elsewhere = holder is None or holder.host != socket.gethostname()
            raise _in_use(self.folder, holder, remove=join(self.folder, name) if elsewhere else None)
        return holder

    def _numbers(self) -> list[int]:
        words = (name.rpartition("/")[2] for name in self.store.names(f"{_NUMBERS}/"))
        return sorted(int(word) for word in words if word.isdecimal())

    def _name(self, number: int) -> str:
        return f"{_NUMBERS}/{number:010d}"


def _in_use(folder: str, holder: Holder | None, remove: str | None = None) -> FolderInUse:
    if holder is None:
        return FolderInUse(folder=folder, remove=remove)
    return FolderInUse(folder=folder, pid=holder.pid, host=holder.host, since=holder.since, who=holder.who, remove=remove)


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
