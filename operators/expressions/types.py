"""The types of values in expressions: which one two of them have together."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as t

from dagflow.arrow_types import joint_type, wider

DIGITS = 38  # of decimal128, the widest decimals that sinks take
_DIGITS_OF_INTEGERS = {8: 3, 16: 5, 32: 10, 64: 19}


def is_number(kind: pa.DataType) -> bool:
    """Return whether arithmetic takes values of a type."""
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind))


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of both types are compared, and in which either may be the result; None without one.

    Integers and decimals keep all digits. With a float, all numbers are floats.

    >>> common_type(pa.int8(), pa.uint32()), common_type(pa.int64(), pa.float32())
    (DataType(int64), DataType(double))
    >>> common_type(pa.decimal128(15, 2), pa.int64())
    Decimal128Type(decimal128(21, 2))
    >>> common_type(pa.string(), pa.int8())
    """
    if one.equals(other) or t.is_null(other):
        return one
    if t.is_null(one):
        return other
    if not (is_number(one) and is_number(other)):
        return _common_time(one, other) or joint_type(one, other)
    if t.is_floating(one) or t.is_floating(other):
        return pa.float64()
    if t.is_integer(one) and t.is_integer(other) and (pa.uint64() not in (one, other)):
        return pa.int64()
    (digits, scale), (more_digits, more_scale) = digits_of(one), digits_of(other)
    places = max(scale, more_scale)
    return decimal_type(max(digits - scale, more_digits - more_scale) + places, places)


def _common_time(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    stamps = [kind for kind in (one, other) if t.is_timestamp(kind)]
    if len(stamps) == 2 and all(kind.tz for kind in stamps):
        return pa.timestamp(wider(*(pa.timestamp(kind.unit) for kind in stamps)).unit, stamps[0].tz)
    return stamps[0] if stamps and stamps[0].tz is None and (t.is_date(one) or t.is_date(other)) else None


def digits_of(kind: pa.DataType) -> tuple[int, int]:
    """Return the precision and the scale of decimals that hold all values of a type of integers or decimals."""
    if t.is_decimal(kind):
        return kind.precision, kind.scale
    return _DIGITS_OF_INTEGERS[kind.bit_width] + (kind == pa.uint64()), 0


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Return the type of decimals with so many digits."""
    return (pa.decimal128 if precision <= DIGITS else pa.decimal256)(precision, scale)
