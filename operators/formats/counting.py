"""Rows of which no column is wanted."""

from __future__ import annotations

from dagflow.scan import ResultSetLoader

ROWS = 65_536


def count_rows(loader: ResultSetLoader, rows: int, position: int) -> None:
    """Loads rows without values, all of which lie where their row group or block begins."""
    import pyarrow as pa

    count = min(ROWS, rows)
    batch = pa.RecordBatch.from_arrays([pa.nulls(count)], names=[""])
    positions = pa.repeat(position, count)  # one for all: a row group may have any number of rows
    for at in range(0, rows, ROWS):
        left = min(ROWS, rows - at)
        loader.add_batch(batch.slice(0, left), None, positions.slice(0, left))
