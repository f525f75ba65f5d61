"""Values as types of columns have them, exactly or next to it: a comparison never depends on what a type can hold."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001  # of local times, too
EXACT = decimal.Context(prec=400, Emin=-9999, Emax=9999)
"""More digits than any decimal or real column has."""


@attrs.frozen
class Comparand:
    """The greatest value of a type that is not above another value. `is_exact`: it is that value.

    `value` None: all values of the type lie above, unless it `is_incomparable` (not a number, a type without values).
    """

    value: pa.Scalar | None
    is_exact: bool
    is_incomparable: bool = False


def comparand(value: Any, kind: pa.DataType) -> Comparand:
    """A value as a type has it. Texts stand for numbers, dates and times too; what has no zone is local to a column's zone.

    Real numbers are taken for the nearest value of shorter reals and for the decimal that they are written as. Raises ValueError,
    TypeError (Arrow's, too) where values of the type are not compared with such values.

    >>> import pyarrow as pa
    >>> comparand(3.5, pa.int8())
    Comparand(value=<pyarrow.Int8Scalar: 3>, is_exact=False, is_incomparable=False)
    >>> comparand(-129, pa.int8()), comparand(float("nan"), pa.int8()).is_incomparable
    (Comparand(value=None, is_exact=False, is_incomparable=False), True)
    """
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        number = decimal_of(value) if isinstance(value, str) else value.item() if hasattr(value, "item") else value  # of numpy
        if isinstance(number, int | float | decimal.Decimal):
            return _number(number, kind)
    elif types.is_date(kind):
        return _whole(_nanoseconds(value, None), 24 * 3600 * 10**9, kind, pa.int32() if types.is_date32(kind) else pa.int64())
    elif types.is_timestamp(kind):
        return _whole(_nanoseconds(value, kind.tz), NANOSECONDS[kind.unit], kind, pa.int64())
    elif types.is_time(kind):
        return _whole(_time(value), NANOSECONDS[kind.unit], kind, pa.int32() if types.is_time32(kind) else pa.int64())
    elif types.is_duration(kind) and isinstance(value, datetime.timedelta):
        return _whole(value // datetime.timedelta(microseconds=1) * 1000, NANOSECONDS[kind.unit], kind, pa.int64())
    elif isinstance(value, str) and types.is_boolean(kind):
        return Comparand(pa.scalar(value).cast(kind), True)
    elif types.is_null(kind):
        return Comparand(None, False, True)
    elif (types.is_string(kind) or types.is_large_string(kind)) and not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return Comparand(pa.scalar(value, kind), True)


def decimal_of(text: str) -> decimal.Decimal:
    """Return the number in a text. Raises ValueError."""
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise ValueError(f"{text!r} is not a number") from None


def _number(value: int | float | decimal.Decimal, kind: Any) -> Comparand:
    types = pa.types
    if value != value:
        return Comparand(None, False, True)
    if types.is_integer(kind):
        is_signed = types.is_signed_integer(kind)
        low, high = (-(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1) if is_signed else (0, (1 << kind.bit_width) - 1)
        whole = (high + 1 if value > 0 else low - 1) if value in (math.inf, -math.inf) else math.floor(value)
        return _clipped(whole, whole == value, low, high, kind)
    if types.is_decimal(kind):
        high = decimal.Decimal(10**kind.precision - 1).scaleb(-kind.scale, EXACT)
        exact = decimal.Decimal(repr(value)) if isinstance(value, float) else decimal.Decimal(value)
        if not exact.is_finite() or abs(exact) > high:
            return _clipped(high.next_plus(EXACT) if exact > 0 else exact, False, -high, high, kind)
        floor = exact.quantize(decimal.Decimal(1).scaleb(-kind.scale), decimal.ROUND_FLOOR, EXACT)
        return _clipped(floor, floor == exact, -high, high, kind)
    return _real(value, kind)


def _clipped(floor: Any, is_exact: bool, low: Any, high: Any, kind: Any) -> Comparand:
    if floor < low:
        return Comparand(None, False)
    return Comparand(pa.scalar(min(floor, high), kind), is_exact and floor <= high)


def _real(value: int | float | decimal.Decimal, kind: Any) -> Comparand:
    make: Any = {16: np.float16, 32: np.float32, 64: np.float64}[kind.bit_width]
    if value in (math.inf, -math.inf):
        return Comparand(pa.scalar(make(value), kind), True)
    with np.errstate(over="ignore"):
        try:
            near = make(float(value))
        except OverflowError:
            near = make(math.inf if value > 0 else -math.inf)
    if isinstance(value, float) and np.isfinite(near):
        return Comparand(pa.scalar(near, kind), True)
    is_exact = float(near) == value
    floor = near if float(near) <= value else np.nextafter(near, make(-math.inf))
    return Comparand(pa.scalar(floor, kind), is_exact)


def _whole(nanoseconds: int, unit: int, kind: Any, storage: Any) -> Comparand:
    """Return an instant or time in whole units of a type."""
    floor, rest = divmod(nanoseconds, unit)
    high = (1 << storage.bit_width - 1) - 1
    if pa.types.is_date64(kind):
        floor *= 86_400_000
    if floor < -high - 1:
        return Comparand(None, False)
    return Comparand(pa.scalar(min(floor, high), storage).cast(kind), not rest and floor <= high)


def _nanoseconds(value: Any, zone: str | None) -> int:
    """Return the nanoseconds from the epoch to an instant, or to a date at midnight. Raises ValueError."""
    if isinstance(value, datetime.datetime):
        local, offset = value.replace(tzinfo=None), value.utcoffset()
        nanoseconds = (local - EPOCH) // datetime.timedelta(microseconds=1) * 1000 + getattr(value, "nanosecond", 0)
        if offset is not None:
            nanoseconds -= offset // datetime.timedelta(microseconds=1) * 1000
        has_zone = offset is not None
    elif isinstance(value, datetime.date):
        nanoseconds, has_zone = (value - EPOCH.date()).days * 24 * 3600 * 10**9, False
    elif isinstance(value, str):
        nanoseconds, has_zone = _of_text(value.strip())
    else:
        stamp = pa.scalar(value)  # of numpy, say
        if not pa.types.is_timestamp(stamp.type) and not pa.types.is_date(stamp.type):
            raise ValueError(f"{value!r} is not a date or time")
        if pa.types.is_date(stamp.type):
            stamp = stamp.cast(pa.timestamp("s"))
        nanoseconds, has_zone = stamp.cast(pa.int64()).as_py() * NANOSECONDS[stamp.type.unit], stamp.type.tz is not None
    if has_zone and zone is None:
        raise ValueError(f"{value!r} has a zone, the column has none")
    return nanoseconds if has_zone or zone is None else _local(nanoseconds, zone)


def _of_text(text: str) -> tuple[int, bool]:
    """Return the instant of an ISO text, and whether it names its zone."""
    for zone in (None, "UTC"):
        for unit, factor in NANOSECONDS.items():  # each has a range and digits of its own
            try:
                return pa.scalar(text).cast(pa.timestamp(unit, zone)).cast(pa.int64()).as_py() * factor, zone is not None
            except pa.ArrowInvalid:
                continue
    raise ValueError(f"{text!r} is not a date or time")


def _local(nanoseconds: int, zone: str) -> int:
    """Return the instant of a local time. Raises ValueError for an unknown zone."""
    whole, rest = divmod(nanoseconds, 10**9)
    local = pa.scalar(whole, pa.int64()).cast(pa.timestamp("s"))
    stamp = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
    return int(stamp.cast(pa.int64()).as_py()) * 10**9 + rest


def _time(value: Any) -> int:
    """Return a time of day, from midnight on. Raises ValueError."""
    if isinstance(value, datetime.time) and value.tzinfo is None:
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * 10**9 + value.microsecond * 1000
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a time of day")
    try:
        nanoseconds, has_zone = _of_text(f"1970-01-01 {value.strip()}")
    except ValueError:
        raise ValueError(f"{value!r} is not a time of day") from None
    if has_zone or not 0 <= nanoseconds < 24 * 3600 * 10**9:
        raise ValueError(f"{value!r} is not a time of day")
    return nanoseconds
