"""The groups of `GroupBy` over all windows so far: a window adds its own, and sees what results were and are."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from dagflow import KeyedTable
from operators.aggregate.accumulators import ROWS, Accumulator, Ints, check_alike, merged, retyped
from operators.aggregate.agg import Aggregation
from operators.aggregate.errors import NeverInserted, RowsNotKept

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

    def rows(self, results: Any) -> tuple[pa.Table, pa.Table]:
        """Return the rows that no longer hold, and those that hold instead. `results`: of a table of groups and accumulators."""
        old, new = results(self.before, self.accumulators), results(self.after, self.accumulators)
        holds = pc.greater(self.after.column(ROWS), 0).to_numpy(zero_copy_only=False)
        is_same = holds[self.places] & _equal(old, new.take(pa.array(self.places)))
        changed = holds.copy()
        changed[self.places[is_same]] = False
        return old.filter(pa.array(~is_same)), new.filter(pa.array(changed))


def add_groups(
    kept: KeyedTable,
    table: pa.Table,
    keys: Sequence[str],
    aggregates: Mapping[str, Aggregation],
    accumulators: tuple[Accumulator, ...],
) -> Change:
    """Add the groups of a window to those that are kept.

    Raises ColumnTypeChanged where these have other types, NeverInserted where more rows of a group are taken back than came.
    """
    own = _key_columns(table, keys)
    if (before_now := kept.columns) is not None:
        for name in keys:
            check_alike(name, before_now.field(f"={name}").type, table.schema.field(name).type)
    found, places = kept.lookup(own), np.zeros(0, np.int64)
    before, after = table.slice(0, 0), table
    if found.num_columns:
        is_there = found.column(ROWS).is_valid().to_numpy(zero_copy_only=False)
        places = np.flatnonzero(is_there)
        known = [Accumulator.of_parts(name, each.function, each.column, found.schema) for name, each in aggregates.items()]
        if {each.name for each in known if each.keeps_all} != {each.name for each in accumulators if each.keeps_all}:
            raise RowsNotKept(now="may" if any(each.keeps_all for each in accumulators) else "may not")
        columns = {name: table.column(name) for name in keys} | {
            name: found.column(name) if t.is_list(found.column(name).type) else pc.fill_null(found.column(name), 0)
            for name in found.schema.names
            if not name.startswith("=")
        }
        (before,), both = retyped([pa.table(columns).filter(pa.array(is_there))], known, accumulators)
        (table,), _ = retyped([table], accumulators, known)
        accumulators, codes = both, np.concatenate([np.arange(table.num_rows), places])
        after = merged([table, before], keys, accumulators, codes)
    counts = after.column(ROWS).to_numpy()
    if len(counts) and counts.min() < 0:
        group = {name: after.column(name)[int(counts.argmin())].as_py() for name in keys}
        raise NeverInserted.of(group, -counts.min())
    stays, whole = pa.array(counts > 0), after.combine_chunks()
    parts = [ROWS, *(name for each in accumulators for name in each.parts)]
    columns = {name: whole.column(name).combine_chunks().filter(stays) for name in parts}
    types = {f"={name}": pa.nulls(int((counts > 0).sum()), whole.schema.field(name).type) for name in keys}  # without values
    kept.put(_key_columns(after.filter(stays), keys), {**columns, **types})
    kept.remove(_key_columns(after.filter(pa.array(counts == 0)), keys))
    return Change(before, after, places, accumulators)


def _key_columns(table: pa.Table, keys: Sequence[str]) -> pa.Array | pa.RecordBatch:
    """Return the keys of groups, as a state takes them."""
    if not keys:
        return ONE_GROUP.slice(0, table.num_rows)
    columns = [table.column(name).combine_chunks() for name in keys]
    return pa.RecordBatch.from_arrays(columns, names=list(keys))


def _equal(one: pa.Table, other: pa.Table) -> Any:
    """Return which rows of two tables are the same, value by value: a null is one value, and so is NaN."""
    same = np.ones(one.num_rows, bool)
    for columns in zip(one.columns, other.columns, strict=True):
        left, right = map(_bits, columns)
        if t.is_null(left.type) or t.is_null(right.type):  # Arrow does not compare columns without values
            same &= (left.is_null() if t.is_null(right.type) else right.is_null()).to_numpy(zero_copy_only=False)
            continue
        is_equal = pc.fill_null(pc.equal(left, right), False).to_numpy(zero_copy_only=False)
        none = pc.and_(left.is_null(), right.is_null()).to_numpy(zero_copy_only=False)
        same &= is_equal | none
    return same


def _bits(column: pa.ChunkedArray) -> pa.Array:
    """Return a column that can be compared: of floats the bits."""
    array = column.combine_chunks()
    return array.view(pa.int32() if array.type == pa.float32() else pa.int64()) if t.is_floating(array.type) else array
