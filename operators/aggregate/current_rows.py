"""CurrentRows: all rows of a changing stream that stand."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, ClassVar, Generic

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, OutputPort, State, StateSize, TableState, WindowState
from dagflow.arrow_types import joint_type
from operators.aggregate.accumulators import check_alike
from operators.aggregate.result_changes import added_up, count_changes
from operators.aggregate.window_groups import ROWS_OF_A_BATCH
from operators.names import one_or_more
from operators.portions import MAX_BYTES, Chunks, Portions, plain

T = TypeVar("T", default=Any)
COUNT = "#rows"
KEY, GROUP = "key", "$group"


@attrs.define
class CurrentRows(Operator, Generic[T]):
    """All rows that stand, at emission points: of a row as many as have come, without those that were taken back.

    The planner puts it before a sink that keeps the current result of a changing stream. It emits nothing where nothing has come
    since the last emission point. Rows come in their order, those of each partition together (if there are very many, some of its
    keys after others); a batch without rows where none are left.

    Args:
        partition_columns: of the sink. If there are any, only rows with those values in them are emitted for which a row has
            changed. For values of which no row is left, one that stood is taken back.

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
    scope: ClassVar[Any] = "all"
    waits_for_emission: ClassVar[bool] = True
    selects_rows: ClassVar[bool] = True
    partition_key_fixed: ClassVar[bool] = True

    partition_columns: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=one_or_more)

    input = InputPort[T](partition_by="*")
    output = OutputPort[T](empty_batches=True)
    changes = WindowState[Portions | None](None)
    rows = TableState(format_version=2)
    changed = TableState()
    uncounted = State[list[int]](factory=lambda: [0, 0], merge=added_up)

    def state_size(self, changing: Collection[str]) -> StateSize:
        """Return that the result is kept."""
        return StateSize("all rows that stand", "the result")

    @property
    def emits_changes(self) -> bool:  # type: ignore[override]
        """True where a row says that its partition has become empty."""
        return bool(self.partition_columns)

    def keeps_state(self, name: str) -> bool:
        """Return whether it has to know which partitions have changed."""
        return name != "changed" or bool(self.partition_columns)

    def partition_key(self, port: str) -> Any:
        """Return the columns of partitions, so that each is in one task; without any, the whole row."""
        return self.partition_columns or None

    def needed_columns(self, port: str) -> dict[str, Sequence[str]]:
        """Return the columns of partitions."""
        return {"partition_columns": self.partition_columns}

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which tells signs and emission points."""
        self._context = context

    @input.batch
    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""
        self._changes().add(batch, self._context.sign)

    def _changes(self) -> Portions:
        self.changes = self.changes or Portions([lambda batch: self._keys(batch).column(GROUP).to_numpy()])
        return self.changes

    def _keys(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the keys of whole rows, in the groups of their partitions."""
        return self.input.keys_of(batch, by=self.partition_columns or None)

    def _partitions(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the keys of the partitions of rows."""
        return self.input.keys_of(batch, self.partition_columns)

    def end_window(self) -> None:
        """Emit all rows that stand, at an emission point."""
        moved = [self._add(chunks) for (chunks,) in self._changes().take()]
        changed, inserted, retracted = (sum(numbers) for numbers in zip((0, 0, 0), *moved, strict=True))
        self.uncounted = count_changes(self._context, self.uncounted, inserted, retracted)
        if not self._context.emits:
            self._context.hold(changed)
        elif (schema := self.rows.columns) is not None:
            if self.partition_columns:
                self._emit_changed(schema)
                return
            emitted = False
            for table in self._tables(schema):
                for batch in table.to_batches(max_chunksize=ROWS_OF_A_BATCH):
                    emitted = True
                    self.output.emit_batch(batch)
            if not emitted and (columns := _kept(schema)):  # without any, no row has ever stood
                self.output.emit_batch(_without_rows(pa.schema([(name[1:], kind) for name, kind in columns])))

    def _emit_changed(self, schema: pa.Schema) -> None:
        """Emit the rows of the partitions that have changed since the last emission point; take back one of each empty one."""
        examples = _plain([batch for some in self.changed.portions(MAX_BYTES) for batch in some], schema)
        if not examples.num_rows:
            return
        keys = self._partitions(plain(examples))
        stands = np.zeros(len(keys), bool)
        for table in self._tables(schema, keys.column(GROUP).to_pylist()):
            places = pc.index_in(self._partitions(plain(table)).column(KEY), keys.column(KEY))
            stands[pc.unique(places).drop_null().to_numpy()] = True
            for batch in table.filter(places.is_valid()).to_batches(max_chunksize=ROWS_OF_A_BATCH):
                self.output.emit_batch(batch)
        for batch in examples.filter(pa.array(~stands)).to_batches():
            self.output.retract_batch(batch)
        self.changed.remove(keys)

    def _add(self, chunks: Chunks) -> tuple[int, int, int]:
        """Add changes to the rows that stand. Return the number of rows that differ, of all that came and of all that left.

        Raises NeverInserted, ColumnTypeChanged.
        """
        if (net := self.input.net_changes(chunks, by=self.partition_columns or None)) is None:
            return 0, 0, 0
        known = {} if self.rows.columns is None else {field.name[1:]: field.type for field in self.rows.columns}
        for field in net.rows.schema:
            before = known.get(field.name, field.type)
            is_free = not self.partition_columns and not t.is_nested(field.type)  # files of other partitions stay as they are
            if not is_free or joint_type(before, field.type) is None:
                check_alike(field.name, before, field.type)
        before = net.kept(self.rows.lookup(net.keys), COUNT)
        counts = self._context.standing(before + net.counts, lambda at: net.rows.slice(at, 1).to_pylist()[0])
        self.rows.keep(net, COUNT, counts, with_rows=True)
        if self.partition_columns:
            self._note(net.rows)
        moved = counts - before
        return len(counts), int(moved.clip(min=0).sum()), int(-moved.clip(max=0).sum())

    def _note(self, rows: pa.RecordBatch) -> None:
        """Keep an example of the rows of each partition that have changed."""
        keys = self._partitions(rows)
        _, first = np.unique(keys.column(KEY).dictionary_encode().indices.to_numpy(), return_index=True)
        examples = rows.take(pa.array(first))
        self.changed.put(keys.take(pa.array(first)), {f".{field.name}": examples.column(field.name) for field in rows.schema})

    def _tables(self, schema: pa.Schema, groups: Collection[int] | None = None) -> Iterator[pa.Table]:
        """Yield all rows that stand, or those of some groups and maybe others: those in memory at once in their order."""
        for some in self.rows.portions(MAX_BYTES, groups):
            counts = np.concatenate([np.zeros(0, np.int64), *(batch.column(COUNT).to_numpy() for batch in some)])
            table = _plain(some, schema)
            if (counts != 1).any():
                table = table.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
            ordered = [(field.name, "ascending") for field in table.schema if _has_order(field.type)]
            yield table.sort_by(ordered) if ordered else table


def _has_order(kind: pa.DataType) -> bool:
    texts = (t.is_decimal, t.is_string, t.is_large_string, t.is_binary, t.is_large_binary)
    is_number = t.is_primitive(kind) and not t.is_float16(kind) and not t.is_interval(kind)
    return is_number or any(is_kind(kind) for is_kind in texts)


def _plain(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return rows of a state, of which `schema` has the columns, as they came."""
    rows = pa.schema([(name[1:], kind) for name, kind in _kept(schema)])
    columns = [[_column(batch, f".{field.name}", field.type) for field in rows] for batch in batches]
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(each, schema=rows) for each in columns], rows)


def _column(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    return batch.column(name).cast(kind) if name in batch.schema.names else pa.nulls(len(batch), kind)


def _kept(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    """Return the names and types of the columns of rows in a state."""
    return [(field.name, field.type) for field in schema if field.name != COUNT]


def _without_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
