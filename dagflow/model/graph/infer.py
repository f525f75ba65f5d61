"""The types of all ports of a DAG: type variables solved forward along the streams."""

from __future__ import annotations

import collections.abc
from typing import Any, get_args, get_origin

import attrs

from dagflow.model.operator.component import Component
from dagflow.model.operator.ports import Port, ports_of
from dagflow.model.operator.protocols import SchemaAware
from dagflow.model.types.columns import cached, column_type
from dagflow.model.types.comparison import (
    Bindings,
    bind,
    bind_callable,
    evaluated,
    has_default,
    is_variable,
    own_annotations,
    substitute,
    variables_in,
)


def own_bindings(operator: Component) -> Bindings:
    """Return the type variables that an operator binds itself: by subscript, base classes, functions among its properties."""
    bindings = Bindings()
    cls = getattr(type(operator), "_dagflow_frozen_from", type(operator))
    subscript = get_args(operator.__dict__.get("__orig_class__"))
    for variable, argument in zip(getattr(cls, "__parameters__", ()), subscript, strict=False):
        if argument is not Any and not is_variable(argument):
            bindings[variable] = substitute(argument, {})
    _bases(cls, bindings)
    mentioned: set[Any] = set()
    for field, pattern in generic_fields(cls):
        value = getattr(operator, field.name, None)
        default = field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # Factory is a class at run time
            default = None
        if value is None or value is default:
            continue
        mentioned |= set(variables_in(pattern))
        if callable(value):
            bind_callable(pattern, value, bindings)
    unknown = _with_stand_ins(cls, mentioned)
    for variable in getattr(cls, "__parameters__", ()):
        if has_default(variable) and variable not in unknown:
            bindings.setdefault(variable, variable.__default__)
    _bases(cls, bindings)  # by the defaults, too
    bindings.learning = True
    return bindings


@cached
def generic_fields(cls: type) -> list[tuple[Any, Any]]:
    """Return the attrs fields of `cls` whose annotations mention type variables, with the annotation as a type."""
    fields = []
    for field in attrs.fields(cls):
        owner = next((k for k in cls.__mro__ if field.name in own_annotations(k)), cls)
        annotation = own_annotations(owner).get(field.name, field.type)
        pattern = evaluated(annotation, owner)
        if variables_in(pattern):
            fields.append((field, pattern))
    return fields


def _bases(cls: type, bindings: Bindings) -> None:
    """Bind the variables of base classes: `class IntFilter(Filter[int])` binds that of `Filter`."""
    for variable, argument in _arguments_of_bases(cls):
        if not is_variable(argument):
            bindings.setdefault(variable, argument)
        elif argument in bindings:
            bindings.setdefault(variable, bindings[argument])


@cached
def _arguments_of_bases(cls: type) -> list[tuple[Any, Any]]:
    """Return the variables of base classes, each with its argument, in the order in which they are bound."""
    arguments = []
    for base in getattr(cls, "__orig_bases__", ()):
        origin = get_origin(base)
        if isinstance(origin, type) and issubclass(origin, Component):
            pairs = zip(getattr(origin, "__parameters__", ()), get_args(base), strict=False)
            arguments += [pair for pair in pairs if is_variable(pair[1]) or not variables_in(pair[1])]
            arguments += _arguments_of_bases(origin)
    for base in cls.__bases__:
        if issubclass(base, Component) and base is not Component:
            arguments += _arguments_of_bases(base)
    return arguments


def _with_stand_ins(cls: type, variables: set[Any]) -> set[Any]:
    """Return variables of base classes with those of subclasses that stand in their places: A in `class Mine(Map[A, B])`."""
    arguments = set(variables)
    for base in getattr(cls, "__orig_bases__", ()):
        origin = get_origin(base)
        if isinstance(origin, type) and issubclass(origin, Component):
            arguments |= _with_stand_ins(origin, arguments)
            pairs = zip(getattr(origin, "__parameters__", ()), get_args(base), strict=False)
            arguments |= {argument for variable, argument in pairs if variable in arguments and is_variable(argument)}
    return arguments


def port_types(operator: Component, bindings: Bindings) -> dict[str, Any]:
    """Return the type of every port of an operator under `bindings`; what is not bound is `Any`."""
    declared: dict[str, Port] = ports_of(type(operator))
    types = {name: substitute(port.declared_type, bindings) for name, port in declared.items()}
    if isinstance(operator, SchemaAware):
        emitted = {name: operator.emitted_type(name) for name in declared}
        types |= {name: tp for name, tp in emitted.items() if tp is not None}
    return types


def bind_input(operator: Component, port: str, arriving: Any, bindings: Bindings) -> None:
    """Bind or widen variables by the type that arrives at an input port, unless the operator binds them itself."""
    bind(ports_of(type(operator))[port].declared_type, arriving, bindings)


def bind_columns(operator: Component, bindings: Bindings) -> None:
    """Bind variables by properties that may be a function of the record, and are the name of a column: its type counts."""
    for field, pattern in generic_fields(type(operator)):
        name = getattr(operator, field.name, None)
        for member in get_args(pattern) if isinstance(name, str) else ():
            if get_origin(member) is collections.abc.Callable and isinstance(get_args(member)[0], list):
                (record, *_), gives = get_args(member)
                bind(gives, column_type(substitute(record, bindings), str(name)), bindings)


def bind_output(module: Component, port: str, leaving: Any, bindings: Bindings) -> None:
    """Bind the free variables of a module by the type that leaves through its port."""
    learned = Bindings()
    bind(ports_of(type(module))[port].declared_type, leaving, learned)
    for variable, tp in learned.items():
        bindings.setdefault(variable, tp)
