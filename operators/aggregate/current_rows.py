"""CurrentRows: all rows of a changing stream that stand."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from typing import Any, ClassVar, Generic

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.types as t
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, OutputPort, TableState, WindowState
from operators.aggregate.accumulators import check_alike, group_codes
from operators.aggregate.aggregate import ROWS_OF_A_BATCH
from operators.aggregate.errors import NeverInserted

T = TypeVar("T", default=Any)
COUNT = "#rows"


@attrs.define
class CurrentRows(Operator, Generic[T]):
    """All rows that stand, in each window: of a row as many as have come, without those that were taken back.

    The planner puts it before a sink that keeps the current result of a changing stream. Rows come in their order, those of each
    partition together; a batch without rows where none are left.

    >>> from dagflow.testing import OperatorTask
    >>> with OperatorTask(CurrentRows(), in_batches=True) as task:
    ...     task.give("input", pa.record_batch({"shop": ["b", "a"], "sold": [2, 1]}))
    ...     _ = task.end_window()
    ...     task.give("input", pa.record_batch({"shop": ["b"], "sold": [2]}), retracts=True)
    ...     task.give("input", pa.record_batch({"shop": ["b"], "sold": [3]}))
    ...     task.end_window()["output"]
    [{'shop': 'a', 'sold': 1}, {'shop': 'b', 'sold': 3}]
    """

    takes_changes: ClassVar[bool] = True
    emits_changes: ClassVar[bool | None] = False
    scope: ClassVar[Any] = "all"
    partition_key_fixed: ClassVar[bool] = True

    input = InputPort[T](partition_by="*")
    output = OutputPort[T](empty_batches=True)
    changes = WindowState[list[tuple[pa.RecordBatch, int]]](factory=list)
    rows = TableState()

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which tells whether rows are taken back."""
        self._context = context

    @input.batch
    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""
        self.changes.append((batch, -1 if self._context.retracts else 1))

    def end_window(self) -> None:
        """Emit all rows that stand."""
        if self.changes:
            self._add(
                pa.concat_tables([pa.Table.from_batches([batch]) for batch, _ in self.changes], promote_options="permissive")
            )
        if (table := self._all()) is not None:
            for batch in table.to_batches(max_chunksize=ROWS_OF_A_BATCH) or [_without_rows(table.schema)]:
                self.output.emit_batch(batch)

    def _add(self, table: pa.Table) -> None:
        """Add the window's rows to those that stand. Raises NeverInserted, ColumnTypeChanged."""
        signs = np.concatenate([np.full(batch.num_rows, sign) for batch, sign in self.changes])
        names = sorted(table.column_names)
        codes, first = group_codes(pa.table({name: _as_key(table.column(name)) for name in names}), names)
        rows = table.take(pa.array(first)).combine_chunks()
        keys = pa.RecordBatch.from_arrays([rows.column(name).combine_chunks() for name in names], names=names)
        known = {} if self.rows.columns is None else {field.name[1:]: field.type for field in self.rows.columns}
        for field in rows.schema:
            check_alike(field.name, known.get(field.name, field.type), field.type)
        found = self.rows.lookup(keys)
        stood = found.column(COUNT).fill_null(0).to_numpy() if found.num_columns else np.zeros(len(first), np.int64)
        counts = stood + np.bincount(codes, signs, minlength=len(first)).astype(np.int64)
        if len(counts) and counts.min() < 0:
            (row,) = rows.slice(int(counts.argmin()), 1).to_pylist()
            raise NeverInserted.of(row, -counts.min())
        stays = pa.array(counts > 0)
        columns = {f".{name}": rows.column(name).combine_chunks().filter(stays) for name in rows.column_names}
        self.rows.put(keys.filter(stays), {COUNT: pa.array(counts[counts > 0]), **columns})
        self.rows.remove(keys.filter(pa.array((counts == 0) & (stood > 0))))

    def _all(self) -> pa.Table | None:
        """Return all rows that stand; None where there have never been any."""
        if (schema := self.rows.columns) is None:
            return None
        kept = [field for field in schema if field.name != COUNT]
        columns = pa.schema([(COUNT, pa.int64()), *kept])
        batches = [
            pa.RecordBatch.from_arrays([each.column(field.name) for field in columns], schema=columns)
            for each in self.rows.batches()
        ]
        table = pa.Table.from_batches(batches, schema=columns)
        counts = table.column(COUNT).to_numpy()
        table = table.select([field.name for field in kept]).rename_columns([field.name[1:] for field in kept])
        if (counts != 1).any():
            table = table.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
        ordered = [(field.name, "ascending") for field in table.schema if not t.is_nested(field.type)]
        return table.sort_by(ordered) if ordered else table


def _as_key(column: pa.ChunkedArray) -> pa.Array:
    """Return a column that rows can be grouped by: nested values as text."""
    array = column.combine_chunks()
    return pa.array([None if value is None else repr(value) for value in array.to_pylist()]) if t.is_nested(array.type) else array


def _without_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
