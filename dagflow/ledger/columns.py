"""The columns of a ledger's schema: as Arrow has them, and which of their types may follow another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dagflow.ledger.events import SchemaField

if TYPE_CHECKING:
    import pyarrow as pa


def schema_of_fields(fields: Iterable[SchemaField]) -> pa.Schema | None:
    """Return the Arrow schema of a ledger's fields, any of which may be null; None where a type's name is not known.

    >>> schema_of_fields([SchemaField(name="a", type="list<item: decimal128(9, 2)>", optional=True)]).field("a").type
    ListType(list<item: decimal128(9, 2)>)
    """
    import pyarrow as pa

    from dagflow.arrow_types import type_named

    try:
        return pa.schema([pa.field(field.name, type_named(field.type)) for field in fields])
    except ValueError:
        return None


def is_widened(before: str, after: str) -> bool:
    """Return whether a type is wider than another one, so that existing rows can be read as it.

    These are the wider types of scans, but for what Arrow does not read so: parts of structs and lists, and bytes as text.

    >>> is_widened("int32", "int64"), is_widened("int64", "double"), is_widened("date32[day]", "string")
    (True, True, True)
    >>> is_widened("int64", "int32"), is_widened("string", "int64"), is_widened("binary", "string")
    (False, False, False)
    """
    from pyarrow import types

    from dagflow.arrow_types import is_wider, type_named

    try:
        old, new = type_named(before), type_named(after)
    except ValueError:
        return False
    is_bytes = types.is_binary(old) or types.is_large_binary(old) or types.is_fixed_size_binary(old)
    return is_wider(new, old) and not types.is_nested(old) and not (is_bytes and types.is_string(new))
