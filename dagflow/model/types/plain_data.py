"""Plain data, which plans, states and reports hold, as JSON and back. Never pickle."""

from __future__ import annotations

import base64
import functools
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

import attrs
from typing_extensions import is_protocol, is_typeddict

from dagflow.bounded_json import MAX_DEPTH, parse
from dagflow.model.errors.running import StateNotPlain
from dagflow.model.types.comparison import evaluated, type_name
from dagflow.model.types.expressions import UNIONS
from dagflow.model.types.forms import maker
from dagflow.model.types.records import SPARSE, ReaderRecord

_BYTES = "$bytes"
_SHOWN = 120  # characters
_SCALARS = frozenset({str, int, float, bool, type(None)})
_KEYS = frozenset({str})
_ALWAYS = object()
_MANY = 1 << 14  # elements of a list that are written at a time
_ESCAPED = '{"$'  # in JSON, begins a dict that is encoded as another one, if that is its only key; no string holds it


class Encoded(list[Any]):
    """A list of JSON data, such as a million work items. `encode` passes it on as it is; `dumps` escapes what needs it."""


def encode(value: Any, where: str, *, shares: bool = False, _depth: int = 0) -> Any:
    """Return `value` as JSON data. Raises StateNotPlain, which names `where`, for anything that is not plain data.

    `shares`: lists and dicts that are JSON data already are in the result as they are, not as copies.
    """
    kind = type(value)
    if _depth > MAX_DEPTH:  # such records are refused when they are read
        raise StateNotPlain(where=where, got=f"a value that is nested deeper than {MAX_DEPTH} levels")
    if kind in _SCALARS or kind is Encoded:
        return value
    if kind is dict:
        if shares and len(value) != 1 and _KEYS.issuperset(map(type, value)) and _SCALARS.issuperset(map(type, value.values())):
            return value
        for key in value:
            if type(key) is not str:
                raise StateNotPlain(where=where, got=f"a dict with a key of type {type(key).__name__}")
        if len(value) == 1 and (key := next(iter(value))).startswith("$"):
            return {f"${key}": encode(value[key], where, shares=shares, _depth=_depth + 1)}  # so that it is not taken for bytes
        return {k: v if type(v) in _SCALARS else encode(v, where, shares=shares, _depth=_depth + 1) for k, v in value.items()}
    if kind is list or kind is tuple:
        if shares and kind is list and _SCALARS.issuperset(map(type, value)):
            return value
        encoded = [v if type(v) in _SCALARS else encode(v, where, shares=shares, _depth=_depth + 1) for v in value]
        return value if shares and kind is list and all(map(operator.is_, encoded, value)) else encoded
    if isinstance(value, bytes):  # keys of ranges are a class of their own
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if (stored := _stored(kind)) is not None:  # type: ignore[arg-type]  # mypy takes classes for unhashable here
        names, left_out, values_of = stored
        fields = {name: each for name, out, each in zip(names, left_out, values_of(value), strict=True) if each is not out}
        if _SCALARS.issuperset(map(type, fields.values())):
            return fields
        return {k: v if type(v) in _SCALARS else encode(v, where, shares=shares, _depth=_depth + 1) for k, v in fields.items()}
    if isinstance(value, ReaderRecord):
        return encode(list(value), where, _depth=_depth)
    raise StateNotPlain(where=where, got=f"a {kind.__qualname__}")


def never_plain(tp: Any, above: frozenset[Any] = frozenset()) -> str | None:
    """Return the part of a type that is never plain data, such as `a set`; None if nothing says so.

    >>> never_plain(dict[str, list[int]]), never_plain(dict[str, set[int]]), never_plain(dict[int, str])
    (None, 'a set', 'a dict with keys of type int')
    """
    while get_origin(tp) is Annotated:
        tp = get_args(tp)[0]
    kind, parts = get_origin(tp) or tp, get_args(tp)
    if kind is Literal or tp in above:
        return None
    if kind is dict and parts and isinstance(parts[0], type) and parts[0] not in (str, object):
        return f"a dict with keys of type {type_name(parts[0])}"
    if kind in (list, tuple, dict) or kind in UNIONS:
        return next(filter(None, (never_plain(part, above) for part in parts if part is not Ellipsis)), None)
    if not isinstance(kind, type) or kind in _SCALARS or kind is object or kind is Any or is_typeddict(kind):
        return None
    if attrs.has(kind):
        fields = [never_plain(evaluated(field.type, kind), above | {tp}) for field in attrs.fields(kind) if field.init]
        return next((f"{reason} in {kind.__qualname__}" for reason in fields if reason), None)
    may_be = issubclass(kind, bytes | ReaderRecord) or inspect.isabstract(kind) or is_protocol(kind)
    return None if may_be else f"{'an' if kind.__name__[0] in 'aeiouAEIOU' else 'a'} {type_name(kind)}"


def decode(data: Any, tp: Any = Any) -> Any:
    """Return the value that `encode` was given; `tp` names the attrs classes in it."""
    value = _bytes_back(data)
    make = maker(tp)
    return value if make is None or value is None else make(value)


@functools.cache
def _stored(kind: type) -> tuple[tuple[str, ...], tuple[Any, ...], Callable[[Any], tuple[Any, ...]]] | None:
    """Return the names of the stored fields of an attrs class, the values that are left out, and a function that gets all values.

    None for other classes. `_ALWAYS` stands for a field of which no value is left out.
    """
    if not attrs.has(kind):
        return None
    stored = [a for a in attrs.fields(kind) if a.init]
    names = tuple(a.name for a in stored)
    left_out = tuple(a.default if a.metadata.get(SPARSE) else _ALWAYS for a in stored)
    if len(names) > 1:
        return names, left_out, operator.attrgetter(*names)
    return names, left_out, lambda value: tuple(getattr(value, name) for name in names)


def dumps(data: Any) -> bytes:
    """Return the bytes of encoded data: one line of JSON, keys in their order."""
    return b"".join(dumps_in_pieces(data))


def dumps_in_pieces(data: Any) -> Iterator[bytes]:
    """Yield the bytes of `dumps` one after the other: those of a million work items need not be in memory twice."""
    # Names of files may hold bytes that are not UTF-8, as lone surrogates: `\udc80` is also how JSON writes them.
    return (text.encode("utf-8", "backslashreplace") for text in _pieces(data))


def _text(data: Any) -> str:
    import json  # here, since `import dagflow` comes by

    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _is_long(data: Any) -> bool:
    """Return whether data is a long list, or one of work items, or a dict that holds one."""
    if type(data) is dict:
        return any(_is_long(value) for value in data.values())
    return isinstance(data, list) and len(data) > (0 if type(data) is Encoded else _MANY)


def _pieces(data: Any) -> Iterator[str]:
    """Yield the JSON of data in pieces of some thousand elements."""
    if not _is_long(data):
        yield _text(data)
    elif type(data) is dict:
        for number, (key, value) in enumerate(data.items()):
            yield f"{',' if number else '{'}{_text(key)}:"
            yield from _pieces(value)
        yield "}"
    else:
        for first in range(0, len(data), _MANY):
            some = data[first : first + _MANY]
            text = _text(some)
            if type(data) is Encoded and _ESCAPED in text:
                text = _text(encode(some, "a list of JSON data"))
            yield f"{',' if first else '['}{text[1:-1]}"
        yield "]"


def loads(data: bytes) -> Any:
    """Return the value that `dumps` was given. Raises ValueError for bytes that it never made."""
    return parse(data)


def shown(value: Any) -> str:
    """Return a work item, encoded or not, as text: its fields, cut after 120 characters.

    >>> shown({"block_id": 1, "start": {"$bytes": "YQ=="}}), shown(7)
    ("block_id=1, start=b'a'", '7')
    """
    value = _bytes_back(value)
    if attrs.has(type(value)):
        value = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
    text = ", ".join(f"{name}={each!r}" for name, each in value.items()) if isinstance(value, dict) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def block_text(item: Any) -> str:
    """Return the text of a work item in plain data, for messages.

    >>> block_text({"file_path": "a.txt", "start": 0, "stop": 1024}), block_text(7)
    ('bytes 0 to 1,024 of a.txt', '7')
    """
    if isinstance(item, dict) and {"file_path", "start", "stop"} <= item.keys():
        return f"bytes {item['start']:,} to {item['stop']:,} of {item['file_path']}"
    return shown(item)


def _bytes_back(data: Any) -> Any:
    if isinstance(data, dict):
        if len(data) == 1 and (key := next(iter(data))).startswith("$"):
            return base64.b64decode(data[key]) if key == _BYTES else {key[1:]: _bytes_back(data[key])}
        if _SCALARS.issuperset(map(type, data.values())):
            return data.copy()
        return {k: v if type(v) in _SCALARS else _bytes_back(v) for k, v in data.items()}
    if isinstance(data, list):
        if _SCALARS.issuperset(map(type, data)):
            return data[:]
        return [v if type(v) in _SCALARS else _bytes_back(v) for v in data]
    return data
