"""The net changes of rows: equal rows that are added and taken back cancel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic

import attrs
from typing_extensions import TypeVar

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


T = TypeVar("T", default=Any)
_ROWS_AT_ONCE = 4096


@attrs.frozen(eq=False)
class NetRows(Generic[T]):
    """Rows that are all different, each with the number of times that it was added, less those that it was taken back.

    Attributes:
        rows: the rows, in the order in which they came first.
        keys: their keys, for a `TableState`.
        counts: their numbers, none of which is 0.
        record_type: the type of the records that they stand for.
    """

    rows: pa.RecordBatch
    keys: pa.RecordBatch
    counts: np.ndarray[Any, Any]
    record_type: Any = Any

    def records(self) -> Iterator[tuple[T, int]]:
        """Yield each row as a record, with its number. Raises what the class of the records raises."""
        from dagflow.model.types.forms import to_records

        counts = iter(self.counts.tolist())
        for start in range(0, len(self.counts), _ROWS_AT_ONCE):
            yield from zip(to_records(self.rows.slice(start, _ROWS_AT_ONCE), self.record_type), counts, strict=False)

    def kept(self, found: pa.RecordBatch, column: str) -> np.ndarray[Any, Any]:
        """Return how many of each row are kept. `found`: what a `TableState` has of `keys`, with these numbers in a column."""
        return found.column(column).fill_null(0).to_numpy() if found.num_columns else self.counts * 0

    def where(self, mask: np.ndarray[Any, Any]) -> NetRows[T]:
        """Return those that a mask selects."""
        from dagflow.arrow_types.buffers import of_marks

        if mask.all():
            return self
        return NetRows(self.rows.filter(of_marks(mask)), self.keys.filter(of_marks(mask)), self.counts[mask], self.record_type)


def one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of several batches, at least one, as one batch. Columns that some do not have are null there."""
    import pyarrow as pa

    table = pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive")
    columns = [pa.nulls(0, column.type) if not column.num_chunks else column.combine_chunks() for column in table.columns]
    chunks = [column.chunk(0) if isinstance(column, pa.ChunkedArray) else column for column in columns]
    return pa.RecordBatch.from_arrays(chunks, schema=table.schema)


def net_changes(rows: pa.RecordBatch, keys: pa.RecordBatch, signs: np.ndarray[Any, Any], record_type: Any = Any) -> NetRows:
    """Return the net changes of rows that are added (1) or taken back (-1). Rows are equal where their keys are.

    >>> import numpy as np, pyarrow as pa
    >>> rows = pa.record_batch({"key": [b"a", b"b", b"a", b"b"]})
    >>> net = net_changes(rows, rows, np.array([1, 1, 1, -1]))
    >>> net.rows.to_pylist(), net.counts.tolist()
    ([{'key': b'a'}], [2])
    """
    import numpy as np

    from dagflow.arrow_types.buffers import numbers_of, of_numbers

    encoded = keys.column("key").dictionary_encode()
    codes, groups = numbers_of(encoded.indices), len(encoded.dictionary)
    first = np.empty(groups, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    counts = np.bincount(codes, signs, minlength=groups).astype(np.int64)
    places = of_numbers(first[counts != 0])
    return NetRows(rows.take(places), keys.take(places), counts[counts != 0], record_type)
