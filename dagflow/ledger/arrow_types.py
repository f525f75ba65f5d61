"""Arrow types as ledgers spell them: read back from their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dagflow.ledger.events import SchemaField

if TYPE_CHECKING:
    import pyarrow as pa

_NESTED = re.compile(r"(\w+)<(.*)>(?:\[(\d+)\])?", re.DOTALL)
_WITH_NUMBERS = re.compile(r"(decimal\d+|fixed_size_binary)[(\[]([-\d, ]+)[)\]]")
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=(.+)\]")


def schema_of_fields(fields: Iterable[SchemaField]) -> pa.Schema | None:
    """The Arrow schema of a ledger's fields, any of which may be null; None where a type's name is not known.

    >>> schema_of_fields([SchemaField(name="a", type="list<item: decimal128(9, 2)>", optional=True)]).field("a").type
    ListType(list<item: decimal128(9, 2)>)
    """
    import pyarrow as pa

    try:
        return pa.schema([pa.field(field.name, arrow_type_named(field.type)) for field in fields])
    except ValueError:
        return None


def arrow_type_named(name: str) -> pa.DataType:
    """The Arrow type that `str` spells so. Raises ValueError for what it does not know.

    >>> arrow_type_named("struct<at: timestamp[us, tz=UTC], n: int32 not null>").field("n").nullable
    False
    """
    import pyarrow as pa

    if found := _NESTED.fullmatch(name):
        return _nested(name, found[1], _split(found[2]), found[3])
    if found := _ZONED.fullmatch(name):
        return pa.timestamp(found[1], found[2])
    if found := _WITH_NUMBERS.fullmatch(name):
        numbers = [int(number) for number in found[2].split(",")]
        return pa.binary(*numbers) if found[1] == "fixed_size_binary" else getattr(pa, found[1])(*numbers)
    return pa.type_for_alias(name)


def is_widened(before: str, after: str) -> bool:
    """Whether a type has become a wider one, as which the rows that are there can be read, too.

    Wider are larger whole numbers (of the same sign), float64 for numbers, a timestamp for a date, and text for all of these.

    >>> is_widened("int32", "int64"), is_widened("int64", "double"), is_widened("date32[day]", "string")
    (True, True, True)
    >>> is_widened("int64", "int32"), is_widened("string", "int64"), is_widened("string", "binary")
    (False, False, False)
    """
    import pyarrow.types as t

    try:
        old, new = arrow_type_named(before), arrow_type_named(after)
    except ValueError:
        return False
    is_number = t.is_integer(old) or t.is_floating(old)
    if t.is_string(new):
        return bool(is_number or t.is_temporal(old) or t.is_boolean(old) or t.is_decimal(old))
    for same in (t.is_signed_integer, t.is_unsigned_integer, t.is_floating):
        if same(old) and same(new):
            return bool(new.bit_width > old.bit_width)
    return bool((is_number and t.is_float64(new)) or (t.is_date(old) and t.is_timestamp(new) and new.tz is None))


def _nested(name: str, outer: str, parts: list[str], length: str | None) -> Any:
    import pyarrow as pa

    if outer == "struct":
        return pa.struct([_field(part) for part in parts if part])
    if outer == "list":
        return pa.list_(_field(parts[0]))
    if outer == "large_list":
        return pa.large_list(_field(parts[0]))
    if outer == "fixed_size_list" and length is not None:
        return pa.list_(_field(parts[0]), int(length))
    if outer == "map" and len(parts) == 2:
        return pa.map_(arrow_type_named(parts[0]), arrow_type_named(parts[1].partition(" (")[0]))
    if outer == "dictionary":
        of = dict(part.split("=", 1) for part in parts)
        return pa.dictionary(arrow_type_named(of["indices"]), arrow_type_named(of["values"]), of.get("ordered") == "1")
    raise ValueError(f"no Arrow type is called {name!r}")


def _field(text: str) -> Any:
    import pyarrow as pa

    name, _, kind = text.partition(": ")
    plain = kind.removesuffix(" not null")
    return pa.field(name, arrow_type_named(plain), nullable=plain == kind)


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
