"""Reads of a stream piece by piece: short reads, files that are shorter than planned, and the limits of sizes."""

from __future__ import annotations

import functools
from typing import Any

import attrs

from dagflow.config import GiB, MiB
from operators.contexts.entity import BinaryStream
from operators.contexts.errors import FileShortened


@attrs.define(eq=False)
class Source:
    """Reads a block's stream from `position` on, never past `end` (the file's planned length; None: whatever there is).

    A file that has grown since is read as it was planned, so that a window that runs again gives the same.
    """

    stream: BinaryStream
    path: str
    start: int
    stop: int
    end: int | None
    position: int
    is_at_end: bool = False
    _must_seek: bool = True

    @classmethod
    def of(cls, stream: BinaryStream, block: Any, position: int) -> Source:
        """Return the source of a block (`start`, `stop`, and `file_path` and `file_length` if it has them)."""
        _keep_freed_memory()
        own = getattr(stream, "source_of", None)
        if own is not None:
            return own(block, position)  # type: ignore[no-any-return]  # a stream of decompressed bytes
        end = getattr(block, "file_length", None)
        end = None if end is None or end < 0 else max(end, block.stop)
        path = str(getattr(block, "file_path", "") or getattr(stream, "name", "") or "stream")
        return cls(stream, path, block.start, block.stop, end, position)

    def seek(self, position: int) -> None:
        """Go on reading at `position`."""
        self.position = position
        self.is_at_end = self.end is not None and position >= self.end
        self._must_seek = True

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer at the end only, where `is_at_end` becomes True.

        Raises FileShortened if the file ends before the length that it was planned with, or before the block's stop.
        """
        if self.end is not None:
            size = min(size, self.end - self.position)
        if size <= 0:
            self.is_at_end = self.end is not None
            return b""
        if self._must_seek:
            self.stream.seek(self.position)
            self._must_seek = False
        data = self.stream.read(size)
        if len(data) < size:
            data = self._read_on(data, size)
        self.position += len(data)
        if self.position == self.end:
            self.is_at_end = True
        return data

    def _read_on(self, data: bytes, size: int) -> bytes:
        parts, missing = [data], size - len(data)
        while missing and data:
            data = self.stream.read(missing)
            parts.append(data)
            missing -= len(data)
        if missing:
            length = self.position + size - missing
            if self.end is not None or length < self.stop:
                raise FileShortened(path=self.path, expected=self.end or self.stop, found=self._length(length))
            self.is_at_end = True
        return b"".join(parts)

    def _length(self, at_most: int) -> int:
        """Return the present length of the file, as far as the stream knows it."""
        try:
            length = self.stream.seek(0, 2)  # type: ignore[call-arg]
        except Exception:  # noqa: BLE001  (any stream may refuse, in its own way; this is only for a message)
            length = None
        self._must_seek = True
        return min(length, at_most) if isinstance(length, int) else at_most


@functools.cache
def _keep_freed_memory() -> None:
    """Let the allocator keep what pieces leave behind, instead of giving it back to the system after each.

    glibc raises its thresholds for that (to at most 32 and 64 MiB) when a large allocation is freed. Without it, every
    megabyte that is read takes 256 page faults for each copy: reading lines is 1.5 to 2.5 times slower. Costs 10 µs, as
    these bytes are never touched. With other C libraries it has no effect.
    """
    bytes(31 * 1024 * 1024)


def check_size(instance: Any, attribute: Any, value: Any) -> None:
    """Validate a record's length: a number of bytes from 1 to 1 GiB (Arrow's offsets have 32 bits)."""
    _check_bytes(attribute, value, GiB, "1 GiB")


def check_piece_size(instance: Any, attribute: Any, value: Any) -> None:
    """Validate the number of bytes of one read: from 1 to 256 MiB."""
    _check_bytes(attribute, value, 256 * MiB, "256 MiB")


def _check_bytes(attribute: Any, value: Any, most: int, words: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ValueError(f"{attribute.name} is {value!r}, but must be a number of bytes from 1 to {most} ({words})")
