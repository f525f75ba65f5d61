"""A side of a join over all input within a window: its rows, or its records, as rows with keys that a state takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from dagflow import InputPort, TableKeys
from dagflow.scaling import key_hash
from operators.aggregate.errors import ValueNotKept
from operators.aggregate.kept_keys import as_plain, entry_of, from_plain
from operators.join.errors import JoinRecordNotKept
from operators.join.kept_rows import Arrived, KeptRows, Pool
from operators.join.right_side import SideLimits, is_null
from operators.portions import Chunks, plain

_GROUP = (1 << 16) - 1
"""The bits of a key's hash that are its group."""
_RECORD = "record"


@attrs.define(eq=False)
class RowSide:
    """The rows of a side that have come in a window.

    Attributes:
        port, by: the port, and the columns of the key.
        kept: the rows of earlier windows.
        limits: how many rows and bytes may be in memory at once.
    """

    port: InputPort[Any]
    by: tuple[str, ...]
    kept: KeptRows
    limits: SideLimits

    def groups(self, batch: pa.RecordBatch) -> np.ndarray[Any, Any]:
        """Return the groups of rows by their keys; one where there is no key."""
        return self.port.groups_of(batch, self.by) if self.by else np.zeros(batch.num_rows, np.int64)

    def table(self, chunks: Chunks, table_of: Callable[[Sequence[pa.RecordBatch]], pa.Table | None]) -> pa.Table | None:
        """Return chunks as one table; None where their columns are not known. Raises JoinSideTooLarge.

        `table_of`: returns batches as one table; None without any.
        """
        batches = [batch for batch, _ in chunks]
        self.limits.check(sum(batch.num_rows for batch in batches), sum(batch.nbytes for batch in batches))
        return table_of(batches)

    def rows_of(self, table: pa.Table | None) -> tuple[pa.RecordBatch, bool]:
        """Return the rows of a table, with the columns of kept ones, and whether their columns are known."""
        known = self.kept.schema
        rows = plain(table) if table is not None else pa.RecordBatch.from_pylist([], known or pa.schema([]))
        schema = self.kept.merged(rows.schema)
        rows = pa.RecordBatch.from_arrays(
            [
                rows.column(name).cast(kind) if name in rows.schema.names else pa.nulls(rows.num_rows, kind)
                for name, kind in zip(schema.names, schema.types, strict=True)
            ],
            schema=schema,
        )
        return rows, table is not None or known is not None

    def arrived(self, rows: pa.RecordBatch, chunks: Chunks) -> Arrived:
        """Return the rows of chunks with their keys and signs."""
        keys = self._keys(rows) if rows.num_rows else TableKeys(0, ())
        signs = np.concatenate([np.zeros(0, np.int64), *(np.full(batch.num_rows, sign) for batch, sign in chunks)])
        return Arrived(rows, keys, signs, np.arange(rows.num_rows))

    def _keys(self, rows: pa.RecordBatch) -> TableKeys:
        if self.by:
            return self.port.table_keys(rows, self.by)
        return TableKeys.of_bytes(pa.array([b""] * rows.num_rows, pa.binary()), np.zeros(rows.num_rows, np.int64))


@attrs.define(eq=False)
class RecordSide:
    """The records of a side that have come in a window.

    Records of a class with an Arrow form are kept as rows with its columns, others as JSON.
    """

    operator: str
    port: InputPort[Any]
    key_of: Callable[[Any], Any]
    kept: KeptRows
    limits: SideLimits
    _records: list[Any] = attrs.field(factory=list, init=False)
    _origins: list[Any] = attrs.field(factory=list, init=False)
    _signs: list[int] = attrs.field(factory=list, init=False)
    _keys: list[tuple[bytes | None, int]] = attrs.field(factory=list, init=False)

    def add(self, records: Iterator[Any], origin: Any, sign: int) -> None:
        """Add records, which are from one origin. Raises JoinSideTooLarge, JoinRecordNotKept."""
        for record in records:
            self._keys.append(self._key(self.key_of(record)))
            self._records.append(record)
            self._origins.append(origin)
            self._signs.append(sign)
            self.limits.check(len(self._records), 0)

    def arrived(self) -> Arrived:
        """Return the records as rows. Raises JoinRecordNotKept."""
        rows = self._rows()
        self.kept.merged(rows.schema)
        keys, groups = (
            pa.array([key for key, _ in self._keys], pa.binary()),
            np.array([group for _, group in self._keys], np.int64),
        )
        return Arrived(rows, TableKeys.of_bytes(keys, groups), np.array(self._signs, np.int64), np.arange(rows.num_rows))

    def records_of(self, pool: Pool) -> list[tuple[Any, Any]]:
        """Return the records of rows, with their origins: None for those that were kept."""
        old = pool.rows.slice(0, int((pool.places < 0).sum()))
        if self._has_columns:
            kept = self.port.records_of(old)
        else:
            kept = [from_plain(json.loads(each)) for each in old.column(0).to_pylist()]
        come = pool.places[len(kept) :].tolist()
        return [*((each, None) for each in kept), *((self._records[at], self._origins[at]) for at in come)]

    def clear(self) -> None:
        """Forget what has come."""
        self._records, self._origins, self._signs, self._keys = [], [], [], []

    @property
    def _has_columns(self) -> bool:
        return self.port.columns is None and self.port.schema is not None

    def _key(self, key: Any) -> tuple[bytes | None, int]:
        if is_null(key):
            return None, 0
        try:
            return json.dumps(entry_of(key)).encode(), key_hash(key) & _GROUP
        except TypeError as error:
            raise JoinRecordNotKept(operator=self.operator, what="key", reason=str(error)) from error

    def _rows(self) -> pa.RecordBatch:
        try:
            if self._has_columns:
                return self.port.batch_of(self._records)
            texts = [json.dumps(as_plain(record)).encode() for record in self._records]
        except (TypeError, ValueNotKept) as error:
            raise JoinRecordNotKept(operator=self.operator, what="record", reason=str(error).partition("\n")[0]) from error
        return pa.record_batch({_RECORD: pa.array(texts, pa.binary())})
