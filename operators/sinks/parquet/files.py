"""The Parquet files of a task: rows wait for their row group, and the number of open files is limited."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from typing import Any

import attrs
import pyarrow as pa

from operators.sinks.errors import RowsNotWritable
from operators.sinks.parquet.encodings import large_columns

COLUMN_COST = 512
"""The bytes that a column of a waiting batch takes beside its values."""
MAX_DICTIONARY_BYTES = 6 << 20
"""The most bytes that an open writer keeps: the dictionary of the last column that it has written."""


class CountingFile:
    """An attempt file as pyarrow writes to it. Closing belongs to the task."""

    closed = False

    def __init__(self, file: Any) -> None:
        self.file = file
        self.size = 0

    def write(self, data: Any) -> int:
        """Append bytes."""
        written: int = self.file.write(data)
        self.size += written
        return written

    def tell(self) -> int:
        """Return the number of bytes that have been written."""
        return self.size

    def flush(self) -> None:
        """Do nothing: the task does it."""

    def close(self) -> None:
        """Do nothing: the task does it."""


@attrs.define(eq=False)
class _Part:
    """A file: rows that wait, and later an open writer too."""

    name: str
    sink: CountingFile
    waiting: list[pa.RecordBatch] = attrs.field(factory=list)
    rows_waiting: int = 0
    bytes_waiting: int = 0
    rows: int = 0
    writer: Any = None
    dictionary: int = 0
    large: frozenset[str] = frozenset()


@attrs.define
class ParquetFiles:
    """Write batches to files by key: one after the other, when the one at hand is full.

    A file is opened when its first row group is written. When more than `max_open` are open, or their writers hold more than
    `buffer_bytes`, the least recently used is finished, since a Parquet file cannot be appended to; rows of its key that come
    later begin another one. So do rows with large values (see `encodings_of`), where the writer at hand is not made for them.

    Attributes:
        operator: named in errors.
        create: opens the attempt file of a key and returns it with its name; called again for the next one.
        make: makes a writer to a sink, for the rows that come first, and columns that have large values.
        row_group_rows, row_group_bytes: the size of a row group (bytes as Arrow holds them).
        buffer_bytes: the most bytes of all rows that wait. If more come, the largest part becomes a row group before it is full.
        max_rows, max_bytes: a file is full when it has so many rows, or bytes at the end of a row group; None: never.
        closed_early: how many files were finished to open others.
    """

    operator: str
    create: Callable[[Any], tuple[str, Any]]
    make: Callable[[CountingFile, Any, Collection[str]], Any]
    row_group_rows: int
    row_group_bytes: int
    buffer_bytes: int
    max_open: int
    max_rows: int | None = None
    max_bytes: int | None = None
    closed_early: int = 0
    _parts: OrderedDict[Hashable, _Part] = attrs.field(factory=OrderedDict, init=False)
    _open: int = attrs.field(default=0, init=False)
    _waiting: int = attrs.field(default=0, init=False)
    _dictionaries: int = attrs.field(default=0, init=False)
    _large: set[str] = attrs.field(factory=set, init=False)

    def append(self, key: Hashable, batch: pa.RecordBatch) -> None:
        """Append rows to the file of a key."""
        if batch.nbytes > self.row_group_bytes:  # a row of many megabytes, which Parquet copies a few times
            pa.default_memory_pool().release_unused()
        rows_at_once = max(1, batch.num_rows * self.row_group_bytes // max(batch.nbytes, 1))
        start, large = 0, large_columns(batch)
        self._large |= large
        if not batch.num_rows:  # the file is there, without rows
            self._take(self._part(key), batch)
        while start < batch.num_rows:
            part = self._part(key)
            if part.writer is not None and not large <= part.large:
                self._finish(self._parts.pop(key))
                part = self._part(key)
            room = min(rows_at_once, self.row_group_rows - part.rows_waiting)
            if self.max_rows is not None:
                room = min(room, self.max_rows - part.rows)
            self._take(part, batch.slice(start, room))
            start += room
            if part.rows_waiting >= self.row_group_rows or part.bytes_waiting >= self.row_group_bytes:
                self._write(part)
            if part.rows == self.max_rows or (self.max_bytes is not None and part.sink.size >= self.max_bytes):
                self._finish(self._parts.pop(key))
        while self._waiting > self.buffer_bytes:
            self._write(max(self._parts.values(), key=lambda part: part.bytes_waiting))

    def close(self) -> None:
        """Write all that waits, and finish all files."""
        while self._parts:
            self._finish(self._parts.popitem(last=False)[1])
        self._large.clear()

    def _part(self, key: Hashable) -> _Part:
        part = self._parts.get(key)
        if part is None:
            name, file = self.create(key)
            part = self._parts[key] = _Part(name, CountingFile(file))
        else:
            self._parts.move_to_end(key)
        return part

    def _take(self, part: _Part, rows: pa.RecordBatch) -> None:
        size = rows.nbytes + COLUMN_COST * rows.num_columns
        part.waiting.append(rows)
        part.rows_waiting += rows.num_rows
        part.rows += rows.num_rows
        part.bytes_waiting += size
        self._waiting += size
        part.sink.file.records(rows.num_rows)  # at once: so it is known of which record a row was made

    def _write(self, part: _Part, *, is_last: bool = False) -> None:
        """Make a row group of the rows that wait. `is_last`: the file is being finished, so it needs no room itself."""
        if not part.waiting:
            return
        dictionary = min(part.bytes_waiting, MAX_DICTIONARY_BYTES)
        if part.writer is None or not is_last:
            self._make_room(part, dictionary)
        rows = pa.Table.from_batches(part.waiting)
        if part.writer is None:
            part.large = frozenset(self._large)
            part.writer = self.make(part.sink, rows, part.large)
            self._open += 1
        self._dictionaries += dictionary - part.dictionary
        part.dictionary = dictionary
        try:
            part.writer.write_table(rows, row_group_size=self.row_group_rows)
        except pa.ArrowException as error:  # of rows that came long before those at hand: no `on_error` skips it
            columns = ", ".join(f"{field.name}: {field.type}" for field in part.waiting[0].schema)
            reason = str(error).strip()
            raise RowsNotWritable(operator=self.operator, file=part.name, columns=columns, reason=reason) from error
        self._waiting -= part.bytes_waiting
        part.waiting.clear()
        part.rows_waiting = part.bytes_waiting = 0

    def _make_room(self, part: _Part, dictionary: int) -> None:
        """Finish other files until this one may be written to."""
        growth = dictionary - part.dictionary
        while self._open > (part.writer is not None) and (
            (part.writer is None and self._open >= self.max_open) or self._dictionaries + growth > self.buffer_bytes
        ):
            oldest = next(key for key, other in self._parts.items() if other.writer is not None and other is not part)
            self._finish(self._parts.pop(oldest))
            self.closed_early += 1

    def _finish(self, part: _Part) -> None:
        self._write(part, is_last=True)
        part.writer.close()
        self._open -= 1
        self._dictionaries -= part.dictionary
        part.sink.file.close()
