"""Chunks of records that wait: the first of them in memory, more in a temporary file."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from typing import Any

import attrs
import pyarrow as pa

MAX_LEFT_ROWS = 1 << 20
MAX_LEFT_BYTES = 256 << 20
"""The rows and bytes of the left side that wait in memory for the window's end. More wait in a temporary file."""


@attrs.define
class ChunkBuffer:
    """Chunks (batches, or lists of records, or tuples with such) in the order in which they came.

    The last chunks are in memory, at most `max_rows` rows and `max_bytes` of batches. Those before them are in a temporary
    file without a name.

    >>> buffer = ChunkBuffer(max_rows=3, max_bytes=1 << 20)
    >>> for chunk in (["a", "b"], ["c", "d"], ["e"]):
    ...     buffer.add(chunk, len(chunk))
    >>> list(buffer.take()), list(buffer.take())
    ([['a', 'b'], ['c', 'd'], ['e']], [])
    """

    max_rows: int
    max_bytes: int
    _chunks: list[Any] = attrs.field(factory=list, init=False)
    _rows: int = attrs.field(default=0, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _file: Any = attrs.field(default=None, init=False)

    @classmethod
    def of_left_side(cls) -> ChunkBuffer:
        """Return a buffer for the left side of a join."""
        return cls(MAX_LEFT_ROWS, MAX_LEFT_BYTES)

    def add(self, chunk: Any, rows: int) -> None:
        """Add a chunk."""
        self._chunks.append(chunk)
        self._rows += rows
        self._bytes += getattr(chunk, "nbytes", 0)  # what Python's objects weigh is not known
        if self._rows > self.max_rows or self._bytes > self.max_bytes:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed when all has been taken, or is forgotten
            pickle.dump(list(map(_packed, self._chunks)), self._file, protocol=5)
            self._chunks, self._rows, self._bytes = [], 0, 0

    def take(self) -> Iterator[Any]:
        """Yield all chunks, once."""
        if self._file is not None:
            end = self._file.tell()
            self._file.seek(0)
            while self._file.tell() < end:
                yield from map(_unpacked, pickle.load(self._file))  # what this process has just written
        chunks = self._chunks
        self.forget()
        yield from chunks

    def forget(self) -> None:
        """Drop all chunks."""
        self._chunks, self._rows, self._bytes = [], 0, 0
        if self._file is not None:
            self._file.close()
            self._file = None


def together(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of many rows, since each is looked up at some cost."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        is_full = rows >= MAX_LEFT_ROWS or size + batch.nbytes > MAX_LEFT_BYTES
        if waiting and (is_full or batch.schema != waiting[0].schema):
            yield pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    yield pa.concat_batches(waiting)


def _packed(chunk: Any) -> Any:
    """Return the written form of a chunk: of a batch its own rows; pickle would write the whole that it may be a slice of."""
    if isinstance(chunk, list | tuple):
        return chunk
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, chunk.schema) as writer:
        writer.write_batch(chunk)
    return sink.getvalue().to_pybytes()


def _unpacked(written: Any) -> Any:
    """Invert `_packed`."""
    if isinstance(written, list | tuple):
        return written
    return pa.ipc.open_stream(written).read_next_batch()
