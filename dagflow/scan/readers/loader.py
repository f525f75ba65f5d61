"""Rows and whole Arrow columns in, batches of bounded size out."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

import attrs
import pyarrow as pa

from dagflow.arrow_types import wider
from dagflow.scan.bad_rows import RowOrigin
from dagflow.scan.errors import ReaderMisbehaves, RowTooLarge
from dagflow.scan.schema.cast import text_of
from dagflow.scan.schema.plain import plain_batch, plain_schema

KIB, MIB = 1024, 1024 * 1024
MOST_ROWS, LEAST_BYTES = 65_536, 256 * KIB
Origin = Callable[[int], RowOrigin]
"""A function from the number of a row in a batch to its origin. Called only for bad rows."""

_INTEGER = attrs.validators.instance_of(int)


@attrs.frozen(kw_only=True)
class BatchLimits:
    """The largest size of a batch, `rows` (at most 65,536) and `bytes` (at least 256 KiB), and of a single row."""

    rows: int = attrs.field(default=MOST_ROWS, validator=[_INTEGER, attrs.validators.ge(1), attrs.validators.le(MOST_ROWS)])
    bytes: int = attrs.field(default=16 * MIB, validator=[_INTEGER, attrs.validators.ge(LEAST_BYTES)])
    max_record_bytes: int = attrs.field(default=64 * MIB, validator=[_INTEGER, attrs.validators.ge(1)])


class Harvest(NamedTuple):
    """A loaded batch, the origins of its rows, and the bytes at which they start (None: not known)."""

    batch: pa.RecordBatch
    origin: Origin | None = None
    positions: pa.Array | None = None

    def slice(self, start: int, stop: int | None = None) -> Harvest:
        """Return some of the rows."""
        count = (self.batch.num_rows if stop is None else stop) - start
        origin, positions = self.origin, self.positions
        return Harvest(
            self.batch.slice(start, count),
            origin if origin is None or not start else lambda row: origin(row + start),
            positions if positions is None else positions.slice(start, count),
        )


@attrs.define(eq=False, kw_only=True)
class ResultSetLoader:
    """The loader that a reader fills, row by row (`start, set, save`) or with columns (`add_batch`); `harvest` returns batches.

    A batch has at most `limits.rows` rows and `limits.bytes` bytes. A row that does not fit goes into the next one. A row that is
    larger is a batch alone, up to `limits.max_record_bytes`. Values of columns that are not selected are dropped.

    >>> loader = ResultSetLoader(limits=BatchLimits(rows=2))
    >>> for n in range(3):
    ...     if loader.start():
    ...         loader.set("n", n)
    ...         loader.save()
    >>> loader.is_full, loader.harvest().batch.to_pydict(), loader.harvest()
    (True, {'n': [0, 1]}, None)

    Attributes:
        columns: the selected columns; None: all.
        types: the types that are known before the first value (rows only).
        path: the file, for messages.
        refused: a column that a reader must not load, and the error to raise: it would leave nulls in all other columns.
        schema: the columns harvested so far, with types that are wide enough.
        schema_version: 0 until a column is known; rises if and only if `schema` has changed by value.
    """

    columns: Container[str] | None = None
    limits: BatchLimits = attrs.field(factory=BatchLimits)
    types: Mapping[str, pa.DataType] = attrs.field(factory=dict)
    path: str = ""
    refused: tuple[str, ReaderMisbehaves] | None = None
    schema: pa.Schema | None = attrs.field(init=False, default=None)
    schema_version: int = attrs.field(init=False, default=0)
    _ready: deque[Harvest] = attrs.field(init=False, factory=deque)
    _values: dict[str, list[Any]] = attrs.field(init=False, factory=dict)
    _origins: list[RowOrigin] = attrs.field(init=False, factory=list)
    _bytes: int = attrs.field(init=False, default=0)
    _row: dict[str, Any] | None = attrs.field(init=False, default=None)
    _row_bytes: int = attrs.field(init=False, default=0)
    _row_origin: RowOrigin = attrs.field(init=False, default=RowOrigin())
    _is_overflow: bool = attrs.field(init=False, default=False)  # the row saved last began a batch, and is alone in it
    _seen: pa.Schema | None = attrs.field(init=False, default=None)

    # Rows

    def start(self, origin: RowOrigin | None = None) -> bool:
        """Begin a row; one that was not saved is dropped. Return False if the batch is full: then return from `next`."""
        if self.is_full:
            return False
        self._row, self._row_bytes, self._row_origin = {}, 0, origin or RowOrigin()
        return True

    def set(self, column: str, value: Any) -> None:
        """Set a value of the current row: a plain Python value, None for null, dicts and lists for nested ones.

        Raises RowTooLarge as soon as the row has more than `max_record_bytes`.
        """
        if self._row is None:
            raise RuntimeError("set() comes between start() and save()")
        if self.refused is not None and column == self.refused[0]:
            raise self.refused[1]
        if self.columns is None or column in self.columns:
            self._row[column] = value
            self._row_bytes += size_of(value)
            if self._row_bytes > self.limits.max_record_bytes:
                self._refuse(self._row_bytes, self._row_origin.position, column)

    def save(self) -> None:
        """Save the current row in the current batch, or, if it does not fit, as the first row of the next one."""
        row, self._row = self._row, None
        if row is None:
            raise RuntimeError("save() comes after start()")
        if self._origins and self._bytes + self._row_bytes > self.limits.bytes:
            self._close_rows()
            self._is_overflow = True
        else:
            self._is_overflow = False
        saved = len(self._origins)
        for name, value in row.items():
            values = self._values.get(name)
            if values is None:
                values = self._values[name] = []
            if len(values) < saved:
                values.extend([None] * (saved - len(values)))
            values.append(value)
        self._origins.append(self._row_origin)
        self._bytes += self._row_bytes

    # Columns

    def add_batch(
        self, batch: pa.RecordBatch, origin: Origin | None = None, positions: pa.Array | Sequence[int] | None = None
    ) -> None:
        """Add a batch of the reader's columns, all or the selected ones. Only columns that are not plain are copied.

        `origin(i)` returns the origin of row i; it is called only for rows with bad values. `positions`: the bytes at which rows
        start, from the start of the file, for the column `block_offset`.
        """
        self._close_rows()
        if self.refused is not None and self.refused[0] in batch.schema.names:
            raise self.refused[1]
        if not batch.num_rows:
            self._extend_schema(plain_schema(batch.schema))
            return
        if self.columns is not None:
            names = [name for name in batch.schema.names if name in self.columns]
            if not names:
                batch = rows_without_columns(batch.num_rows)
            elif len(names) < batch.num_columns:
                batch = batch.select(names)
        starts = positions if positions is None or isinstance(positions, pa.Array) else pa.array(positions, pa.int64())
        self._ready.append(Harvest(plain_batch(batch), origin, starts))

    def skip_rows(self, rows: int, positions: pa.Array | Sequence[int] | None = None) -> None:
        """Add rows of which no column is selected. `positions` as in `add_batch`."""
        self._close_rows()
        starts = positions if positions is None or isinstance(positions, pa.Array) else pa.array(positions, pa.int64())
        for begin in range(0, rows, MOST_ROWS):
            end = min(rows, begin + MOST_ROWS)
            self._ready.append(Harvest(rows_without_columns(end - begin), None, None if starts is None else starts[begin:end]))

    @property
    def is_full(self) -> bool:
        """Return whether the batch is full. Then the reader returns from `next`, and continues in the next call."""
        return bool(self._ready) or len(self._origins) >= self.limits.rows or self._bytes >= self.limits.bytes

    def harvest(self, *, is_last: bool = True) -> Harvest | None:
        """Return the next loaded batch; None if there is none. Raises RowTooLarge.

        `is_last` False: the reader continues, so a row that did not fit into the last batch waits for others.
        """
        if not self._ready and (is_last or not self._is_overflow or self.is_full):
            self._close_rows()
        if not self._ready:
            return None
        harvest = self._ready.popleft()
        rows = self._fitting(harvest)
        if rows < harvest.batch.num_rows:
            self._ready.appendleft(harvest.slice(rows))
            harvest = harvest.slice(0, rows)
        self._extend_schema(harvest.batch.schema)
        return harvest

    def _fitting(self, harvest: Harvest) -> int:
        """Return how many rows of a batch fit into the limits, at least one."""
        batch = harvest.batch
        most: int = min(batch.num_rows, self.limits.rows)
        if batch.nbytes <= self.limits.bytes and batch.nbytes <= self.limits.max_record_bytes:
            return most
        low, high = 1, most + 1  # as many as `low` are taken, whatever their size; `high` do not fit
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if batch.slice(0, middle).nbytes <= self.limits.bytes else (low, middle)
        size = batch.slice(0, 1).nbytes
        if size > self.limits.max_record_bytes:
            largest = max(batch.schema.names, key=lambda name: batch.column(name).slice(0, 1).nbytes)
            self._refuse(size, harvest.origin(0).position if harvest.origin is not None else None, largest)
        return low

    def _refuse(self, size: int, position: int | None, column: str) -> None:
        limit = self.limits.max_record_bytes
        raise RowTooLarge(path=self.path, position=position, size=size, limit=limit, column=column)

    def _close_rows(self) -> None:
        rows = len(self._origins)
        if not rows:
            return
        columns = {name: values + [None] * (rows - len(values)) for name, values in self._values.items()}
        arrays = [array_of(values, self.types.get(name)) for name, values in columns.items()]
        batch = pa.RecordBatch.from_arrays(arrays, names=list(columns)) if columns else rows_without_columns(rows)
        positions = None
        if self._origins[0].position is not None:
            positions = pa.array([origin.position for origin in self._origins], pa.int64())
        self._ready.append(Harvest(batch, self._origins.__getitem__, positions))
        self._values, self._origins, self._bytes, self._is_overflow = {}, [], 0, False

    def _extend_schema(self, schema: pa.Schema) -> None:
        if schema is self._seen or (self._seen is not None and schema.equals(self._seen)):
            return
        self._seen = schema
        types = {f.name: f.type for f in self.schema} if self.schema is not None else {}
        for f in schema:
            types[f.name] = wider(types[f.name], f.type) if f.name in types else f.type
        merged = pa.schema(list(types.items()))
        if self.schema is None or not merged.equals(self.schema):
            self.schema = merged
            self.schema_version += 1


def size_of(value: Any) -> int:
    """Return about how many bytes a value takes in a batch."""
    if isinstance(value, str):
        return 4 + (len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass")))
    if isinstance(value, bytes | bytearray | memoryview):
        return 4 + len(value)
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if isinstance(value, list | tuple):
        return 4 + sum(map(size_of, value))
    return 8


def array_of(values: list[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Return a column of Python values: of a type, if all are equal in it; else of the type that Arrow finds; else of texts.

    For a type that is given, Arrow makes 1 of 1.5, and a date of a time. For one that it finds, it changes times only.

    >>> array_of([1, None, 2.5]).type, array_of([1, "x"]).to_pylist(), array_of([1.5], pa.int64()).type
    (DataType(double), ['1', 'x'], DataType(double))
    """
    for tried in (kind, None) if kind is not None else (None,):
        try:
            made = pa.array(values, tried)
            if (tried is None and not _has_times(made.type)) or made.to_pylist(maps_as_pydicts="strict") == values:
                return made
        except _ERRORS:
            continue
    return pa.array([None if value is None else text_of(value) for value in values], pa.string())


_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    ArithmeticError,
    KeyError,
    TypeError,
    ValueError,
)


def _has_times(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) or any(_has_times(kind.field(n).type) for n in range(kind.num_fields))


@functools.lru_cache(maxsize=4)
def rows_without_columns(rows: int) -> pa.RecordBatch:
    """Return a batch of rows without columns.

    >>> rows_without_columns(3).num_rows, rows_without_columns(3).num_columns
    (3, 0)
    """
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
