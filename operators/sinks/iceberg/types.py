"""Arrow types as Iceberg tables store them."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as t

from operators.sinks.table_formats.types import stored_type

ICEBERG = "Iceberg"


def iceberg_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the Arrow type that an Iceberg table has for the values of a type; None for a type without values.

    >>> import pyarrow as pa
    >>> iceberg_type(pa.int8()), iceberg_type(pa.uint32()), iceberg_type(pa.timestamp("ms", "Europe/Oslo"))
    (DataType(int32), DataType(int64), TimestampType(timestamp[us, tz=UTC]))

    Raises ValueError for types that Iceberg does not have.
    """
    return stored_type(kind, _own_type, ICEBERG)


def _own_type(kind: pa.DataType) -> pa.DataType | None:
    if t.is_uint64(kind):
        return pa.decimal128(20, 0)
    if t.is_integer(kind):
        return pa.int64() if t.is_int64(kind) or t.is_uint32(kind) else pa.int32()
    if t.is_fixed_size_binary(kind):
        return kind
    return pa.time64("us") if t.is_time(kind) else None
