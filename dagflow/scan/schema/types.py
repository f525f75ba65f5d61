"""Types of columns: their names, and the wider types that values convert to."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dagflow.arrow_types import NAMES, is_wider, type_named
from dagflow.model.types.expressions import type_name
from dagflow.model.types.forms import arrow_type
from dagflow.scan.schema.plain import plain_type

_PYTHON = {
    **NAMES,
    "int": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us"),
}
"""The names of types, with those of Python: `float` is Python's float64, not Arrow's float32."""


def to_type(text: Any) -> pa.DataType:
    """Return the `plain_type` of a type, or of its name as Arrow writes it: `list<string>`, `decimal128(10, 2)`.

    `int`, `float`, `str`, `bytes`, `date`, `datetime` are Python's, as names and as classes. Raises ValueError.

    >>> to_type("list<struct<a: int, b: timestamp[us, tz=UTC]>>")
    ListType(list<item: struct<a: int64, b: timestamp[us, tz=UTC]>>)
    """
    kind = type_named(text, _PYTHON) if isinstance(text, str) else text if isinstance(text, pa.DataType) else arrow_type(text)
    if kind is None:
        raise ValueError(f"{type_name(text)} is a type that no column has")
    return plain_type(kind)


def above(kind: pa.DataType) -> list[pa.DataType]:
    """Return the wider types to try for text that does not parse as a type, narrowest first. Text is not among them.

    >>> above(pa.int32()), above(pa.date32())
    ([DataType(int64), DataType(double)], [TimestampType(timestamp[us])])
    """
    types = pa.types
    wider_types: list[pa.DataType] = []
    if types.is_integer(kind) or types.is_floating(kind):
        wider_types = [pa.int64(), pa.float64()] if types.is_integer(kind) and kind.bit_width < 64 else [pa.float64()]
    elif types.is_date(kind):
        wider_types = [pa.timestamp("us")]
    elif types.is_timestamp(kind):
        wider_types = [pa.timestamp("us", kind.tz)]
    elif types.is_time(kind):
        wider_types = [pa.time64("us")]
    return [each for each in wider_types if is_wider(each, kind)]


def without_null_types(kind: pa.DataType, instead: pa.DataType) -> pa.DataType:
    """Return the same type with another in place of each `null` type, which means that no value was seen.

    >>> without_null_types(pa.list_(pa.null()), pa.string())
    ListType(list<item: string>)
    """
    types = pa.types
    if types.is_null(kind):
        return instead
    if types.is_list(kind):
        return pa.list_(without_null_types(kind.value_type, instead))
    if types.is_struct(kind):
        return pa.struct([pa.field(f.name, without_null_types(f.type, instead)) for f in kind])
    return kind
