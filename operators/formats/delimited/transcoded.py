"""Text of any encoding as UTF-8, for encodings whose bytes cannot be searched: it is read from beginning to end."""

from __future__ import annotations

import codecs
from typing import Any

from typing_extensions import override

from dagflow.config import KiB
from operators.compression.stream import UNBOUNDED
from operators.contexts.errors import BadText
from operators.contexts.source import Source


class TranscodedSource(Source):
    """Reads a TranscodedStream, whose length is unknown."""

    @override
    def read(self, size: int) -> bytes:
        if self._must_seek:
            self.stream.seek(self.position)
            self._must_seek = False
        data = self.stream.read(size)
        self.position += len(data)
        self.is_at_end = not data
        return data


class TranscodedStream:
    """The content of a source as UTF-8. It can be read from the beginning only.

    Raises BadText for bytes that are not text of the encoding.
    """

    def __init__(self, source: Source, encoding: str) -> None:
        self._source, self._encoding = source, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._rest = b""
        self._position = 0

    def source_of(self, block: Any, position: int) -> Source:
        """Return the source that contexts read from; see Source.of."""
        return TranscodedSource(self, self._source.path, 0, UNBOUNDED, None, position)

    def seek(self, position: int, /) -> None:
        """Go to the beginning, the only position that is supported."""
        if position == 0 and self._position:
            self._source.seek(0)
            self._decoder = codecs.getincrementaldecoder(self._encoding)()
            self._rest, self._position = b"", 0
        elif position != self._position:
            raise ValueError(f"text in {self._encoding} can be read from its beginning only")

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most `size`; none at the end only."""
        while not self._rest and not self._source.is_at_end:
            before = self._source.position - len(self._decoder.getstate()[0])
            data = self._source.read(64 * KiB)
            try:
                self._rest = self._decoder.decode(data, final=self._source.is_at_end).encode()
            except UnicodeError as error:
                at = before + getattr(error, "start", 0)
                raise BadText(
                    path=self._source.path, position=at, byte_offset=at, encoding=self._encoding, reason=str(error)
                ) from None
        text, self._rest = self._rest[:size], self._rest[size:]
        self._position += len(text)
        return text
