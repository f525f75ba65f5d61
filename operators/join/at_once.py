"""The pairs of a join whose sides are there as a whole, by Arrow's engine: in a fraction of the time that codes of keys take."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from operators.acero import acero, batches_of, computed_by
from operators.join.change import How, Pairs
from operators.join.lookup import MAX_PAIRS
from operators.join.sizes import most_row_bytes

MAX_BYTES = 64 << 20
"""The most bytes of joined rows that the engine may return at once, and of a batch."""
_AT_ONCE = 1 << 15
"""The rows of the larger side whose joined rows the engine returns at once."""
_KINDS: dict[How, tuple[str, str]] = {
    "inner": ("inner", "inner"),
    "left": ("left outer", "right outer"),
    "right": ("right outer", "left outer"),
    "full": ("full outer", "full outer"),
    "semi": ("left semi", "right semi"),
    "anti": ("left anti", "right anti"),
}
"""The engine's names of joins: as they are, and with the sides exchanged."""


def pairs_at_once(how: How, left: pa.RecordBatch, right: pa.RecordBatch) -> Iterator[Pairs] | None:
    """Return the pairs of rows with equal keys, by their numbers, null for none. None where the engine does not suit the keys.

    `left`, `right`: the columns of the keys. The engine tells values of different types apart, and -0.0 from 0.0.

    >>> one, other = pa.record_batch({"a": [7, 5, 7]}), pa.record_batch({"b": pa.array([5, 8], pa.int8())})
    >>> [(rows.to_pylist(), partners.to_pylist()) for rows, partners in pairs_at_once("left", one, other)]
    [([1, 0, 2], [0, None, None])]
    """
    numbers = [pa.table({"number": np.arange(side.num_rows)}) for side in (left, right)]
    tables = [pa.Table.from_batches([side]) for side in (left, right)]
    joined = _joined(how, (tables[0], numbers[0]), (tables[1], numbers[1]))
    return None if joined is None else map(_pair, joined)


def rows_at_once(
    how: How, left: pa.Table, right: pa.Table, by: Sequence[str], right_by: Sequence[str]
) -> Iterator[list[pa.Array]] | None:
    """Return the joined rows, some at a time, as the columns of the left side and those of the right one that are not its key.

    None where the engine does not suit the columns, what it returns at once may be large, or the left side may have no row, as
    in a right join.
    """
    others = right.select([name for name in right.schema.names if name not in right_by])
    if how in ("right", "full") or not all(_carries(kind) for kind in [*left.schema.types, *others.schema.types]):
        return None
    sizes = [
        max((most_row_bytes(each.columns, each.num_rows) for each in side.to_batches()), default=0) for side in (left, others)
    ]
    joined = _joined(how, (left.select(by), left), (right.select(right_by), others), sum(sizes))
    return None if joined is None else (batch.columns for batch in joined)


def _pair(batch: pa.RecordBatch) -> Pairs:
    """Return the numbers of rows of both sides; of a semi or an anti join, those of the left side with nulls."""
    return batch.column(0), batch.column(1) if batch.num_columns > 1 else pa.nulls(batch.num_rows, pa.int64())


def _joined(
    how: How, left: tuple[pa.Table, pa.Table], right: tuple[pa.Table, pa.Table], row_bytes: int = 16
) -> Iterator[pa.RecordBatch] | None:
    """Return the joined rows of two sides in batches of at most `MAX_PAIRS`.

    Each side: the columns of its key, and others. `row_bytes`: the most bytes of a joined row.
    """
    keys = [[_plain(column) for column in key.columns] for key, _ in (left, right)]
    types = [[column.type for column in side] for side in keys]
    sizes = [rows.num_rows for rows, _ in (left, right)]
    if not all(sizes) or not types[0] or types[0] != types[1] or not all(map(_suits, types[0])):
        return None
    names = [f"key{number}" for number in range(len(types[0]))]
    outputs = [[f"{side}{n}" for n in range(others.num_columns)] for side, (_, others) in (("left", left), ("right", right))]
    if how in ("semi", "anti"):
        outputs[1] = []
    tables = [
        pa.Table.from_arrays([*columns, *others.columns[: len(output)]], names=[*names, *output])
        for columns, (_, others), output in zip(keys, (left, right), outputs, strict=True)
    ]
    swaps = sizes[0] < sizes[1]  # the engine keeps its second side, and looks the rows of the first one up
    counts = acero().AggregateNodeOptions([([], "hash_count_all", None, "n")], keys=names)
    partners = pc.max(computed_by("aggregate", counts, tables[0 if swaps else 1].select(names)).column("n")).as_py()
    if max(partners * _AT_ONCE, MAX_PAIRS) * row_bytes > MAX_BYTES:
        return None
    step = -1 if swaps else 1
    options = acero().HashJoinNodeOptions(_KINDS[how][swaps], names, names, *outputs[::step])
    return _in_pieces(batches_of("hashjoin", options, *tables[::step]), [name for output in outputs for name in output])


def _in_pieces(batches: Iterator[pa.RecordBatch], names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of batches in pieces of at most `MAX_PAIRS` rows."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch.select(names))
        rows += batch.num_rows
        if rows >= MAX_PAIRS:
            yield from _pieces(waiting)
            waiting, rows = [], 0
    if rows:
        yield from _pieces(waiting)


def _pieces(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    whole = pa.concat_batches(batches)
    return (whole.slice(start, MAX_PAIRS) for start in range(0, whole.num_rows, MAX_PAIRS))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in which equal integers of all widths are equal for the engine."""
    return column.cast(pa.int64()) if t.is_integer(column.type) and column.type != pa.uint64() else column


def _suits(kind: pa.DataType) -> bool:
    """Return whether values of a type are equal for the engine where they are in Python."""
    is_kind = (
        t.is_string,
        t.is_large_string,
        t.is_binary,
        t.is_large_binary,
        t.is_integer,
        t.is_boolean,
        t.is_date,
        t.is_decimal128,
    )
    return any(is_alike(kind) for is_alike in is_kind)


def _carries(kind: pa.DataType) -> bool:
    """Return whether the engine takes columns of a type along."""
    return _suits(kind) or t.is_floating(kind) or t.is_timestamp(kind) or t.is_time(kind) or t.is_duration(kind)
