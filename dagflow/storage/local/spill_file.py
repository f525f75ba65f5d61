"""A temporary file for rows that are too many to wait in memory."""

from __future__ import annotations

import os
import tempfile
import weakref

from dagflow.storage.errors import RowsNotPutAside


class TemporarySpillFile:
    """A temporary file without a name, which goes when nothing refers to it any more.

    >>> file = TemporarySpillFile()
    >>> file.write(memoryview(b"rows")), file.write(memoryview(b"more"))
    (0, 4)
    >>> file.read(2, 4)
    b'wsmo'
    """

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # closed with this object, of which there may be copies
        weakref.finalize(self, file.close)
        self._number, self._size = file.fileno(), 0

    def write(self, data: memoryview) -> int:
        """Write bytes behind those that are there, and return their place. Raises RowsNotPutAside."""
        start = self._size
        try:
            while data.nbytes:
                written = os.pwrite(self._number, data, self._size)
                data, self._size = data[written:], self._size + written
        except OSError as error:
            raise RowsNotPutAside(folder=tempfile.gettempdir(), reason=str(error)) from error
        return start

    def read(self, start: int, size: int) -> bytes:
        """Return bytes that were written."""
        return os.pread(self._number, size, start)
