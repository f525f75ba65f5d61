"""Arrow types as text and back, and the type that is wide enough for two.

`held` has the values that objects of Python can hold, `buffers` arrays from numbers and back, and the order of integers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from dagflow.errors.wording import suggest

NAMES: dict[str, pa.DataType] = {
    **{f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{name: getattr(pa, name)() for name in ("float16", "float32", "float64", "string", "binary", "null")},
    **{name: getattr(pa, name)() for name in ("large_string", "large_binary", "string_view", "binary_view")},
    **{name: kind for kind in (pa.date32(), pa.date64()) for name in (str(kind), str(kind).partition("[")[0])},
    "bool": pa.bool_(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
}
"""Types of one word, as Arrow calls them."""
_ELSEWHERE = {
    **dict.fromkeys(("integer", "bigint", "long"), "int64"),
    "smallint": "int16",
    "short": "int16",
    "tinyint": "int8",
    "byte": "int8",
    "real": "float32",
    "boolean": "bool",
    **dict.fromkeys(("text", "varchar", "char", "object"), "string"),
    "blob": "binary",
    "time": "time64[us]",
    "numeric": "decimal128(38, 10)",
    "array": "list",
    "dict": "struct",
}
"""The names of types in other systems, and their names here: for the hint."""
_NESTED = re.compile(r"(\w+)<(.*)>(?:\[(\d+)\])?", re.DOTALL)
_BRACKETS = re.compile(r"(\w+)\s*[(\[]([^()\[\]]*)[)\]]")
_MAP_FIELD = re.compile(r" \('.*'\)$", re.DOTALL)


def type_named(text: str, names: Mapping[str, pa.DataType] = NAMES) -> pa.DataType:
    """Return the Arrow type of a text, as `str` or a user writes it. Raises ValueError for other text.

    Names of items and backquotes around names of fields may be there or not; `names` are the types of one word.

    >>> type_named("struct<at: timestamp[us, tz=UTC], n: int32 not null>").field("n").nullable
    False
    >>> type_named("map<string, list<date32>>")
    MapType(map<string, list<item: date32[day]>>)
    """
    try:
        return _Names(names).type(text.strip())
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"{text!r} names no type: {error}") from None


class _Names:
    def __init__(self, names: Mapping[str, pa.DataType]) -> None:
        self.names = names

    def type(self, text: str) -> pa.DataType:
        if text in self.names:
            return self.names[text]
        if nested := _NESTED.fullmatch(text):
            return self.nested(nested[1], _parts(nested[2]), nested[3])
        if nested := _BRACKETS.fullmatch(text):
            return _of_numbers(nested[1], [part.strip() for part in nested[2].split(",")])
        if "<" in text or ">" in text:
            raise ValueError(f"the brackets of {text!r} do not match")
        raise ValueError(f"{text!r} is unknown{self.hint(text)}" if text else "a name is missing")

    def nested(self, outer: str, parts: list[str], length: str | None) -> pa.DataType:
        if outer == "struct":
            return pa.struct([self.field(part) for part in parts if part])
        if outer == "map" and len(parts) == 2:
            key, item = (_MAP_FIELD.sub("", part) for part in parts)
            return pa.map_(self.type(key), self.type(item))
        if outer == "dictionary":
            of = dict(part.split("=", 1) for part in parts)
            return pa.dictionary(self.type(of["indices"]), self.type(of["values"]), of.get("ordered") == "1")
        if outer in ("list", "large_list", "fixed_size_list") and len(parts) == 1:
            item = self.field(parts[0]) if _colons(parts[0]) else self.type(parts[0])
            if outer == "fixed_size_list":
                return pa.list_(item, int(length or ""))
            return (pa.list_ if outer == "list" else pa.large_list)(item)
        raise ValueError(f"{outer}<…> of {len(parts)} is unknown")

    def field(self, text: str) -> pa.Field[Any]:
        """Parse `name: type` or `name: type not null`. The name may contain colons if the rest is a type."""
        problem = ValueError(f"':' is missing in {text!r}")
        for n, colon in enumerate(_colons(text)):
            kind = text[colon + 1 :].strip()
            plain = kind.removesuffix(" not null")
            try:
                read = self.type(plain)
            except ValueError as error:
                problem = problem if n else error
            else:
                return pa.field(_name(text[:colon]), read, nullable=plain == kind)
        raise problem

    def hint(self, name: str) -> str:
        near = _ELSEWHERE.get(name.lower()) or suggest(name, [*self.names, "list", "struct", "map", "decimal128"])
        near = f"{near}(15, 2)" if str(near).startswith("decimal") and "(" not in str(near) else near
        return f"; did you mean {near!r}?" if near else ""


def _name(text: str) -> str:
    quoted = text.strip()
    return quoted[1:-1] if len(quoted) > 1 and quoted[0] == quoted[-1] == "`" else text


def _of_numbers(name: str, parts: list[str]) -> pa.DataType:
    if name == "timestamp":
        return pa.timestamp(parts[0], *(zone.removeprefix("tz=").strip() for zone in parts[1:]))
    if name in ("duration", "time32", "time64"):
        return getattr(pa, name)(*parts)
    if name == "fixed_size_binary":
        return pa.binary(*map(int, parts))
    if re.fullmatch(r"decimal(32|64|128|256)?", name):
        precision, scale = map(int, parts)
        return getattr(pa, "decimal128" if name == "decimal" else name)(precision, scale)
    raise ValueError(f"{name}[…] is unknown")


def _outside(text: str) -> list[tuple[int, str]]:
    """Return the characters outside of brackets and backquotes, with their places."""
    places, depth, quoted = [], 0, False
    for n, character in enumerate(text):
        quoted ^= character == "`"
        depth += 0 if quoted else (character in "<([") - (character in ">)]")
        if depth == 0 and not quoted:
            places.append((n, character))
    return places


def _colons(text: str) -> list[int]:
    return [n for n, character in _outside(text) if character == ":"]


def _parts(text: str) -> list[str]:
    """Return the parts between commas."""
    commas = [n for n, character in _outside(text) if character == ","]
    return [text[a:b].strip() for a, b in zip([0, *(n + 1 for n in commas)], [*commas, len(text)], strict=True)]


def type_text(kind: pa.DataType) -> str:
    """Return the text of a type. `to_type` reads it back.

    >>> type_text(pa.list_(pa.float64())), type_text(pa.struct([pa.field("a b", pa.int8())]))
    ('list<float64>', 'struct<`a b`: int8>')
    """
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind):
        return f"{'large_' if types.is_large_list(kind) else ''}list<{type_text(kind.value_type)}>"
    if types.is_map(kind):
        return f"map<{type_text(kind.key_type)}, {type_text(kind.item_type)}>"
    if types.is_struct(kind):
        names = [f.name if re.fullmatch(r"\w+", f.name) else f"`{f.name}`" for f in kind]
        return f"struct<{', '.join(f'{n}: {type_text(f.type)}' for n, f in zip(names, kind, strict=True))}>"
    return {"double": "float64", "float": "float32", "date32[day]": "date32", "date64[ms]": "date64"}.get(str(kind), str(kind))


_INTS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the narrowest type that values of both types convert to without a loss: string if there is no other.

    Integers widen to larger ones and, with floats, to float64; dates to timestamps; structs and lists part by part.

    >>> wider(pa.int32(), pa.float32()), wider(pa.bool_(), pa.int64()), wider(pa.null(), pa.date32())
    (DataType(double), DataType(string), DataType(date32[day]))
    """
    types = pa.types
    if one.equals(other) or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if types.is_integer(one) and types.is_integer(other):
        return _wider_integer(one, other)
    if (types.is_integer(one) or types.is_floating(one)) and (types.is_integer(other) or types.is_floating(other)):
        both = types.is_floating(one) and types.is_floating(other)
        return max(one, other, key=lambda k: k.bit_width) if both else pa.float64()
    if types.is_decimal(one) or types.is_decimal(other):
        return _wider_decimal(one, other)
    if types.is_temporal(one) and types.is_temporal(other):
        return _wider_time(one, other)
    if types.is_struct(one) and types.is_struct(other):
        return _wider_struct(one, other)
    if types.is_list(one) and types.is_list(other):
        return pa.list_(wider(one.value_type, other.value_type))
    if types.is_binary(one) and types.is_binary(other):
        return pa.binary()
    return pa.string()


def joint_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that columns of both types have together, as Arrow promotes them; None where it does not.

    Unlike `wider`, it makes no text of other values. A cast to it refuses values that would change.

    >>> joint_type(pa.null(), pa.string()), joint_type(pa.list_(pa.int8()), pa.list_(pa.int64()))
    (DataType(string), ListType(list<item: int64>))
    >>> joint_type(pa.int8(), pa.string())
    """
    if one.equals(other):
        return one
    try:
        both = pa.unify_schemas([pa.schema({"": one}), pa.schema({"": other})], promote_options="permissive")
    except pa.ArrowTypeError:
        return None
    return both.field(0).type


def _wider_integer(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pa.types.is_signed_integer(one) == pa.types.is_signed_integer(other):
        return max(one, other, key=lambda k: k.bit_width)
    signed, unsigned = (one, other) if pa.types.is_signed_integer(one) else (other, one)
    bits = max(signed.bit_width, unsigned.bit_width * 2)
    return pa.string() if bits > 64 else _INTS[{8: 0, 16: 1, 32: 2, 64: 3}[bits]]


def _wider_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    def as_decimal(kind: pa.DataType) -> tuple[int, int] | None:
        if pa.types.is_decimal(kind):
            return kind.precision - kind.scale, kind.scale
        return (20, 0) if pa.types.is_integer(kind) else None

    parts = as_decimal(one), as_decimal(other)
    if None in parts:
        return pa.float64() if pa.types.is_floating(one) or pa.types.is_floating(other) else pa.string()
    whole, scale = (max(p[n] for p in parts if p is not None) for n in (0, 1))
    return pa.decimal128(whole + scale, scale) if whole + scale <= 38 else pa.string()


_UNITS = ["s", "ms", "us", "ns"]


def _wider_time(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    types = pa.types
    stamps = [kind for kind in (one, other) if types.is_timestamp(kind)]
    dates = [kind for kind in (one, other) if types.is_date(kind)]
    if len(stamps) == 2 and stamps[0].tz == stamps[1].tz:
        return pa.timestamp(max((k.unit for k in stamps), key=_UNITS.index), stamps[0].tz)
    if len(stamps) == 1 and dates and stamps[0].tz is None:
        return stamps[0]
    if types.is_time(one) and types.is_time(other):
        return max(one, other, key=lambda k: _UNITS.index(k.unit))
    return pa.date64() if len(dates) == 2 else pa.string()


def _wider_struct(one: Any, other: Any) -> pa.DataType:
    fields = {f.name: f.type for f in one}
    for f in other:
        fields[f.name] = wider(fields[f.name], f.type) if f.name in fields else f.type
    return pa.struct([pa.field(n, t) for n, t in fields.items()])


def is_wider(kind: pa.DataType, than: pa.DataType) -> bool:
    """Return True if `kind` is another type than `than` and holds all of its values.

    >>> is_wider(pa.float64(), pa.int8()), is_wider(pa.int8(), pa.float64()), is_wider(pa.int8(), pa.int8())
    (True, False, False)
    """
    return not kind.equals(than) and wider(kind, than).equals(kind)
