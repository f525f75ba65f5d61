"""BGZF: gzip in members of at most 64 KiB that say how long they are, so that a range of the file can be read by itself.

Members form a chain: each header says where the next one stands. Within a file, a range's reader has to find the chain first.
What looks like a header may be data (of a BGZF file within a BGZF file, say), so nothing is believed because of how it looks:
the member that holds the byte before the range begins within the 64 KiB before it, and the one place there from which the
chain leads on is it. Where there are several, they are followed until one is left, or else the file is walked from its start.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right

import attrs
from typing_extensions import override

from dagflow.config import KiB
from operators.compression.errors import CompressionCorrupt, CompressionTruncated
from operators.compression.formats import BGZF_HEADER, member_size
from operators.compression.stream import UNBOUNDED, DecodedStream
from operators.contexts.source import Source

LARGEST = 64 * KiB
"""No member is longer, and none holds more."""
AT_ONCE = 256 * KiB  # bytes of the file that are read at a time within the range
PAST = 8 * KiB  # and at least past it
STEPS = 1000  # members that rivals are followed over

_READ_AS_STREAM = "If the file can be trusted, read it as a stream, which does not need this: compression = gzip."


@attrs.define(eq=False)
class Members:
    """Access to the members of a file by where they stand, most of all one after the other. `stop`: of the range, in bytes."""

    raw: Source
    length: int
    stop: int
    _data: bytes = b""
    _base: int = 0

    def get(self, at: int, size: int) -> bytes:
        """Return bytes of the file, fewer at its end."""
        known = self._base + len(self._data)
        if not self._base <= at <= known:
            self._data, self._base, known = b"", at, at
            self.raw.seek(at)
        if at + size > known and known < self.length:
            size_read = max(at + size - known, min(AT_ONCE, self.stop - known), PAST)
            if self.raw.position != known:
                self.raw.seek(known)
            self._data, self._base = self._data[at - self._base :] + self.raw.read(size_read), at
        return self._data[at - self._base : at - self._base + size]

    def size_at(self, at: int) -> int:
        """Return the length of the member at a place, 0 without one."""
        head = self.get(at, BGZF_HEADER)
        size = member_size(head, 0)
        if not size and head[:4] == b"\x1f\x8b\x08\x04" and len(head) == BGZF_HEADER:
            size = member_size(self.get(at, 12 + int.from_bytes(head[10:12], "little")), 0)  # more extra fields than usual
        return size

    def unpacked(self, at: int) -> tuple[bytes, int]:
        """Return the content of a member and the position of the next. Raises CompressionCorrupt, CompressionTruncated."""
        size = self.size_at(at)
        if not size:
            head = self.get(at, BGZF_HEADER)
            if len(head) < BGZF_HEADER and head.startswith(b"\x1f\x8b\x08\x04"[: len(head)]):
                raise self._truncated(at)
            raise self.corrupt(at, f"no BGZF member begins there ({head[:8].hex(' ')})", _READ_AS_STREAM)
        data = self.get(at, size)
        if len(data) < size:
            raise self._truncated(at)
        decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            unpacked = decoder.decompress(data, LARGEST + 1)
        except zlib.error as error:
            raise self.corrupt(at, str(error)) from None
        if len(unpacked) > LARGEST:
            raise self.corrupt(at, "the member holds more than 64 KiB, which BGZF does not allow", _READ_AS_STREAM)
        if not decoder.eof or decoder.unused_data:
            raise self.corrupt(at, "the member's length is not what its header says")
        return unpacked, at + size

    def before(self, start: int) -> tuple[int, int]:
        """Return the positions of the last member before `start` (> 0), and of the first at or after it."""
        low = max(0, start - LARGEST)
        data = self.get(low, start - low + BGZF_HEADER)
        tips: dict[int, int] = {}
        header = data.find(b"\x1f\x8b\x08\x04")
        while 0 <= header < start - low:
            at = low + header
            size = self.size_at(at)
            if size and start <= at + size <= self.length:
                tips[at] = at + size
            header = data.find(b"\x1f\x8b\x08\x04", header + 1)
        if len(tips) > 1:
            tips = self._surviving(tips)
        if len(tips) == 1:
            return next(iter(tips.items()))
        if tips:
            return self._walk(start)
        raise self.corrupt(start, f"no BGZF member begins in the {start - low} bytes before it that reaches it", _READ_AS_STREAM)

    def _surviving(self, tips: dict[int, int]) -> dict[int, int]:
        """Return the members whose chains continue, as far as is necessary to leave one."""
        ends = dict(tips)
        for _ in range(STEPS):
            if len(ends) == 1 or len(set(ends.values())) < len(ends):  # where chains meet, they cannot be told apart any more
                break
            first = min(ends, key=ends.__getitem__)
            if ends[first] == self.length:
                break
            size = self.size_at(ends[first])
            if size and ends[first] + size <= self.length:
                ends[first] += size
            else:
                del ends[first]
        return {at: tips[at] for at in ends}

    def _walk(self, start: int) -> tuple[int, int]:
        at = 0
        while True:
            size = self.size_at(at)
            if not size:
                raise self.corrupt(at, "no BGZF member begins there", _READ_AS_STREAM)
            if at + size >= start:
                return at, at + size
            at += size

    def corrupt(self, at: int, reason: str, help: str = "") -> CompressionCorrupt:
        """Return the error for a damaged member."""
        return CompressionCorrupt(path=self.raw.path, format="BGZF", position=at, reason=reason, help=help)

    def _truncated(self, at: int) -> CompressionTruncated:
        return CompressionTruncated(path=self.raw.path, format="BGZF", position=self.length, began=at)


@attrs.define(eq=False)
class BgzfStream(DecodedStream):
    """The content of the members that begin in a range [`first`, `last`) of the file; then of those that follow, if read.

    Positions count decompressed bytes from some member before the range on: `start` is where the range begins, at least
    `look_back` bytes (or all of the file's) are before it. `stop` is where the last of its members ends.
    """

    length: int
    first: int
    last: int
    look_back: int
    start: int = attrs.field(init=False, default=0)
    lacks_end_mark: bool = attrs.field(init=False, default=False)
    _members: Members = attrs.field(init=False)
    _from: int = attrs.field(init=False, default=0)
    _next: int = attrs.field(init=False, default=0)
    _end: int = attrs.field(init=False, default=0)  # decompressed, of what has been unpacked
    _starts: list[int] = attrs.field(init=False, factory=list)
    _places: list[int] = attrs.field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self._members = Members(self.raw, self.length, self.last)
        if self.first >= self.last:
            self.stop, self._next = 0, self.first
            return
        if self.first:
            self._from, begin = self._members.before(self.first)
            if begin < self.last:
                self.start = self._known_before(begin)
            else:
                self.stop, self._next = 0, begin
                return
        self._restart()

    def _known_before(self, begin: int) -> int:
        """Go back until enough is known of the bytes before the range. Return their number, decompressed."""
        known = len(self._members.unpacked(self._from)[0])
        while known < self.look_back and self._from:
            self._from, _ = self._members.before(self._from)
            known += len(self._members.unpacked(self._from)[0])
        return known

    @property
    @override
    def consumed(self) -> int:
        return min(max(self._next, self.first), self.last)

    @property
    @override
    def whole(self) -> int:
        return self.last

    @override
    def _restart(self) -> None:
        self._next, self._end, self.position, self._ahead = self._from, 0, 0, b""
        self.stop, self.is_at_end = UNBOUNDED, False
        self._starts, self._places = [], []
        self._fill()

    @override
    def _fill(self) -> bool:
        while not self._ahead and not self.is_at_end:
            at = self._next
            if at >= self.length:
                self.is_at_end = True
            else:
                self._ahead, self._next = self._members.unpacked(at)
            if self._ahead:
                self._starts.append(self._end)
                self._places.append(at)
                self._end += len(self._ahead)
                self.lacks_end_mark |= self._next >= self.length and self.first <= at < self.last
            if self.stop == UNBOUNDED and self._next >= self.last:
                self.stop = self._end
                break
        return bool(self._ahead)

    def forget(self, position: int) -> None:
        """Drop the index of blocks before this position: no reader asks for them any more."""
        count = bisect_right(self._starts, position) - 1
        if count > 64:
            del self._starts[:count], self._places[:count]

    def members(self, start: int, stop: int) -> tuple[list[int], list[int]]:
        """Return where the members with the decompressed bytes [start, stop) begin, in their content and in the file."""
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, stop - 1)
        return self._starts[first:last], self._places[first:last]

    def virtual(self, position: int) -> int:
        """Return BGZF's virtual offset of a position: its member's offset times 65,536, plus the offset in the content."""
        index = bisect_right(self._starts, position) - 1
        if index < 0 or position >= self._end:
            return self._next << 16
        return self._places[index] << 16 | (position - self._starts[index])

    def local(self, virtual: int) -> int:
        """Return the position of a virtual offset that was read last."""
        return self._starts[self._places.index(virtual >> 16)] + (virtual & 0xFFFF)
