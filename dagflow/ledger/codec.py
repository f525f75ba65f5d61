"""The bytes of an entry: one value, one encoding.

Two lines: the entry in canonical JSON (UTF-8, keys sorted, no blanks, no floats, nothing that is absent or has its default), and
the seal, its hash as JSON. The hash of an entry is that of its first line with the line's end, so `head -n 1 FILE | sha256sum`
tells it. The seal shows at once what was torn or flipped; a rewritten entry shows in the `prev_hash` of the next one.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

import attrs

from dagflow.bounded_json import check_depth
from dagflow.ledger.errors import EntryMalformed
from dagflow.ledger.events import (
    KINDS,
    AddData,
    CarriedNumbers,
    Event,
    ExecuteQuery,
    LedgerEntry,
    SetSchema,
    UnknownEvent,
)
from dagflow.storage import hash_bytes

FORMAT = 3
"""The newest format. Entries are of format 1 before the first one that replaces rows. They are of format 2 from there on, and of
format 3 from the first one that replaces some rows only, or has no files."""


class NotCanonical(ValueError):
    """A value that has no place in an entry; the text says where and why."""


def canonical(value: Any) -> bytes:
    """Return plain data as canonical JSON.

    >>> canonical({"b": 1, "a": [None, "ß"]}).decode()
    '{"a":[null,"ß"],"b":1}'

    Raises ValueError for floats and everything else that is not plain data.
    """
    return _dump(_plain(value, "value"))


def format_of(event: Event, carried: CarriedNumbers) -> int:
    """Return the format of an entry by its event and the numbers that it carries: the oldest one that can express the dataset.

    Versions of dagflow that know format 1 only would take replaced rows for content, so they append nothing after format 2. Those
    that know format 2 would miss files that are kept.
    """
    data = event.new_data if isinstance(event, AddData | ExecuteQuery) else None
    if data is not None and (data.kept or not data.files):
        return FORMAT
    return 1 if carried.replaced is None else 2


def schema_hash(event: SetSchema) -> str:
    """Return the hash of a schema: what slices name.

    >>> from dagflow.ledger import SchemaField
    >>> schema_hash(SetSchema(schema=(SchemaField(name="value", type="string"),)))[:15]
    'sha256:337d8927'
    """
    return hash_bytes(_dump(_encode(event.schema, _of(SetSchema)["schema"], "schema")))


def encode_entry(entry: LedgerEntry) -> bytes:
    """Return the bytes to store of an entry. Raises ValueError, naming the field, for values that have no place in it."""
    data = _encode(entry, LedgerEntry, "entry")
    check_depth(data)
    body = _dump(data) + b"\n"
    return body + _dump(hash_bytes(body)) + b"\n"


def hash_of(stored: bytes) -> str:
    """Return the hash of an entry by its stored bytes."""
    body, end, _ = stored.partition(b"\n")
    return hash_bytes(body + end)


def decode_entry(stored: bytes, seq: int, place: str = "ledger") -> LedgerEntry:
    """Return the entry that bytes hold, its hash set. Raises EntryMalformed for bytes that `encode_entry` does not make.

    Of formats after this one's, what they have in common is understood, and what is not is kept in `unknown`.
    """
    body, end, seal = stored.partition(b"\n")
    if not end or not seal.endswith(b"\n"):
        raise EntryMalformed(place, seq, f"its {len(stored)} bytes are not a whole entry: it was cut short")
    actual = hash_bytes(body + end)
    if seal != _dump(actual) + b"\n":
        raise EntryMalformed(
            place, seq, f"its bytes have the hash {actual}, its seal says {seal[:90].decode(errors='replace').strip()}"
        )
    try:
        data = json.loads(body, parse_float=_no_floats, parse_constant=_no_floats)
        check_depth(data)
        entry: LedgerEntry = _decode(data, LedgerEntry, "entry")
        if entry.format <= FORMAT and _dump(_encode(entry, LedgerEntry, "entry")) != body:
            raise NotCanonical("it is not in the canonical encoding")
    except (ValueError, RecursionError) as error:
        raise EntryMalformed(place, seq, f"it is not an entry: {error}") from error
    return attrs.evolve(entry, hash=actual)


def _dump(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    # Names of files may hold bytes that are not UTF-8, as lone surrogates: `\udc80` is also how JSON writes them.
    return text.encode("utf-8", "backslashreplace")


def _no_floats(text: str) -> NoReturn:
    raise NotCanonical(f"{text} is not an integer")


def _plain(value: Any, where: str) -> Any:
    kind = type(value)
    if kind in (str, int, bool, type(None)):
        return value
    if isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {key: _plain(each, f"{where}.{key}") for key, each in value.items()}
    if kind in (list, tuple):
        return [_plain(each, f"{where}[{number}]") for number, each in enumerate(value)]
    raise NotCanonical(
        f"{where} is {value!r}: only text, integers, booleans, null, lists, and objects of these have a place in a ledger"
    )


@lru_cache(maxsize=64)
def _of(cls: type[Any]) -> dict[str, Any]:
    """Return the stored fields of a class and their types."""
    hints = get_type_hints(cls)
    stored = [a for a in attrs.fields(cls) if a.metadata.get("stored", True) and a.name != "unknown"]
    return {a.name: hints[a.name] for a in stored}


@lru_cache(maxsize=64)
def _defaults(cls: type[Any]) -> dict[str, Any]:
    defaults = {}
    for a in attrs.fields(cls):
        if a.default is not attrs.NOTHING:
            default: Any = a.default
            defaults[a.name] = default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
    return defaults


@lru_cache(maxsize=256)
def _shape(tp: Any) -> tuple[str, Any]:
    """Return the shape of a type (scalar, class, list, map, optional, event or any) and the type of its elements."""
    if tp is Any:
        return "any", None
    if tp == Event:
        return "event", None
    origin = get_origin(tp)
    if origin in (Union, types.UnionType):
        return "optional", next(each for each in get_args(tp) if each is not type(None))
    if origin is tuple:
        return "list", get_args(tp)[0]
    if origin is not None:
        return "map", get_args(tp)[1]
    return ("class" if attrs.has(tp) else "scalar"), tp


def _encode(value: Any, tp: Any, where: str) -> Any:
    inner: Any
    shape, inner = _shape(tp)
    if shape == "any":
        return _plain(value, where)
    if shape == "optional":
        return None if value is None else _encode(value, inner, where)
    if shape == "event":
        if isinstance(value, UnknownEvent):
            return {**_plain(value.unknown, where), "kind": value.kind}
        if type(value).__name__ not in KINDS or type(value) is not KINDS[type(value).__name__]:
            raise NotCanonical(f"{where} is {value!r}, not an event")
        return {**_encode(value, type(value), where), "kind": type(value).__name__}
    if shape == "list" and isinstance(value, tuple | list):
        return [_encode(each, inner, f"{where}[{number}]") for number, each in enumerate(value)]
    if shape == "map" and isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {key: _encode(each, inner, f"{where}.{key}") for key, each in value.items()}
    if shape == "scalar" and type(value) is inner:
        return value
    if shape != "class" or type(value) is not inner:
        raise NotCanonical(f"{where} is {value!r}, not {_spelled(tp)}")
    return _encode_fields(value, inner, where)


def _encode_fields(value: Any, cls: Any, where: str) -> Any:
    encoded = _plain(value.unknown, where)
    defaults = _defaults(cls)
    for name, field_type in _of(cls).items():
        content = getattr(value, name)
        if name not in defaults or content != defaults[name]:
            encoded[name] = _encode(content, field_type, f"{where}.{name}")
    return encoded


def _decode(data: Any, tp: Any, where: str) -> Any:
    shape, inner = _shape(tp)
    if shape == "any":
        return data
    if shape == "optional":
        return None if data is None else _decode(data, inner, where)
    if shape == "scalar" and type(data) is inner:
        return data
    if shape == "list" and isinstance(data, list):
        return tuple([_decode(each, inner, f"{where}[{number}]") for number, each in enumerate(data)])
    if shape in ("map", "class", "event") and isinstance(data, dict):
        if shape == "map":
            return {key: _decode(each, inner, f"{where}.{key}") for key, each in data.items()}
        rest = dict(data)
        if shape == "event":
            kind = rest.pop("kind", None)
            if type(kind) is not str:
                raise NotCanonical(f"{where} has no kind")
            if kind not in KINDS:
                return UnknownEvent(kind, rest)
            inner = KINDS[kind]
        fields = {name: _decode(rest.pop(name), of, f"{where}.{name}") for name, of in _of(inner).items() if name in rest}
        try:
            return inner(**fields, unknown=rest)
        except TypeError as error:
            missing = [name for name in _of(inner) if name not in fields and name not in _defaults(inner)]
            raise NotCanonical(f"{where} lacks {', '.join(missing)}") from error
    raise NotCanonical(f"{where} is {str(data)[:60]!r}, not {_spelled(tp)}")


def _spelled(tp: Any) -> str:
    names = {int: "an integer", str: "text", bool: "true or false"}
    return names.get(tp) or str(getattr(tp, "__name__", tp))
