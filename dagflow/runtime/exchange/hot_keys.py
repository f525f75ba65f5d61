"""The hot keys of an exchange: the most frequent ones in a sample, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs

from dagflow.runtime.run_folder.reports import HOT_KEYS

_KEPT = 256
_CHARACTERS = 60
_SEEN = 8  # times that a key of a sample is seen before it counts: two sightings say little of its share


@attrs.define
class HotKeys:
    """Counts a sample of keys; when there are too many different ones, all counts fall by one (Misra and Gries, 1982).

    >>> hot = HotKeys(stride=1)
    >>> for key in "abacada":
    ...     hot.see(key)
    >>> hot.told()["'a'"]
    4
    """

    stride: int
    _counts: dict[Any, int] = attrs.field(factory=dict, init=False)

    def see(self, key: Any) -> None:
        """Add a key of the sample."""
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

    def see_all(self, keys: Sequence[Any]) -> None:
        """Add several keys of the sample. Those that come once among many are left out: none of them is hot."""
        try:
            counted = Counter(keys)
        except TypeError:
            counted = None
        if counted is None or len(keys) < _KEPT:
            for key in keys:
                self.see(key)
            return
        for key, count in counted.items():
            if count > 1:
                self.see(key)
                if key in self._counts:
                    self._counts[key] += count - 1

    def told(self) -> dict[str, int]:
        """Return the hottest keys as text, with their approximate numbers of records."""
        commonest = sorted(self._counts.items(), key=lambda item: -item[1])[: 4 * HOT_KEYS]
        least = 2 if self.stride == 1 else _SEEN
        return {repr(key)[:_CHARACTERS]: n * self.stride for key, n in commonest if n >= least}
