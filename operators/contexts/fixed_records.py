"""Records of fixed length, counted from the start of the file."""

from __future__ import annotations

from typing import Any, Literal

import attrs
import numpy as np
from typing_extensions import override

from dagflow.config import Bytes, MiB, one_of, size_of
from operators.contexts.entity import BinaryStream, PieceReaderContext
from operators.contexts.errors import PartialRecord
from operators.contexts.piece import Piece
from operators.contexts.source import Source, check_piece_size, check_size

PARTIAL = ("fail", "emit", "drop")


@attrs.define
class FixedRecordsReaderContext(PieceReaderContext):
    """Records of `length` bytes, aligned to the file: record k starts at k * length and belongs to the block in which it starts.

    So a file may be cut anywhere, and used bytes over all blocks sum to the file's length (without a byte order mark).

    Attributes:
        length: the bytes of a record.
        partial: the treatment of a last record that the file's end cuts short: "fail" (such a file is incomplete, or `length` is
            wrong; raises PartialRecord), "emit" it short, or "drop" it (its bytes are then not among the used ones).
        piece_bytes: the number of bytes that are read at a time, but always whole records.
        marks: byte order marks. If a file begins with one, its first record starts behind it.

    Raises FileShortened.

    >>> import io
    >>> from dagflow import FileBlockMetadata
    >>> context = FixedRecordsReaderContext(length=4, partial="emit")
    >>> context.initialize(io.BytesIO(b"aaaabbbbcccc"), FileBlockMetadata(1, "f", start=3, stop=5, file_length=12), False)
    >>> context.next_piece().bytes_list()
    [b'bbbb']
    """

    length: int = attrs.field(validator=check_size)
    partial: Literal["fail", "emit", "drop"] = attrs.field(default="fail", validator=one_of(PARTIAL), kw_only=True)
    piece_bytes: Bytes = attrs.field(default=MiB, converter=size_of, validator=check_piece_size, kw_only=True)

    marks: tuple[bytes, ...] = attrs.field(default=(), kw_only=True)

    mark: bytes = attrs.field(init=False, eq=False, repr=False, default=b"")
    """The byte order mark of the file at hand; b"" for none."""

    _source: Source | None = attrs.field(init=False, eq=False, repr=False, default=None)
    _carried: bytes = attrs.field(init=False, eq=False, repr=False, default=b"")

    @override
    def initialize(self, stream: BinaryStream, block: Any, consecutive: bool) -> None:
        self.mark, self._carried = b"", b""
        if self.marks:
            self._source = source = Source.of(stream, block, 0)
            head = source.read(max(map(len, self.marks)))
            self.mark = next((mark for mark in self.marks if head.startswith(mark)), b"")
            self._carried = head[len(self.mark) :] if block.start <= len(self.mark) else b""
        if not self._carried:
            skipped = len(self.mark)
            first = max(0, -(-(block.start - skipped) // self.length)) * self.length + skipped
            self._source = Source.of(stream, block, first)
        self._entities = iter(())

    @override
    def next_piece(self) -> Piece | None:
        source = self._source
        if source is None or source.position - len(self._carried) >= source.stop:
            return None
        length, position = self.length, source.position - len(self._carried)
        owned = -(-(source.stop - position) // length)
        size = min(max(1, self.piece_bytes // length), owned) * length
        data = self._carried[:size] + source.read(max(0, size - len(self._carried)))
        self._carried = self._carried[size:]
        whole, rest = divmod(len(data), length)
        if rest and self.partial == "fail" and not whole:
            source.seek(position)  # so that the next call raises the same error
            raise PartialRecord(path=source.path, position=position, expected=length, found=rest)
        offsets = np.arange(0, (whole + 1) * length, length)
        if rest and self.partial == "emit":
            offsets = np.append(offsets, len(data))
        elif rest and self.partial == "fail":
            source.seek(position + whole * length)  # what is whole comes first, then the error
        if len(offsets) == 1:
            return None
        return Piece.of_slices(data, offsets, position=position, path=source.path)

    @override
    def close(self) -> None:
        self._source, self._entities = None, iter(())
