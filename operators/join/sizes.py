"""The sizes of rows in bytes, so that joined batches fit into memory and into columns of Arrow."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]


def row_bytes(columns: Sequence[pa.Array], rows: int) -> Numbers:
    """Return about how many bytes each row of some columns has.

    Text, bytes, lists, maps and structs are measured row by row; the size of another column is divided by its rows.

    >>> import pyarrow as pa
    >>> row_bytes([pa.array([1, 2]), pa.array(["a", "abc"]), pa.array([["bb", "c"], None])], 2).tolist()
    [28, 19]
    """
    sizes = np.zeros(rows, np.int64)
    for column in columns:
        sizes += _of_column(column)
    return sizes


def most_row_bytes(columns: Sequence[pa.Array], rows: int) -> int:
    """Return about how many bytes the largest row of some columns may have: the largest values of all columns together."""
    return sum(int(np.max(_of_column(column))) for column in columns) if rows else 0


def _of_column(column: Any) -> Any:
    """Return the same of one column; one number where all rows have the same."""
    types: Any = pa.types
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return _of_column(column.storage)
    if kind == pa.string_view() or kind == pa.binary_view():
        return _of_column(column.cast(pa.large_binary()))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        lengths = pc.binary_length(column)
        return (lengths if not lengths.null_count else pc.fill_null(lengths, 0)).to_numpy() + 4
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        values = [column.keys, column.items] if types.is_map(kind) else [column.values]
        ends = np.concatenate([[0], np.cumsum(row_bytes(values, len(values[0])))])
        offsets = column.offsets.to_numpy()
        return np.where(column.is_valid().to_numpy(zero_copy_only=False), ends[offsets[1:]] - ends[offsets[:-1]], 0) + 4
    if types.is_struct(kind):
        return row_bytes(column.flatten(), len(column))
    return -(-column.nbytes // max(1, len(column)))


def portions(sizes: Numbers, max_bytes: int) -> Iterator[slice]:
    """Cut rows into runs of at most `max_bytes` bytes, but for single rows that are larger.

    >>> import numpy as np
    >>> [(each.start, each.stop) for each in portions(np.array([3, 3, 9, 1, 1]), 6)]
    [(0, 2), (2, 3), (3, 5)]
    """
    ends = np.cumsum(sizes)
    start, before = 0, 0
    while start < len(sizes):
        stop = max(start + 1, int(np.searchsorted(ends, before + max_bytes, side="right")))
        yield slice(start, stop)
        start, before = stop, int(ends[stop - 1])
