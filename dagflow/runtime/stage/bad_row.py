"""The search for the row of a batch that is to blame for an exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.model.types.forms import to_records

if TYPE_CHECKING:
    import pyarrow as pa


@attrs.frozen
class FailingRow:
    """A record to blame, and what was raised for it alone."""

    record: Any
    error: Exception


def first_failing_row(batch: pa.RecordBatch, tp: Any, raises: Callable[[pa.RecordBatch], Exception | None]) -> FailingRow | None:
    """The first row that raises on its own; None when it is not one row's fault. `tp`: the type of the records."""
    low, high = 0, batch.num_rows
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if raises(batch.slice(low, middle - low)) is not None else (middle, high)
    error = raises(batch.slice(low, 1)) if high > low else None
    return None if error is None else FailingRow(record_of(batch.slice(low, 1), tp), error)


def raising(call: Callable[[pa.RecordBatch], object]) -> Callable[[pa.RecordBatch], Exception | None]:
    """The exception that a call with some rows raises; None when it raises none.

    >>> [raising(lambda row: 1 // row)(row) for row in (1, 0)]
    [None, ZeroDivisionError('integer division or modulo by zero')]
    """

    def raises(rows: pa.RecordBatch) -> Exception | None:
        try:
            call(rows)
        except Exception as error:  # noqa: BLE001  # user code may raise anything
            return error
        return None

    return raises


def record_of(row: pa.RecordBatch, tp: Any) -> Any:
    """The record of one row; where Python has no such value (a time behind the year 9999), Arrow's text of each column."""
    try:
        return to_records(row, tp)[0]
    except (OverflowError, ValueError):
        return {name: " ".join(str(row.column(name)).split()) for name in row.schema.names}
