"""The changes of a window, summed up: the rows that a table gets, and those that it loses."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa

from operators.aggregate.accumulators import group_codes
from operators.transform.content import contents_of_column


@attrs.frozen
class NetChanges:
    """The sum of the changes of a window.

    Attributes:
        inserted: the rows that stand.
        gone: a row of each key whose rows were taken back, and of which none stands.
        is_unique: whether the rows that stand have keys of their own.
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
    comparable = pa.table({name: _comparable(rows.column(name)) for name in rows.column_names})
    codes, first = group_codes(comparable, comparable.column_names)
    signs = np.where(np.arange(len(codes)) < inserted.num_rows, 1, -1)
    sums = np.bincount(codes, signs, len(first)).astype(np.int64)
    stands = np.repeat(first[sums > 0], sums[sums > 0])
    changed = rows.take(pa.array(np.concatenate([stands, first[sums < 0]])))
    _, of_key = group_codes(changed, keys)  # rows that stand come first
    is_gone = of_key >= len(stands)
    is_unique = np.count_nonzero(~is_gone) == len(stands)
    return NetChanges(changed.slice(0, len(stands)), changed.take(pa.array(of_key[is_gone])), bool(is_unique))


def _comparable(column: pa.ChunkedArray) -> pa.Array:
    """Return a column whose values can be told apart: of lists, structs and maps the content."""
    whole = column.combine_chunks()
    return pa.array(contents_of_column(whole), pa.binary()) if pa.types.is_nested(whole.type) else whole
