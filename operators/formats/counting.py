"""Rows of which no column is wanted."""

from __future__ import annotations

from dagflow.scan import ResultSetLoader

ROWS = 65_536


def count_rows(loader: ResultSetLoader, rows: int, position: int) -> None:
    """Loads rows without values, all of which lie where their row group or block begins."""
    import pyarrow as pa

    for at in range(0, rows, ROWS):
        count = min(ROWS, rows - at)
        loader.add_batch(pa.RecordBatch.from_arrays([pa.nulls(count)], names=[""]), None, pa.repeat(position, count))
