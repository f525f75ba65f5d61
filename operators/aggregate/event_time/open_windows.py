"""Windows of event time that may still change, kept as plain data over the windows of a run."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import attrs

from operators.aggregate.event_time.spans import Spans
from operators.aggregate.groups.grouping import Grouping, Groups
from operators.aggregate.groups.totals import as_plain, entry_of, from_plain, key_of


@attrs.frozen
class Firing:
    """The content of a window of a key when it fires, and how often it has fired before."""

    key: Any
    start: int
    value: Any
    count: int
    number: int


@attrs.frozen
class OpenWindows:
    """The windows of each key in a map over windows of the run.

    Attributes:
        entries: for each window and key the key, the value, the count, how often it has fired, and whether it has changed since.
    """

    entries: MutableMapping[str, list[Any]]
    grouping: Grouping
    spans: Spans

    def add(self, groups: Groups) -> None:
        """Add groups by `(start, key)`."""
        for (start, key), group in groups.items():
            entry = entry_of_window(start, key)
            _, before, total, firing, _ = self.entries.get(entry, [None, None, 0, 0, True])
            merged: Groups = {key: [from_plain(before), total]}
            self.grouping.add(merged, key, *group)
            value, count = merged[key]
            self.entries[entry] = [as_plain(key), as_plain(value), count, firing, True]

    def fire(self, *, is_end: bool) -> Iterator[Firing]:
        """Yield the windows that are due and have changed, at the end of a run all that have; and drop those that are over."""
        if self.spans.watermark is None and not is_end:
            return
        for entry in list(self.entries):
            start, _ = _split(entry)
            plain, value, count, firing, has_changed = self.entries[entry]
            if has_changed and (is_end or self.spans.is_due(start)):
                yield Firing(from_plain(plain), start, from_plain(value), count, firing)
                self.entries[entry] = [plain, value, count, firing + 1, False]
            if self.spans.is_over(start):
                del self.entries[entry]


def entry_of_window(start: int, key: Any) -> str:
    """Return the name under which a window of a key is kept, which shows whether the key is text or an integer."""
    entry = entry_of(key)
    return f"{start} #{entry}" if isinstance(entry, int) else f"{start} '{entry}"


def key_of_window(entry: str) -> Any:
    """Return a key that goes to the same partition as that of the window kept under a name."""
    return key_of(_split(entry)[1])


def _split(entry: str) -> tuple[int, str | int]:
    """Return the start of a window, and the name under which its key is kept."""
    start, _, key = entry.partition(" ")
    return int(start), int(key[1:]) if key[0] == "#" else key[1:]
