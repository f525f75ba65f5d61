"""The checks of operators' classes. Each yields problems, with file and line."""

from __future__ import annotations

import collections.abc
import inspect
import re
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

import attrs

from dagflow.errors import DagError
from dagflow.model.errors.classes import HandlerTwice, HandlerTypeWrong, NameReserved, SignatureWrong
from dagflow.model.errors.dag import ClassWrong, NetHandlerWrong
from dagflow.model.graph.module import Module
from dagflow.model.operator.base import InputOperator, Operator
from dagflow.model.operator.call_sites import shown
from dagflow.model.operator.ports import (
    BATCH,
    COMBINES,
    MARKS,
    NET,
    RECORD,
    STREAM,
    OutputPort,
    Port,
    combiners_of,
    handlers_of,
    net_mark,
    ports_of,
)
from dagflow.model.operator.protocols import DEFAULTS
from dagflow.model.operator.state import StateField
from dagflow.model.types.comparison import annotations_of, arguments_as, difference, own_annotations, substitute, type_name
from dagflow.model.types.net_changes import NetRows

_DECORATORS = {(MARKS, RECORD): "process", (MARKS, STREAM): "stream", (MARKS, BATCH): "batch", (MARKS, NET): "net"}
_DECORATORS |= {(COMBINES, RECORD): "combine", (COMBINES, BATCH): "combine_batch"}
_CALLED = {"process": "self, record", "stream": "self, records", "batch": "self, batch", "net": "self, net"}
_CALLED |= {"combine": "self, one, other", "combine_batch": "self, batch"}
_MISSING: Any = object()
_MUTABLE = (collections.abc.MutableSequence, collections.abc.MutableMapping, collections.abc.MutableSet)  # deques, arrays, …
_MEANINGS = {
    "context": "the argument of setup()",
    "errors": "the port of records that could not be handled",
    "on_error": "the property that decides what happens to records that cannot be handled",
    "max_rejects": "the property that limits the records that may be rejected",
    "partition_by": "an attribute: operator.NAME.partition_by sets the key of its ports",
    "port": "the prefix of a port's attributes: operator.NAME.port.PORT.ATTRIBUTE",
}
"""Names that are used beside the methods and class variables of `Operator`."""
_WITHOUT_MISTAKES: WeakSet[type] = WeakSet()
"""Classes of operators that have been read; the same classes come again with each launch of a process."""


def of_operator(operator: Operator) -> Iterator[DagError]:
    """Yield the mistakes in the class of an operator. A class that has none is read once."""
    cls = type(operator)
    if cls in _WITHOUT_MISTAKES:
        return
    problems = [
        *handlers_twice(cls),
        *net_handlers(operator),
        *names_taken(cls, Operator if not isinstance(operator, InputOperator) else InputOperator),
        *lifecycle_signatures(operator),
        *handler_signatures(operator),
        *handler_types(cls),
        *never_run(operator),
        *static_handlers(cls),
        *values_shared(cls),
    ]
    yield from problems
    if not problems:
        _WITHOUT_MISTAKES.add(cls)


def of_module(module: Module) -> Iterator[DagError]:
    """Yield the mistakes in the class of a module."""
    yield from names_taken(type(module), Module)
    yield from lifecycle_signatures(module)
    yield from never_run(module)


def handlers_twice(cls: type) -> Iterator[DagError]:
    """Yield second handlers of a class for the same form of a port, since only one would be called."""
    for klass in cls.__mro__:
        known: dict[tuple[str, str], str] = {}
        for name, value in vars(klass).items():
            for marks in (MARKS, COMBINES):
                for mark in getattr(value, marks, ()):
                    decorator = _DECORATORS[marks, mark.form]
                    first = known.setdefault((mark.port.name, decorator), name)
                    if first != name:
                        ends = {"first": line_of(vars(klass)[first]), "second": line_of(value)}
                        yield HandlerTwice(klass.__qualname__, mark.port.name, decorator, **ends)


def net_handlers(operator: Operator) -> Iterator[DagError]:
    """Yield handlers of net changes beside others that would never be called, and those that expect rows of one sign."""
    cls = type(operator)
    for port, forms in handlers_of(cls).items():
        if (mark := net_mark(operator, port)) is None:
            continue
        net, name, function = f"@{port}.net", forms[NET], inspect.unwrap(getattr(cls, forms[NET]))
        others = " and ".join(f"@{port}.{_DECORATORS[MARKS, form]}" for form in forms if form != NET)
        for wrong, reason, help_ in (
            (
                others and mark.when is None,
                f"port {port!r} has {net} and {others}, but only {name}() would be called",
                f"remove {others}, or write {net}(when=…) for the instances that it is for",
            ),
            (
                inspect.getattr_static(cls, "takes_changes") is False,
                f"takes_changes = False, but {name}() gets the net changes of port {port!r}",
                f"remove takes_changes: {net} sets it; where rows are only added, all counts are positive",
            ),
            (
                {"retracts"}
                < {"retracts", "context", "_context"}.intersection(getattr(function, "__code__", line_of.__code__).co_names),
                f"{name}() reads context.retracts, which is False there: the net changes of port {port!r} have both signs",
                "take the sign from the counts: for record, count in net.records(): …",
            ),
        ):
            if wrong:
                yield NetHandlerWrong(cls.__qualname__, f"{reason} ({line_of(function)})", help_)


def names_taken(cls: type, base: type) -> Iterator[DagError]:
    """Yield the names that the framework uses for something else."""
    for klass in cls.__mro__:
        if klass.__module__.startswith("dagflow.model."):
            continue
        own = {field.name for field in attrs.fields(klass) if not field.inherited} if "__attrs_attrs__" in vars(klass) else set()
        inherited = {name for above in klass.__mro__[1:] for name in ports_of(above)}
        for name in [*vars(klass), *own.difference(vars(klass))]:
            value = vars(klass).get(name)
            kind = (
                "property"
                if name in own
                else "port"
                if isinstance(value, Port)
                else "state"
                if isinstance(value, StateField)
                else "attribute"
            )
            meaning = _taken(name, kind, value, base, inherited)
            if meaning is not None:
                yield NameReserved(klass.__qualname__, name, kind, meaning, line_of_name(klass, name))


def _taken(name: str, kind: str, value: Any, base: type, inherited: set[str]) -> str | None:
    """Return the framework's use of a name; None where it may be used so."""
    if name.startswith("_"):
        return None
    known = inspect.getattr_static(base, name, _MISSING)
    if name == "errors":
        return None if isinstance(value, OutputPort) and kind == "port" else _MEANINGS[name]
    if name in _MEANINGS:
        return None if kind == "attribute" and name not in ("on_error", "max_rejects", "partition_by") else _MEANINGS[name]
    if inspect.isfunction(known):
        is_method = kind == "attribute" and (callable(value) or isinstance(value, classmethod | staticmethod))
        return None if is_method else f"a method of {base.__name__}"
    if known is not _MISSING:
        return (
            None
            if kind == "attribute" or (kind == "property" and name == "scope")
            else f"a class variable of {base.__name__} (write it without annotation)"
        )
    return "a port of its base class" if name in inherited and kind != "port" else None


def lifecycle_signatures(operator: Operator | Module) -> Iterator[DagError]:
    """Yield overridden methods that cannot be called like those of the base class."""
    for base in (InputOperator, Operator, *DEFAULTS, Module):
        for name, function in vars(base).items() if isinstance(operator, base) else ():
            if name.startswith("_") or not inspect.isfunction(function):
                continue
            own = inspect.getattr_static(type(operator), name)
            if own is not function and callable(getattr(operator, name)):
                wanted = list(inspect.signature(function).parameters)
                yield from _callable_with(operator, name, ", ".join(wanted), len(wanted) - 1)


def never_run(operator: Operator | Module) -> Iterator[DagError]:
    """Yield overridden methods that are coroutines or generators where the base class has none: no line of them would run."""
    for base in (InputOperator, Operator, *DEFAULTS, Module):
        for name, function in vars(base).items() if isinstance(operator, base) else ():
            if name.startswith("_") or not inspect.isfunction(function):
                continue
            own = inspect.unwrap(getattr(inspect.getattr_static(type(operator), name), "__func__", getattr(type(operator), name)))
            returns_nothing = function.__annotations__.get("return") in (None, "None")
            if awaits(own) or (returns_nothing and inspect.isgeneratorfunction(own)):
                reason = f"{name}() yields or awaits: nothing would run it ({line_of(own)})"
                yield ClassWrong(type(operator).__qualname__, reason, help=f"write a plain method: def {name}(…), without yield")


def awaits(function: Any) -> bool:
    """Return True for functions that only an event loop runs."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def static_handlers(cls: type) -> Iterator[DagError]:
    """Yield handlers that are static or class methods: they cannot emit, and pickling drops their mark."""
    for klass in cls.__mro__:
        for name, value in vars(klass).items():
            if isinstance(value, staticmethod | classmethod) and any(hasattr(value, marks) for marks in (MARKS, COMBINES)):
                kind = type(value).__name__
                reason = f"the handler {name}() is a {kind}: it has no ports to emit on ({line_of(value)})"
                yield ClassWrong(klass.__qualname__, reason, help=f"remove @{kind}, and take self as the first parameter")


def values_shared(cls: type) -> Iterator[DagError]:
    """Yield mutable class attributes: all copies in a process share them, over windows too, and no run saves or resets them.

    Constants, in capitals or annotated as `ClassVar` or `Final`, may be lists and dicts. `check_operator` sees whether they stay.
    """
    for (klass, name), value in shared_values(cls).items():
        annotation = str(own_annotations(klass).get(name, ""))
        if not name.isupper() and not any(word in annotation for word in ("ClassVar", "Final")):
            kind = type(value).__name__
            where = line_of_name(klass, name)
            yield ClassWrong(
                operator=klass.__qualname__,
                reason=f"{name} is a {kind} that all copies of the operator share, over windows and partitions ({where})",
                help=f"write {name} = WindowState(factory={kind}), which begins anew with each window, or State(…) or "
                f"MapState(…) for what is kept over windows; if nothing changes it, write it in capitals, {name.upper()}, or "
                "make it a tuple, a frozenset or a MappingProxyType",
            )


def shared_values(cls: type) -> dict[tuple[type, str], Any]:
    """Return the mutable class attributes of an operator of the user, by class and name."""
    return {
        (klass, name): value
        for klass in cls.__mro__
        if not klass.__module__.startswith("dagflow.model.")
        for name, value in vars(klass).items()
        if isinstance(value, _MUTABLE) and not name.startswith("__")
    }


def handler_signatures(operator: Operator) -> Iterator[DagError]:
    """Yield handlers that cannot be called with the argument of their form."""
    for marks, handlers in ((MARKS, handlers_of(type(operator))), (COMBINES, combiners_of(type(operator)))):
        for forms in handlers.values():
            for form, name in forms.items():
                called = _CALLED[_DECORATORS[marks, form]]
                yield from _callable_with(operator, name, called, called.count(","))


def _callable_with(operator: object, name: str, called: str, count: int) -> Iterator[DagError]:
    method = getattr(operator, name)
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):  # of C
        return
    try:
        signature.bind(*[None] * count)
    except TypeError as error:
        yield SignatureWrong(type(operator).__qualname__, name, called, str(error), line_of(method))


def handler_types(cls: type) -> Iterator[DagError]:
    """Yield handlers whose annotation contradicts their port."""
    ports = ports_of(cls)
    for port, forms in handlers_of(cls).items():
        for form, name in forms.items():
            function: Any = inspect.unwrap(getattr(cls, name))
            hints, parameters = annotations_of(function), list(inspect.signature(function).parameters)[1:]
            annotated = hints.get(parameters[0]) if parameters else None
            if annotated is None or port not in ports:
                continue
            given, reason = _given(substitute(ports[port].declared_type, {}), form, substitute(annotated, {}))
            if reason is not None:
                ends = {
                    "port_type": given,
                    "handler_type": type_name(annotated),
                    "difference": reason,
                    "where": line_of(function),
                }
                yield HandlerTypeWrong(operator=cls.__qualname__, method=name, port=port, **ends)


def _given(tp: Any, form: str, annotated: Any) -> tuple[str, str | None]:
    """Return the type that a handler of a form is given, and why it does not accept it."""
    if form == BATCH:
        import pyarrow as pa

        return "a pyarrow.RecordBatch", difference(pa.RecordBatch, annotated)
    if form in (STREAM, NET):
        given, outer = (collections.abc.Iterator, collections.abc.Iterable) if form == STREAM else (NetRows, NetRows)
        wrong = [difference(given, annotated), *(difference(tp, item) for item in arguments_as(annotated, outer))]
        return f"{given.__name__}[{type_name(tp)}]", next(filter(None, wrong), None)
    return type_name(tp), difference(tp, annotated)


def line_of(function: Any) -> str:
    """Return `FILE:LINE` of a function or method, or its name if the place is unknown."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(function, "__code__", None)
    return f"{shown(code.co_filename)}:{code.co_firstlineno}" if code is not None else getattr(function, "__qualname__", "?")


def line_of_name(cls: type, name: str) -> str:
    """Return `FILE:LINE` of a name in the body of a class, or else of the class, or else its module."""
    try:
        lines, first = inspect.getsourcelines(cls)
        file = shown(inspect.getsourcefile(cls) or "")
    except (OSError, TypeError):
        return f"{cls.__module__}.{cls.__qualname__}"
    says = re.compile(rf"\s*(?:def\s+)?{re.escape(name)}\b\s*[:=(]")
    return f"{file}:{first + next((number for number, line in enumerate(lines) if says.match(line)), 0)}"
