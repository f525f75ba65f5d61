"""Slices of fixed length that start anew in each block."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from typing_extensions import override

from dagflow.config import Bytes, MiB, size_of
from operators.contexts.entity import BinaryStream, PieceReaderContext
from operators.contexts.piece import Piece
from operators.contexts.source import Source, check_piece_size, check_size

LARGEST_DEFAULT_LENGTH = MiB


@attrs.define
class FixedBytesReaderContext(PieceReaderContext):
    """Slices of `length` bytes that never cross the end of a block; a block's last slice is what remains.

    Attributes:
        length: the bytes of a slice; None: the whole block, in slices of at most 1 MiB (Malhar: the file system's block size,
            which would tie a reader's memory to it).
        piece_bytes: the number of bytes that are read at a time, but always whole slices.

    Raises FileShortened.

    >>> import io
    >>> from dagflow import FileBlockMetadata
    >>> context = FixedBytesReaderContext(length=4)
    >>> context.initialize(io.BytesIO(bytes(25)), FileBlockMetadata(1, "f", start=10, stop=20, file_length=25), False)
    >>> [len(record) for record in context.next_piece().bytes_list()]
    [4, 4, 2]
    """

    cuts: ClassVar[Literal["any", "fixed"]] = "fixed"

    length: int | None = attrs.field(default=None, validator=attrs.validators.optional(check_size))
    piece_bytes: Bytes = attrs.field(default=2 * MiB, converter=size_of, validator=check_piece_size, kw_only=True)

    _source: Source | None = attrs.field(init=False, eq=False, repr=False, default=None)

    @override
    def initialize(self, stream: BinaryStream, block: Any, consecutive: bool) -> None:
        self._source = Source.of(stream, block, block.start)
        self._entities = iter(())

    @override
    def next_piece(self) -> Piece | None:
        source = self._source
        if source is None or source.position >= source.stop:
            return None
        length = self.length or LARGEST_DEFAULT_LENGTH
        position = source.position
        data = source.read(min(max(1, self.piece_bytes // length) * length, source.stop - position))
        offsets = np.append(np.arange(0, len(data), length), len(data))
        return Piece.of_slices(data, offsets, position=position, path=source.path)

    @override
    def close(self) -> None:
        self._source, self._entities = None, iter(())
