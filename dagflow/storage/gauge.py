"""Gauges: a few figures that one process overwrites in place and others read. Nothing may depend on them."""

from __future__ import annotations

import os

from dagflow.storage.records.bounded import read_regular

SIZE = 200  # bytes; less than a page, so writes are nearly atomic; a reader of a torn one reads again later


_MAX_BYTES = 1 << 16


class Gauge:
    """A gauge on a local disk.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gauge = Gauge(f"{folder}/gauge")
    ...     before = gauge.read()
    ...     gauge.write(b"42 s left")
    ...     gauge.close()
    ...     before, gauge.read()
    (None, b'42 s left')
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None
        self._size = SIZE

    def write(self, data: bytes) -> None:
        """Replace the value by another one. One of more than 200 bytes may be read torn."""
        if self._file is None:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._size = max(self._size, len(data))  # what is longer than the new value becomes blank
        os.pwrite(self._file, data.ljust(self._size), 0)

    def read(self) -> bytes | None:
        """Return the last value; None if there is none."""
        try:
            return read_regular(self._path, _MAX_BYTES).rstrip() or None
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """Close the file, but leave it there."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
