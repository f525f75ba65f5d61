"""A compressed file as a stream of what it holds: members (frames, streams) one after the other."""

from __future__ import annotations

from typing import Any

import attrs
from typing_extensions import override

from dagflow.config import KiB
from dagflow.storage import MAGIC
from operators.compression.errors import CompressionCorrupt, CompressionTruncated
from operators.compression.formats import HEAD_BYTES, Codec, Decoder, codec_of, recognise
from operators.contexts.source import Source

UNBOUNDED = (1 << 63) - 1
"""The stop of a range of decompressed bytes until it is known."""

INPUT_BYTES = 64 * KiB
AHEAD_BYTES = 256 * KiB


@attrs.define(eq=False)
class DecodedSource(Source):
    """Reads a stream of decompressed bytes, which tells where it stops when it gets there."""

    @override
    def seek(self, position: int) -> None:
        self.position = position
        self._must_seek = True

    @override
    def read(self, size: int) -> bytes:
        if size <= 0:
            return b""
        if self._must_seek:
            self.stream.seek(self.position)
            self._must_seek = False
        data = self.stream.read(size)
        self.position += len(data)
        self._look()
        return data

    def _look(self) -> None:
        stream: Any = self.stream
        self.stop, self.is_at_end = stream.stop, stream.is_at_end


@attrs.define(eq=False)
class DecodedStream:
    """The base of streams of decompressed bytes.

    Positions count decompressed bytes. They look ahead: as soon as the last byte of the range has been read, `stop` says so,
    and `is_at_end` if nothing follows it in the file.
    """

    raw: Source
    position: int = attrs.field(init=False, default=0)
    stop: int = attrs.field(init=False, default=UNBOUNDED)
    is_at_end: bool = attrs.field(init=False, default=False)
    _ahead: bytes = attrs.field(init=False, default=b"")

    @property
    def path(self) -> str:
        """The file."""
        return self.raw.path

    @property
    def consumed(self) -> int:
        """The position in the file up to which has been read, in bytes."""
        raise NotImplementedError

    @property
    def whole(self) -> int:
        """The position in the file up to which the whole range reads, in bytes."""
        raise NotImplementedError

    def source_of(self, block: Any, position: int) -> Source:
        """Return the source that contexts read from; see Source.of."""
        source = DecodedSource(self, self.path, block.start, self.stop, None, position)
        source.is_at_end = self.is_at_end
        return source

    def seek(self, position: int) -> int:
        """Go on at a position. Backwards means from the start again."""
        if position < self.position:
            self._restart()
        while self.position < position:
            if not self.read(min(position - self.position, 1024 * KiB)):
                break
        return self.position

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer at the range's stop and at the end."""
        parts, missing = [], size
        stop = self.stop
        while missing > 0 and (self._ahead or self._fill()):
            if len(self._ahead) <= missing:
                part, self._ahead = self._ahead, b""
            else:
                part, self._ahead = self._ahead[:missing], self._ahead[missing:]
            parts.append(part)
            missing -= len(part)
            self.position += len(part)
            if not self._ahead and stop == UNBOUNDED:
                self._fill()
                if self.stop != UNBOUNDED:
                    break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _fill(self) -> bool:
        """Make sure that there is something ahead, unless nothing comes any more (`is_at_end`) or the range stops here."""
        raise NotImplementedError

    def _restart(self) -> None:
        raise NotImplementedError


@attrs.define(eq=False)
class MemberStream(DecodedStream):
    """A whole compressed file, from its first byte; `stop` is its decompressed length, once that is known.

    All members are read. Zero bytes behind a member are padding, where the format knows such; anything else that is not a member
    raises CompressionCorrupt. A file that ends within a member raises CompressionTruncated.
    """

    format: str
    _codec: Codec = attrs.field(init=False)
    _decoder: Decoder | None = attrs.field(init=False, default=None)
    _input: bytes = attrs.field(init=False, default=b"")
    _began: int = attrs.field(init=False, default=0)
    _unpacked: int = attrs.field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self._codec = codec_of(self.format, self.path)
        self._fill()

    @property
    @override
    def consumed(self) -> int:
        return self.raw.position - len(self._input)

    @property
    @override
    def whole(self) -> int:
        return self.consumed if self.raw.end is None else self.raw.end

    @override
    def _restart(self) -> None:
        self.raw.seek(0)
        self.position, self._ahead, self.is_at_end = 0, b"", False
        self._decoder, self._input, self._unpacked = None, b"", 0

    @override
    def _fill(self) -> bool:
        while not self._ahead and not self.is_at_end:
            if self._decoder is None and not self._begin_member():
                self.is_at_end, self.stop = True, self._unpacked
                break
            self._ahead = self._decode()
            self._unpacked += len(self._ahead)
        return bool(self._ahead)

    def _begin_member(self) -> bool:
        """Begin the next member. Return False at the end of the file."""
        is_first = self.consumed == 0
        while len(self._input) < HEAD_BYTES and not self.raw.is_at_end:
            self._input += self.raw.read(INPUT_BYTES)
            if self._codec.is_padded and not is_first:
                self._input = self._input.lstrip(b"\0")
        if self._codec.is_padded and not is_first:
            self._input = self._input.lstrip(b"\0")
        if not self._input:
            return False
        self._began = self.consumed
        compression = recognise(self._input)
        if compression != self.format and not (compression == "bgzf" and self.format == "gzip"):
            if len(self._input) < HEAD_BYTES and self._is_begun():
                raise self._truncated()
            raise CompressionCorrupt(
                path=self.path,
                format=self.format,
                position=self._began,
                reason=f"what follows there is not {self.format} ({self._input[:8].hex(' ')})",
                unpacked=self._unpacked,
            )
        self._decoder = self._codec.make()
        return True

    def _decode(self) -> bytes:
        decoder = self._decoder
        assert decoder is not None
        data = b""
        if decoder.needs_input:
            data = self._input or self.raw.read(INPUT_BYTES)
            self._input = b""
            if not data:
                raise self._truncated()
        try:
            output = decoder.decompress(data, AHEAD_BYTES)
        except self._codec.errors as error:
            raise CompressionCorrupt(
                path=self.path, format=self.format, position=self._began, reason=str(error), unpacked=self._unpacked
            ) from None
        if decoder.eof:
            self._input, self._decoder = decoder.unused_data, None
        return output

    def _is_begun(self) -> bool:
        """Return True if the rest could be the first bytes of a member that the file's end has cut."""
        return MAGIC[self.format].startswith(self._input[: len(MAGIC[self.format])])

    def _truncated(self) -> CompressionTruncated:
        return CompressionTruncated(
            path=self.path,
            format=self.format,
            position=self.raw.position,
            began=self._began,
            unpacked=self._unpacked,
        )
