"""Reading what others may have left, with bounds: regular files only, of at most so many bytes.

A dataset may come from a stranger. Every record and every file of events on a disk is read through this module, so that no pipe
and no file of terabytes stops or crashes the reader. `dagflow.bounded_json` does the same for their content.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable

MAX_BYTES = 1 << 30
"""The bytes of a record of any other kind. Plans and decisions grow with their work items: a million take some hundred MB."""

_SMALL = 1 << 16
_MAX_BYTES = {
    "owner": _SMALL,
    "app-id": _SMALL,
    "starting-over": _SMALL,
    "_claimed": _SMALL,
    "_lock": _SMALL,
    ".lock": _SMALL,
    "done": _SMALL,
    "ledger-hint": _SMALL,
    "probe": _SMALL,
    "launches": 1 << 26,
    "events": 1 << 26,
    "ledger": 1 << 28,
    "state": 1 << 32,
    "keyed-state": 1 << 32,
    "task-states": 1 << 32,
    "staged": 1 << 32,
}


def max_bytes(name: str) -> int:
    """Return the largest size of a record, by the first part of its name.

    >>> max_bytes("owner"), max_bytes("plan/0000000003") == MAX_BYTES
    (65536, True)
    """
    return _MAX_BYTES.get(name.partition("/")[0], MAX_BYTES)


class TooLarge(OSError):
    """A file has more bytes than what it is read for can have."""

    def __init__(self, path: str, size: int, limit: int) -> None:
        super().__init__(errno.EFBIG, f"its {size:,} bytes are more than the {limit:,} that it can have", path)


def open_regular(path: str) -> tuple[int, os.stat_result]:
    """Open a regular file for reading, and return its descriptor and status. Never waits for a pipe.

    Raises OSError: ESPIPE for pipes, sockets and devices, EISDIR for folders.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise OSError(errno.ESPIPE, "it is not a regular file", path) from error
        raise
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return descriptor, status
    os.close(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.ESPIPE, "it is not a regular file", path)


def read_regular(path: str, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes. Raises OSError, TooLarge."""
    descriptor, status = open_regular(path)
    try:
        if status.st_size > limit:
            raise TooLarge(path, status.st_size, limit)
        pieces, size = [], 0
        while piece := os.read(descriptor, 1 << 20):
            pieces.append(piece)
            size += len(piece)
            if size > limit:  # it grows, or is one of those that the system makes up as they are read
                raise TooLarge(path, size, limit)
    finally:
        os.close(descriptor)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def read_parts(path: str, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
    """Return the bytes of a regular file in each range `[start, stop)`, fewer where it ends before. Raises OSError."""
    descriptor, _ = open_regular(path)
    try:
        return [_read_part(descriptor, start, stop) for start, stop in ranges]
    finally:
        os.close(descriptor)


def _read_part(descriptor: int, start: int, stop: int) -> bytes:
    pieces = []
    while start < stop and (piece := os.pread(descriptor, stop - start, start)):
        pieces.append(piece)
        start += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
