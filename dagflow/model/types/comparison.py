"""Comparison of port types, and the bindings of their type variables."""

from __future__ import annotations

import collections
import collections.abc
import datetime
import enum
import inspect
import sys
import typing
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import typing_extensions

from dagflow.model.types.expressions import EXPANSIONS, UNIONS, is_variable, replace, resolve, substitute, type_name, variables_in

__all__ = [
    "Bindings",
    "annotations_of",
    "arguments_as",
    "bind",
    "bind_callable",
    "difference",
    "evaluated",
    "has_default",
    "is_numpy",
    "is_vague",
    "is_variable",
    "resolve",
    "substitute",
    "type_name",
    "variables_in",
]

_abc = collections.abc
_ITERABLES = (
    *(_abc.Iterable, _abc.Iterator, _abc.Reversible, _abc.Container, _abc.Collection),
    *(_abc.Sequence, _abc.MutableSequence, _abc.Set, _abc.MutableSet),
)
_MAPPINGS = (_abc.Mapping, _abc.MutableMapping, dict, collections.defaultdict, collections.OrderedDict)
_OF_NUMPY = (bool, int, float, complex, datetime.date, datetime.datetime, datetime.timedelta)
"""Python's classes that scalars of numpy are compared with."""
_OF_THEIR_FIRST = {*_ITERABLES, *_MAPPINGS, _abc.Generator, _abc.KeysView, list, set, frozenset, collections.deque}
"""Classes that iterate over their first type argument."""


class Bindings(dict[TypeVar, Any]):
    """The bindings of an operator's type variables.

    Attributes:
        learning: True once the operator has bound its own variables. From then on, types are those of arriving records.
        learned: the variables bound since then, which records that arrive later may widen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.learning = False
        self.learned: set[TypeVar] = set()


def difference(source: Any, sink: Any) -> str | None:
    """Return the smallest difference that keeps records of type `source` from a port of type `sink`; None if they fit.

    Types that differ only in parts which are unknown before a record arrives fit.

    >>> from dagflow.model.types.records import ReaderRecord
    >>> difference(ReaderRecord[str], ReaderRecord[int])
    'str is not int'
    >>> difference(bool, int) is None
    True
    """
    return _difference(source, sink, 0)


def _difference(source: Any, sink: Any, depth: int) -> str | None:
    if depth > 4 * EXPANSIONS:  # aliases that name themselves
        return None
    named_source, named_sink = source, sink
    source, sink = resolve(source), resolve(sink)
    if source is Any or sink is Any or sink is object or source is sink or _equal(source, sink):
        return None
    different = f"{type_name(named_source)} is not {type_name(named_sink)}"
    if get_origin(source) in UNIONS:
        return next((d for member in get_args(source) if (d := _difference(member, sink, depth + 1)) is not None), None)
    if get_origin(sink) in UNIONS or get_origin(sink) is Literal:
        values = _values(source)
        if get_origin(sink) is Literal:
            wanted = {(type(v), v) for v in get_args(sink)}
            return None if values and {(type(v), v) for v in values} <= wanted else different
        if any(_difference(source, member, depth + 1) is None for member in get_args(sink)):
            return None
        if len(values) > 1 and all(_difference(Literal[v], sink, depth + 1) is None for v in values):
            return None
        return f"{type_name(named_source)} is none of {type_name(sink)}"
    if get_origin(source) is Literal:
        kinds = dict.fromkeys(type(v) for v in get_args(source))
        return different if any(_difference(kind, sink, depth + 1) is not None for kind in kinds) else None
    outer_source, outer_sink = get_origin(source) or source, get_origin(sink) or sink
    if outer_source is outer_sink:
        return _arguments_differ(source, sink, depth, different)
    if not _is_a(outer_source, outer_sink):
        return different
    pairs = zip(arguments_as(source, outer_sink), get_args(sink), strict=False)
    return next((d for a, b in pairs if (d := _difference(a, b, depth + 1)) is not None), None)


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:  # noqa: BLE001  # what stands in Annotated may be an array
        return False


def _values(tp: Any) -> tuple[Any, ...]:
    """Return all values of a type that has few: of a Literal, of bool, of an Enum."""
    if get_origin(tp) is Literal:
        return get_args(tp)
    if tp is bool:
        return (True, False)
    return tuple(tp) if inspect.isclass(tp) and issubclass(tp, enum.Enum) else ()


def _arguments_differ(source: Any, sink: Any, depth: int, different: str) -> str | None:
    """Compare the arguments of the same generic class."""
    outer, of_source, of_sink = get_origin(source), get_args(source), get_args(sink)
    if outer is tuple:
        if of_sink[-1:] == (...,):
            of_sink = of_sink[:1] * len([a for a in of_source if a is not ...])
        elif of_source[-1:] == (...,):
            of_source = of_source[:1] * len(of_sink)
        elif of_source and of_sink and len(of_source) != len(of_sink) and all(map(_is_plain, (*of_source, *of_sink))):
            return different
    if outer in (_abc.Callable, _abc.Generator, _abc.AsyncGenerator, _abc.Coroutine):
        return None  # what goes into them is compared the other way round
    variables = (*getattr(outer, "__parameters__", ()), *[None] * len(of_sink))
    for a, b, variable in zip(of_source, of_sink, variables, strict=False):
        reason = _difference(a, b, depth + 1)
        if getattr(variable, "__contravariant__", False) or getattr(variable, "__infer_variance__", False):
            back = _difference(b, a, depth + 1)
            reason = back if getattr(variable, "__contravariant__", False) else reason and back
        if reason is not None:
            return reason
    return None


def _is_plain(tp: Any) -> bool:
    """Return whether an argument of a tuple is one type, not any number of them."""
    return get_origin(tp) is not typing_extensions.Unpack and not getattr(tp, "__unpacked__", False)


def _is_a(cls: Any, of: Any) -> bool:
    """Return whether objects of a class are accepted where objects of another class are wanted."""
    if (cls, of) in ((int, float), (int, complex), (float, complex), (bytearray, bytes), (memoryview, bytes)):
        return True  # as type checkers have it
    if is_numpy(cls) or is_numpy(of):
        return _is_subclass(cls, of) or _is_subclass(of, cls) or all(is_numpy(k) or k in _OF_NUMPY for k in (cls, of))
    if typing_extensions.is_typeddict(of):
        return _is_subclass(cls, dict) or cls in _MAPPINGS
    return _is_subclass(cls, of)


def is_numpy(cls: type) -> bool:
    """Return whether a class is one of numpy's scalars."""
    return any(k.__module__ == "numpy" and k.__name__ == "generic" for k in getattr(cls, "__mro__", ()))


def _is_subclass(cls: type, of: type) -> bool:
    try:
        if issubclass(cls, of):
            return True
    except Exception:  # noqa: BLE001  # protocols with data members; a metaclass may raise anything
        return True
    if any(k is Any for k in cls.__mro__):
        return True
    if cls is type:  # type[X] may be of a metaclass that does more
        return inspect.isabstract(of) or typing_extensions.is_protocol(of)
    return typing_extensions.is_protocol(of) and hasattr(cls, "__getattr__")


def arguments_as(tp: Any, outer: Any) -> tuple[Any, ...]:
    """Return the arguments that a container type has as the more general `outer`; none if they are unknown.

    >>> from collections.abc import Iterable, Mapping
    >>> arguments_as(dict[str, int], Mapping), arguments_as(dict[str, int], Iterable), arguments_as(tuple[int, ...], Iterable)
    ((<class 'str'>, <class 'int'>), (<class 'str'>,), (<class 'int'>,))
    """
    tp = resolve(tp)
    origin, arguments = get_origin(tp) or tp, get_args(tp)
    if origin is outer or (origin in _MAPPINGS and outer in _MAPPINGS):
        return arguments
    if outer not in _ITERABLES or not inspect.isclass(origin) or not _is_subclass(origin, outer):
        return ()
    if origin in (str, bytes):
        return (str if origin is str else int,)
    if origin is tuple and arguments and all(map(_is_plain, arguments)):
        return (_joined([a for a in arguments if a is not ...]),)
    return arguments[:1] if origin in _OF_THEIR_FIRST else ()


def _joined(members: list[Any]) -> Any:
    """Return the union of types, without those that others include."""
    wide = members[0]
    for tp in members[1:]:
        if difference(wide, tp) is None:
            wide = tp
        elif difference(tp, wide) is not None:
            wide = Union[wide, tp]  # noqa: UP007  # made at run time
    return wide


def bind(pattern: Any, actual: Any, bindings: dict[TypeVar, Any]) -> None:
    """Bind the free variables of `pattern` so that it becomes `actual`, as far as the two have the same shape.

    A variable in `actual` belongs to another declaration, and is ignored. What is bound stays; but what `bindings.learned` names
    becomes wide enough for `actual` too.
    """
    _bind(pattern, substitute(actual, {}), bindings)


def _bind(pattern: Any, actual: Any, bindings: dict[TypeVar, Any]) -> None:
    """Bind as `bind` does, but keep variables in `actual`, which are bound later."""
    if not is_variable(actual) and (actual is inspect.Parameter.empty or resolve(actual) is Any):
        return
    if is_variable(pattern):
        _bind_variable(pattern, actual, bindings)
        return
    if not variables_in(pattern):
        return
    actual = actual if is_variable(actual) else resolve(actual)
    origin = get_origin(pattern)
    if origin is typing.Annotated:
        _bind(pattern.__origin__, actual, bindings)
    elif origin in UNIONS:
        _bind_union(get_args(pattern), actual, bindings)
    else:
        for a, b in zip(get_args(pattern), arguments_as(actual, origin), strict=False):
            _bind(a, b, bindings)
        if origin is actual:  # a bare generic class: its variables' defaults
            for a, parameter in zip(get_args(pattern), getattr(actual, "__parameters__", ()), strict=False):
                if is_variable(a) and has_default(parameter):
                    bindings.setdefault(a, parameter.__default__)


def _bind_variable(variable: TypeVar, actual: Any, bindings: dict[TypeVar, Any]) -> None:
    if variable not in bindings:
        bindings[variable] = _allowed(variable, actual)
        if isinstance(bindings, Bindings) and bindings.learning:
            bindings.learned.add(variable)
    elif variables_in(bindings[variable]):  # of a generic function
        _bind(bindings[variable], actual, bindings)
    elif variable in getattr(bindings, "learned", ()):
        bindings[variable] = _allowed(variable, _joined([bindings[variable], actual]))


def _bind_union(members: tuple[Any, ...], actual: Any, bindings: dict[TypeVar, Any]) -> None:
    """Match each member of `actual` with one of the pattern: one without variables, or of its shape, or a variable."""
    left = []
    for part in get_args(actual) if get_origin(actual) in UNIONS else (actual,):
        if any(not variables_in(m) and difference(part, m) is None for m in members if not is_variable(part)):
            continue
        shaped = [m for m in members if not is_variable(m) and arguments_as(part, get_origin(m))]
        for member in shaped:
            _bind(member, part, bindings)
        left += [] if shaped else [part]
    if left:
        for member in filter(is_variable, members):
            _bind(member, Union[tuple(left)], bindings)  # noqa: UP007  # made at run time


def _bound(variable: TypeVar) -> Any:
    """Return the widest type of a variable: its bound, or any of its constraints; None for anything."""
    return Union[variable.__constraints__] if variable.__constraints__ else variable.__bound__  # noqa: UP007


def _allowed(variable: TypeVar, actual: Any) -> Any:
    """Return `actual`, or the bound of the variable if that does not allow it, so that the stream is refused."""
    bound = _bound(variable)
    return actual if bound is None or variables_in(actual) or difference(actual, bound) is None else bound


def is_vague(tp: Any) -> bool:
    """Return whether a type, or a part of it, is not known.

    >>> is_vague(dict[str, Any]), is_vague(dict[str, int])
    (True, False)
    """
    return resolve(tp) is Any or any(is_vague(part) for part in get_args(resolve(tp)) if not isinstance(part, list))


def has_default(variable: TypeVar) -> bool:
    """Return whether a type variable was declared with a default (PEP 696)."""
    default = getattr(variable, "__default__", None)
    return default is not None and default is not typing_extensions.NoDefault and default is not Any


def bind_callable(pattern: Any, function: Any, bindings: Bindings) -> None:
    """Bind variables of a field annotated `Callable[[A], B]` from the annotations of the function that is its value.

    A class as the function (`Map(int)`) returns itself. The variables of a generic function are bound when records arrive.
    """
    for member in get_args(pattern) if get_origin(pattern) in UNIONS else (pattern,):
        if get_origin(member) is not collections.abc.Callable:
            continue
        wanted, result = get_args(member)
        if inspect.isclass(function):
            _bind(result, function, bindings)
            continue
        hints = _own_variables(annotations_of(function))
        try:
            parameters = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            continue
        if isinstance(wanted, list):
            for pattern_part, name in zip(wanted, parameters, strict=False):
                if name in hints:
                    _bind(pattern_part, hints[name], bindings)
        if "return" in hints:
            _bind(result, hints["return"], bindings)


def _own_variables(hints: dict[str, Any]) -> dict[str, Any]:
    """Return the annotations of a generic function with new variables, since the operator may use the same ones."""
    names = dict.fromkeys(v for tp in hints.values() for v in variables_in(tp))
    make: Any = TypeVar  # type checkers know names that are written out only
    fresh = {v: make(v.__name__, bound=_bound(v)) for v in names}
    return {name: replace(tp, fresh.__getitem__) for name, tp in hints.items()}


def annotations_of(function: Any) -> dict[str, Any]:
    """Return the evaluated annotations of a function, without those that cannot be evaluated."""
    call = function if inspect.isroutine(function) else vars(type(function)).get("__call__")
    try:
        return typing.get_type_hints(call)
    except Exception:  # noqa: BLE001  # user's annotations may name anything; what cannot be evaluated says nothing
        return {}


def evaluated(annotation: Any, cls: type) -> Any:
    """Return a field's annotation as a type; `Any` if it has names that only type checkers see."""
    if isinstance(annotation, typing.ForwardRef):  # of a named tuple
        annotation = annotation.__forward_arg__
    if not isinstance(annotation, str):
        return annotation
    module = sys.modules.get(cls.__module__)
    try:
        return eval(annotation, {**vars(typing), **(vars(module) if module else {})}, dict(vars(cls)))  # the class's own text
    except Exception:  # noqa: BLE001
        return Any


def own_annotations(cls: type) -> dict[str, Any]:
    """Return the annotations in the body of `cls` itself, unevaluated where possible."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return dict(annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF))
    return dict(vars(cls).get("__annotations__", {}))
