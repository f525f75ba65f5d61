"""Equality of keys, as `==` defines it: one rule for the hash of a key, its partition and its group."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import uuid
from collections.abc import Callable
from typing import Any, get_args, get_origin

import attrs
import typing_extensions

from dagflow.model.types.columns import cached, fields_of_type
from dagflow.model.types.comparison import annotations_of, is_numpy
from dagflow.model.types.expressions import UNIONS, resolve, type_name

UNKNOWN = "has no hash that all processes agree on"
_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

Comparand = Callable[[Any], Any]


def compared(key: Any) -> Any:
    """Return a value that is equal for equal keys: of a class with fields a tuple, of other classes a plain value.

    Raises TypeError where that cannot be known: of a class with an `==` of its own.

    >>> @attrs.frozen
    ... class Person:
    ...     name: str = attrs.field(eq=str.lower)
    ...     age: int = attrs.field(eq=False)
    >>> compared(Person("Ada", 36)), compared("Ada")
    (('ada',), 'Ada')
    """
    return comparand_of(type(key))(key)


@cached
def comparand_of(cls: Any) -> Comparand:
    """Return the function that makes `compared` of the objects of a class. Raises TypeError where there is none."""
    owner = _owner(cls)
    plain = _PLAIN.get(cls) or _PLAIN.get(owner)
    if plain is not None:
        return plain
    if is_numpy(cls) or owner.__module__.partition(".")[0] == "pandas":
        return _of_library(cls)
    fields = _compared_fields(owner)
    if fields is not None:
        return functools.partial(_values, fields)
    if owner is object and issubclass(cls, enum.Enum):
        return _name
    name = cls.__qualname__
    if _is_of_python(cls if owner is object else owner):
        raise TypeError(f"a {name} {UNKNOWN}")
    if owner is object:
        raise TypeError(f"class {name} has no == that compares values: each object is equal to itself only")
    inherited = "" if owner is cls else f" (that of {owner.__qualname__})"
    raise TypeError(f"class {name} has an == of its own{inherited}, and no hash is known that agrees with it")


def _owner(cls: type) -> type:
    """Return the class whose `==` objects of a class have."""
    return next(k for k in cls.__mro__ if "__eq__" in vars(k))


def _of_library(cls: type) -> Comparand:
    """Return the comparand of a scalar of numpy or pandas. float32 has none: it equals floats that hash differently."""
    base = next((known for known in _PLAIN if issubclass(cls, known)), None)
    if base is not None:
        return _PLAIN[base]
    if cls.__name__ in ("bool", "bool_"):
        return bool
    if hasattr(cls, "__index__"):
        return _index
    raise TypeError(f"a {cls.__qualname__} {UNKNOWN}")


def _compared_fields(cls: type) -> tuple[tuple[str, Comparand | None], ...] | None:
    """Return the fields that a generated `==` (attrs, dataclasses) compares; None for a class without one."""
    written_in = getattr(getattr(vars(cls)["__eq__"], "__code__", None), "co_filename", "")
    fields: list[Any]
    if "__attrs_attrs__" in vars(cls) and written_in.startswith("<attrs generated"):
        fields = [(field.name, field.eq_key, field.eq, field.hash) for field in vars(cls)["__attrs_attrs__"]]
    elif "__dataclass_fields__" in vars(cls) and written_in == "<string>":
        fields = [(field.name, None, field.compare, field.hash) for field in dataclasses.fields(cls)]
    else:
        return None
    for name, _, is_compared, is_hashed in fields:
        if is_hashed and not is_compared:
            raise TypeError(f"class {cls.__qualname__} has a field, {name!r}, that hash() sees and == does not")
    return tuple((name, comparand) for name, comparand, is_compared, _ in fields if is_compared)


def _values(fields: tuple[tuple[str, Comparand | None], ...], key: Any) -> tuple[Any, ...]:
    values = ((getattr(key, name), comparand) for name, comparand in fields)
    return tuple(value if comparand is None else comparand(value) for value, comparand in values)


def _itself(key: Any) -> Any:
    return key


def _name(key: enum.Enum) -> Any:
    return key.name


def _index(key: Any) -> int:
    number: int = key.__index__()
    return number


def _instant(key: datetime.datetime) -> Any:
    """Return a time without a zone, or in UTC. `fold` is ignored, as in Python's own hash: `==` ignores it within one zone."""
    key = key.replace(fold=0)
    if key.utcoffset() is None:
        return key.replace(tzinfo=None)
    try:
        return key.astimezone(datetime.UTC)
    except OverflowError:  # in UTC it is beyond the years 1 to 9999
        return ("UTC", (key - _EPOCH) // _MICROSECOND)


def _time_of_day(key: datetime.time) -> Any:
    key = key.replace(fold=0)
    offset = key.utcoffset()
    if offset is None:
        return key.replace(tzinfo=None)
    since = datetime.timedelta(hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond)
    return ("UTC", (since - offset) // _MICROSECOND)


def _number(key: decimal.Decimal) -> decimal.Decimal:
    if key.is_snan():
        raise TypeError(f"a signalling NaN {UNKNOWN}")
    return key


_PLAIN: dict[type, Comparand] = {
    str: str.__str__,
    int: int.__int__,  # bool is a subclass
    float: float.__float__,
    bytes: lambda key: bytes.__getitem__(key, slice(None)),
    tuple: lambda key: tuple(tuple.__iter__(key)),
    list: lambda key: tuple(list.__iter__(key)),
    type(None): _itself,
    datetime.datetime: _instant,
    datetime.date: _itself,
    datetime.time: _time_of_day,
    datetime.timedelta: _itself,
    decimal.Decimal: _number,
    uuid.UUID: _itself,
}
"""The comparand of values whose `==` is that of one of Python's own classes, subclasses included."""


def _is_of_python(cls: type) -> bool:
    return cls.__module__ == "builtins" or cls.__module__.partition(".")[0] in ("collections", "functools", "typing")


def not_hashable(tp: Any) -> str | None:
    """Return the reason, for users, why keys of a type have no hash that follows their `==`; None if there may be one.

    >>> not_hashable(tuple[str, int]), not_hashable(tuple[str, set[int]])
    (None, 'a set has no hash that all processes agree on')
    """
    return _not_hashable(tp, ())


def _not_hashable(tp: Any, above: tuple[Any, ...]) -> str | None:
    tp = resolve(tp)
    outer, arguments = get_origin(tp) or tp, get_args(tp)
    if tp in above:  # a class with a field of its own kind
        return None
    if outer in UNIONS or outer in (tuple, list):
        return next((reason for part in arguments if part is not ... and (reason := _not_hashable(part, above))), None)
    if (
        tp is Any
        or not inspect.isclass(outer)
        or outer is object
        or inspect.isabstract(outer)
        or typing_extensions.is_protocol(outer)
    ):
        return None
    if outer.__subclasses__() and _owner(outer) is object:
        return None  # keys are of its subclasses, which may compare their values
    try:
        comparand = comparand_of(outer)
    except TypeError as error:
        return str(error)
    if isinstance(comparand, functools.partial):
        fields, types = comparand.args[0], fields_of_type(tp) if attrs.has(outer) else _annotations(outer)
    else:  # a named tuple has fields, too
        types = _annotations(outer) if issubclass(outer, tuple) else {}
        fields = tuple((name, None) for name in types)
    for name, made in fields:
        kind = (
            types.get(name, Any) if made is None else made if inspect.isclass(made) else annotations_of(made).get("return", Any)
        )
        reason = _not_hashable(kind, (*above, tp))
        if reason:
            return f"in field {name!r} of {type_name(outer)}, {reason}"
    return None


def _annotations(cls: type) -> dict[str, Any]:
    """Return the evaluated annotations of a class and its bases; none if one cannot be evaluated."""
    try:
        return typing_extensions.get_type_hints(cls)
    except Exception:  # noqa: BLE001  # user's annotations may name anything
        return {}
