"""The types of columns of PostgreSQL and Arrow, in both directions, in one table."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.types as t

_BOTH = {
    pa.bool_(): "boolean",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.date32(): "date",
    pa.time64("us"): "time without time zone",
    pa.timestamp("us"): "timestamp without time zone",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
    pa.string(): "text",
    pa.binary(): "bytea",
}
"""Types that come back from a table as they were written to it."""
_WRITTEN = {
    pa.int8(): "smallint",
    pa.uint8(): "smallint",
    pa.uint16(): "integer",
    pa.uint32(): "bigint",
    pa.uint64(): "numeric(20,0)",
    pa.float16(): "real",
    pa.date64(): "date",
    pa.null(): "text",
}
"""Types that PostgreSQL does not have, and those that hold their values."""
_READ = {
    "oid": pa.int64(),
    **dict.fromkeys(("uuid", "json", "jsonb", "xml", "inet", "cidr", "macaddr", "macaddr8", '"char"'), pa.string()),
}
"""Types that Arrow does not have: text, as the server writes it."""
_TEXT_CATEGORIES = ("S", "E")
"""The categories of `pg_type` for strings (`varchar`, `citext`, …) and enumerations."""
MAX_DIGITS = 38


def postgres_type(kind: Any) -> str | None:
    """Return the type of a column that holds values of an Arrow type; None if there is none.

    Lists of plain values are arrays. There is none for other nested values, which sinks write as `jsonb`.

    >>> postgres_type(pa.list_(pa.int64())), postgres_type(pa.uint64())
    ('bigint[]', 'numeric(20,0)')
    """
    kind = kind.value_type if t.is_dictionary(kind) else kind
    if isinstance(kind, pa.BaseExtensionType):
        return {"arrow.json": "jsonb", "arrow.uuid": "uuid"}.get(kind.extension_name) or postgres_type(kind.storage_type)
    if kind in _BOTH or kind in _WRITTEN:
        return _BOTH.get(kind) or _WRITTEN[kind]
    if t.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})" if kind.scale >= 0 else "numeric"
    if t.is_large_string(kind) or t.is_string_view(kind):
        return "text"
    if is_binary(kind):
        return "bytea"
    if t.is_timestamp(kind):
        return "timestamp with time zone" if kind.tz is not None else "timestamp without time zone"
    if t.is_time(kind):
        return "time without time zone"
    if t.is_duration(kind):
        return "interval"
    if is_array(kind):
        of = postgres_type(kind.value_type)
        return None if of is None else f"{of}[]"
    return None


def arrow_type(kind: str, category: str = "") -> pa.DataType | None:
    """Return the Arrow type of a column, by its type as `format_type` writes it; None if values of it are not read.

    `category`: that of `pg_type`, by which types of other names are known to be text.

    >>> arrow_type("numeric(10,2)"), arrow_type("integer[]"), arrow_type("numeric"), arrow_type("character varying(20)", "S")
    (Decimal128Type(decimal128(10, 2)), ListType(list<item: int32>), None, DataType(string))
    """
    if kind.endswith("[]"):
        item = arrow_type(kind.removesuffix("[]"), "")
        is_plain = item is not None and (t.is_boolean(item) or t.is_integer(item) or t.is_floating(item) or t.is_string(item))
        return pa.list_(item) if item is not None and is_plain else None
    if digits := re.fullmatch(r"numeric\((\d+),(-?\d+)\)", kind):
        precision, scale = map(int, digits.groups())
        return pa.decimal128(precision, scale) if precision <= MAX_DIGITS and 0 <= scale <= precision else None
    bare = re.sub(r"\(\d+\)", "", kind)  # timestamp(3) with time zone
    both = next((arrow for arrow, name in _BOTH.items() if name == bare), None)
    return both or _READ.get(bare) or (pa.string() if category in _TEXT_CATEGORIES else None)


def is_binary(kind: Any) -> bool:
    """Return whether values of a type are bytes."""
    return bool(t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind) or t.is_binary_view(kind))


def is_array(kind: Any) -> bool:
    """Return whether a type is a list of plain values."""
    is_list = t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind)
    return bool(is_list and not t.is_nested(kind.value_type))
