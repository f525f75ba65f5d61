"""Times and durations of events: microseconds since the epoch, and seconds."""

from __future__ import annotations

import datetime
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from dagflow.config import seconds_of

SECOND = 1_000_000
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001  # columns of times without a zone are UTC here
_MICROSECOND = datetime.timedelta(microseconds=1)
FIRST = (datetime.date.min - _EPOCH.date()).days * 86_400 * SECOND
LAST = ((datetime.date.max - _EPOCH.date()).days + 1) * 86_400 * SECOND - 1
"""The first and the last time that a datetime can be, in microseconds since the epoch: windows begin and stop between them."""


def to_seconds(value: Any) -> Any:
    """Return a duration as seconds: a float for an integer, a float, a timedelta or text such as `5min`."""
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    return float(value) if type(value) is int else seconds_of(value)


def a_duration(_: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validate seconds that may be 0."""
    if not isinstance(value, float):
        raise TypeError(f"{attribute.name} must be seconds, a datetime.timedelta or text such as '5min'; got {value!r}")
    if not 0 <= value < float("inf"):
        raise ValueError(f"{attribute.name} must be finite and not negative; got {value!r} s")


def a_bound(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validate seconds, or None."""
    if value is not None:
        a_duration(instance, attribute, value)


def a_size(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validate the size of windows: one of that size must lie between the first time and the last."""
    a_duration(instance, attribute, value)
    if round(value * SECOND) < 1:
        raise ValueError(f"{attribute.name} must be a microsecond or more; got {value!r} s")
    if round(value * SECOND) > LAST:
        raise ValueError(f"{attribute.name} is {value!r} s, but no window of that size lies within the years 1 to 9999")


def microseconds(time: Any) -> int:
    """Return a time as microseconds since the epoch; times without a zone are UTC. Raises TypeError, ValueError.

    >>> microseconds(datetime.datetime(1970, 1, 1, 0, 0, 1)), microseconds(datetime.date(1970, 1, 2)), microseconds(5)
    (1000000, 86400000000, 5)
    """
    if type(time) is int:
        return time
    if isinstance(time, datetime.datetime):
        return (time.replace(tzinfo=None) - _EPOCH - (time.utcoffset() or datetime.timedelta())) // _MICROSECOND
    if isinstance(time, datetime.date):
        return (time - _EPOCH.date()).days * 86_400 * SECOND
    if time is None:
        raise ValueError("the record has no event time")
    raise TypeError(f"an event time is a datetime, a date or a integer of microseconds, not {type(time).__name__}")


def moment(time: int) -> datetime.datetime:
    """Return microseconds since the epoch as a time of UTC without a zone, as columns have it."""
    return _EPOCH + datetime.timedelta(microseconds=time)


def times_of(column: pa.Array) -> Any:
    """Return a column of times as microseconds since the epoch. Raises TypeError, ValueError."""
    kinds: Any = pa.types
    kind = column.type
    if column.null_count:
        raise ValueError("a record has no event time")
    if kinds.is_integer(kind):
        return column.cast(pa.int64()).to_numpy()
    if not kinds.is_timestamp(kind) and not kinds.is_date(kind):
        raise TypeError(f"an event time is a timestamp, a date or a integer of microseconds, not {kind}")
    zone = getattr(kind, "tz", None)
    checked = pc.CastOptions(pa.timestamp("us", zone), allow_time_truncate=True)  # but no overflow
    return column.cast(options=checked).cast(pa.int64()).to_numpy()
