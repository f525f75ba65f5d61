"""A stream as a file that pyarrow reads."""

from __future__ import annotations

from typing import Any

from dagflow.storage import BinaryReader, read_fully


class StreamSealed(Exception):
    """A read of a file that is sealed."""


class ArrowFile:
    """A file whose reads are never short. The caller that opened the stream closes it."""

    closed = False
    is_sealed = False
    """True if nothing may be read any more: reading raises StreamSealed."""

    def __init__(self, stream: BinaryReader, length: int) -> None:
        self._stream = stream
        self._length = length
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return False."""
        return False

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._position

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to a position."""
        self._position = position + (0, self._position, self._length)[whence]
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, fewer only at the file's end."""
        most = max(0, self._length - self._position)
        size = most if size < 0 else min(size, most)
        if not size:
            return b""
        if self.is_sealed:
            raise StreamSealed
        self._stream.seek(self._position)
        data = read_fully(self._stream, size)
        self._position += len(data)
        return data

    def close(self) -> None:
        """Leave the stream open."""

    def flush(self) -> None:
        """Do nothing: the file is not written."""


def is_of_storage(error: BaseException) -> bool:
    """Return True if an error is the storage's: Arrow's own have no number."""
    known: Any = getattr(error, "errno", None)
    return known is not None
