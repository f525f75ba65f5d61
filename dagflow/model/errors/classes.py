"""Errors in the classes of operators, modules and settings."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import DagError
from dagflow.errors.base import error


@error
class NotAnOperator(DagError, TypeError):
    """Something is given where an operator, a module or a port is expected."""

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
    """A class has two handlers of one form for one port. Only one of them would be called."""

    operator: str
    port: str
    form: str
    first: str
    second: str
    code: ClassVar[str] = "DF051"
    example = {"operator": "Mine", "port": "input", "form": "record", "first": "app.py:12", "second": "app.py:16"}

    def message(self) -> str:
        return (
            f"class {self.operator} marks two methods with @{self.port}.{self.form}, of which only one would be called\n"
            f"  first   {self.first}\n  second  {self.second}\n"
            "  help: remove one of the marks, and call that method from the other one where both are needed"
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
        "meaning": "what setup() is given",
        "where": "app.py:12",
    }

    def message(self) -> str:
        return (
            f"class {self.operator} has a {self.kind} {self.name!r}, but that is the name of {self.meaning} ({self.where})\n"
            f"  help: give the {self.kind} another name, such as my_{self.name}"
        )


@error
class ConstructorWritten(DagError, TypeError):
    """A class has an `__init__` that does not take its properties, which tasks need to make their copies."""

    operator: str
    reason: str
    where: str
    code: ClassVar[str] = "DF053"
    example = {"operator": "Mine", "reason": "path is missing", "where": "app.py:12"}

    def message(self) -> str:
        return (
            f"class {self.operator} has an __init__ of its own that does not take its properties: {self.reason} ({self.where})\n"
            f"  help: write @attrs.define above the class and the properties in its body (`path: str`), without __init__;\n"
            f"        what is made of them belongs in setup()"
        )


@error
class SettingsNotAttrs(DagError, TypeError):
    """The settings of an application are of a class that dagflow cannot fill."""

    type: str
    kind: str
    where: str
    code: ClassVar[str] = "DF054"
    example = {"type": "Settings", "kind": "a plain class", "where": "app.py:12"}

    def message(self) -> str:
        return (
            f"the settings of populate_dag() are {self.type}, which is {self.kind}: no setting would reach it ({self.where})\n"
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
            f"class {self.operator}: {self.method}() cannot be called as it will be: {self.reason} ({self.where})\n"
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
            f"class {self.operator}: the handler {self.method}() takes {self.handler_type}, but port {self.port!r} gives "
            f"{self.port_type} ({self.where})\n  difference: {self.difference}\n"
            f"  help: annotate the parameter with {self.port_type}, or declare the port as what the handler takes"
        )
