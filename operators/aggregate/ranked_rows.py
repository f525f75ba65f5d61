"""The ordered rows of each key, the first `n` of which stand: what `TopN` and `Deduplicate` keep over all windows.

A table of rows has each different row once, and how often it is there. The columns of the user end in `#`, so that no others have
their names. A row of the state has the rows of one key: each column as a list.
"""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t
from typing_extensions import TypeVar

from dagflow import InputPort, KeyedTable, Operator, OperatorContext, OutputPort, WindowState
from operators.aggregate.accumulators import Ints, check_alike, comparable, group_codes, plain_column
from operators.aggregate.errors import ColumnTypeChanged, RowsNotKept
from operators.aggregate.fields import check_keys, check_objects, check_values, names_of
from operators.aggregate.kept_groups import equal_rows
from operators.aggregate.kept_keys import json_of
from operators.aggregate.window_groups import MAX_PARTIAL_GROUPS, ROWS_OF_A_BATCH
from operators.portions import MAX_BYTES, Portions

T = TypeVar("T", default=Any)

ROWS, KEY, VALUE = "#rows", "#key", "#value"
"""The columns of a table that say how often a row is there, and what functions of the user make of it."""
NO_KEY = b"null"
"""The key in the state where all rows are one group."""
ALL = "#all"
"""A column of the state without values: it has all rows, since some may be taken back."""
WAITING_ROWS, WAITING_BYTES = 1 << 17, 64 << 20
"""The most rows that wait to be ordered, or their bytes, unless more stand."""


@attrs.frozen
class Ranking:
    """The order of the rows of each key: by their values, then by all columns, by name. Nulls come last, and NaN before them.

    Attributes:
        n: the number of rows of a key that stand.
        by, of: what makes the key and the values of a row: names of columns, a function, or None.
        descending: the largest values come first, of all columns of the values or of each; `all_descending`: those of all
            columns do.
        needs_value: rows without a value are left out.
        nulls_first: the order of the values is that of SQL: NaN is larger than all numbers, and nulls are first or last.
        setting: the property of the operator that has `of`, for errors.
    """

    n: int
    by: Any = None
    of: Any = None
    descending: bool | tuple[bool, ...] = False
    all_descending: bool = False
    needs_value: bool = False
    nulls_first: bool | None = None
    setting: str = "of"

    def table(self, batch: pa.RecordBatch, sign: int, port: InputPort[Any]) -> pa.Table:
        """Return the rows of a batch. Raises ColumnNotThere, KeyColumnRefused, ValueColumnRefused, ValueNotKept."""
        check_keys(batch, self.by)
        check_values(batch.schema, self.of, "sort", self.setting)
        check_objects(batch, tuple(batch.schema.names))
        columns = {f"{name}#": plain_column(batch.column(name)) for name in batch.schema.names}
        columns = {name: column.cast(pa.string()) if t.is_null(column.type) else column for name, column in columns.items()}
        records = port.records_of(batch) if callable(self.by) or callable(self.of) else []
        if callable(self.by):
            columns[KEY] = pa.array(map(json_of, map(self.by, records)), pa.binary())
        if callable(self.of):
            columns[VALUE] = plain_column(pa.array(list(map(self.of, records))))
        rows = pa.table({**columns, ROWS: np.full(batch.num_rows, sign, np.int64)})
        for name in self.values if self.needs_value else ():
            column = rows.column(name)
            is_value = pc.is_valid(column) if t.is_null(column.type) else pc.equal(column, column)  # neither null nor NaN
            rows = rows.filter(is_value)
        return rows

    @property
    def keys(self) -> list[str]:
        """The columns of the key."""
        return [KEY] if callable(self.by) else [f"{name}#" for name in names_of(self.by)]

    @property
    def values(self) -> list[str]:
        """The columns of the values."""
        return [VALUE] if callable(self.of) else [f"{name}#" for name in names_of(self.of)]

    def ranked(self, table: pa.Table, *numbers: Ints) -> Ranked:
        """Return the different rows of a table in their order. `numbers`: how often each row is there, in one way or several."""
        names = sorted({*table.column_names} - {ROWS})
        columns = {name: comparable(table.column(name).combine_chunks()) for name in names}
        compared, terms = pa.table(columns), dict.fromkeys(self.keys, "ascending")
        of_each = self.descending if isinstance(self.descending, tuple) else [self.descending] * len(self.values)
        for name, descending in zip(self.values, of_each, strict=True):
            if self.nulls_first is not None:
                columns[f"{name}?"] = _class_of_values(columns[name], descending=descending, nulls_first=self.nulls_first)
                terms[f"{name}?"] = "ascending"
            terms.setdefault(name, "descending" if descending else "ascending")
        for name in names:
            terms.setdefault(name, "descending" if self.all_descending else "ascending")
        order = pc.sort_indices(pa.table(columns), list(terms.items())).to_numpy()
        compared = compared.take(pa.array(order))
        starts = np.flatnonzero(_differs(compared))
        is_first = _differs(compared.select(self.keys))[starts]
        sums = (np.add.reduceat(each[order], starts) if len(starts) else each[order] for each in numbers)
        rows = table.take(pa.array(order[starts]))
        return Ranked(rows, np.flatnonzero(is_first), np.cumsum(is_first) - 1, tuple(sums))

    def standing(self, ranked: Ranked, numbers: Ints) -> Ints:
        """Return how many of each row stand: the first `n` rows of each key do."""
        before = np.cumsum(numbers) - numbers
        return np.clip(self.n - before + before[ranked.first][ranked.group], 0, numbers)

    def groups(self, rows: pa.RecordBatch, port: InputPort[Any]) -> Ints:
        """Return groups of rows: equal for equal keys."""
        keys = self.of_state(pa.Table.from_batches([rows]))
        columns = keys if isinstance(keys, pa.RecordBatch) else pa.record_batch({KEY: keys})
        return port.groups_of(columns, columns.schema.names)

    def of_state(self, rows: pa.Table) -> pa.Array | pa.RecordBatch:
        """Return the keys of rows as a state takes them."""
        if not names_of(self.by):
            return rows.column(KEY).combine_chunks() if callable(self.by) else pa.array([NO_KEY] * rows.num_rows, pa.binary())
        return pa.RecordBatch.from_arrays(
            [rows.column(name).combine_chunks() for name in self.keys], names=list(names_of(self.by))
        )


@attrs.frozen(eq=False)
class Ranked:
    """Rows in their order, those of each key together.

    Attributes:
        first: the first row of each key.
        group: the number of the key of each row.
        numbers: how often each row is there, in one sense or several.
    """

    rows: pa.Table
    first: Ints
    group: Ints
    numbers: tuple[Ints, ...]


@attrs.define
class RankedRows:
    """The rows of a window, and what they change. Without `keeps_all`, rows that do not stand are dropped: none is taken back.

    Attributes:
        tables: rows in memory; `waiting`: how many of them are not ranked, and `wanted`: how many may wait.
        others: more rows, where they are too many to be in memory.
    """

    tables: list[pa.Table] = attrs.field(factory=list)
    waiting: int = 0
    wanted: int = 0
    others: Portions | None = None

    def __deepcopy__(self, memo: object) -> RankedRows:
        return RankedRows(self.tables[:], self.waiting, self.wanted, copy.deepcopy(self.others))

    def add_bounded(self, rows: pa.Table, ranking: Ranking, port: InputPort[Any], *, keeps_all: bool) -> None:
        """Add rows of the window, with a bound for those in memory."""
        self.add(rows, ranking, keeps_all=keeps_all)
        if len(self.tables) == 1 and self.tables[0].nbytes > MAX_BYTES and ranking.by is not None:
            self._put_aside(ranking, port)

    def _put_aside(self, ranking: Ranking, port: InputPort[Any]) -> None:
        self.others = self.others or Portions([lambda batch: ranking.groups(batch, port)])
        for batch in (each for table in self.tables for each in table.combine_chunks().to_batches()):
            self.others.add(batch, 1)
        self.tables, self.waiting, self.wanted = [], 0, 0

    def add(self, rows: pa.Table, ranking: Ranking, *, keeps_all: bool) -> None:
        """Add rows of the window."""
        self.tables.append(rows)
        self.waiting += max(rows.num_rows, rows.nbytes * WAITING_ROWS // WAITING_BYTES)
        if self.waiting > max(WAITING_ROWS, self.wanted):
            best = self.best(ranking, keeps_all=keeps_all)
            self.tables, self.waiting = [best], 0
            self.wanted = max(best.num_rows, best.nbytes * WAITING_ROWS // WAITING_BYTES)

    def best(self, ranking: Ranking, *, keeps_all: bool = False) -> pa.Table:
        """Return the different rows that stand, or all that do not cancel."""
        rows = _together(self.tables)
        ranked = ranking.ranked(rows, rows.column(ROWS).to_numpy())
        (numbers,) = ranked.numbers
        numbers = numbers if keeps_all else ranking.standing(ranked, numbers)
        return _with_numbers(ranked.rows, numbers).filter(pa.array(numbers != 0))

    def emit_best(self, ranking: Ranking, output: OutputPort[Any]) -> None:
        """Emit the rows of the window that stand."""
        if self.tables:
            best = self.best(ranking)
            emit_rows(best, best.column(ROWS).to_numpy(), output.emit_batch)

    def emit_change(
        self,
        kept: KeyedTable,
        ranking: Ranking,
        port: InputPort[Any],
        output: OutputPort[Any],
        context: OperatorContext,
        *,
        keeps_all: bool,
    ) -> None:
        """Put the rows to those that are kept. Take back those that no longer stand, and emit those that stand now.

        Raises ColumnTypeChanged, and NeverInserted where a row is taken back more often than it came.
        """
        if self.others is None:
            self._emit_change(kept, ranking, output, context, keeps_all=keeps_all)
            return
        self._put_aside(ranking, port)
        for (chunks,) in self.others.take():
            some = RankedRows([pa.Table.from_batches([batch]) for batch, _ in chunks])
            some._emit_change(kept, ranking, output, context, keeps_all=keeps_all)

    def _emit_change(
        self, kept: KeyedTable, ranking: Ranking, output: OutputPort[Any], context: OperatorContext, *, keeps_all: bool
    ) -> None:
        if not self.tables or not (rows := self.best(ranking, keeps_all=keeps_all)).num_rows:
            return
        if (known := kept.columns) is not None:
            for name in ranking.keys:
                check_alike(name[:-1], known.field(name).type.value_type, rows.field(name).type)
            if keeps_all != (ALL in known.names):
                raise RowsNotKept(now="may" if keeps_all else "may not")
            own = pa.schema([(field.name, field.type.value_type) for field in known if field.name != ALL])
            rows = _together([pa.table([pa.nulls(0, field.type) for field in own], schema=own), rows])
        touched = group_codes(rows, ranking.keys)[1]
        before = _unfolded(kept.lookup(ranking.of_state(rows.take(pa.array(touched)))))
        rows = rows if before is None else _together([before, rows])
        numbers = rows.column(ROWS).to_numpy()
        was_there = np.arange(len(numbers)) < (0 if before is None else before.num_rows)
        ranked = ranking.ranked(rows, np.where(was_there, numbers, 0), numbers)
        earlier, left = ranked.numbers
        left = context.standing(left, lambda at: _named(ranked.rows.slice(at, 1)).to_pylist()[0])
        stood, stand = ranking.standing(ranked, earlier), ranking.standing(ranked, left)
        _put(kept, ranking, ranked, left if keeps_all else stand, [ALL] if keeps_all else [])
        emit_rows(ranked.rows, stood - stand, output.retract_batch)
        emit_rows(ranked.rows, stand - stood, output.emit_batch)

    @staticmethod
    def emit_standing(kept: KeyedTable, ranking: Ranking, output: OutputPort[Any]) -> None:
        """Emit all kept rows that stand, of a ranking without keys, in their order; a batch without rows if there are none."""
        if kept.columns is None:
            return
        rows = _unfolded(kept.lookup(pa.array([NO_KEY], pa.binary())))
        if rows is None:
            fields = [pa.field(field.name[:-1], field.type.value_type) for field in kept.columns if field.name.endswith("#")]
            output.emit_batch(pa.RecordBatch.from_pylist([], pa.schema(fields)))
            return
        ranked = ranking.ranked(rows, rows.column(ROWS).to_numpy())
        emit_rows(ranked.rows, ranking.standing(ranked, *ranked.numbers), output.emit_batch)


@attrs.define
class PartialRanking(Operator, Generic[T]):
    """The partial aggregation of operators that rank rows: of each key the first rows of one partition."""

    takes_changes: ClassVar[bool] = True
    selects_rows: ClassVar[bool] = True

    ranking: Ranking

    input = InputPort[T]()
    output = OutputPort[T]()
    ranked = WindowState[RankedRows](factory=RankedRows)

    @input.batch
    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows in. Where some may be taken back, all are needed."""
        if self.input.is_changing:
            self.output.emit_batch(batch)
            return
        self.ranked.add(self.ranking.table(batch, 1, self.input), self.ranking, keeps_all=False)
        if len(self.ranked.tables) == 1 and self.ranked.tables[0].num_rows > MAX_PARTIAL_GROUPS:
            self.end_window()

    def end_window(self) -> None:
        """Emit the rows."""
        self.ranked.emit_best(self.ranking, self.output)
        self.ranked = RankedRows()


def emit_rows(rows: pa.Table, times: Ints, emit: Callable[[pa.RecordBatch], None]) -> None:
    """Emit each row so many times."""
    again = pa.array(np.repeat(np.arange(len(times)), np.maximum(times, 0)))
    for batch in _named(rows).take(again).to_batches(max_chunksize=ROWS_OF_A_BATCH):
        emit(batch)


def _class_of_values(column: pa.Array, *, descending: bool, nulls_first: bool) -> pa.Array:
    """Return 1 for values, and numbers before or behind it for NaN and nulls, as SQL orders them."""
    classes = np.ones(len(column), np.int8)
    if t.is_floating(column.type):
        classes[pc.fill_null(pc.is_nan(column), False).to_numpy(zero_copy_only=False)] = 0 if descending else 2
    classes[column.is_null().to_numpy(zero_copy_only=False)] = -1 if nulls_first else 3
    return pa.array(classes)


def _differs(rows: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows are not equal to the row before them: the first is not."""
    differs = np.ones(rows.num_rows, bool)
    columns = [column.combine_chunks() for column in rows.columns]
    differs[1:] = ~equal_rows([each[1:] for each in columns], [each[:-1] for each in columns], max(0, rows.num_rows - 1))
    return differs


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """Return tables as one, with columns that take the values of all. Raises ColumnTypeChanged where there are none."""
    try:
        return pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        fields = [field for table in tables for field in table.schema if not t.is_null(field.type)]
        first = {field.name: field.type for field in reversed(fields)}
        odd = next(field for field in fields if field.type != first[field.name])
        raise ColumnTypeChanged(column=odd.name[:-1], before=str(first[odd.name]), now=str(odd.type)) from error


def _with_numbers(rows: pa.Table, numbers: Ints) -> pa.Table:
    return rows.set_column(rows.column_names.index(ROWS), ROWS, pa.array(numbers))


def _named(rows: pa.Table) -> pa.Table:
    """Return the columns of the user under their names."""
    names = [name for name in rows.column_names if name.endswith("#")]
    return rows.select(names).rename_columns([name[:-1] for name in names])


def _put(kept: KeyedTable, ranking: Ranking, ranked: Ranked, numbers: Ints, marks: Sequence[str]) -> None:
    """Put the rows of the keys at hand in the place of those that they have, each as often as `numbers` says."""
    there = numbers > 0
    rows = _with_numbers(ranked.rows, numbers).filter(pa.array(there)).combine_chunks()
    starts = np.searchsorted(ranked.group[there], np.arange(len(ranked.first) + 1)).astype(np.int32)
    keys, stays = ranking.of_state(ranked.rows.take(pa.array(ranked.first))), starts[1:] > starts[:-1]
    lists = {
        name: pa.ListArray.from_arrays(pa.array(starts), rows.column(name).combine_chunks()).filter(pa.array(stays))
        for name in rows.column_names
    }
    kept.put(keys.filter(pa.array(stays)), {**lists, **{name: pa.nulls(int(stays.sum())) for name in marks}})
    kept.remove(keys.filter(pa.array(~stays)))


def _unfolded(kept: pa.RecordBatch) -> pa.Table | None:
    """Return the rows of kept keys; None where there are none. Columns that came after a key was put are null."""
    if not kept.num_columns or not len(sizes := pc.drop_null(pc.list_value_length(kept.column(ROWS))).to_numpy()):
        return None
    kept = kept.filter(kept.column(ROWS).is_valid())
    columns = {}
    for name in (name for name in kept.schema.names if name != ALL):
        has = np.repeat(kept.column(name).is_valid().to_numpy(zero_copy_only=False), sizes)
        columns[name] = pc.list_flatten(kept.column(name)).take(pa.array(np.cumsum(has) - 1, mask=~has))
    return pa.table(columns)
