"""Columns of plain values as text, for CSV and JSON lines."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as t

from dagflow.arrow_types.held import why_not_held
from operators.sinks.errors import ValueNotWritable

TEXT, NUMBER, REAL, OTHER = "text", "number", "real", "other"


def kind_of_text(kind: pa.DataType) -> str | None:
    """Return the form of values of a type: `text`, a `number`, a `real` number (which may be NaN), or `other` (a date, say).

    None: neither format has a form for it, or it has parts.
    """
    if t.is_dictionary(kind):
        return kind_of_text(kind.value_type)
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return TEXT
    if t.is_floating(kind):
        return REAL
    if t.is_integer(kind) or t.is_decimal(kind) or t.is_boolean(kind) or t.is_duration(kind) or t.is_null(kind):
        return NUMBER
    return OTHER if t.is_date(kind) or t.is_time(kind) or t.is_timestamp(kind) else None


def as_text(column: Any, name: str, operator: str, form: str) -> Any:
    """Return a column of such a type as text; nulls stay. Times with a zone are in UTC, durations are numbers of their unit.

    Raises ValueNotWritable for times that text does not hold. `name`: of the column, `form`: of what is written, for the error.

    >>> import datetime, pyarrow as pa
    >>> at = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
    >>> [as_text(pa.array(values), "n", "sink", "CSV").to_pylist() for values in ([at, None], [0.5, 1e300])]
    [['2026-01-31 11:00:00.000000Z', None], ['0.5', '1e+300']]
    """
    check_held(column, name, operator, form)
    kind: Any = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = column.cast(pa.timestamp(kind.unit, "UTC"))
    return column if pa.types.is_string(kind) else column.cast(pa.string())


def check_held(column: Any, name: str, operator: str, form: str) -> None:
    """Raise ValueNotWritable for times that text does not hold: Arrow would write `<value out of range: …>`, or another year."""
    wrong = why_not_held(column, "text")
    if wrong:
        help_ = "correct its unit (milliseconds that are read as seconds?), or leave such rows out: on_error='skip'"
        raise ValueNotWritable(operator=operator, column=name, value=wrong, format=form, help=help_)


def bytes_of(column: Any) -> memoryview:
    """Return the bytes of all values of a `string` column as they lie in memory."""
    _, offsets, data = column.buffers()
    if data is None or offsets is None:
        return memoryview(b"")
    bounds = memoryview(offsets).cast("b").cast("i")
    return memoryview(data)[bounds[column.offset] : bounds[column.offset + len(column)]]
