"""The types of ports: how they are named, compared, and how type variables are bound."""

from __future__ import annotations

import collections.abc
import inspect
import sys
import types
import typing
from typing import Any, TypeVar, Union, get_args, get_origin

import typing_extensions

Bindings = dict[TypeVar, Any]
_UNIONS = (Union, types.UnionType)


def is_variable(tp: object) -> bool:
    """Whether `tp` is a type variable, of typing or typing_extensions."""
    return isinstance(tp, TypeVar)


def type_name(tp: Any) -> str:
    """The name of a type as a user would write it.

    >>> from dagflow.model.records import ReaderRecord
    >>> type_name(ReaderRecord[str]), type_name(int | None), type_name(list[dict[str, int]])
    ('ReaderRecord[str]', 'int | None', 'list[dict[str, int]]')
    """
    if tp is Any:
        return "Any"
    if tp is None or tp is type(None):
        return "None"
    if is_variable(tp):
        return f"~{tp.__name__}"
    origin = get_origin(tp)
    if origin in _UNIONS:
        return " | ".join(type_name(a) for a in get_args(tp))
    if origin is not None:
        return f"{type_name(origin)}[{', '.join(type_name(a) for a in get_args(tp))}]"
    return getattr(tp, "__qualname__", None) or str(tp)


def variables_in(tp: Any) -> list[TypeVar]:
    """The type variables that a type mentions."""
    if is_variable(tp):
        return [tp]
    found: list[TypeVar] = []
    for argument in get_args(tp):
        parts = argument if isinstance(argument, list) else [argument]
        for part in parts:
            found += [v for v in variables_in(part) if v not in found]
    return found


def substitute(tp: Any, bindings: Bindings) -> Any:
    """`tp` with its bound variables replaced, the others by `Any`."""
    if is_variable(tp):
        return bindings.get(tp, Any)
    if not variables_in(tp):
        return tp
    origin = get_origin(tp)
    arguments = tuple(substitute(a, bindings) for a in get_args(tp))
    if origin in _UNIONS:
        return Union[arguments]  # noqa: UP007  # made at run time
    if origin is collections.abc.Callable:
        return Any
    return origin[arguments]


def difference(source: Any, sink: Any) -> str | None:
    """Why records of type `source` do not fit a port of type `sink`: the smallest part that differs; None when they fit.

    >>> from dagflow.model.records import ReaderRecord
    >>> difference(ReaderRecord[str], ReaderRecord[int])
    'str is not int'
    >>> difference(bool, int) is None
    True
    """
    if source is Any or sink is Any or sink is object or source == sink:
        return None
    if get_origin(source) in _UNIONS:
        return next((d for member in get_args(source) if (d := difference(member, sink)) is not None), None)
    if get_origin(sink) in _UNIONS:
        differences = [difference(source, member) for member in get_args(sink)]
        return None if None in differences else f"{type_name(source)} is none of {type_name(sink)}"
    outer_source, outer_sink = get_origin(source) or source, get_origin(sink) or sink
    if outer_source is outer_sink:
        pairs = zip(get_args(source), get_args(sink), strict=False)
        return next((d for a, b in pairs if (d := difference(a, b)) is not None), None)
    if inspect.isclass(outer_source) and inspect.isclass(outer_sink):
        if (outer_source, outer_sink) == (int, float) or _is_subclass(outer_source, outer_sink):
            return None
        return f"{type_name(source)} is not {type_name(sink)}"
    return f"{type_name(source)} is not {type_name(sink)}"


def _is_subclass(cls: type, of: type) -> bool:
    try:
        return issubclass(cls, of)
    except TypeError:  # protocols with data members
        return True


def bind(pattern: Any, actual: Any, bindings: Bindings) -> None:
    """Binds the free variables of `pattern` so that it becomes `actual`, as far as the two have the same shape."""
    if actual is Any or actual is inspect.Parameter.empty:
        return
    if is_variable(pattern):
        bindings.setdefault(pattern, actual)
        return
    if get_origin(pattern) in _UNIONS:
        if type(None) in get_args(pattern) and get_origin(actual) in _UNIONS:
            rest = tuple(a for a in get_args(actual) if a is not type(None))
            actual = Union[rest] if rest else Any  # noqa: UP007  # made at run time
        for member in get_args(pattern):
            if member is not type(None):
                bind(member, actual, bindings)
        return
    if (get_origin(pattern) or pattern) is (get_origin(actual) or actual):
        for a, b in zip(get_args(pattern), get_args(actual), strict=False):
            bind(a, b, bindings)
        if not get_args(actual) and get_args(pattern):  # a bare generic class: its variables' defaults
            for a, parameter in zip(get_args(pattern), getattr(actual, "__parameters__", ()), strict=False):
                if is_variable(a) and has_default(parameter):
                    bindings.setdefault(a, parameter.__default__)


def has_default(variable: TypeVar) -> bool:
    """Whether a type variable was declared with a default (PEP 696)."""
    default = getattr(variable, "__default__", None)
    return default is not None and default is not typing_extensions.NoDefault and default is not Any


def bind_callable(pattern: Any, function: Any, bindings: Bindings) -> None:
    """Binds variables of a field annotated `Callable[[A], B]` from the annotations of the function that is its value.

    A class as the function (`Map(int)`) returns itself.
    """
    for member in get_args(pattern) if get_origin(pattern) in _UNIONS else (pattern,):
        if get_origin(member) is not collections.abc.Callable:
            continue
        wanted, result = get_args(member)
        if inspect.isclass(function):
            bind(result, function, bindings)
            continue
        hints = annotations_of(function)
        try:
            parameters = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            continue
        if isinstance(wanted, list):
            for pattern_part, name in zip(wanted, parameters, strict=False):
                if name in hints:
                    bind(pattern_part, hints[name], bindings)
        if "return" in hints:
            bind(result, _element(hints["return"]) if _wants_iterable(result) else hints["return"], bindings)


def _wants_iterable(pattern: Any) -> bool:
    return get_origin(pattern) is collections.abc.Iterable


def _element(tp: Any) -> Any:
    """`Iterable[X]` for anything that iterates over X."""
    origin, arguments = get_origin(tp), get_args(tp)
    if origin is not None and inspect.isclass(origin) and issubclass(origin, collections.abc.Iterable) and arguments:
        return collections.abc.Iterable[arguments[0]]  # type: ignore[valid-type]  # made at run time
    return tp


def annotations_of(function: Any) -> dict[str, Any]:
    """The annotations of a function, evaluated; those that cannot be are left out."""
    call = function if inspect.isroutine(function) else vars(type(function)).get("__call__")
    try:
        return typing.get_type_hints(call)
    except Exception:  # noqa: BLE001  # user's annotations may name anything; what cannot be evaluated says nothing
        return {}


def evaluated(annotation: Any, cls: type) -> Any:
    """A field's annotation as a type; `Any` when it names things that are there for type checkers only."""
    if not isinstance(annotation, str):
        return annotation
    module = sys.modules.get(cls.__module__)
    try:
        return eval(annotation, {**vars(typing), **(vars(module) if module else {})}, dict(vars(cls)))  # the class's own text
    except Exception:  # noqa: BLE001
        return Any
