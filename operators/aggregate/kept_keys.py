"""Keys and values of groups as plain data, which keyed operators keep over windows."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import uuid
from collections.abc import Callable
from typing import Any

from dagflow.scaling import compared
from operators.aggregate.errors import ValueNotKept
from operators.transform.content import nanoseconds_of

_LARGE = 1 << 63
_OTHER = "\0"
"""The prefix of entries whose keys are neither text nor integers."""
_MICROSECOND = datetime.timedelta(microseconds=1)

_TAGS: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    decimal.Decimal: ("decimal", str, decimal.Decimal),
    datetime.datetime: ("datetime", datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: ("date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: ("time", datetime.time.isoformat, datetime.time.fromisoformat),
    datetime.timedelta: ("timedelta", lambda value: value // _MICROSECOND, lambda value: value * _MICROSECOND),
    uuid.UUID: ("uuid", str, uuid.UUID),
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    dict: ("dict", lambda value: _each(as_plain, value), lambda data: _each(from_plain, data)),
    tuple: ("tuple", lambda value: list(map(as_plain, value)), lambda data: tuple(map(from_plain, data))),
}
"""The encoding of values of other types as `{tag: data}`: tag, encoder and decoder."""
_PLAIN = frozenset({type(None), bool, int, float, str})
_BACK = {tag: back for tag, _, back in _TAGS.values()}


def as_plain(value: Any) -> Any:
    """Return a value as plain data, which `from_plain` inverts. Raises ValueNotKept for a value that would come back changed.

    >>> as_plain(5), as_plain((1, decimal.Decimal("1.50")))
    (5, {'tuple': [1, {'decimal': '1.50'}]})
    >>> from_plain(as_plain((1, decimal.Decimal("1.50"))))
    (1, Decimal('1.50'))
    """
    if type(value) is list:
        return [as_plain(each) for each in value]
    if type(value) in _PLAIN:
        return value
    encoding = _TAGS.get(type(value))
    if encoding is None or (encoding[0] == "dict" and not all(type(name) is str for name in value)):
        raise ValueNotKept(type=type(value).__qualname__)
    return {encoding[0]: encoding[1](value)}


def from_plain(data: Any) -> Any:
    """Invert `as_plain`."""
    if type(data) is list:
        return [from_plain(each) for each in data]
    if type(data) is not dict:
        return data
    ((tag, inner),) = data.items()
    return _BACK[tag](inner)


def _each(function: Callable[[Any], Any], mapping: dict[str, Any]) -> dict[str, Any]:
    return {name: function(value) for name, value in mapping.items()}


def entry_of(key: Any) -> str | int:
    r"""Return the name under which a group is kept: text or an integer, the same for equal keys only.

    Raises TypeError for a key that cannot be written down.

    >>> entry_of("a"), entry_of(1.0), entry_of(None), entry_of(("a", True))
    ('a', 1, '\x00null', '\x00{"tuple": ["a", 1]}')
    """
    data = _same_for_equal(key)
    is_itself = type(data) is int or (type(data) is str and not data.startswith(_OTHER))
    return data if is_itself else _OTHER + json.dumps(data)


def json_of(key: Any) -> bytes:
    """Return a key as JSON, the same for equal keys only. Raises TypeError for a key that cannot be written down.

    >>> json_of("a"), json_of(1.0), json_of((None, True))
    (b'"a"', b'1', b'{"tuple": [null, 1]}')
    """
    return json.dumps(_same_for_equal(key)).encode()


def key_of(entry: str | int) -> Any:
    r"""Return a key that goes to the same partition as the group kept under a name.

    >>> key_of("a"), key_of('\x00{"tuple": ["a", 1]}')
    ('a', ('a', 1))
    """
    if type(entry) is str and entry.startswith(_OTHER):
        return _key(json.loads(entry[1:]))
    return entry


def as_kept(key: Any) -> int | str | bytes:
    r"""Return the key under which a group is kept in a `TableState`. Raises TypeError for a key that cannot be written down.

    >>> as_kept("a"), as_kept(True), as_kept(1 << 63), as_kept(None), as_kept("\0")
    ('a', 1, b'9223372036854775808', b'null', b'"\\u0000"')
    """
    entry = entry_of(key)
    if type(entry) is int:
        return entry if -_LARGE <= entry < _LARGE else b"%d" % entry
    text = str(entry)
    if text.startswith(_OTHER):
        return text[1:].encode()
    return json.dumps(text).encode() if any("\ud800" <= letter <= "\udfff" for letter in text) else text


def record_key(entry: bytes) -> Any:
    """Return a key that goes to the same partition as the group kept as JSON."""
    return key_of(_OTHER + entry.decode())


def _same_for_equal(key: Any) -> Any:
    """Return a key as JSON, equal for equal keys."""
    kind: Any = type(key)
    if kind is str or key is None:
        return key
    if isinstance(key, enum.Enum) and kind.__eq__ is object.__eq__:
        return {"enum": [kind.__qualname__, key.name]}
    if nanoseconds_of(key):
        raise TypeError(f"a total cannot be kept by {key!r}: below microseconds no time is kept; cast the column")
    try:
        value = compared(key)
    except TypeError as error:
        raise TypeError(f"a total cannot be kept by a key of type {kind.__qualname__}: {error}") from None
    if type(value) is tuple:
        parts = list(map(_same_for_equal, value))
        return {"tuple": parts} if isinstance(key, tuple) else {"fields": [kind.__qualname__, *parts]}
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float | decimal.Decimal):
        return _number(value)
    for known, (tag, written, _) in _TAGS.items():
        if isinstance(value, known):
            return {tag: written(value)}
    return _same_for_equal(value)  # what a field's own `eq=` has made of it


def _number(key: float | decimal.Decimal) -> Any:
    """Return a number as an integer, a float or a decimal: the first that is equal."""
    if key != key or abs(key) == float("inf"):
        return {"float": repr(float(key))}
    if key == int(key):
        return int(key)
    if float(key) == key:
        return {"float": repr(float(key))}
    return {"decimal": f"{key:f}".rstrip("0")}


def _key(data: Any) -> Any:
    """Return a key with the hash of the one that `_same_for_equal` encoded."""
    if type(data) is not dict:
        return data
    ((tag, inner),) = data.items()
    if tag == "tuple":
        return tuple(map(_key, inner))
    if tag == "fields":
        return tuple(map(_key, inner[1:]))
    if tag == "enum":
        return inner[1]
    if tag == "float":
        return float(inner)
    return _BACK[tag](inner)
