"""Which row of a batch is to blame for an exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dagflow.model.forms import to_records

if TYPE_CHECKING:
    import pyarrow as pa


def culprit(batch: pa.RecordBatch, tp: Any, raises: Callable[[pa.RecordBatch], bool]) -> Any:
    """The record of the first row that raises on its own; None when it is not one row's fault. `tp`: the type of the records."""
    low, high = 0, batch.num_rows
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if raises(batch.slice(low, middle - low)) else (middle, high)
    found = high > low and raises(batch.slice(low, 1))
    return record_of(batch.slice(low, 1), tp) if found else None


def raising(call: Callable[[pa.RecordBatch], object]) -> Callable[[pa.RecordBatch], bool]:
    """Whether a call with some rows raises.

    >>> [raising(lambda row: 1 // row)(row) for row in (1, 0)]
    [False, True]
    """

    def raises(rows: pa.RecordBatch) -> bool:
        try:
            call(rows)
        except Exception:  # noqa: BLE001  # user code may raise anything
            return True
        return False

    return raises


def record_of(row: pa.RecordBatch, tp: Any) -> Any:
    """The record of one row; where Python has no such value (a time behind the year 9999), Arrow's text of each column."""
    try:
        return to_records(row, tp)[0]
    except (OverflowError, ValueError):
        return {name: " ".join(str(row.column(name)).split()) for name in row.schema.names}
