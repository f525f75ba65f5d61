"""Errors in the classes of operators, modules and settings."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import DagError
from dagflow.errors.base import error


@error
class NotAnOperator(DagError, TypeError):
    """An argument has the wrong type where an operator, a module or a port is expected."""

    wanted: str
    got: str
    where: str
    help: str = ""
    code: ClassVar[str] = "DF003"
    example = {"wanted": "an operator", "got": "the class Filter", "where": "app.py:12", "help": "make one: Filter(…)"}

    def message(self) -> str:
        text = f"{self.got} was given where {self.wanted} is expected ({self.where})"
        return text + (f"\n  help: {self.help}" if self.help else "")


@error
class HandlerTwice(DagError, TypeError):
    """A class has two handlers of the same form for one port. Only one of them would be called."""

    operator: str
    port: str
    form: str
    first: str
    second: str
    code: ClassVar[str] = "DF051"
    example = {"operator": "Mine", "port": "input", "form": "record", "first": "app.py:12", "second": "app.py:16"}

    def message(self) -> str:
        return (
            f"class {self.operator} decorates two methods with @{self.port}.{self.form}, but only one of them would be called\n"
            f"  first   {self.first}\n  second  {self.second}\n"
            "  help: remove one of the decorators; if both methods are needed, call one from the other"
        )


@error
class NameReserved(DagError, TypeError):
    """A class uses a name that the framework reserves."""

    operator: str
    name: str
    kind: str
    meaning: str
    where: str
    code: ClassVar[str] = "DF052"
    example = {
        "operator": "Mine",
        "name": "context",
        "kind": "property",
        "meaning": "the argument of setup()",
        "where": "app.py:12",
    }

    def message(self) -> str:
        return (
            f"class {self.operator} has a {self.kind} {self.name!r}, but that name is reserved for {self.meaning} ({self.where})\n"
            f"  help: give the {self.kind} another name, such as my_{self.name}"
        )


@error
class ConstructorWritten(DagError, TypeError):
    """A class has an `__init__` that does not take its properties, so tasks cannot copy its instances."""

    operator: str
    reason: str
    where: str
    code: ClassVar[str] = "DF053"
    example = {"operator": "Mine", "reason": "path is missing", "where": "app.py:12"}

    def message(self) -> str:
        return (
            f"class {self.operator} has an __init__ of its own that does not take its properties: {self.reason} ({self.where})\n"
            f"  help: remove __init__, write @attrs.define above the class, and declare the properties in its body (`path: str`);\n"
            f"        derive other values from them in setup()"
        )


@error
class SettingsNotAttrs(DagError, TypeError):
    """The class of an application's settings is not an attrs class, so dagflow cannot fill it."""

    type: str
    kind: str
    where: str
    code: ClassVar[str] = "DF054"
    example = {"type": "Settings", "kind": "a plain class", "where": "app.py:12"}

    def message(self) -> str:
        return (
            f"the settings of populate_dag() are {self.type}, which is {self.kind}: dagflow cannot set its fields ({self.where})\n"
            f"  help: write @attrs.define above class {self.type}, or annotate a mapping: conf: Mapping[str, Any]"
        )


@error
class SignatureWrong(DagError, TypeError):
    """A method does not have the parameters that the framework passes."""

    operator: str
    method: str
    called: str
    reason: str
    where: str
    code: ClassVar[str] = "DF055"
    example = {
        "operator": "Mine",
        "method": "begin_window",
        "called": "self, window_id",
        "reason": "too many positional arguments",
        "where": "app.py:12",
    }

    def message(self) -> str:
        return (
            f"class {self.operator}: {self.method}() has the wrong parameters: {self.reason} ({self.where})\n"
            f"  help: def {self.method}({self.called})"
        )


@error
class HandlerTypeWrong(DagError, TypeError):
    """The annotation of a handler contradicts the type of its port."""

    operator: str
    method: str
    port: str
    port_type: str
    handler_type: str
    difference: str
    where: str
    code: ClassVar[str] = "DF056"
    example = {
        "operator": "Mine",
        "method": "process",
        "port": "input",
        "port_type": "str",
        "handler_type": "int",
        "difference": "str is not int",
        "where": "app.py:12",
    }

    def message(self) -> str:
        return (
            f"class {self.operator}: the handler {self.method}() takes {self.handler_type}, but port {self.port!r} delivers "
            f"{self.port_type} ({self.where})\n  difference: {self.difference}\n"
            f"  help: annotate the parameter with {self.port_type}, or change the type of the port"
        )
