"""Terminators of records, found from any place in a file, and taken off.

Lines are defined by one scan of the file from its first byte. A block begins anywhere, so its reader must find, looking
at a few bytes only, the same ends that the scan finds. `sync` is what makes this hold.
"""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from operators.contexts.piece import Even
from operators.contexts.search import places

LINE_FEED, CARRIAGE_RETURN = 10, 13
DEFAULT_TERMINATORS = (b"\n", b"\r\n")
ANY_NEWLINE = (b"\n", b"\r\n", b"\r")


@attrs.frozen
class Terminators(ABC):
    """One way in which records end. Offsets are into `data`; `floor` is the start of a record, or of all data."""

    is_overlapping: ClassVar[bool] = False
    """True if two occurrences may overlap, so that which of them ends a record depends on what stands before."""

    @property
    def overlap(self) -> int:
        """A terminator cut in two has at most this many bytes before the cut."""
        return 1

    @property
    def look_back(self) -> int:
        """A record starts at a position exactly if one that ends there is found from this many bytes before it."""
        return 1

    @property
    def joiner(self) -> bytes | None:
        """A terminator behind which the records of another file can follow; None where that could change records."""
        return None

    @abstractmethod
    def next_end(self, data: bytes, start: int, final: bool) -> int:
        """Return the offset just after the first terminator at or after `start`, or -1. `final`: nothing follows `data`."""

    @abstractmethod
    def last_end(self, data: bytes, floor: int, final: bool) -> int:
        """Return the offset just after the last terminator at or after `floor`, or -1."""

    @abstractmethod
    def offsets(self, data: bytes, begin: int, end: int) -> NDArray[np.int32]:
        """Return the starts of the records of `data[begin:end]`, and `end` after them."""

    @abstractmethod
    def even(self, data: bytes, begin: int, end: int, offsets: Callable[[], NDArray[np.int32]]) -> Even:
        """Return the same records, all followed by the same delimiter."""

    def unterminated(self, data: bytes, begin: int, end: int) -> Even:
        """Return the last record of a file, which has no terminator. If it is empty, it is not a record."""
        return Even(data, begin, end, b"")

    def sync(self, data: bytes, at: int, floor: int) -> int:
        """Return the nearest place at or before `at` from which a scan finds the same ends as the scan from `floor`."""
        return max(at, floor)

    def first_end_from(self, data: bytes, target: int, floor: int, final: bool) -> int:
        """Return the first end at or after `target`, or -1."""
        end = self.next_end(data, self.sync(data, target - self.look_back, floor), final)
        while 0 <= end < target:
            end = self.next_end(data, end, final)
        return end


@attrs.frozen
class Delimiter(Terminators):
    """One delimiter of any bytes, no two occurrences of which can overlap: every occurrence ends a record."""

    delimiter: bytes = b"\n"

    @property
    @override
    def joiner(self) -> bytes | None:
        return None if self.is_overlapping else self.delimiter

    @property
    @override
    def overlap(self) -> int:
        return len(self.delimiter) - 1

    @property
    @override
    def look_back(self) -> int:
        return len(self.delimiter)

    @override
    def next_end(self, data: bytes, start: int, final: bool) -> int:
        at = data.find(self.delimiter, start)
        return at + len(self.delimiter) if at >= 0 else -1

    @override
    def last_end(self, data: bytes, floor: int, final: bool) -> int:
        at = data.rfind(self.delimiter, floor)
        return at + len(self.delimiter) if at >= 0 else -1

    @override
    def offsets(self, data: bytes, begin: int, end: int) -> NDArray[np.int32]:
        return _bounds(begin, self._occurrences(data, begin, end) + len(self.delimiter), end)

    @override
    def even(self, data: bytes, begin: int, end: int, offsets: Callable[[], NDArray[np.int32]]) -> Even:
        return Even(data, begin, end, self.delimiter)

    def _occurrences(self, data: bytes, begin: int, end: int) -> NDArray[np.int64]:
        size = len(self.delimiter)
        octets = np.frombuffer(data, np.uint8)
        offsets = places(octets[begin : max(begin, end - size + 1)] == self.delimiter[0])
        offsets += begin
        for index in range(1, size):
            offsets = offsets[octets[offsets + index] == self.delimiter[index]]
        return offsets


@attrs.frozen
class OverlappingDelimiter(Delimiter):
    """A delimiter that begins as it ends (`||`, `abab`): occurrences may overlap, and the scan from the left takes every other.

    An occurrence that overlaps none before it is always taken, whatever the scan did before. So going back to the
    first occurrence of a row of overlapping ones is enough to agree with the scan from the file's first byte.
    """

    is_overlapping: ClassVar[bool] = True

    @override
    def last_end(self, data: bytes, floor: int, final: bool) -> int:
        at = data.rfind(self.delimiter, floor)
        if at < 0:
            return -1
        last, end = -1, self.next_end(data, self.sync(data, at, floor), final)
        while end >= 0:
            last, end = end, self.next_end(data, end, final)
        return last

    @override
    def sync(self, data: bytes, at: int, floor: int) -> int:
        reach = len(self.delimiter) - 1
        while at > floor:
            occurrence = data.rfind(self.delimiter, max(floor, at - reach), at + reach)
            if occurrence < 0:
                return at
            at = occurrence
        return floor

    @override
    def offsets(self, data: bytes, begin: int, end: int) -> NDArray[np.int32]:
        occurrences, size = self._occurrences(data, begin, end), len(self.delimiter)
        if len(occurrences) and int(np.diff(occurrences).min(initial=size)) < size:
            taken, free = [], begin
            for start in occurrences.tolist():
                if start >= free:
                    taken.append(start)
                    free = start + size
            occurrences = np.array(taken, np.int64)
        return _bounds(begin, occurrences + size, end)


@attrs.frozen
class Newline(Delimiter):
    r"""`\n`, and `\r\n` as one: a record ends at each `\n`, and one `\r` before it is not part of the record."""

    @override
    def even(self, data: bytes, begin: int, end: int, offsets: Callable[[], NDArray[np.int32]]) -> Even:
        if b"\r" not in data:
            return Even(data, begin, end, b"\n")
        kinds = _kinds(data, offsets())
        if len(kinds) == 1:  # nothing to copy; and replacing is slow where every line has a \r
            return Even(data, begin, end, *kinds)
        data = data[begin:end].replace(b"\r\n", b"\n")
        return Even(data, 0, len(data), b"\n")

    @override
    def unterminated(self, data: bytes, begin: int, end: int) -> Even:
        return Even(data, begin, end - data.endswith(b"\r", begin, end), b"")  # as `sed 's/\r$//'` has it, also for a `\r` alone


@attrs.frozen
class AnyNewline(Terminators):
    r"""`\n`, `\r\n` and a `\r` alone."""

    _pattern: ClassVar[re.Pattern[bytes]] = re.compile(rb"\n|\r\n?")

    @override
    def next_end(self, data: bytes, start: int, final: bool) -> int:
        match = self._pattern.search(data, start)
        if match is None or (not final and match.end() == len(data) and data[-1] == CARRIAGE_RETURN):
            return -1  # a \r at the end of what is known may be half of \r\n
        return match.end()

    @override
    def last_end(self, data: bytes, floor: int, final: bool) -> int:
        known = len(data) if final or not data.endswith(b"\r") else len(data) - 1
        return max(data.rfind(b"\n", floor, known), data.rfind(b"\r", floor, known)) + 1 or -1

    @override
    def offsets(self, data: bytes, begin: int, end: int) -> NDArray[np.int32]:
        octets = np.frombuffer(data, np.uint8)[begin:end]
        if b"\r" not in data:
            return _bounds(begin, places(octets == LINE_FEED) + (begin + 1), end)
        is_end = octets == CARRIAGE_RETURN
        is_feed = octets == LINE_FEED
        is_end[:-1] &= ~is_feed[1:]
        is_end |= is_feed
        return _bounds(begin, places(is_end) + (begin + 1), end)

    @override
    def even(self, data: bytes, begin: int, end: int, offsets: Callable[[], NDArray[np.int32]]) -> Even:
        if b"\r" not in data:
            return Even(data, begin, end, b"\n")
        kinds = _kinds(data, offsets())
        if len(kinds) == 1:
            return Even(data, begin, end, *kinds)
        data = data[begin:end].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return Even(data, 0, len(data), b"\n")


def terminator_rules(values: Iterable[bytes]) -> Terminators:
    r"""Return the rules for these terminators.

    >>> terminator_rules([b"\r\n", b"\n"])
    Newline(delimiter=b'\n')
    >>> terminator_rules([b"||"])
    OverlappingDelimiter(delimiter=b'||')
    """
    return _rules(tuple(values))


@functools.lru_cache(maxsize=64)
def _rules(values: tuple[bytes, ...]) -> Terminators:
    if frozenset(values) == frozenset(DEFAULT_TERMINATORS):
        return Newline()
    if frozenset(values) == frozenset(ANY_NEWLINE):
        return AnyNewline()
    if len(values) != 1:
        raise ValueError(
            f"terminators are {_shown(values)}, but must be one delimiter of any bytes, "
            f"or {_shown(DEFAULT_TERMINATORS)} (the default), or {_shown(ANY_NEWLINE)}"
        )
    delimiter = values[0]
    if not delimiter:
        raise ValueError("a terminator has no bytes: every place in a file would end a record")
    if len(delimiter) > 4096:
        raise ValueError(f"a terminator has {len(delimiter)} bytes; at most 4096 are allowed")
    begins_as_it_ends = any(delimiter.startswith(delimiter[start:]) for start in range(1, len(delimiter)))
    return OverlappingDelimiter(delimiter) if begins_as_it_ends else Delimiter(delimiter)


def check_terminators(instance: object, attribute: object, values: tuple[bytes, ...]) -> None:
    """Validate terminators: there must be rules for them."""
    terminator_rules(values)


def to_terminators(values: bytes | str | Iterable[bytes | str]) -> tuple[bytes, ...]:
    r"""Return one or several terminators, given as bytes or as text (in UTF-8), each once.

    >>> to_terminators("||"), to_terminators(["\n", b"\r\n"])
    ((b'||',), (b'\n', b'\r\n'))
    """
    several = (values,) if isinstance(values, (bytes, str)) else values
    return tuple(dict.fromkeys(value.encode() if isinstance(value, str) else bytes(value) for value in several))


def _shown(values: Iterable[bytes]) -> str:
    return "[" + ", ".join(repr(value)[1:] for value in values) + "]"


def _bounds(begin: int, ends: NDArray[np.int64], end: int) -> NDArray[np.int32]:
    is_open = not len(ends) or ends[-1] != end  # the last record has no terminator
    bounds = np.empty(len(ends) + 1 + (is_open and end > begin), np.int32)
    bounds[0] = begin
    bounds[1 : len(ends) + 1] = ends
    bounds[-1] = end
    return bounds


def _kinds(data: bytes, offsets: NDArray[np.int32]) -> set[bytes]:
    """Return which of the newlines end the records that start and end at these offsets."""
    octets = np.frombuffer(data, np.uint8)
    ends = offsets[1:]
    is_feed = octets[ends - 1] == LINE_FEED
    is_pair = is_feed & (np.diff(offsets) > 1) & (octets[ends - 2] == CARRIAGE_RETURN)
    pairs, feeds = int(is_pair.sum()), int(is_feed.sum())
    kinds = {b"\r\n": pairs, b"\n": feeds - pairs, b"\r": len(ends) - feeds}
    return {kind for kind, count in kinds.items() if count}
