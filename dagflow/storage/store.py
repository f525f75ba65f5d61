"""Publishing: a record appears under its name complete, once and permanently, or not at all.

Commits need one operation only: create-if-absent. Of any number of writers of one name, exactly one wins, and all readers get its
bytes. Records are never overwritten or renamed. The bytes of a record should say which attempt wrote them, so that a writer knows
its own record after a lost answer.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, runtime_checkable

from dagflow.errors import DagflowError
from dagflow.storage.errors import BadRecordName, StoreRefused

_LISTINGS = 21  # of a new record, until a store is refused that does not show it
_PAUSE = 0.25  # seconds between them


@runtime_checkable
class Store(Protocol):
    """Named records. Names have parts joined by `/` (`plans/00000000000000000007`); no part is empty or begins with a dot.

    A name is not the folder of others (`plans` and `plans/7`): disks do not allow that.
    """

    @property
    def url(self) -> str:
        """The place of the records, for messages."""
        ...

    def create(self, name: str, data: bytes | memoryview) -> bool:
        """Publish a record if there is none of that name. Return True if this call did it, False if the name exists.

        An object store may lose the answer to a write, and finds its own record by its bytes then. So on object stores, the call
        also returns True if another writer has published the same bytes.

        Raises OutcomeUnknown if neither is certain, and StorageError if nothing was published, or if the disk failed before the
        record was durable. After any exception, calling again is safe.
        """
        ...

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a record; None if there is none of that name."""
        ...

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes] | None:
        """Return the bytes of a record in ranges `[start, stop)`, fewer where it ends before; None if there is no such record.

        Each range begins within the record: object stores refuse others.
        """
        ...

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with a prefix (which may end within a word), sorted."""
        ...

    def discard(self, name: str) -> None:
        """Remove a record that nothing refers to any more, if it exists. This is not a way to undo."""
        ...

    def discard_all(self, names: Sequence[str]) -> None:
        """Remove several records, as `discard` does, in no order. S3 takes one request for a thousand."""
        ...


def check_name(name: str) -> str:
    """Return a valid name of a record.

    >>> check_name("plans/0007")
    'plans/0007'

    Raises BadRecordName otherwise.
    """
    if not is_name(name):
        raise BadRecordName(name)
    return name


def is_name(name: object) -> bool:
    """Return whether a value is a valid name of a record."""
    return isinstance(name, str) and "\0" not in name and not any(word[:1] in ("", ".") for word in name.split("/"))


class MemoryStore:
    """Records in this process, for tests.

    >>> store = MemoryStore()
    >>> store.create("log/0", b"first"), store.create("log/0", b"second"), store.read("log/0")
    (True, False, b'first')
    """

    url = "memory://store"

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def create(self, name: str, data: bytes | memoryview) -> bool:
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

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes] | None:
        """See `Store.read_ranges`."""
        data = self.read(name)
        return None if data is None else [data[start:stop] for start, stop in ranges]

    def names(self, prefix: str = "") -> list[str]:
        """See `Store.names`."""
        with self._lock:
            return sorted(name for name in self._records if name.startswith(prefix))

    def discard(self, name: str) -> None:
        """See `Store.discard`."""
        with self._lock:
            self._records.pop(check_name(name), None)

    def discard_all(self, names: Sequence[str]) -> None:
        """See `Store.discard_all`."""
        for name in names:
            self.discard(name)


def probe(store: Store, *, racers: int = 4, rounds: int = 2, is_shared: bool = False) -> None:
    """Check that a store publishes as it must, and leave nothing behind. Takes about 30 calls: once per launch.

    The records of a check that was killed are removed, too, unless `is_shared`: others may check the same folder meanwhile.

    Some stores ignore the condition "only if absent"; two calls in turn find that for sure. Others check first and write then;
    `racers` threads that publish one name at the same time, `rounds` times, are likely to find it.

    >>> probe(MemoryStore())

    Raises StoreRefused with what went wrong.
    """
    token = os.urandom(8).hex()
    used = [f"probe/{token}.{number}" for number in range(rounds + 1)]
    try:
        try:
            left = [name for name in _probe_in_turn(store, used[0]) if "." in name]  # an executor's mark has no dot
            store.discard_all([name for name in left if name not in used and not is_shared])
            for name in used[1:]:
                _probe_race(store, name, racers)
        finally:
            store.discard_all(used)
    except DagflowError:
        raise
    except Exception as error:
        raise StoreRefused(url=store.url, why=f"the check of the store failed ({type(error).__name__}: {error})") from error


def _probe_in_turn(store: Store, name: str) -> list[str]:
    """Publish a name twice. Return the names that are listed beside it."""
    answers = [store.create(name, b"first"), store.create(name, b"second")]
    stored = store.read(name)
    if answers != [True, False] or stored != b"first":
        why = f"a second record of one name was not refused (it answered {answers} and holds {stored!r})"
        raise StoreRefused(url=store.url, why=why)
    for attempt in range(_LISTINGS):
        if attempt:
            time.sleep(_PAUSE)
        listed = store.names(name.rpartition("/")[0] + "/")
        if name in listed:
            return listed
    why = f"a record that was published {(_LISTINGS - 1) * _PAUSE:g} s ago is not listed"
    raise StoreRefused(url=store.url, why=why)


def _probe_race(store: Store, name: str, racers: int) -> None:
    barrier = threading.Barrier(racers)

    def run(number: int) -> bool:
        barrier.wait()
        return store.create(name, b"racer %d" % number)

    with ThreadPoolExecutor(racers) as pool:
        answers = list(pool.map(run, range(racers)))
    winners = [number for number, won in enumerate(answers) if won]
    stored = store.read(name)
    if len(winners) != 1 or stored != b"racer %d" % winners[0]:
        raise StoreRefused(url=store.url, why=f"of {racers} writers of one name, {len(winners)} were told that they won")
