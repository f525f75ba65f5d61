"""The changes of a window, summed up: the rows that a table gets, and those that it loses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.types as t

from operators.aggregate.accumulators import group_codes
from operators.transform.content import contents_of_column


@attrs.frozen
class NetChanges:
    """The sum of the changes of a window.

    Attributes:
        inserted: the rows that stand.
        gone: a row of each key whose rows were taken back, and of which none stands; without keys, all rows that were.
        is_unique: whether the rows that stand have keys of their own, where there are any.
    """

    inserted: pa.Table
    gone: pa.Table
    is_unique: bool


def net_changes(inserted: pa.Table, retracted: pa.Table, keys: Sequence[str]) -> NetChanges:
    """Sum up changes by whole row: in which order a row came, and was taken back, does not matter.

    >>> rows = pa.table({"k": [1, 2, 2], "v": ["a", "b", "c"]})
    >>> net = net_changes(rows, pa.table({"k": [2, 3], "v": ["b", "d"]}), ["k"])
    >>> net.inserted.to_pydict(), net.gone.to_pydict(), net.is_unique
    ({'k': [1, 2], 'v': ['a', 'c']}, {'k': [3], 'v': ['d']}, True)
    """
    rows = pa.concat_tables([inserted, retracted])
    changed, count = netted(rows, np.where(np.arange(rows.num_rows) < inserted.num_rows, 1, -1))
    if not keys:
        return NetChanges(changed.slice(0, count), changed.slice(count), True)
    _, of_key = group_codes(changed, keys)  # rows that stand come first
    is_gone = of_key >= count
    is_unique = np.count_nonzero(~is_gone) == count
    return NetChanges(changed.slice(0, count), changed.take(pa.array(of_key[is_gone])), bool(is_unique))


def matching_columns(rows: pa.Table) -> list[str]:
    """Return the columns by which some rows can be found in a table of any format: no nulls, floats, bytes or nested values."""
    kinds = (t.is_integer, t.is_boolean, t.is_decimal, t.is_date, t.is_timestamp, t.is_string)
    return [
        field.name
        for field, column in zip(rows.schema, rows.columns, strict=True)
        if not column.null_count and "." not in field.name and any(is_kind(field.type) for is_kind in kinds)
    ]


def netted(rows: pa.Table, signs: Any) -> tuple[pa.Table, int]:
    """Sum up rows by their signs. Return those that stand, then those that are gone, and how many stand."""
    comparable = pa.table({name: _comparable(rows.column(name)) for name in rows.column_names})
    codes, first = group_codes(comparable, comparable.column_names)
    sums = np.bincount(codes, signs, len(first)).astype(np.int64)
    stands, gone = (np.repeat(first[each > 0], each[each > 0]) for each in (sums, -sums))
    return rows.take(pa.array(np.concatenate([stands, gone]))), len(stands)


def _comparable(column: pa.ChunkedArray) -> pa.Array:
    """Return a column whose values can be told apart: of lists, structs and maps the content."""
    whole = column.combine_chunks()
    return pa.array(contents_of_column(whole), pa.binary()) if pa.types.is_nested(whole.type) else whole
