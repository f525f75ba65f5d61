"""The groups of `GroupBy` over all windows so far: a window adds its own, and sees what results were and are."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from dagflow import KeyedTable, OperatorContext
from operators.aggregate.accumulators import ROWS, Accumulator, Ints, check_alike, comparable, counts_of, merged, retyped
from operators.aggregate.agg import Aggregation
from operators.aggregate.errors import KeysKeptOtherwise, RowsNotKept

Report = Callable[[int, Exception], None]

ONE_GROUP = pa.array([b""])
"""The key of all rows, where they are one group."""


@attrs.frozen(eq=False)
class Change:
    """The change of groups by a window.

    Attributes:
        before, after: tables of groups, as they were and as they are. The same groups are in `after` in the order of the window.
        places: the rows of `after` whose groups were there before, in the order of `before`.
        accumulators: what both have.
    """

    before: pa.Table
    after: pa.Table
    places: Ints
    accumulators: tuple[Accumulator, ...]

    def without_overflows(self, report: Report | None) -> Change:
        """Return the change of the groups whose results their columns hold. See `without_overflows`."""
        before = without_overflows(self.before, self.accumulators)
        stood = pc.greater(before.column(ROWS), 0).combine_chunks()
        after = without_overflows(self.after, self.accumulators, report)
        return Change(before.filter(stood), after, self.places[stood.to_numpy(zero_copy_only=False)], self.accumulators)

    def masks(self, is_equal: Any) -> tuple[pa.Array, pa.Array]:
        """Return which results of `before` no longer hold, and which of `after` are new: where `before` has not the equal one."""
        holds = pc.greater(self.after.column(ROWS), 0).to_numpy(zero_copy_only=False)
        is_same = holds[self.places] & is_equal
        holds[self.places[is_same]] = False
        return pa.array(~is_same), pa.array(holds)


def without_overflows(table: pa.Table, accumulators: Iterable[Accumulator], report: Report | None = None) -> pa.Table:
    """Return a table of groups in which a group has no rows (0) where a column cannot hold one of its results.

    `report` gets the place and the error of each such group that had rows.
    """
    for accumulator in accumulators:
        if not (errors := accumulator.not_held(table)):
            continue
        had_rows = table.column(ROWS).to_numpy() > 0
        for at, error in errors.items():
            if had_rows[at] and report is not None:
                report(at, error)
        fits = np.ones(table.num_rows, bool)
        fits[list(errors)] = False
        for name in (ROWS, *accumulator.parts):  # numbers: the parts of values in order are always held
            column = pc.if_else(pa.array(fits), table.column(name), pa.scalar(0, table.schema.field(name).type))
            table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def add_groups(
    kept: KeyedTable,
    table: pa.Table,
    keys: pa.Array | pa.RecordBatch,
    aggregates: Mapping[str, Aggregation],
    accumulators: tuple[Accumulator, ...],
    names: Sequence[str] = (),
    *,
    context: OperatorContext,
    with_keys: bool = False,
    is_last: bool = False,
) -> Change:
    """Add the groups of a window, by their keys, to those that are kept.

    `names`: the columns that the keys are of. `with_keys`: whether these are kept too, for results of groups of other windows.
    `is_last`: nothing looks at the groups again, so they are not put.

    Raises ColumnTypeChanged where these have other types, NeverInserted where more rows of a group are taken back than came; a
    context that only counts them leaves nothing of the group.
    """
    if (before_now := kept.columns) is not None:
        if any(field.name.startswith("=") for field in before_now) != bool(names):
            raise KeysKeptOtherwise(now="columns" if names else "records")
        for name in names:
            if f"={name}" in before_now.names:  # not one that files of this launch are the first to have
                check_alike(name, before_now.field(f"={name}").type, table.schema.field(name).type)
    kept_rows, places = kept.lookup(keys), np.zeros(0, np.int64)
    before, after = table.slice(0, 0), table
    if kept_rows.num_columns:
        is_there = kept_rows.column(ROWS).is_valid().to_numpy(zero_copy_only=False)
        places = np.flatnonzero(is_there)
        before, known = as_groups(pa.Table.from_batches([kept_rows.filter(pa.array(is_there))]), aggregates)
        if {each.name for each in known if each.keeps_all} != {each.name for each in accumulators if each.keeps_all}:
            raise RowsNotKept(now="may" if any(each.keeps_all for each in accumulators) else "may not")
        parts = {part for each in accumulators for part in each.parts}
        own = [name for name in table.column_names if name != ROWS and name not in parts]
        groups = table.select(own).filter(pa.array(is_there))
        kept_parts = {name: before.column(name) for name in before.column_names if not name.startswith("=")}
        columns = {name: groups.column(name) for name in own} | kept_parts
        (before,), both = retyped([pa.table(columns)], known, accumulators)
        (table,), _ = retyped([table], accumulators, known)
        accumulators, codes = both, np.concatenate([np.arange(table.num_rows), places])
        after = merged([table, before], own, accumulators, codes)
    after = _without_missing(after, accumulators, names, context)
    counts = context.standing(
        after.column(ROWS).to_numpy(),
        lambda at: {name: after.column(name)[at].as_py() for name in names} or {"key": keys[at].as_py()},
    )
    if is_last:
        return Change(before, after, places, accumulators)
    stays, whole = pa.array(counts > 0), after.combine_chunks()
    columns = {name: whole.column(name).combine_chunks().filter(stays) for each in accumulators for name in each.parts}
    columns[ROWS] = whole.column(ROWS).combine_chunks().filter(stays)
    for name in filter(set(names).__contains__, whole.column_names):
        column = whole.column(name).combine_chunks()
        columns[f"={name}"] = column.filter(stays) if with_keys else pa.nulls(len(columns[ROWS]), column.type)  # just the type
    kept.put(keys if (counts > 0).all() else keys.filter(stays), columns)
    kept.remove(keys.filter(pa.array(counts == 0)))
    return Change(before, after, places, accumulators)


def _without_missing(
    groups: pa.Table, accumulators: Sequence[Accumulator], names: Sequence[str], context: OperatorContext
) -> pa.Table:
    """Return groups without values that are taken back more often than they came. Raises NeverInserted, or counts them."""
    rows = groups.column(ROWS).to_numpy()
    missing = np.zeros(len(rows), np.int64)
    for each in accumulators:
        if not each.keeps_all:
            continue
        (part,) = each.parts
        lists = groups.column(part).combine_chunks()
        pairs, codes = pc.list_flatten(lists), pc.list_parent_indices(lists).to_numpy()
        numbers = pairs.field("n").to_numpy()
        is_there = (numbers > 0) | (rows[codes] < 0)  # such groups are told as a whole
        if is_there.all():
            continue
        at = int(np.flatnonzero(~is_there)[0])
        values = {name: groups.column(name)[int(codes[at])].as_py() for name in names}
        if not t.is_struct(each.type):  # rows are kept as bytes
            values[str(each.column)] = pairs.field("value")[at].as_py()
        context.never_inserted(values, -numbers[~is_there].sum())
        missing = np.maximum(missing, np.bincount(codes[~is_there], -numbers[~is_there], len(rows)).astype(np.int64))
        stay = counts_of(codes[is_there], pairs.field("value").filter(pa.array(is_there)), numbers[is_there], groups.num_rows)
        groups = groups.set_column(groups.column_names.index(part), part, stay)
    return groups.set_column(groups.column_names.index(ROWS), ROWS, pa.array(rows + missing)) if missing.any() else groups


def as_groups(rows: pa.Table, aggregates: Mapping[str, Aggregation]) -> tuple[pa.Table, tuple[Accumulator, ...]]:
    """Return kept rows as a table of groups. Where values became wider over the windows, all groups get the widest type."""
    of_each = [
        Accumulator.all_of_parts(name, each.function, each.column, rows.schema, each.share) for name, each in aggregates.items()
    ]
    shape, numbers = [1, *map(len, of_each)], [np.zeros(rows.num_rows, np.int64)]
    for accumulators in of_each:
        own = np.zeros(rows.num_rows, np.int64)  # one without values of any type
        for number, each in enumerate(accumulators):
            own[rows.column(list(each.parts)[-1]).is_valid().to_numpy()] = number
        numbers.append(own)
    codes = np.ravel_multi_index(numbers, shape)
    others = [name for name in rows.column_names if "#" not in name or name == ROWS or name.startswith("=")]
    tables, order, known = list[pa.Table](), list[Ints](), tuple[Accumulator, ...]()
    for code in np.flatnonzero(np.bincount(codes)).tolist() or [math.prod(shape) - 1]:
        fresh = [each[number] for each, number in zip(of_each, np.unravel_index(code, shape)[1:], strict=True)]
        order.append(np.flatnonzero(codes == code))
        some = rows.select([*others, *(part for each in fresh for part in each.parts)])
        some = some if len(order[-1]) == len(some) else some.take(pa.array(order[-1]))
        tables, known = retyped(tables, known, fresh)
        tables += retyped([some], fresh, known)[0]
    if len(tables) == 1:
        return tables[0], known
    whole = pa.concat_tables([each.select(tables[0].column_names) for each in tables])
    return whole.take(pa.array(np.argsort(np.concatenate(order)))), known


def key_columns(table: pa.Table, keys: Sequence[str]) -> pa.Array | pa.RecordBatch:
    """Return the keys of groups, as a state takes them."""
    if not keys:
        return ONE_GROUP.slice(0, table.num_rows)
    columns = [table.column(name).combine_chunks() for name in keys]
    return pa.RecordBatch.from_arrays(columns, names=list(keys))


def equal_rows(one: Sequence[Any], other: Sequence[Any], rows: int) -> Any:
    """Return which of so many rows are the same in two lists of columns: a null is one value, and so is NaN."""
    same = np.ones(rows, bool)
    for columns in zip(one, other, strict=True):
        left, right = map(_bits, columns)
        if t.is_null(left.type) or t.is_null(right.type):  # Arrow does not compare columns without values
            same &= (left.is_null() if t.is_null(right.type) else right.is_null()).to_numpy(zero_copy_only=False)
            continue
        is_equal = pc.fill_null(pc.equal(left, right), False).to_numpy(zero_copy_only=False)
        none = pc.and_(left.is_null(), right.is_null()).to_numpy(zero_copy_only=False)
        same &= is_equal | none
    return same


def _bits(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column that can be compared: of floats the bits, of lists their content."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if t.is_nested(array.type):
        return comparable(array)
    return array.view(pa.int32() if array.type == pa.float32() else pa.int64()) if t.is_floating(array.type) else array
