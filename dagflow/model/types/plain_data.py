"""Plain data, which plans, states and reports hold, as JSON and back. Never pickle."""

from __future__ import annotations

import base64
from typing import Any

import attrs

from dagflow.model.errors.running import StateNotPlain
from dagflow.model.types.forms import maker
from dagflow.model.types.records import ReaderRecord

_BYTES = "$bytes"
_SHOWN = 120  # characters
_SCALARS = frozenset({str, int, float, bool, type(None)})


def encode(value: Any, where: str) -> Any:
    """Return `value` as JSON data. Raises StateNotPlain, which names `where`, for anything that is not plain data."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        for key in value:
            if type(key) is not str:
                raise StateNotPlain(where=where, got=f"a dict with a key of type {type(key).__name__}")
        if len(value) == 1 and (key := next(iter(value))).startswith("$"):
            return {f"${key}": encode(value[key], where)}  # so that it is not taken for bytes
        return {k: v if type(v) in _SCALARS else encode(v, where) for k, v in value.items()}
    if kind is list or kind is tuple:
        return [v if type(v) in _SCALARS else encode(v, where) for v in value]
    if isinstance(value, bytes):  # keys of ranges are a class of their own
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if attrs.has(kind):
        return {a.name: encode(getattr(value, a.name), where) for a in attrs.fields(kind) if a.init}
    if isinstance(value, ReaderRecord):
        return encode(list(value), where)
    raise StateNotPlain(where=where, got=f"a {kind.__qualname__}")


def decode(data: Any, tp: Any = Any) -> Any:
    """Return the value that `encode` was given; `tp` names the attrs classes in it."""
    value = _bytes_back(data)
    make = maker(tp)
    return value if make is None or value is None else make(value)


def dumps(data: Any) -> bytes:
    """Return the bytes of encoded data: one line of JSON, keys in their order."""
    import json  # here, since `import dagflow` comes by

    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # Names of files may hold bytes that are not UTF-8, as lone surrogates: `\udc80` is also how JSON writes them.
    return text.encode("utf-8", "backslashreplace")


def loads(data: bytes) -> Any:
    """Return the value that `dumps` was given. Raises ValueError for bytes that it never made."""
    import json

    return json.loads(data)


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
        return {k: _bytes_back(v) if isinstance(v, dict | list) else v for k, v in data.items()}
    if isinstance(data, list):
        return [_bytes_back(v) if isinstance(v, dict | list) else v for v in data]
    return data
