"""Arrow types as Delta tables store them."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as t

from operators.sinks.table_formats.types import stored_type

DELTA = "Delta"
_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}


def delta_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the Arrow type that a Delta table has for the values of a type; None for a type without values.

    >>> import pyarrow as pa
    >>> delta_type(pa.uint32()), delta_type(pa.timestamp("ms", "Europe/Oslo")), delta_type(pa.list_(pa.large_string()))
    (DataType(int64), TimestampType(timestamp[us, tz=UTC]), ListType(list<item: string>))

    Raises ValueError for types that Delta does not have.
    """
    return stored_type(kind, _own_type, DELTA)


def _own_type(kind: pa.DataType) -> pa.DataType | None:
    if t.is_signed_integer(kind):
        return kind
    return pa.binary() if t.is_fixed_size_binary(kind) else _SIGNED.get(kind)
