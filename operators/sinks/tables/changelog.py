"""The changes of a stream as rows: what sinks with `mode="changelog"` write."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t
from typing_extensions import TypeVar

from dagflow import InputPort, NetRows, Operator, OperatorContext, OutputPort
from operators.aggregate.accumulators import group_codes
from operators.names import one_or_more
from operators.sinks.tables.changes import netted
from operators.sinks.tables.errors import ChangeTypeTaken

T = TypeVar("T", default=Any)
CHANGE_TYPE = "_change_type"
"""The column that names the kind of a change, as in the change data feed of Delta Lake."""
KINDS = ("delete", "update_preimage", "insert", "update_postimage")
ROWS_OF_A_BATCH = 1 << 16


@attrs.define
class Changelog(Operator, Generic[T]):
    """The changes of each window as rows that are only added, with their kind in the column `_change_type`.

    The planner puts it before a sink with `mode="changelog"` where rows may be taken back. Rows that come and are taken back in
    one window cancel. Of a row that is taken back and one with the same keys that comes, the first is an `update_preimage` and
    the second an `update_postimage`, one behind the other. Others are `delete` and `insert`; without keys, all are.

    >>> from dagflow.testing import OperatorTask
    >>> with OperatorTask(Changelog(keys="shop"), in_batches=True) as task:
    ...     task.give("input", pa.record_batch({"shop": ["a", "b"], "sold": [2, 1]}))
    ...     task.give("input", pa.record_batch({"shop": ["a"], "sold": [1]}), retracts=True)
    ...     for row in task.end_window()["output"]:
    ...         print(row)
    {'shop': 'a', 'sold': 1, '_change_type': 'update_preimage'}
    {'shop': 'a', 'sold': 2, '_change_type': 'update_postimage'}
    {'shop': 'b', 'sold': 1, '_change_type': 'insert'}
    """

    emits_changes: ClassVar[bool | None] = False
    scope: ClassVar[Any] = "rows"
    partition_key_fixed: ClassVar[bool] = True

    keys: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=one_or_more)

    input = InputPort[T](partition_by="*")
    output = OutputPort[Any]()

    def partition_key(self, port: str) -> Any:
        """Return the keys, so that both halves of an update meet; without any, the whole row."""
        return self.keys or None

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches: rows have columns."""
        return frozenset({"batch"} if port == "output" else {"record"})

    def source_columns(self, port: str, columns: Sequence[str], made: Sequence[str]) -> dict[str, str]:
        """Return all columns of the input: a row is that of the change."""
        return {name: name for name in columns}

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which counts what comes into the result."""
        self._context = context

    @input.net
    def emit_changes(self, net: NetRows[T]) -> None:
        """Emit the window's changes. Raises ChangeTypeTaken."""
        if CHANGE_TYPE in net.rows.schema.names:
            raise ChangeTypeTaken(operator=self._context.name)
        rows, count = netted(pa.table(net.rows), net.counts)  # each as often as it counts, those first that stand
        self._context.count_result(count, rows.num_rows - count)
        for batch in with_kinds(rows, count, self.keys).to_batches(max_chunksize=ROWS_OF_A_BATCH):
            self.output.emit_batch(batch)


def with_kinds(rows: pa.Table, count: int, keys: tuple[str, ...]) -> pa.Table:
    """Return rows in the order of their keys, with the kind of each change. The first `count` rows come, the others go."""
    names = [*keys, *(name for name in rows.column_names if name not in keys)]
    plain = [name for name in names if not t.is_nested(rows.schema.field(name).type)]
    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in plain]) if plain else pa.array(range(rows.num_rows))
    rows, comes = rows.take(order), order.to_numpy() < count
    if not keys:
        return _marked(rows, comes, np.zeros(len(comes), bool), np.argsort(comes, kind="stable"))
    codes, _ = group_codes(rows, list(keys))
    codes = np.asarray(codes)
    rank = np.empty(len(codes), np.int64)  # of a row among those of its keys that come, or go
    for side in (comes, ~comes):
        rank[side] = _ranks(codes[side])
    pairs = np.minimum(
        np.bincount(codes[comes], minlength=codes.max() + 1), np.bincount(codes[~comes], minlength=codes.max() + 1)
    )
    first_seen = np.empty(codes.max() + 1, np.int64)
    first_seen[codes[::-1]] = np.arange(len(codes))[::-1]
    return _marked(rows, comes, rank < pairs[codes], np.lexsort((comes, rank, first_seen[codes])))


def _ranks(codes: Any) -> Any:
    order = np.argsort(codes, kind="stable")
    ranks = np.empty(len(codes), np.int64)
    ranks[order] = np.arange(len(codes)) - np.searchsorted(codes[order], codes[order])
    return ranks


def _marked(rows: pa.Table, comes: Any, is_update: Any, order: Any) -> pa.Table:
    kinds = pa.array(KINDS).take(pa.array(2 * comes + is_update))
    return rows.append_column(CHANGE_TYPE, kinds).take(pa.array(order))


def with_change_type(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with the kind of each row: `insert`, unless it says so itself, as rows behind `Changelog` do."""
    if CHANGE_TYPE in batch.schema.names:
        return batch
    schema = batch.schema.append(pa.field(CHANGE_TYPE, pa.string()))
    return pa.RecordBatch.from_arrays([*batch.columns, pa.repeat("insert", batch.num_rows)], schema=schema)
