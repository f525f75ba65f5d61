"""Rows for a scan without columns."""

from __future__ import annotations

import pyarrow as pa

from dagflow.scan import ResultSetLoader

ROWS = 65_536


def count_rows(loader: ResultSetLoader, rows: int, position: int) -> None:
    """Load rows without values, all of which lie where their row group or block begins."""
    positions = pa.repeat(position, min(ROWS, rows))  # one for all: a row group may have any number of rows
    for at in range(0, rows, ROWS):
        left = min(ROWS, rows - at)
        loader.skip_rows(left, positions.slice(0, left))
