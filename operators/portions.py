"""The rows of a window that an operator works on at its end: at once, or by groups of keys where they are too many for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dagflow.storage import TemporarySpillFile

MAX_ROWS, MAX_BYTES = 1 << 20, 64 << 20
"""The rows of a port that wait in memory for the window's end, or the bytes of all. More wait in a temporary file."""
PORTIONS = 64
"""The number of portions in which they are taken then, at most 256."""
_GROUPS = 1 << 16
"""The number of groups that keys have."""
Chunks = list[tuple[pa.RecordBatch, int]]
"""Batches with their signs: 1 for rows that are added, -1 for rows that are taken back."""
Groups = np.ndarray[Any, Any]


_Part = tuple[int, pa.Schema, int, int, int]
"""Rows in a file: of a port, with a schema and a sign, their place and their size."""


@attrs.define
class Portions:
    """The rows of a window, which come at one or several ports. Rows with equal keys are in the same portion.

    Args:
        groups_of: for each port, a function that returns the groups by which the rows of a batch were sent to this partition.
        max_rows: the most rows of each port that wait in memory; `max_bytes`: the most bytes of all.

    >>> rows = Portions([lambda batch: batch.column("key").to_numpy()])
    >>> rows.add(pa.record_batch({"key": [1, 2]}), 1)
    >>> [[(batch.num_rows, sign) for batch, sign in chunks] for (chunks,) in rows.take()]
    [[(2, 1)]]
    """

    groups_of: Sequence[Callable[[pa.RecordBatch], Groups]]
    max_rows: Sequence[int] = attrs.field(default=attrs.Factory(lambda self: [MAX_ROWS] * len(self.groups_of), takes_self=True))
    max_bytes: int = attrs.field(factory=lambda: MAX_BYTES)
    _waiting: list[tuple[int, pa.RecordBatch, int]] = attrs.field(factory=list, init=False)
    _rows: dict[int, int] = attrs.field(factory=dict, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _portion_of: Groups | None = attrs.field(default=None, init=False)
    _schemas: dict[tuple[int, pa.Schema], None] = attrs.field(factory=dict, init=False)
    _file: TemporarySpillFile | None = attrs.field(default=None, init=False)
    _written: dict[int, list[_Part]] = attrs.field(factory=dict, init=False)

    def add(self, batch: pa.RecordBatch, sign: int, port: int = 0) -> None:
        """Add rows."""
        self._waiting.append((port, batch, sign))
        self._rows[port] = self._rows.get(port, 0) + batch.num_rows
        self._bytes += batch.nbytes
        if self._rows[port] > self.max_rows[port] or self._bytes > self.max_bytes:
            self._write()

    def take(self) -> Iterator[list[Chunks]]:
        """Yield the portions, each as the chunks of each port, and forget them. The first is there in any case.

        Where there are several, each has batches without rows of all schemas too.
        """
        if self._file is None:
            waiting = self._waiting
            self.forget()
            yield self._by_port(waiting)
            return
        self._write()
        none = [(port, pa.RecordBatch.from_pylist([], schema), 1) for port, schema in self._schemas]
        for number in sorted(self._written):
            yield self._by_port([*none, *map(self._read, self._written.pop(number))])
        self.forget()

    def forget(self) -> None:
        """Drop all rows."""
        self._waiting, self._rows, self._bytes = [], {}, 0
        self._portion_of, self._schemas, self._written, self._file = None, {}, {}, None

    def __deepcopy__(self, memo: object) -> Portions:
        copied = Portions(self.groups_of, self.max_rows, self.max_bytes)
        copied._waiting, copied._rows, copied._bytes = self._waiting[:], dict(self._rows), self._bytes
        copied._portion_of, copied._schemas, copied._file = self._portion_of, dict(self._schemas), self._file
        copied._written = {number: parts[:] for number, parts in self._written.items()}
        return copied

    def _by_port(self, chunks: Sequence[tuple[int, pa.RecordBatch, int]]) -> list[Chunks]:
        by_port: list[Chunks] = [[] for _ in self.groups_of]
        for port, batch, sign in chunks:
            by_port[port].append((batch, sign))
        return by_port

    def _write(self) -> None:
        """Write what waits, each portion by itself."""
        if self._file is None:
            self._file = TemporarySpillFile()
        waiting, self._waiting, self._rows, self._bytes = self._waiting, [], {}, 0
        while waiting:
            port, first, sign = waiting[0]
            alike = [batch for place, batch, s in waiting if (place, s, batch.schema) == (port, sign, first.schema)]
            waiting = [each for each in waiting if (each[0], each[2], each[1].schema) != (port, sign, first.schema)]
            rows = plain(pa.Table.from_batches(alike))
            self._schemas[port, rows.schema] = None
            if not rows.num_rows:
                continue
            groups = self.groups_of[port](rows)
            if self._portion_of is None:
                edges = np.unique(np.quantile(groups, np.arange(1, PORTIONS) / PORTIONS, method="nearest"))
                self._portion_of = np.searchsorted(edges, np.arange(_GROUPS), side="right").astype(np.uint8)
            numbers = self._portion_of[groups]
            order = np.argsort(numbers, kind="stable")  # of bytes: a radix sort
            rows, starts = rows.take(pa.array(order)), np.searchsorted(numbers[order], np.arange(PORTIONS + 1))
            for number in np.flatnonzero(np.diff(starts)).tolist():
                start, stop = int(starts[number]), int(starts[number + 1])
                data = memoryview(rows.slice(start, stop - start).serialize())
                self._written.setdefault(number, []).append((port, rows.schema, sign, self._file.write(data), data.nbytes))

    def _read(self, part: _Part) -> tuple[int, pa.RecordBatch, int]:
        port, schema, sign, place, size = part
        assert self._file is not None
        return port, pa.ipc.read_record_batch(pa.py_buffer(self._file.read(place, size)), schema), sign


def plain(table: pa.Table) -> pa.RecordBatch:
    """Return rows as a state keeps them: without dictionaries, views and types of extensions."""
    columns = []
    for column in table.columns:
        array: Any = column.combine_chunks()
        array = array.storage if isinstance(array, pa.ExtensionArray) else array
        if pa.types.is_dictionary(array.type):
            array = pc.cast(array, array.type.value_type)
        if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
            array = array.cast(pa.string() if pa.types.is_string_view(array.type) else pa.binary())
        columns.append(array)
    return pa.RecordBatch.from_arrays(columns, names=table.column_names)
