"""Arrow types as tables store them: the walk through nested types that all table formats share."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyarrow import types as t

OwnType = Callable[[pa.DataType], pa.DataType | None]
"""The part that differs: the type that a format has for a type without parts; None: the one that all formats have, if any."""


def stored_type(kind: pa.DataType, own_type: OwnType, table_format: str) -> pa.DataType | None:
    """Return the Arrow type that a table has for the values of a type; None for a type without values.

    `own_type`: the types that only this format has; `table_format`: its name.

    >>> import pyarrow as pa
    >>> kind = pa.map_(pa.dictionary(pa.int8(), pa.large_string()), pa.timestamp("ms", "Europe/Oslo"))
    >>> stored_type(kind, lambda kind: None, "Delta")
    MapType(map<string, timestamp[us, tz=UTC]>)
    >>> stored_type(pa.list_(pa.null()), lambda kind: None, "Delta")
    Traceback (most recent call last):
    ...
    ValueError: Delta has no type for nulls within lists, maps and structs

    Raises ValueError for types that the format does not have.
    """

    def nested(kind: pa.DataType) -> pa.DataType:
        inner = stored_type(kind, own_type, table_format)
        if inner is None:
            raise ValueError(f"{table_format} has no type for nulls within lists, maps and structs")
        return inner

    if t.is_null(kind):
        return None
    if t.is_dictionary(kind):
        return stored_type(kind.value_type, own_type, table_format)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind) or t.is_list_view(kind):
        return pa.list_(nested(kind.value_type))
    if t.is_map(kind):
        return pa.map_(nested(kind.key_type), nested(kind.item_type))
    if t.is_struct(kind) and not kind.num_fields:
        raise ValueError(f"{table_format} has no type for structs without fields")
    if t.is_struct(kind):
        return pa.struct([(field.name, nested(field.type)) for field in kind])
    leaf = own_type(kind) or _common_type(kind)
    if leaf is None:
        raise ValueError(f"{table_format} has no type for {kind}")
    return leaf


def _common_type(kind: pa.DataType) -> pa.DataType | None:
    if t.is_float32(kind) or t.is_float64(kind) or t.is_boolean(kind):
        return kind
    if t.is_float16(kind):
        return pa.float32()
    if t.is_date(kind):
        return pa.date32()
    if t.is_timestamp(kind):
        return pa.timestamp("us", "UTC") if kind.tz else pa.timestamp("us")
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return pa.string()
    if t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind):
        return pa.binary()
    if t.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    return None
