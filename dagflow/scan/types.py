"""Arrow types as text and back, and the type that is wide enough for two."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pyarrow as pa

from dagflow.scan.plain import plain_type

_SIMPLE = {
    **{name: getattr(pa, name)() for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{
        name: getattr(pa, name)()
        for name in ("float16", "float32", "float64", "string", "binary", "large_string", "large_binary")
    },
    **{name: getattr(pa, name)() for name in ("date32", "date64", "null")},
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "double": pa.float64(),
    "halffloat": pa.float16(),
    "str": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us"),
}
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
"""What other systems call a type, and its name here: for the hint."""
_TOKEN = re.compile(r"\s*(`[^`]*`|[^\s<>,:()\[\]=`]+|[<>,:()\[\]=])")


def to_type(text: str | pa.DataType) -> pa.DataType:
    """The Arrow type that a text names, as Arrow writes it: `list<string>`, `struct<a: int64>`, `decimal128(10, 2)`.

    `int`, `float`, `str`, `bytes`, `date`, `datetime` are there, too; a type itself is its `plain_type`. Raises ValueError.

    >>> to_type("list<struct<a: int, b: timestamp[us, tz=UTC]>>")
    ListType(list<item: struct<a: int64, b: timestamp[us, tz=UTC]>>)
    """
    if isinstance(text, pa.DataType):
        return plain_type(text)
    tokens = _TOKEN.findall(text)
    if re.sub(r"\s", "", "".join(tokens)) != re.sub(r"\s", "", text):
        raise ValueError(f"{text!r} names no type")
    try:
        found = _Parser(text, tokens).type(0)
    except IndexError:
        raise ValueError(f"{text!r} names no type: it ends too early") from None
    if found[1] != len(tokens):
        raise ValueError(f"{text!r} names no type: {tokens[found[1]]!r} is too much")
    return found[0]


class _Parser:
    def __init__(self, text: str, tokens: list[str]) -> None:
        self.text, self.tokens = text, tokens

    def type(self, at: int) -> tuple[pa.DataType, int]:
        name, at = self.tokens[at], at + 1
        opener = self.tokens[at] if at < len(self.tokens) else ""
        if name in ("list", "large_list") and opener == "<":
            at += 2 if self.tokens[at + 2] == ":" else 0  # Arrow writes `list<item: string>`
            item, at = self.type(at + 1)
            return (pa.list_ if name == "list" else pa.large_list)(item), self.expect(at, ">")
        if name == "map" and opener == "<":
            key, at = self.type(at + 1)
            value, at = self.type(self.expect(at, ","))
            return pa.map_(key, value), self.expect(at, ">")
        if name == "struct" and opener == "<":
            return self.struct(at + 1)
        if name in ("timestamp", "duration", "time32", "time64") and opener == "[":
            return self.timed(name, at + 1)
        if name in ("decimal128", "decimal256", "decimal") and opener == "(":
            precision, scale = int(self.tokens[at + 1]), int(self.tokens[self.expect(at + 2, ",")])
            make = pa.decimal256 if name == "decimal256" else pa.decimal128
            return make(precision, scale), self.expect(at + 4, ")")
        if name == "fixed_size_binary" and opener == "[":
            return pa.binary(int(self.tokens[at + 1])), self.expect(at + 2, "]")
        if name in _SIMPLE:
            return _SIMPLE[name], at
        import difflib

        near = [_ELSEWHERE[name.lower()]] if name.lower() in _ELSEWHERE else []
        near += difflib.get_close_matches(name, [*_SIMPLE, "list", "struct", "map", "decimal128"], n=1)
        raise ValueError(f"{self.text!r} names no type: {name!r} is unknown" + (f"; did you mean {near[0]!r}?" if near else ""))

    def struct(self, at: int) -> tuple[pa.DataType, int]:
        fields = []
        while self.tokens[at] != ">":
            name = self.tokens[at].strip("`")
            kind, at = self.type(self.expect(at + 1, ":"))
            fields.append(pa.field(name, kind))
            at += self.tokens[at] == ","
        return pa.struct(fields), at + 1

    def timed(self, name: str, at: int) -> tuple[pa.DataType, int]:
        unit, at = self.tokens[at], at + 1
        zone = None
        if self.tokens[at] == ",":
            at = self.expect(at + 2, "=") if self.tokens[at + 1] == "tz" else at + 1
            end = self.tokens.index("]", at)
            zone, at = "".join(self.tokens[at:end]), end
        made = pa.timestamp(unit, zone) if name == "timestamp" else getattr(pa, name)(unit)
        return made, self.expect(at, "]")

    def expect(self, at: int, token: str) -> int:
        if self.tokens[at] != token:
            raise ValueError(f"{self.text!r} names no type: {token!r} is missing before {self.tokens[at]!r}")
        return at + 1


def type_text(kind: pa.DataType) -> str:
    """The text of a type, from which `to_type` makes it again.

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
_UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


@cache
def _rank() -> dict[pa.DataType, int]:
    return {kind: n for n, kind in enumerate(_INTS)}


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The narrowest type that values of both convert to without a loss; text where there is no other.

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


def _wider_integer(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if types_signed(one) == types_signed(other):
        return max(one, other, key=lambda k: k.bit_width)
    signed, unsigned = (one, other) if types_signed(one) else (other, one)
    bits = max(signed.bit_width, unsigned.bit_width * 2)
    return pa.string() if bits > 64 else _INTS[{8: 0, 16: 1, 32: 2, 64: 3}[bits]]


def types_signed(kind: pa.DataType) -> bool:
    """Whether an integer type has negative numbers."""
    return kind in _rank()


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


def above(kind: pa.DataType) -> list[pa.DataType]:
    """The types that values of a type widen to for the sake of a text that is none of it, narrowest first; text aside.

    >>> above(pa.int32()), above(pa.date32())
    ([DataType(int64), DataType(double)], [TimestampType(timestamp[us])])
    """
    types = pa.types
    found: list[pa.DataType] = []
    if types.is_integer(kind) or types.is_floating(kind):
        found = [pa.int64(), pa.float64()] if types.is_integer(kind) and kind.bit_width < 64 else [pa.float64()]
    elif types.is_date(kind):
        found = [pa.timestamp("us")]
    elif types.is_timestamp(kind):
        found = [pa.timestamp("us", kind.tz)]
    elif types.is_time(kind):
        found = [pa.time64("us")]
    return [each for each in found if wider(kind, each).equals(each) and not each.equals(kind)]


def without_null_types(kind: pa.DataType, instead: pa.DataType) -> pa.DataType:
    """The same type with another in place of each `null` type: what nobody has seen a value of.

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
