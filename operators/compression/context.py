"""Any reader context over files that may be compressed."""

from __future__ import annotations

from typing import Any

import attrs
from typing_extensions import override

from dagflow.storage import read_fully
from operators.compression.bgzf import BgzfStream
from operators.compression.errors import CompressionUnexpected, CompressionUnsupported
from operators.compression.formats import HEAD_BYTES, OTHER_BYTES, Compression, recognise, recognise_other
from operators.compression.pieces import BgzfPiece, DecodedPiece
from operators.compression.stream import UNBOUNDED, DecodedStream, MemberStream
from operators.contexts.entity import BinaryStream, Entity, ReaderContext
from operators.contexts.errors import BadText, PartialRecord, RecordTooLong
from operators.contexts.piece import Piece
from operators.contexts.source import Source


@attrs.frozen
class DecodedBlock:
    """The block of a compressed file that a context reads: `start` counts decompressed bytes, `stop` is not known."""

    block_id: Any
    file_path: str
    start: int
    stop: int = UNBOUNDED
    file_length: int = -1


@attrs.define(slots=False)
class DecompressingContext(ReaderContext):
    r"""Reads what `inner` finds in the decompressed bytes of files; files that are not compressed as they are.

    `compression` "auto": each file's first bytes decide, never its name. One of the others: it must be that.

    - BGZF is read by ranges, if `inner` can (lines can): a record belongs to the block in whose range the member begins in
      which the record starts. Positions are BGZF's virtual offsets; the first record that starts in a member is a split point.
    - Anything else is one stream: a block that starts at 0 yields all its records, others, and empty ones, yield none
      (`is_elsewhere`). Positions count decompressed bytes; the first record alone is a split point. So is BGZF, if `compression`
      is "gzip".

    Raises CompressionCorrupt, CompressionTruncated, CompressionUnexpected, CompressionUnsupported, PackageMissing, and what
    `inner` raises.

    >>> import gzip, io
    >>> from dagflow import FileBlockMetadata
    >>> from operators.contexts import ReadAheadLineReaderContext
    >>> data = gzip.compress(b"one\ntwo\n")
    >>> context = DecompressingContext(ReadAheadLineReaderContext())
    >>> context.initialize(io.BytesIO(data), FileBlockMetadata(1, "f.gz", 0, len(data), file_length=len(data)), False)
    >>> context.next()
    Entity(record=b'one', used_bytes=4, position=0, is_split_point=True)
    >>> context.next()
    Entity(record=b'two', used_bytes=4, position=4, is_split_point=False)
    """

    inner: ReaderContext
    compression: Compression = "auto"

    format: str | None = attrs.field(init=False, eq=False, repr=False, default=None)
    """The compression of the file at hand; None: it has none."""
    is_elsewhere: bool = attrs.field(init=False, eq=False, repr=False, default=False)
    """True if the block at hand yields nothing, since its file cannot be split: the first block has its records."""

    _raw: BinaryStream | None = attrs.field(init=False, eq=False, repr=False, default=None)
    _file: tuple[Any, ...] | None = attrs.field(init=False, eq=False, repr=False, default=None)
    _stream: DecodedStream | None = attrs.field(init=False, eq=False, repr=False, default=None)
    _is_counted: bool = attrs.field(init=False, eq=False, repr=False, default=True)
    _told: int = attrs.field(init=False, eq=False, repr=False, default=0)
    _last: int = attrs.field(init=False, eq=False, repr=False, default=-1)  # the member of the record before; 0: there was one

    def __attrs_post_init__(self) -> None:
        # Of the instance: what the base class finds out for classes depends on `inner` here.
        vars(self).update(cuts=self.inner.cuts, supports_pieces=getattr(self.inner, "supports_pieces", False))

    # What is asked about the block at hand

    @override
    def can_be_cut(self) -> bool:
        if self._stream is not None or self.is_elsewhere:
            return isinstance(self._stream, BgzfStream)
        return self.inner.can_be_cut()

    @override
    def claimed_at(self, position: int) -> int:
        if self._stream is not None:
            return position >> 16 if isinstance(self._stream, BgzfStream) else 0
        claimed: int = self.inner.claimed_at(position)
        return claimed

    @override
    def look_back(self) -> int | None:
        return self.inner.look_back()

    @property
    def unit(self) -> str:
        """The unit of positions: "" for bytes of the file, "stream" for decompressed bytes, "bgzf" for virtual offsets."""
        return "" if self._stream is None else "bgzf" if isinstance(self._stream, BgzfStream) else "stream"

    def newly_consumed(self) -> int:
        """Return the number of bytes of the compressed file that have been read since the last call."""
        return 0 if self._stream is None else self._up_to(self._stream.consumed)

    def counts_at_end(self) -> dict[str, int]:
        """Return the counts at the end of a block, by name; nothing in a second call."""
        counts = {} if self._stream is None else {"bytes": self._up_to(self._stream.whole)}
        if self.is_elsewhere:
            counts["blocks_unsplittable"] = 1
        if isinstance(self._stream, BgzfStream) and self._stream.lacks_end_mark:
            counts["bgzf_without_end_mark"] = 1
        is_counted, self._is_counted = self._is_counted, True
        return {} if is_counted else counts

    def _up_to(self, position: int) -> int:
        self._told, before = max(position, self._told), self._told
        return self._told - before

    # Reading

    @override
    def initialize(self, stream: BinaryStream, block: Any, consecutive: bool) -> None:
        file = None
        if getattr(block, "as_planned", False) and block.modified_ns:
            # The same file as before is not looked at again: on an object store, that may cost as much as reading some MiB.
            file = (block.file_path, block.file_length, block.modified_ns)
        if not (consecutive and stream is self._raw) and (file is None or file != self._file):
            self.format = self._recognised(stream, block)
        self._raw, self._file = stream, file
        self._stream, self._last, self.is_elsewhere, self._is_counted = None, -1, False, False
        if self.format is None:
            self.inner.initialize(stream, block, consecutive)
            return
        decoded = self._decoded(stream, block)
        if decoded is None:
            self.is_elsewhere = True
            return
        start = decoded.start if isinstance(decoded, BgzfStream) else 0
        self._stream, self._told = decoded, block.start
        self.inner.initialize(decoded, DecodedBlock(getattr(block, "block_id", None), decoded.path, start), False)

    def _recognised(self, stream: Any, block: Any) -> str | None:
        stream.seek(0)
        first = read_fully(stream, OTHER_BYTES)
        stream.seek(0)
        head = first[:HEAD_BYTES]
        compression = recognise(head)
        wanted = self.compression
        path = str(getattr(block, "file_path", "") or "stream")
        if wanted == "auto":
            if compression is None and (other := recognise_other(first)) is not None:
                raise CompressionUnsupported(path=path, found=other, head=head)
            return compression
        if compression != wanted and not (wanted == "gzip" and compression == "bgzf"):
            raise CompressionUnexpected(path=path, expected=wanted, found=compression or recognise_other(first), head=head)
        return wanted

    def _decoded(self, stream: BinaryStream, block: Any) -> DecodedStream | None:
        assert self.format is not None
        raw = Source.of(stream, block, 0)
        look_back = self.inner.look_back()
        if self.format == "bgzf" and self.inner.cuts == "any" and look_back is not None and raw.end is not None:
            return BgzfStream(raw, length=raw.end, first=block.start, last=block.stop, look_back=look_back)
        if block.start or block.stop <= block.start:
            return None
        raw.stop = 0
        return MemberStream(raw, format="gzip" if self.format == "bgzf" else self.format)

    @override
    def next(self) -> Entity | None:
        stream = self._stream
        if stream is None:
            return None if self.is_elsewhere else self.inner.next()
        entity: Entity | None = self._of_inner(self.inner.next)
        if entity is None:
            return None
        if not isinstance(stream, BgzfStream):
            is_first, self._last = self._last < 0, 0
            return entity._replace(is_split_point=is_first)
        position = stream.virtual(entity.position)
        before, self._last = self._last, position >> 16
        stream.forget(entity.position)
        return entity._replace(position=position, is_split_point=before != self._last)

    @override
    def next_piece(self) -> Piece | None:
        stream = self._stream
        if stream is None:
            return None if self.is_elsewhere else self.inner.next_piece()
        piece: Piece | None = self._of_inner(self.inner.next_piece)
        if piece is None:
            return None
        if not isinstance(stream, BgzfStream):
            is_first, self._last = self._last < 0, 0
            return DecodedPiece.of_stream(piece, is_first)
        starts, places = stream.members(piece.position, piece.position + piece.used_bytes)
        bgzf_piece = BgzfPiece.of(piece, starts, places, self._last)
        self._last = bgzf_piece.last_member
        stream.forget(piece.position + piece.used_bytes)
        return bgzf_piece

    @override
    def close(self) -> None:
        self.inner.close()
        self._raw, self._stream = None, None

    def bytes_at(self, entity: Entity) -> bytes | None:
        """Read the decompressed bytes of a record again; None if the current file is not compressed."""
        stream = self._stream
        if stream is None:
            return None
        position = stream.local(entity.position) if isinstance(stream, BgzfStream) else entity.position
        stream.seek(position)
        return stream.read(entity.used_bytes)

    def _of_inner(self, find: Any) -> Any:
        try:
            return find()
        except (RecordTooLong, PartialRecord, BadText) as error:
            error.unit = self.unit
            if isinstance(self._stream, BgzfStream):
                error.position = self._stream.virtual(error.position)
            raise
