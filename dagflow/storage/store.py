"""Publishing: a record appears under its name whole, once, and for good, or not at all.

Create-if-absent is the only primitive on which commits rest: of any number of writers of one name exactly one wins, and
everybody reads the winner's bytes. There is no overwriting and no renaming. A record's bytes should say who wrote them (an
attempt's id): after a lost answer, that is how a writer knows its own record.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, runtime_checkable

from dagflow.errors import DagflowError
from dagflow.storage.errors import BadRecordName, StoreRefused
from dagflow.storage.urls import split_url


@runtime_checkable
class Store(Protocol):
    """Named records. Names are words joined by `/` (`plans/00000000000000000007`); no word is empty or begins with a dot.

    No name is also the folder of others (`plans` and `plans/7`): on disks, it cannot be.
    """

    @property
    def url(self) -> str:
        """The place of the records, for messages."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Publishes a record if there is none of that name: True when this call did it, False when the name exists.

        Raises OutcomeUnknown when neither could be found out, StorageError when nothing was published or (the disk failed while
        the record was being secured) it is not known to be durable. After any exception, calling again is safe.
        """
        ...

    def read(self, name: str) -> bytes | None:
        """A record's bytes, None when there is none of that name."""
        ...

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin with a prefix (which may end within a word), sorted."""
        ...

    def discard(self, name: str) -> None:
        """Removes a record that nothing refers to any more; fine when it is gone. Never a way to undo."""
        ...


def check_name(name: str) -> str:
    """The name, if it may be one.

    >>> check_name("plans/0007")
    'plans/0007'

    Raises BadRecordName otherwise.
    """
    if not is_name(name):
        raise BadRecordName(name)
    return name


def is_name(name: object) -> bool:
    """Return whether it is a valid name for a record."""
    return isinstance(name, str) and "\0" not in name and not any(word[:1] in ("", ".") for word in name.split("/"))


class MemoryStore:
    """Records in this process, for tests.

    >>> store = MemoryStore()
    >>> store.create("log/0", b"first"), store.create("log/0", b"second"), store.read("log/0")
    (True, False, b'first')
    """

    url = "memory store"

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def create(self, name: str, data: bytes) -> bool:
        """See `Store.create`."""
        check_name(name)
        with self._lock:
            if name in self._records:
                return False
            self._records[name] = bytes(data)
            return True

    def read(self, name: str) -> bytes | None:
        """See `Store.read`."""
        return self._records.get(check_name(name))

    def names(self, prefix: str = "") -> list[str]:
        """See `Store.names`."""
        with self._lock:
            return sorted(name for name in self._records if name.startswith(prefix))

    def discard(self, name: str) -> None:
        """See `Store.discard`."""
        with self._lock:
            self._records.pop(check_name(name), None)


def open_store(url: str, *, durable: bool = True) -> Store:
    """The store in a folder, by path or URL; `durable`: records survive a power cut, not only kills.

    Raises StoreRefused for kinds of URL that cannot publish, UnknownScheme and DriverMissing. Whether the place really keeps
    the promise is for `probe` to find out, once, before a run.
    """
    scheme, path = split_url(url)
    if scheme == "file":
        from dagflow.storage.local.store import LocalStore

        return LocalStore(path, durable=durable)
    from dagflow.storage.remote.store import FsspecStore

    return FsspecStore(url)


def probe(store: Store, *, racers: int = 4, rounds: int = 2) -> None:
    """Tries whether a store publishes as it must, and leaves nothing behind: about 30 calls, so once a launch.

    Some stores ignore the condition "only if absent", or look first and write then: the first is found for sure, the second by
    `racers` threads that publish one name at the same time, `rounds` times.

    >>> probe(MemoryStore())

    Raises StoreRefused with what went wrong.
    """
    token = os.urandom(8).hex()
    used = [f"probe/{token}.{number}" for number in range(rounds + 1)]
    try:
        try:
            _probe_in_turn(store, used[0])
            for name in used[1:]:
                _probe_race(store, name, racers)
        finally:
            for name in used:
                store.discard(name)
    except DagflowError:
        raise
    except Exception as error:
        raise StoreRefused(url=store.url, why=f"trying it out failed ({type(error).__name__}: {error})") from error


def _probe_in_turn(store: Store, name: str) -> None:
    answers = [store.create(name, b"first"), store.create(name, b"second")]
    found = store.read(name)
    if answers != [True, False] or found != b"first":
        why = f"a second record of one name was not refused (it answered {answers} and holds {found!r})"
        raise StoreRefused(url=store.url, why=why)
    if name not in store.names(name.rpartition("/")[0] + "/"):
        raise StoreRefused(url=store.url, why="a record that was just published is not listed")


def _probe_race(store: Store, name: str, racers: int) -> None:
    barrier = threading.Barrier(racers)

    def run(number: int) -> bool:
        barrier.wait()
        return store.create(name, b"racer %d" % number)

    with ThreadPoolExecutor(racers) as pool:
        answers = list(pool.map(run, range(racers)))
    winners = [number for number, won in enumerate(answers) if won]
    found = store.read(name)
    if len(winners) != 1 or found != b"racer %d" % winners[0]:
        raise StoreRefused(url=store.url, why=f"of {racers} writers of one name, {len(winners)} were told that they won")
