"""A run of consecutive whole records, and its forms: bytes, text, Arrow arrays. Each form is made when asked for."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, repeat
from typing import Any, NamedTuple, Protocol

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dagflow.config import KiB
from operators.contexts.entity import Entity
from operators.contexts.text import MARK, decode_text, text_codec

DECODED_BYTES = 16 * KiB
SMALL_BYTES = 64 * KiB
"""The records of a piece up to this size are counted without looking for all offsets: it may be joined with other pieces."""
FEW = 8
"""Less than this part of a piece is copied where not all records end alike: its forms look at all bytes then."""


class Even(NamedTuple):
    """Bytes in which every record is followed by the same `delimiter`: `data[begin:end]`."""

    data: bytes
    begin: int
    end: int
    delimiter: bytes


class Layout(Protocol):
    """The layout of records in the bytes of a piece."""

    @property
    def joiner(self) -> bytes | None:
        """A terminator behind which the records of another file can follow; None where that could change records."""
        ...

    def offsets(self, data: bytes, begin: int, end: int) -> NDArray[np.int32]:
        """Return the starts of the records of `data[begin:end]`, and `end` after them."""
        ...

    def even(self, data: bytes, begin: int, end: int, offsets: Callable[[], NDArray[np.int32]]) -> Even:
        """Return the same records with equal delimiters; `data` itself if they are equal. `offsets`: those above."""
        ...

    def unterminated(self, data: bytes, begin: int, end: int) -> Even:
        """Return the one record `data[begin:end]`, which has no terminator."""
        ...


@attrs.define(eq=False, repr=False)
class Piece:
    """A run of consecutive whole records of one file.

    `data[begin:end]` are their bytes as they stand in the file, terminators included; `position` is where in the file
    `data[begin]` is. Where `is_terminated` is False, they are one record, the last of a file, without a terminator.
    A piece holds less than 2 GiB.

    >>> import numpy as np
    >>> piece = Piece.of_slices(b"abcde", np.array([0, 2, 4, 5]), position=100)
    >>> len(piece), piece.used_bytes, piece.positions.tolist(), piece.text_list()
    (3, 5, [100, 102, 104], ['ab', 'cd', 'e'])
    """

    data: bytes
    begin: int
    end: int
    position: int
    layout: Layout | None
    path: str = ""
    is_terminated: bool = True
    _offsets: NDArray[np.int32] | None = None
    _even: Even | None = attrs.field(init=False, default=None)
    _count: int | None = attrs.field(init=False, default=None)

    @classmethod
    def of_slices(cls, data: bytes, offsets: Any, *, position: int, path: str = "") -> Piece:
        """Return records without terminators: record i is `data[offsets[i]:offsets[i + 1]]`; the first starts at `position`."""
        bounds = np.ascontiguousarray(offsets, dtype=np.int32)
        return cls(data, int(bounds[0]), int(bounds[-1]), position, None, path, True, bounds)

    def __repr__(self) -> str:
        return f"Piece({self.path!r}, position={self.position}, used_bytes={self.used_bytes})"

    @property
    def used_bytes(self) -> int:
        """The bytes of all records, terminators included."""
        return self.end - self.begin

    @property
    def offsets(self) -> NDArray[np.int32]:
        """The starts of the records in `data`, and the end of the last one after them."""
        if self._offsets is None:
            assert self.layout is not None
            self._offsets = self.layout.offsets(self.data, self.begin, self.end)
        return self._offsets

    @property
    def positions(self) -> NDArray[np.int64]:
        """The positions in the file where records start (int64)."""
        return self.offsets[:-1].astype(np.int64) + (self.position - self.begin)

    def __len__(self) -> int:
        if self._count is None:  # claims and reports ask for it again and again
            self._count = self._counted()
        return self._count

    def _counted(self) -> int:
        joiner = None if self.layout is None or self._offsets is not None else self.layout.joiner
        if joiner is None or self.used_bytes > SMALL_BYTES:
            return len(self.offsets) - 1  # they are needed to emit the records
        return self.data.count(joiner, self.begin, self.end) if self.is_terminated else 1

    def position_of(self, number: int) -> int:
        """Return the position in the file of record `number`, from 0. The first and the last are found without the others."""
        if number == 0:
            return self.position
        joiner = None if self.layout is None or self._offsets is not None else self.layout.joiner
        if joiner is not None and self.is_terminated and number == len(self) - 1:
            start = self.data.rfind(joiner, self.begin, self.end - len(joiner)) + len(joiner)
        else:
            start = int(self.offsets[number])
        return start + self.position - self.begin

    def __bool__(self) -> bool:
        return True  # a piece is never empty, and asking for its length would look for every record

    @property
    def split_points(self) -> NDArray[np.int64]:
        """The split points that a reader claims of this piece: positions in the file, in the unit of blocks (int64).

        Here: every record is one, at its position. There may be none: all records then belong to what was claimed before.
        """
        return self.positions

    def before(self, count: int) -> Piece | None:
        """Return the records before split point number `count` (from 0), None without any: the rest if that one was refused."""
        return self.between(0, count)

    def between(self, start: int, stop: int) -> Piece | None:
        """Return the records of the split points from number `start` up to `stop` (exclusive), None without any.

        Those before the first split point belong to it, too, where `start` is 0.
        """
        return self.part(start, stop) if start < stop else None

    @property
    def has_only_split_points(self) -> bool:
        """True if each record is a split point, at its own position in the file."""
        return type(self) is Piece

    def part(self, start: int, stop: int) -> Piece:
        """Return the records from number `start` up to `stop` (exclusive) as a piece. It shares the bytes, if they are many."""
        if start == 0 and stop >= len(self):
            return self
        offsets = self.offsets[start : stop + 1]
        begin, end = int(offsets[0]), int(offsets[-1])
        position = self.position + begin - self.begin
        even = self._evenly()
        is_even = even.data is self.data
        if end - begin < len(self.data) // FEW and not is_even:
            return Piece(self.data[begin:end], 0, end - begin, position, self.layout, self.path, True, offsets - offsets[0])
        part = Piece(self.data, begin, end, position, self.layout, self.path, True, offsets)
        part._even = Even(self.data, begin, end, even.delimiter) if is_even else None
        return part

    def head(self, count: int) -> Piece:
        """Return the first `count` records as a piece, which shares the bytes."""
        if count >= len(self):
            return self
        offsets = self.offsets[: count + 1]
        return Piece(self.data, self.begin, int(offsets[-1]), self.position, self.layout, self.path, True, offsets)

    def let_go(self, kept: int) -> None:
        """Keep only the first bytes of a piece that was read, beside the positions of its records: of one of many megabytes."""
        self.data, self._even = self.data[: self.begin + kept], None

    def first_longer_than(self, limit: int) -> int | None:
        """Return the number of the first record of more than `limit` bytes (its terminator not counted)."""
        is_longer = np.diff(self._even_offsets()) - len(self._evenly().delimiter) > limit
        return int(is_longer.argmax()) if is_longer.any() else None

    def entities(self) -> Iterator[Entity]:
        """Yield the records one at a time."""
        sizes, positions = np.diff(self.offsets).tolist(), self.positions.tolist()
        values = zip(self.bytes_list(), sizes, positions, self._are_split_points(), strict=False)
        return map(tuple.__new__, repeat(Entity), values)  # half the time of calling Entity, which is Python

    def _are_split_points(self) -> Iterable[bool]:
        """Return, for each record, True if it is a split point."""
        return repeat(True)

    def bytes_list(self) -> list[bytes]:
        """Return each record's bytes."""
        data, begin, end, delimiter = self._evenly()
        if delimiter:
            records = data[begin:end].split(delimiter)
            records.pop()
            return records
        bounds = self._even_offsets().tolist()
        return [data[start:stop] for start, stop in pairwise(bounds)]

    def text_list(self, encoding: str = "utf-8", errors: str = "strict") -> list[str]:
        """Return each record's text. `errors` as in `bytes.decode`; if it is "strict", bad bytes raise BadText."""
        codec = text_codec(encoding, self.layout is not None)
        data, begin, end, delimiter = self._evenly()
        # Decoding at once and splitting then is twice as fast. Sound only where no mending of bad bytes can make or
        # unmake a delimiter: a single ASCII byte, or text in which nothing has to be mended.
        if codec != "other" and delimiter.isascii() and delimiter and (len(delimiter) == 1 or errors == "strict"):
            try:
                return _decoded_lines(data, begin, end, delimiter, encoding, errors)
            except UnicodeDecodeError:
                pass  # found and named below
        records = self.bytes_list()
        if errors != "strict":
            return [record.decode(encoding, errors) for record in records]
        return [
            decode_text(record, encoding, errors, path=self.path, position=position)
            for record, position in zip(records, self.positions.tolist(), strict=True)
        ]

    def binary_array(self) -> Any:
        """Return each record's bytes as a `pyarrow.BinaryArray`, without a copy where records have no terminators."""
        even = self._evenly()
        return _arrow_binary(even.data, self._even_offsets(), len(even.delimiter))

    def string_array(self, encoding: str = "utf-8", errors: str = "strict") -> Any:
        """Return each record's text as a `pyarrow.StringArray`. `encoding` and `errors` as in `text_list`."""
        codec = text_codec(encoding, self.layout is not None)
        data, begin, end, delimiter = self._evenly()
        if codec != "other" and data.isascii():
            return _as_string(self.binary_array())
        if codec == "utf-8":
            array = self.binary_array()
            if delimiter and delimiter.isascii():
                # An ASCII delimiter is not a part of another character, so the records are UTF-8 if all of it is: one look at the
                # whole takes a quarter of the time of a look at each.
                return (
                    _as_string(array) if _is_utf8(data, begin, end) else pa.array(self.text_list(encoding, errors), pa.string())
                )
            try:
                return array.cast(pa.string())  # checks that all is UTF-8
            except pa.ArrowInvalid:
                pass
        elif codec == "single" and len(delimiter) == 1 and delimiter.isascii() and self.layout is not None:
            try:
                encoded = data[begin:end].decode(encoding, errors).encode()
            except UnicodeError:
                pass
            else:
                return _as_string(_arrow_binary(encoded, self.layout.offsets(encoded, 0, len(encoded)), 1))
        return pa.array(self.text_list(encoding, errors), pa.string())

    def _evenly(self) -> Even:
        if self._even is None:
            if self.layout is None:
                self._even = Even(self.data, self.begin, self.end, b"")
            elif self.is_terminated:
                self._even = self.layout.even(self.data, self.begin, self.end, lambda: self.offsets)
            else:
                self._even = self.layout.unterminated(self.data, self.begin, self.end)
        return self._even

    def _even_offsets(self) -> NDArray[np.int32]:
        data, begin, end, _ = self._evenly()
        if not self.is_terminated:
            return np.array([begin, end], np.int32)
        if data is self.data:
            return self.offsets
        assert self.layout is not None
        return self.layout.offsets(data, begin, end)


def _decoded_lines(data: bytes, begin: int, end: int, delimiter: bytes, encoding: str, errors: str) -> list[str]:
    """Return the text of records that are all followed by an ASCII delimiter.

    Decoded some records at a time: those in which all is ASCII are decoded ten times as fast as others, and what was decoded
    is still in the nearest cache when it is split.
    """
    mark, size = delimiter.decode("ascii"), len(delimiter)
    if size > 1 and delimiter != b"\r\n":  # occurrences might overlap: which of them count is decided from the left
        texts = data[begin:end].decode(encoding, errors).split(mark)
        texts.pop()
        return texts
    texts = []
    start = begin
    while start < end:
        stop = data.rfind(delimiter, start, min(start + DECODED_BYTES, end))
        if stop < 0:
            stop = data.find(delimiter, start, end)
        texts += data[start:stop].decode(encoding, errors).split(mark)
        start = stop + size
    return texts


def _is_utf8(data: bytes, begin: int, end: int) -> bool:
    bounds = pa.py_buffer(struct.pack("=2i", begin, end))
    try:
        pa.StringArray.from_buffers(1, bounds, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _arrow_binary(data: bytes, offsets: NDArray[np.int32], delimiter_bytes: int) -> Any:
    count = len(offsets) - 1
    raw = pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    # Arrow's strings lie end to end, so terminators must be copied out; this kernel does it at 15 GB/s.
    return pc.binary_slice(raw, 0, -delimiter_bytes) if delimiter_bytes else raw


def _as_string(array: Any) -> Any:
    """Return the same buffers as text, unchecked: for bytes that are known to be UTF-8."""
    return pa.StringArray.from_buffers(len(array), array.buffers()[1], array.buffers()[2], None, 0, array.offset)


def without_mark(piece: Piece, texts: Any) -> Any:
    """Return the lines of a piece, as a column of text, without the byte order mark that a file may begin with."""
    if piece.position or piece.layout is None or not len(texts):
        return texts
    first = texts[0].as_py()
    if first is None or not first.startswith(MARK):
        return texts
    return pa.concat_arrays([pa.array([first.removeprefix(MARK)], texts.type), texts.slice(1)])


def int64_array(values: Any) -> Any:
    """Return an array of a sequence of integers. A numpy array of 64 bits each is not copied.

    Not by pa.array(): that imports pandas, 0.4 s in each worker.

    >>> int64_array([1, 2]).to_pylist()
    [1, 2]
    """
    octets = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(octets), [None, pa.py_buffer(octets)])
