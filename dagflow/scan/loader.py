"""Rows and whole Arrow columns in, batches of bounded size out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
import pyarrow as pa

from dagflow.scan.bad_rows import RowOrigin

KIB, MIB = 1024, 1024 * 1024
Origin = Callable[[int], RowOrigin]
"""Tells of row i of a batch where it comes from; asked for bad rows only."""


@attrs.frozen(kw_only=True)
class BatchLimits:
    """How large batches get: `rows` (at most 65,536), `bytes` (at least 256 KiB), and how large a single row may be."""

    rows: int = attrs.field(default=65_536, validator=[attrs.validators.ge(1), attrs.validators.le(65_536)])
    bytes: int = attrs.field(default=16 * MIB, validator=attrs.validators.ge(256 * KIB))
    max_record_bytes: int = attrs.field(default=64 * MIB, validator=attrs.validators.ge(1))


@attrs.define(eq=False, kw_only=True)
class ResultSetLoader:
    """Takes what a reader reads, row by row (`start, set, save`) or as whole columns (`add_batch`); gives batches (`harvest`).

    Values of columns that nobody wants are dropped at once. `schema_version` is 0 until a column is known and rises whenever the
    schema of what is harvested differs, by value, from the one before.
    """

    columns: tuple[str, ...] | None = None
    limits: BatchLimits = attrs.field(factory=BatchLimits)
    schema: pa.Schema | None = None
    """The columns known so far, wanted or not."""
    schema_version: int = attrs.field(init=False, default=0)
    _ready: deque[tuple[pa.RecordBatch, Origin | None]] = attrs.field(init=False, factory=deque)
    _rows: dict[str, list[Any]] = attrs.field(init=False, factory=dict)
    _origins: list[RowOrigin] = attrs.field(init=False, factory=list)
    _row: dict[str, Any] | None = attrs.field(init=False, default=None)
    _row_origin: RowOrigin = attrs.field(init=False, default=RowOrigin())
    _saved: int = attrs.field(init=False, default=0)
    origin: Origin | None = attrs.field(init=False, default=None)
    """Of the batch harvested last."""

    # Rows

    def start(self, origin: RowOrigin | None = None) -> bool:
        """Begins a row; one that was not saved is forgotten. False: the batch is full, return from `next`."""
        if self.is_full:
            return False
        self._row, self._row_origin = {}, origin or RowOrigin()
        return True

    def set(self, column: str, value: Any) -> None:
        """Sets a value of the row at hand: a plain Python value, None for null, dicts and lists for nested ones."""
        if self._row is None:
            raise RuntimeError("set() comes between start() and save()")
        if self.columns is None or column in self.columns:
            self._row[column] = value

    def save(self) -> None:
        """Keeps the row at hand."""
        row, self._row = self._row, None
        if row is None:
            raise RuntimeError("save() comes after start()")
        for name, value in row.items():
            values = self._rows.get(name)
            if values is None:
                values = self._rows[name] = []
            values.extend([None] * (self._saved - len(values)))
            values.append(value)
        self._origins.append(self._row_origin)
        self._saved += 1

    # Columns

    def add_batch(self, batch: pa.RecordBatch, origin: Origin | None = None) -> None:
        """Takes a batch of the reader's columns, all or those that are wanted; nothing is copied.

        `origin(i)` tells where row i comes from: asked for rows whose values do not fit their types.
        """
        self._close_rows()
        if self.columns is not None:
            wanted = [name for name in batch.schema.names if name in self.columns]
            if len(wanted) < batch.num_columns:
                if not wanted:
                    self.skip_rows(batch.num_rows)
                    return
                batch = batch.select(wanted)
        self._ready.append((batch, origin))

    def skip_rows(self, rows: int) -> None:
        """Counts rows of which no column is wanted."""
        self._close_rows()
        self._ready.append((counted(rows), None))

    @property
    def is_full(self) -> bool:
        """Whether the batch has all that it may have: the reader returns from `next`, and goes on in the next call."""
        return bool(self._ready) or self._saved >= self.limits.rows

    def harvest(self) -> pa.RecordBatch | None:
        """The next batch of what has been loaded; None when there is nothing left."""
        self._close_rows()
        while self._ready:
            batch, self.origin = self._ready.popleft()
            if batch.num_rows > self.limits.rows:
                self._ready.appendleft((batch.slice(self.limits.rows), _further(self.origin, self.limits.rows)))
                batch = batch.slice(0, self.limits.rows)
            if batch.num_rows:
                self._note(batch.schema)
                return batch
        return None

    def _close_rows(self) -> None:
        if not self._saved:
            return
        columns = {name: values + [None] * (self._saved - len(values)) for name, values in self._rows.items()}
        types = {f.name: f.type for f in self.schema} if self.schema is not None else {}
        batch = (
            pa.RecordBatch.from_arrays([pa.array(v, types.get(n)) for n, v in columns.items()], names=list(columns))
            if columns
            else counted(self._saved)
        )
        self._ready.append((batch, self._origins.__getitem__))
        self._rows, self._origins, self._saved = {}, [], 0

    def _note(self, schema: pa.Schema) -> None:
        if self.schema_version == 0 or self.schema is None or not schema.equals(self.schema):
            self.schema = schema
            self.schema_version += 1


def _further(origin: Origin | None, rows: int) -> Origin | None:
    return None if origin is None else lambda row: origin(row + rows)


def counted(rows: int) -> pa.RecordBatch:
    """A batch of so many rows and no columns.

    >>> counted(3).num_rows, counted(3).num_columns
    (3, 0)
    """
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
