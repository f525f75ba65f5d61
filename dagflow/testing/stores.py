"""Stores for tests: one that counts its calls, and fails on request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from dagflow.storage.store import MemoryStore, Store

Hook = Callable[[str, str], None]


class CountingStore:
    """A store that passes calls on to another one (a MemoryStore unless given), and counts them.

    `counts` says how often each of create, read, names and discard was called, `calls` with what, `bytes_created` how many bytes
    were given to create. `before(call, name)` and
    `after(call, name)` may raise: an exception from `after` is an answer that got lost, the call itself took effect.

    >>> store = CountingStore()
    >>> store.create("log/0", b"first"), store.read("log/0")
    (True, b'first')
    >>> store.counts["read"], store.calls
    (1, [('create', 'log/0'), ('read', 'log/0')])
    """

    def __init__(self, inner: Store | None = None, *, before: Hook | None = None, after: Hook | None = None) -> None:
        self.inner: Store = MemoryStore() if inner is None else inner
        self.before = before
        self.after = after
        self.counts: Counter[str] = Counter()
        self.calls: list[tuple[str, str]] = []
        self.bytes_created = 0

    @property
    def url(self) -> str:
        """The other store's."""
        return self.inner.url

    def create(self, name: str, data: bytes | memoryview) -> bool:
        """See `Store.create`."""
        self._begin("create", name)
        self.bytes_created += len(data)
        answer = self.inner.create(name, data)
        self._end("create", name)
        return answer

    def read(self, name: str) -> bytes | None:
        """See `Store.read`."""
        self._begin("read", name)
        answer = self.inner.read(name)
        self._end("read", name)
        return answer

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes] | None:
        """See `Store.read_ranges`; it counts as one read."""
        self._begin("read", name)
        answer = self.inner.read_ranges(name, ranges)
        self._end("read", name)
        return answer

    def names(self, prefix: str = "") -> list[str]:
        """See `Store.names`."""
        self._begin("names", prefix)
        answer = self.inner.names(prefix)
        self._end("names", prefix)
        return answer

    def discard(self, name: str) -> None:
        """See `Store.discard`."""
        self._begin("discard", name)
        self.inner.discard(name)
        self._end("discard", name)

    def discard_all(self, names: Sequence[str]) -> None:
        """See `Store.discard_all`."""
        for name in names:
            self.discard(name)

    def reset(self) -> None:
        """Forget the counts."""
        self.counts.clear()
        self.calls.clear()
        self.bytes_created = 0

    def _begin(self, call: str, name: str) -> None:
        self.counts[call] += 1
        self.calls.append((call, name))
        if self.before is not None:
            self.before(call, name)

    def _end(self, call: str, name: str) -> None:
        if self.after is not None:
            self.after(call, name)
