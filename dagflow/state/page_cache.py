"""A cache of segments on a local disk, for run folders on object stores: pages of them, since lookups read few blocks of many.

Segments never change, so a page stays right. Each has a digest of its own, and a page that does not fit it is read again from the
store. The pages of all runs of a user are in one SQLite database in the user's cache folder; those not used for the longest time
go first. Whatever is wrong with the cache, reading from the store goes on.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from dagflow.storage import Store
from dagflow.storage.local.cache import cache_folder
from dagflow.storage.urls import split_url

PAGE = 16 << 10
MAX_BYTES = 2 << 30
"""The bytes of all pages, about."""
_CHECKED = 256  # pages that are added between two looks at the size
_TICK = 600  # seconds: the time of use is noted as often as this
_TABLE = """CREATE TABLE IF NOT EXISTS pages (
    segment BLOB, number INTEGER, used INTEGER, digest BLOB, data BLOB, UNIQUE (segment, number)
)"""


class PageCache:
    """The pages that are on the disk, up to `max_bytes`."""

    def __init__(self, file: Path, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.time) -> None:
        self._file, self._max_bytes, self._clock = file, max_bytes, clock
        self._lock = threading.Lock()
        self._added = 0
        self._database: sqlite3.Connection | None = self._opened() or self._opened(anew=True)

    def get(self, segment: bytes, numbers: Iterable[int]) -> dict[int, bytes]:
        """Return those of some pages of a segment that are there, and are as they were put."""
        pages: dict[int, bytes] = {}
        stale, tick = [], int(self._clock() // _TICK)

        def read(database: sqlite3.Connection) -> None:
            for number in numbers:
                query = "SELECT used, digest, data FROM pages WHERE segment = ? AND number = ?"
                row = database.execute(query, (segment, number)).fetchone()
                if row is not None and _digest(segment, number, row[2]) == row[1]:
                    pages[number] = row[2]
                    if row[0] != tick:
                        stale.append((tick, segment, number))
            if stale:
                database.executemany("UPDATE pages SET used = ? WHERE segment = ? AND number = ?", stale)

        self._do(read)
        return pages

    def put(self, segment: bytes, pages: Mapping[int, bytes]) -> None:
        """Keep pages of a segment."""
        tick = int(self._clock() // _TICK)
        rows = [(segment, number, tick, _digest(segment, number, data), data) for number, data in pages.items() if data]
        self._added += len(rows)

        def write(database: sqlite3.Connection) -> None:
            database.executemany("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?)", rows)
            if self._added >= _CHECKED:
                self._added = 0
                self._make_room(database)

        self._do(write)

    def _make_room(self, database: sqlite3.Connection) -> None:
        """Remove the pages that were not used for the longest time, a quarter of all, if there are too many."""
        (pages,) = database.execute("SELECT count(*) FROM pages").fetchone()
        if pages * PAGE > self._max_bytes:
            oldest = "SELECT rowid FROM pages ORDER BY used, rowid LIMIT ?"
            database.execute(f"DELETE FROM pages WHERE rowid IN ({oldest})", (pages - self._max_bytes * 3 // 4 // PAGE,))

    def _do(self, action: Callable[[sqlite3.Connection], None]) -> None:
        with self._lock:
            if self._database is None:
                return
            try:
                with self._database:
                    action(self._database)
            except sqlite3.OperationalError:  # other processes are busy with it, or the disk is full
                pass
            except sqlite3.Error:  # it is damaged: it is made anew by the next process
                self._database.close()
                self._database = None
                self._remove()

    def _opened(self, *, anew: bool = False) -> sqlite3.Connection | None:
        if anew:
            self._remove()
        try:
            database = sqlite3.connect(self._file, timeout=1, check_same_thread=False)
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = OFF")  # what a power cut spoils does not fit its digest
            database.execute(_TABLE)
            return database
        except sqlite3.Error:
            return None

    def _remove(self) -> None:
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                os.unlink(f"{self._file}{end}")


def _digest(segment: bytes, number: int, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16, key=segment, salt=number.to_bytes(8, "big")).digest()


@attrs.define
class CachedStore:
    """The segments of a store, whose pages are kept in a cache when they are written or read. See `Store`.

    >>> import tempfile
    >>> from dagflow.storage import MemoryStore
    >>> store = CachedStore(MemoryStore(), PageCache(Path(tempfile.mkdtemp()) / "pages"))
    >>> store.create("state/1", b"rows")
    True
    >>> store.read_ranges("state/1", [(1, 3), (2, 9)])
    [b'ow', b'ws']
    """

    store: Store
    cache: PageCache

    @property
    def url(self) -> str:
        """The place of the records, for messages."""
        return self.store.url

    def create(self, name: str, data: bytes | memoryview) -> bool:
        """See `Store.create`."""
        created = self.store.create(name, data)
        if created:
            pages = range(-(-len(data) // PAGE))
            self.cache.put(self._segment(name), {number: bytes(data[number * PAGE : (number + 1) * PAGE]) for number in pages})
        return created

    def read(self, name: str) -> bytes | None:
        """See `Store.read`."""
        return self.store.read(name)

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes] | None:
        """See `Store.read_ranges`."""
        segment = self._segment(name)
        numbers = sorted({number for start, stop in ranges for number in range(start // PAGE, -(-stop // PAGE))})
        pages = self.cache.get(segment, numbers)
        if missing := [number for number in numbers if number not in pages]:
            runs = self._runs(missing, ranges)
            pieces = self.store.read_ranges(name, [(first * PAGE, stop * PAGE) for first, stop in runs])
            if pieces is None:
                return None
            fresh = {
                number: data[(number - first) * PAGE : (number - first + 1) * PAGE]
                for (first, stop), data in zip(runs, pieces, strict=True)
                for number in range(first, stop)
            }
            self.cache.put(segment, fresh)
            pages |= fresh
        return [self._part(pages, start, stop) for start, stop in ranges]

    def names(self, prefix: str = "") -> list[str]:
        """See `Store.names`."""
        return self.store.names(prefix)

    def discard(self, name: str) -> None:
        """See `Store.discard`."""
        self.store.discard(name)

    def discard_all(self, names: Sequence[str]) -> None:
        """See `Store.discard_all`."""
        self.store.discard_all(names)

    def _segment(self, name: str) -> bytes:
        return hashlib.blake2b(f"{self.url}/{name}".encode(), digest_size=16).digest()

    @staticmethod
    def _runs(missing: Sequence[int], ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return pages that follow each other together. A page that a range has one byte of may begin at the end of the record.

        So it is read with the page before it: object stores refuse ranges that begin there.
        """
        ends = {stop // PAGE for start, stop in ranges if stop % PAGE == 1 and stop - start > 1}
        runs: list[tuple[int, int]] = []
        for number in missing:
            first = number - 1 if number in ends else number
            if runs and runs[-1][1] >= first:
                runs[-1] = runs[-1][0], number + 1
            else:
                runs.append((first, number + 1))
        return runs

    @staticmethod
    def _part(pages: Mapping[int, bytes], start: int, stop: int) -> bytes:
        first = start // PAGE
        whole = b"".join(pages[number] for number in range(first, -(-stop // PAGE)))
        return whole[start - first * PAGE : stop - first * PAGE]


@functools.cache
def _cache(file: Path) -> PageCache:
    return PageCache(file)


def with_cache(store: Store) -> Store:
    """Return a store whose segments are cached, if it is on another machine, and the user has a folder for caches."""
    if split_url(store.url)[0] in ("file", "memory"):
        return store
    try:
        return CachedStore(store, _cache(cache_folder(os.environ) / "state-pages.sqlite"))
    except OSError:
        return store
