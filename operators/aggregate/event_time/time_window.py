"""Time windows as a part of a key: `window("time", "10m")`. They are columns, computed from a column of times."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from dagflow.arrow_types import type_named
from dagflow.config import Seconds, format_seconds
from dagflow.errors import ColumnNotThere
from operators.aggregate.errors import WindowColumnRefused
from operators.aggregate.event_time.times import FIRST, LAST, SECOND, a_duration, a_size, to_seconds

START, END = "window_start", "window_end"
"""The columns of a time window, which is the half-open interval between them."""
_DAY = 86_400 * SECOND
_UNITS = {"s": SECOND, "ms": 1_000, "us": 1}
"""The microseconds of a unit of timestamps."""


def _a_slide(instance: TimeWindow, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None:
        a_size(instance, attribute, value)
        if value > instance.size:
            raise ValueError(f"slide={value:g} s is more than size={instance.size:g} s: rows between windows would be lost")


def _an_offset(instance: TimeWindow, attribute: attrs.Attribute[Any], value: Any) -> None:
    a_duration(instance, attribute, abs(value) if isinstance(value, float) else value)


@attrs.frozen
class TimeWindow:
    """Windows of time of one size: those that a row belongs to by a column of times. Made by `window`.

    Attributes:
        column: the column, of timestamps or dates.
        size: of a window, in seconds.
        slide: the seconds from the start of a window to that of the next one. None: `size`.
        offset: the seconds from the epoch to the start of some window.
    """

    column: str = attrs.field(validator=attrs.validators.instance_of(str))
    size: Seconds = attrs.field(converter=to_seconds, validator=a_size)
    slide: Seconds | None = attrs.field(
        default=None,
        converter=attrs.converters.optional(to_seconds),
        validator=_a_slide,
    )
    offset: Seconds = attrs.field(default=0, converter=to_seconds, validator=_an_offset)

    def __str__(self) -> str:
        """Return it as it is written."""
        more = [
            f"{name}={format_seconds(value)!r}" if value > 0 else f"{name}={value:g}"
            for name, value in (("slide", self.slide), ("offset", self.offset))
            if value
        ]
        return f"window({', '.join([repr(self.column), repr(format_seconds(self.size)), *more])})"

    def type(self, kind: pa.DataType) -> pa.DataType:
        """Return the type of the starts and ends of windows, by that of the column. Raises WindowColumnRefused.

        >>> window("at", "10m").type(pa.timestamp("s", "UTC")), window("at", "1d").type(pa.date32())
        (TimestampType(timestamp[s, tz=UTC]), DataType(date32[day]))
        """
        if t.is_date(kind):
            if not self._is_of(_DAY):
                raise WindowColumnRefused(column=self.column, type=str(kind), window=str(self))
            return pa.date32()
        if not t.is_timestamp(kind):
            raise WindowColumnRefused(column=self.column, type=str(kind), window=str(self))
        return kind if kind.unit == "ns" or self._is_of(_UNITS[kind.unit]) else pa.timestamp("us", kind.tz)

    def result_type(self, column_type: str | None) -> str | None:
        """Return the type of starts and ends as text; None where that of the column is not known, or will be refused.

        >>> window("at", "10m").result_type("timestamp[us]"), window("at", "10m").result_type("string")
        ('timestamp[us]', None)
        """
        try:
            return None if column_type is None else str(self.type(type_named(column_type)))
        except (ValueError, WindowColumnRefused):
            return None

    def ends(self, starts: Any) -> Any:
        """Return the ends of windows, as a column of the type of their starts."""
        integers = pa.int32() if t.is_date(starts.type) else pa.int64()
        ends = pc.add(starts.cast(integers), pa.scalar(_in_units(self.size, self._unit(starts.type)), integers))
        return ends.cast(starts.type)

    def assigned(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield rows with the starts of their windows: each row once for each window that it is in.

        A row without a time is in a window without a start. Raises ColumnNotThere, WindowColumnRefused, and ValueError for a
        time that is in no window within the years 1 to 9999.
        """
        at = rows.schema.get_field_index(self.column)
        if at < 0:
            raise ColumnNotThere.of("`window`", self.column, rows.schema)
        column, kind = rows.column(at), self.type(rows.schema.field(at).type)
        integers, unit = pa.int32() if t.is_date(kind) else pa.int64(), self._unit(kind)
        size, slide, offset = (_in_units(each, unit) for each in (self.size, self.slide or self.size, self.offset))
        checked = pc.CastOptions(kind, allow_time_truncate=True)  # but no overflow
        times = column.cast(options=checked).cast(integers).cast(pa.int64())
        is_null, values = times.is_null(), times.fill_null(0).to_numpy(zero_copy_only=False)
        self._check(times, unit, size, slide, offset)
        last = values - np.mod(values - offset % slide, slide)
        others = rows.drop_columns([START]) if START in rows.schema.names else rows
        for back in range(-(-size // slide)):
            starts = last - back * slide
            column = pc.if_else(is_null, pa.scalar(None, pa.int64()), pa.array(starts)).cast(integers).cast(kind)
            some = others.append_column(START, column)
            is_inside = starts + size > values
            if back:
                is_inside &= ~is_null.to_numpy(zero_copy_only=False)
            yield some if is_inside.all() else some.filter(pa.array(is_inside))

    def _check(self, times: pa.Array, unit: int, size: int, slide: int, offset: int) -> None:
        """Raise ValueError where a window of the earliest or the latest time is not within the years 1 to 9999, or its type."""
        extremes = pc.min_max(times).as_py()
        first, last = FIRST * 1000, LAST * 1000
        if unit:
            first, last = -(-FIRST // unit), LAST // unit
        else:
            first, last = max(first, -(2**63) + slide), min(last, 2**63 - 1)
        for time in filter(None, extremes.values()):
            newest = time - (time - offset) % slide
            oldest = newest - (size - 1 - (time - newest)) // slide * slide
            if oldest < first or newest + size > last:
                name = f"{time} {'days' if unit == _DAY else 'units'} after the epoch"
                raise ValueError(f"the time in {self.column!r} is {name}: {self} has no window of it within the years 1 to 9999")

    @staticmethod
    def _unit(kind: pa.DataType) -> int:
        """Return the microseconds of the unit of a type; 0 for nanoseconds."""
        return _DAY if t.is_date(kind) else _UNITS.get(kind.unit, 0)

    def _is_of(self, unit: int) -> bool:
        """Return whether all bounds of windows are multiples of some microseconds."""
        return not any(_in_units(each, 1) % unit for each in (self.size, self.slide or self.size, self.offset))


def _in_units(seconds: float, unit: int) -> int:
    """Return seconds in a unit of so many microseconds; 0: of nanoseconds."""
    micros = round(seconds * SECOND)
    return micros // unit if unit else micros * 1000


def window(
    column: str,
    size: float | str | datetime.timedelta,
    slide: float | str | datetime.timedelta | None = None,
    offset: float | str | datetime.timedelta = 0,
) -> TimeWindow:
    """Return time windows, as a part of the key of a `GroupBy`: the columns `window_start` and `window_end`.

    Args:
        column: the column of times that decides which windows a row is in: timestamps, with or without a time zone, or dates.
        size: of a window: `"10m"`, seconds, or a timedelta.
        slide: from the start of a window to that of the next one. Less than `size`, windows overlap, and a row is in several.
            None: `size`, so that each row is in one.
        offset: moves all windows. Without it, they start at multiples of `slide` since 1970-01-01 in UTC, so those of seven days
            on a Thursday: `offset="4d"` makes it Monday.

    >>> import datetime
    >>> from dagflow.testing import run_operator
    >>> from operators import GroupBy, agg
    >>> hits = pa.record_batch({"at": [datetime.datetime(2026, 1, 1, 12, minute) for minute in (1, 9, 14)]})
    >>> rows = run_operator(GroupBy(window("at", "10m"), hits=agg.count()), {"input": [hits]})["output"]
    >>> [(f"{row['window_start']:%H:%M}", f"{row['window_end']:%H:%M}", row["hits"]) for row in rows]
    [('12:00', '12:10', 2), ('12:10', '12:20', 1)]
    """
    return TimeWindow(column, size, slide, offset)
