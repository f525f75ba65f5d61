"""Reading a file of an object store by ranges: ahead within a block, several at a time, and never ahead of its end."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

PIECE = 4 << 20
"""Bytes of a request. A smaller file takes one."""
MAX_AHEAD = 8
"""Requests under way at a time, so that a task holds 36 MiB of a file at most."""
BEYOND = 64 << 10
"""Bytes of a request behind the end of a block, where the last record ends, unless more are asked for."""

Fetch = Callable[[int, int], bytes]


class RangeReader(io.RawIOBase):
    """A file that is read by requests for ranges of it.

    Reading begins with one request at a time. Where a piece is not there yet when it is needed, the connection is slower than the
    task: from then on, twice as many pieces are requested ahead, up to MAX_AHEAD. A seek ends that.

    Args:
        fetch: returns the bytes `[start, stop)`; called from several threads.
        length: of the file, in bytes.
        stop: the end of the block that is to be read. Nothing behind it is requested before it is read.
        details: what the driver knows of the file (see `opened_status`).
    """

    def __init__(self, fetch: Fetch, length: int, stop: int, details: Any = None) -> None:
        self.details = details
        self._fetch = fetch
        self._length = length
        self._stop = min(stop, length)
        self._position = 0
        self._piece = b""
        self._piece_start = 0
        self._ahead: list[tuple[int, int, Future[bytes]]] = []
        self._depth = 0
        self._threads: ThreadPoolExecutor | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, position: int, whence: int = os.SEEK_SET, /) -> int:
        """See `BinaryReader.seek`."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}[whence]
        if base + position < 0:
            raise ValueError(f"negative position {base + position}")
        self._position = base + position
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """See `BinaryReader.read`: returns fewer bytes than asked for at the end of a piece."""
        if size is None or size < 0:
            return self.readall()
        if not self._has_piece():
            if size == 0 or self._position >= self._length:
                return b""
            self._load(size)
        at = self._position - self._piece_start
        data = self._piece[at : at + size]
        self._position += len(data)
        return data

    def readinto(self, buffer: Any, /) -> int:
        """See `BinaryReader.readinto`."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file; what has been requested ahead is dropped."""
        if not self.closed:
            self._drop()
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)
            self._piece = b""
        super().close()

    def _has_piece(self) -> bool:
        return self._piece_start <= self._position < self._piece_start + len(self._piece)

    def _load(self, size: int) -> None:
        """Get the piece at the position, and request those that follow."""
        start = self._position
        is_next = bool(self._piece) and start == self._piece_start + len(self._piece)
        if self._ahead and self._ahead[0][0] != start:
            self._drop()
        if self._ahead:
            _, stop, future = self._ahead.pop(0)
            if not future.done():
                self._depth = min(2 * self._depth, MAX_AHEAD)
            self._request(stop)
            piece = future.result()
        else:
            stop = min(start + PIECE, self._stop) if start < self._stop else min(start + max(size, BEYOND), self._length)
            if is_next and start < self._stop:
                self._depth = max(self._depth, 1)
                self._request(stop)
            piece = self._fetch(start, stop)
        if not piece:
            raise OSError(f"the file ends at {start:,}, and has {self._length:,} bytes by its length")
        self._piece, self._piece_start = piece, start

    def _request(self, start: int) -> None:
        """Request pieces from `start` on, behind those under way, until as many as wanted are; all within the block."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MAX_AHEAD, thread_name_prefix="dagflow-range")
        if self._ahead:
            start = self._ahead[-1][1]
        while len(self._ahead) < self._depth and start < self._stop:
            stop = min(start + PIECE, self._stop)
            self._ahead.append((start, stop, self._threads.submit(self._fetch, start, stop)))
            start = stop

    def _drop(self) -> None:
        for _, _, future in self._ahead:
            future.cancel()
        self._ahead.clear()
        self._depth = 0
