"""Errors in the classes of operators, modules and settings."""

from __future__ import annotations

from dagflow.errors import DagError
from dagflow.errors.base import error


@error("DF003")
class NotAnOperator(DagError, TypeError):
    """An argument has the wrong type where an operator, a module or a port is expected."""

    wanted: str
    got: str
    where: str
    help: str = ""
    template = "{got} was given where {wanted} is expected ({where}){help:?\n  help: {help}}"
    example = {"wanted": "an operator", "got": "the class Filter", "where": "app.py:12", "help": "make one: Filter(…)"}


@error("DF051")
class HandlerTwice(DagError, TypeError):
    """A class has two handlers of the same form for one port. Only one of them would be called."""

    operator: str
    port: str
    form: str
    first: str
    second: str
    template = (
        "class {operator} decorates two methods with @{port}.{form}, but only one of them would be called\n"
        "  first   {first}\n"
        "  second  {second}\n"
        "  help: remove one of the decorators; if both methods are needed, call one from the other"
    )
    example = {"operator": "Mine", "port": "input", "form": "record", "first": "app.py:12", "second": "app.py:16"}


@error("DF052")
class NameReserved(DagError, TypeError):
    """A class uses a name that the framework reserves."""

    operator: str
    name: str
    kind: str
    meaning: str
    where: str
    template = (
        "class {operator} has a {kind} {name!r}, but that name is reserved for {meaning} ({where})\n"
        "  help: give the {kind} another name, such as my_{name}"
    )
    example = {
        "operator": "Mine",
        "name": "context",
        "kind": "property",
        "meaning": "the argument of setup()",
        "where": "app.py:12",
    }


@error("DF053")
class ConstructorWritten(DagError, TypeError):
    """A class has an `__init__` that does not take its properties, so tasks cannot copy its instances."""

    operator: str
    reason: str
    where: str
    template = (
        "class {operator} has an __init__ of its own that does not take its properties: {reason} ({where})\n"
        "  help: remove __init__, write @attrs.define above the class, and declare the properties in its body (`path: str`);\n"
        "        derive other values from them in setup()"
    )
    example = {"operator": "Mine", "reason": "path is missing", "where": "app.py:12"}


@error("DF054")
class SettingsNotAttrs(DagError, TypeError):
    """The class of an application's settings is not an attrs class, so dagflow cannot fill it."""

    type: str
    kind: str
    where: str
    template = (
        "the settings of populate_dag() are {type}, which is {kind}: dagflow cannot set its fields ({where})\n"
        "  help: write @attrs.define above class {type}, or annotate a mapping: conf: Mapping[str, Any]"
    )
    example = {"type": "Settings", "kind": "a plain class", "where": "app.py:12"}


@error("DF055")
class SignatureWrong(DagError, TypeError):
    """A method does not have the parameters that the framework passes."""

    operator: str
    method: str
    called: str
    reason: str
    where: str
    template = "class {operator}: {method}() has the wrong parameters: {reason} ({where})\n  help: def {method}({called})"
    example = {
        "operator": "Mine",
        "method": "begin_window",
        "called": "self, window_id",
        "reason": "too many positional arguments",
        "where": "app.py:12",
    }


@error("DF056")
class HandlerTypeWrong(DagError, TypeError):
    """The annotation of a handler contradicts the type of its port."""

    operator: str
    method: str
    port: str
    port_type: str
    handler_type: str
    difference: str
    where: str
    template = (
        "class {operator}: the handler {method}() takes {handler_type}, but port {port!r} delivers {port_type} ({where})\n"
        "  difference: {difference}\n"
        "  help: annotate the parameter with {port_type}, or change the type of the port"
    )
    example = {
        "operator": "Mine",
        "method": "process",
        "port": "input",
        "port_type": "str",
        "handler_type": "int",
        "difference": "str is not int",
        "where": "app.py:12",
    }
