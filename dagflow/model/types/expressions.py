"""Type expressions: their names, their meaning at run time, and their variables."""

from __future__ import annotations

import collections.abc
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import typing_extensions

UNIONS = (Union, types.UnionType)
EXPANSIONS = 8
"""The limit of expansions of an alias, which may name itself."""


def is_variable(tp: object) -> bool:
    """Return whether `tp` is a type variable, of typing or typing_extensions."""
    return isinstance(tp, TypeVar)


def type_name(tp: Any) -> str:
    """Return the name of a type as a user would write it.

    >>> from dagflow.model.types.records import ReaderRecord
    >>> type_name(ReaderRecord[str]), type_name(int | None), type_name(list[dict[str, int]])
    ('ReaderRecord[str]', 'int | None', 'list[dict[str, int]]')
    """
    if tp is Any:
        return "Any"
    if tp is None or tp is type(None):
        return "None"
    if tp is ...:
        return "..."
    if is_variable(tp):
        return f"~{tp.__name__}"
    if isinstance(tp, list):  # the parameters of a Callable
        return f"[{', '.join(type_name(a) for a in tp)}]"
    origin = get_origin(tp)
    if origin in UNIONS:
        return " | ".join(type_name(a) for a in get_args(tp))
    if origin is typing.Annotated:
        return type_name(tp.__origin__)
    if origin is Literal:
        return f"Literal[{', '.join(map(_value_name, get_args(tp)))}]"
    if origin is not None:
        return f"{type_name(origin)}[{', '.join(type_name(a) for a in get_args(tp))}]"
    return getattr(tp, "__qualname__", None) or getattr(tp, "__name__", None) or str(tp)


def _value_name(value: Any) -> str:
    return str(value) if isinstance(value, enum.Enum) else repr(value)


def variables_in(tp: Any) -> list[TypeVar]:
    """Return the type variables that a type mentions."""
    if is_variable(tp):
        return [tp]
    variables: list[TypeVar] = []
    for argument in get_args(tp):
        parts = argument if isinstance(argument, list) else [argument]
        for part in parts:
            variables += [v for v in variables_in(part) if v not in variables]
    return variables


def substitute(tp: Any, bindings: Mapping[TypeVar, Any]) -> Any:
    """Return `tp` with its bound variables replaced, recursively, and the others by `Any`."""

    def value(variable: TypeVar) -> Any:
        bound = bindings.get(variable, Any)
        return substitute(bound, {k: v for k, v in bindings.items() if k is not variable}) if variables_in(bound) else bound

    return replace(tp, value)


def replace(tp: Any, value: Callable[[TypeVar], Any]) -> Any:
    """Return `tp` with each variable replaced by its value; `Any` for a Callable that has variables."""
    if is_variable(tp):
        return value(tp)
    if not variables_in(tp):
        return tp
    origin = get_origin(tp)
    arguments = tuple(replace(a, value) for a in get_args(tp))
    if origin in UNIONS:
        return Union[arguments]  # noqa: UP007  # made at run time
    return Any if origin is collections.abc.Callable else origin[arguments]


def resolve(tp: Any) -> Any:
    """Return the type at run time: without aliases, annotations and new names; `Any` where it is not known.

    >>> from typing import Annotated, NewType
    >>> resolve(Annotated[NewType("UserId", int), "of a user"])
    <class 'int'>
    """
    for _ in range(EXPANSIONS):
        origin = get_origin(tp)
        if origin is typing.Annotated:
            tp = tp.__origin__
        elif hasattr(tp, "__supertype__"):  # a NewType
            tp = tp.__supertype__
        elif _is_alias(tp) or _is_alias(origin):
            tp = _meant(tp, origin)
        else:
            break
    if tp is None:
        return type(None)
    if tp is typing_extensions.LiteralString:
        return str
    origin = get_origin(tp)
    if origin in (typing_extensions.TypeGuard, typing_extensions.TypeIs):
        return bool
    known = inspect.isclass(origin or tp) or origin is Literal or origin in UNIONS
    return tp if known else Any  # Self, Never, names in quotes, type variables, …


def _is_alias(tp: Any) -> bool:
    return type(tp).__name__ == "TypeAliasType"  # of typing from 3.12 on, or of typing_extensions


def _meant(tp: Any, origin: Any) -> Any:
    """Return the type behind an alias (`type Pair[T] = tuple[T, T]`), or one with arguments."""
    try:
        if origin is None:
            return tp.__value__
        return substitute(origin.__value__, dict(zip(origin.__type_params__, get_args(tp), strict=False)))
    except Exception:  # noqa: BLE001  # it is evaluated now, and may name anything
        return Any
