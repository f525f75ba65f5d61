"""Which keys are hot: of a sample of the keys that go by, the most frequent ones, in bounded memory."""

from __future__ import annotations

from typing import Any

import attrs

_KEPT = 256
_TOLD = 5
_CHARACTERS = 60


@attrs.define
class Hottest:
    """Counts a sample of keys; when there are too many different ones, all counts fall by one (Misra and Gries, 1982).

    >>> hot = Hottest(stride=1)
    >>> for key in "abacada":
    ...     hot.see(key)
    >>> hot.told()["'a'"]
    4
    """

    stride: int
    _counts: dict[Any, int] = attrs.field(factory=dict, init=False)

    def see(self, key: Any) -> None:
        """A key of the sample."""
        counts = self._counts
        try:
            if key in counts:
                counts[key] += 1
                return
        except TypeError:  # a list: it has no hash of Python's
            key = repr(key)
            if key in counts:
                counts[key] += 1
                return
        if len(counts) < _KEPT:
            counts[key] = 1
            return
        for each in list(counts):
            counts[each] -= 1
            if not counts[each]:
                del counts[each]

    def told(self) -> dict[str, int]:
        """The hottest keys as text, with about how many records they have."""
        found = sorted(self._counts.items(), key=lambda item: -item[1])[: 4 * _TOLD]
        return {repr(key)[:_CHARACTERS]: n * self.stride for key, n in found if n > 1}


@attrs.define
class ExchangeFigures:
    """What went over an exchange.

    Attributes:
        records: how many were sent, after combining; `before`: how many there were before.
        rows, bytes: in how many blobs.
        hottest: the hottest keys of a sample, each with about how many records had it before combining.
    """

    records: int = 0
    before: int = 0
    rows: int = 0
    bytes: int = 0
    hottest: dict[str, int] = attrs.field(factory=dict)

    def add(self, other: ExchangeFigures) -> None:
        """Sums."""
        self.records += other.records
        self.before += other.before
        self.rows += other.rows
        self.bytes += other.bytes
        for key, n in other.hottest.items():
            self.hottest[key] = self.hottest.get(key, 0) + n
        self.hottest = dict(sorted(self.hottest.items(), key=lambda item: -item[1])[: 4 * _TOLD])

    def hot(self) -> dict[str, int]:
        """The keys that have a large part of all records: at least a twentieth."""
        return {key: n for key, n in list(self.hottest.items())[:_TOLD] if n * 20 >= self.before}
