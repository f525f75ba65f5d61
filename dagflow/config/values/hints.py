"""Type annotations as configuration sees them: resolved, unwrapped, named and described.

An annotation may mention names that exist for type checkers only (`pa.Schema` under `TYPE_CHECKING`). Such a name
becomes an opaque class: the rest of the annotation still works, and only values for that part must come from code.
"""

from __future__ import annotations

import builtins
import enum
import pathlib
import re
import sys
import types
import typing
import weakref
from collections import abc
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import attrs

from dagflow.config.values.units import SecretMarker, Unit

NoneType = type(None)

LISTS: tuple[Any, ...] = (list, abc.Sequence, abc.Iterable, abc.Collection, abc.MutableSequence)
SETS: tuple[Any, ...] = (set, frozenset, abc.Set, abc.MutableSet)
DICTS: tuple[Any, ...] = (dict, abc.Mapping, abc.MutableMapping)
TEXTS: tuple[Any, ...] = (str, bytes, pathlib.Path, pathlib.PurePath, re.Pattern)


class Opaque(type):
    """The class of classes that stand for names which do not exist at run time."""

    def __getattr__(cls, name: str) -> Opaque:
        if name.startswith("__"):
            raise AttributeError(name)
        return Opaque(f"{cls.__name__}.{name}", (), {})

    def __getitem__(cls, item: object) -> Opaque:
        return cls


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Opaque:
        return Opaque(name, (), {})


def key_of(attribute: attrs.Attribute[Any]) -> str:
    """Return the name of a field in configuration: that of the constructor's argument."""
    return attribute.alias or attribute.name


def settable(cls: type) -> dict[str, attrs.Attribute[Any]]:
    """Return the fields of an attrs class that configuration may give, by key, in order."""
    return {key_of(a): a for a in attrs.fields(cls) if a.init}


_FIELD_HINTS: weakref.WeakKeyDictionary[type, dict[str, Any]] = weakref.WeakKeyDictionary()
"""Resolved annotations by class and field: every window asks for all of them, and resolving is slow."""


def field_hint(cls: type, attribute: attrs.Attribute[Any]) -> Any:
    """Return the resolved annotation of a field, against the module of the class that defines it."""
    if attribute.type is None:
        known = type(attribute.default)
        return known if known in (bool, int, float, str) else Any
    resolved = _FIELD_HINTS.setdefault(cls, {})
    if attribute.name not in resolved:
        fields = ((k, a) for k in cls.__mro__ for a in k.__dict__.get("__attrs_attrs__", ()))
        owner = next((k for k, a in fields if a.name == attribute.name and not a.inherited), cls)
        hint = resolve(attribute.type, owner)
        if isinstance(hint, Opaque):  # perhaps a name that its module defines later
            return hint
        resolved[attribute.name] = hint
    return resolved[attribute.name]


def resolve(annotation: Any, owner: type) -> Any:
    """Evaluate an annotation, which may be a string, in the module and body of `owner`."""
    module = vars(sys.modules[owner.__module__]) if owner.__module__ in sys.modules else {}
    body = {name: value for name, value in vars(owner).items() if isinstance(value, type) and name not in module}
    holder = type(owner.__name__, (), {"__annotations__": {"it": annotation}, "__module__": owner.__module__})
    try:
        return typing.get_type_hints(holder, dict(module), {owner.__name__: owner, **body}, include_extras=True)["it"]
    except Exception:  # noqa: BLE001  # a name that only type checkers know, or a quoted part: read as far as it goes
        text = getattr(annotation, "__forward_arg__", annotation)
        if not isinstance(text, str):
            return annotation
        names = _Names({**vars(builtins), **body, owner.__name__: owner, **module})
        try:
            return eval(text, {"__builtins__": {}}, names)  # an annotation of the application's own source
        except Exception:  # noqa: BLE001  # whatever stands there, only code can give it
            return Opaque(text, (), {})


def unwrap(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the bare type, without aliases, NewType and Final, and the arguments of `Annotated`."""
    notes: tuple[Any, ...] = ()
    while True:
        if get_origin(hint) is Annotated:
            bare, *more = get_args(hint)
            hint, notes = bare, (*notes, *more)
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        elif get_origin(hint) is typing.Final:
            hint = get_args(hint)[0]
        elif hint is object or isinstance(hint, TypeVar):
            hint = Any
        elif hint is None:
            hint = NoneType
        else:
            return hint, notes


def unit_of(hint: Any) -> str | None:
    """Return `bytes`, `seconds`, `milliseconds`, or None."""
    return next((note.name for note in unwrap(hint)[1] if isinstance(note, Unit)), None)


def is_secret(hint: Any) -> bool:
    """Return True if the type, or a part of it, is marked as a secret."""
    bare, notes = unwrap(hint)
    if any(isinstance(note, SecretMarker) for note in notes):
        return True
    return get_origin(bare) is not Literal and any(is_secret(part) for part in get_args(bare) if not isinstance(part, list))


def members(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself."""
    bare, _ = unwrap(hint)
    if get_origin(bare) is Union or isinstance(bare, types.UnionType):
        return tuple(member for part in get_args(bare) for member in members(part))
    return (hint,)


def kind(hint: Any) -> Any:
    """Return the run-time class behind one member of a union: `list` of `list[str]`, `Literal` of `Literal["a"]`."""
    bare, _ = unwrap(hint)
    return get_origin(bare) or bare


def is_list(hint: Any) -> bool:
    """Return True if values of this type are written as an array."""
    return kind(hint) in (*LISTS, *SETS, tuple)


def is_dict(hint: Any) -> bool:
    """Return True for a mapping with string keys, which is written as a table."""
    return kind(hint) in DICTS


def is_attrs(hint: Any) -> bool:
    """Return True for an attrs class, which is written as a table."""
    return isinstance(kind(hint), type) and attrs.has(kind(hint))


def is_table(hint: Any) -> bool:
    """Return True if values of this type are written as a table."""
    return is_dict(hint) or is_attrs(hint)


def is_text(hint: Any) -> bool:
    """Return True if any text can be such a value."""
    return kind(hint) in TEXTS


def element(hint: Any, index: int = 0) -> Any:
    """Return the type of a list's elements, or of a mapping's values (index 1); Any if it is not declared."""
    arguments = get_args(unwrap(hint)[0])
    return arguments[index] if len(arguments) > index else Any


def type_name(hint: Any) -> str:
    """Return the type about as its author wrote it: `list[str]`, `Bytes`, `int | None`.

    >>> from dagflow.config import Bytes
    >>> type_name(list[Bytes] | None)
    'list[Bytes] | None'
    """
    if hint is None or hint is NoneType:
        return "None"
    if hint is Any:
        return "Any"
    if hint is Ellipsis:
        return "..."
    if isinstance(hint, (TypeVar, Opaque)):
        return hint.__name__
    bare, notes = unwrap(hint)
    for note in notes:
        if isinstance(note, SecretMarker):
            return "Secret"
        if isinstance(note, Unit):
            ours = {"bytes": "Bytes", "seconds": "Seconds", "milliseconds": "Millis"}
            return ours.get(note.name, f"{type_name(bare)} ({note.name})")
    if len(members(bare)) > 1:
        return " | ".join(type_name(part) for part in get_args(bare))
    if get_origin(bare) is Literal:
        return f"Literal[{', '.join(repr(value) for value in get_args(bare))}]"
    if isinstance(bare, list):  # the parameters of a Callable
        return f"[{', '.join(type_name(part) for part in bare)}]"
    name = getattr(kind(bare), "__name__", str(bare))
    arguments = get_args(bare)
    return f"{name}[{', '.join(type_name(part) for part in arguments)}]" if arguments else name


def expected(hint: Any) -> str:
    """Describe the values of a type, for messages.

    >>> from dagflow.config import Bytes
    >>> expected(Bytes | None)
    'a size in bytes, such as 4096, 64MiB or 1GB, or none'
    """
    parts = members(hint)
    if len(parts) > 1:
        words = [expected(part) for part in parts if kind(part) is not NoneType]
        if len(words) < len(parts):
            words.append("none")
        return ", or ".join(words)
    what, unit = kind(hint), unit_of(hint)
    arguments: tuple[Any, ...] = get_args(unwrap(hint)[0])
    if unit == "bytes":
        return "a size in bytes, such as 4096, 64MiB or 1GB"
    if unit is not None:
        return f"a duration, such as 500ms, 2s or 5min (a bare {'integer' if what is int else 'number'} is in {unit})"
    if what is Literal:
        return ("one of " if len(arguments) > 1 else "") + ", ".join(map(str, arguments))
    if is_list(hint):
        if what is tuple and arguments and arguments[-1] is not Ellipsis:
            return f"a list of {len(arguments)}: {', '.join(expected(part) for part in arguments)}"
        return "a list" if element(hint) is Any else f"a list, each element {expected(element(hint))}"
    if is_attrs(hint):
        return f"a table with {', '.join(settable(what))}"
    if is_dict(hint):
        return "a table" if element(hint, 1) is Any else f"a table, each value {expected(element(hint, 1))}"
    if isinstance(what, type) and issubclass(what, enum.Enum):
        return f"one of {', '.join(what.__members__)}"
    simple: dict[Any, str] = {
        bool: "true or false",
        int: "an integer, such as 8",
        float: "a number, such as 0.5",
        str: "text",
        bytes: "text, in UTF-8",
        NoneType: "none",
        Any: "any value",
        re.Pattern: "a regular expression",
    }
    if what in simple:
        return simple[what]
    if is_text(hint):
        return "a path"
    return simple_words(hint)


def simple_words(hint: Any) -> str:
    """Return the words for a type without a form as text."""
    name = getattr(kind(hint), "__name__", "")
    if name in ("datetime", "date", "time"):
        return f"a {name} as in ISO 8601"
    if name == "timedelta":
        return "a duration, such as 500ms, 2s or 5min (a bare number is in seconds)"
    return f"a value of type {type_name(hint)}, which only code can give"
