"""The pairs of a join whose sides are there as a whole, by Arrow's engine: in a fraction of the time that codes of keys take."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from operators.acero import acero, batches_of, computed_by
from operators.join.change import How, Pairs
from operators.join.lookup import MAX_PAIRS

MAX_PARTNERS = 256
"""The most rows with one key on the smaller side. The engine returns the pairs of 32 Ki rows of the other one at once."""
_LEFT, _RIGHT = "$left", "$right"
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
    keys = [[_plain(column) for column in side.columns] for side in (left, right)]
    types = [[column.type for column in side] for side in keys]
    if not left.num_rows or not right.num_rows or not types[0] or types[0] != types[1] or not all(map(_suits, types[0])):
        return None
    names = [f"key{number}" for number in range(len(types[0]))]
    numbers = [pa.array(np.arange(side.num_rows)) for side in (left, right)]
    tables = [
        pa.table({**dict(zip(names, columns, strict=True)), name: number})
        for columns, name, number in zip(keys, (_LEFT, _RIGHT), numbers, strict=True)
    ]
    swaps = left.num_rows < right.num_rows  # the engine keeps its second side, and looks the rows of the first one up
    small = tables[0 if swaps else 1]
    counts = computed_by("aggregate", acero().AggregateNodeOptions([([], "hash_count_all", None, "n")], keys=names), small)
    if pc.max(counts.column("n")).as_py() > MAX_PARTNERS:
        return None
    of_left, of_right = [_LEFT], [_RIGHT] if how not in ("semi", "anti") else []
    outputs = (of_right, of_left) if swaps else (of_left, of_right)
    options = acero().HashJoinNodeOptions(_KINDS[how][swaps], names, names, *outputs)
    return _in_pieces(batches_of("hashjoin", options, *(tables[::-1] if swaps else tables)))


def _in_pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[Pairs]:
    """Yield the numbers of rows in pieces of at most `MAX_PAIRS`."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= MAX_PAIRS:
            yield from _pieces(waiting)
            waiting, rows = [], 0
    if rows:
        yield from _pieces(waiting)


def _pieces(batches: list[pa.RecordBatch]) -> Iterator[Pairs]:
    whole = pa.concat_batches(batches)
    for start in range(0, whole.num_rows, MAX_PAIRS):
        piece = whole.slice(start, MAX_PAIRS)
        has_right = _RIGHT in piece.schema.names
        yield piece.column(_LEFT), piece.column(_RIGHT) if has_right else pa.nulls(piece.num_rows, pa.int64())


def _plain(column: pa.Array) -> pa.Array:
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
