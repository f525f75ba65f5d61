"""Errors in the classes of operators, modules and settings."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import DagError
from dagflow.errors.base import error


@error
class NotAnOperator(DagError, TypeError):
    """Something else stands where an operator, a module or a port is wanted."""

    wanted: str
    got: str
    where: str
    help: str = ""
    code: ClassVar[str] = "DF003"

    def message(self) -> str:
        text = f"{self.got} stands where {self.wanted} is wanted ({self.where})"
        return text + (f"\n  help: {self.help}" if self.help else "")


@error
class HandlerTwice(DagError, TypeError):
    """A class has two handlers of one form for one port: only one of them would be called."""

    operator: str
    port: str
    form: str
    first: str
    second: str
    code: ClassVar[str] = "DF051"

    def message(self) -> str:
        return (
            f"class {self.operator} marks two methods with @{self.port}.{self.form}, of which only one would be called\n"
            f"  first   {self.first}\n  second  {self.second}\n"
            "  help: remove one of the marks, and call that method from the other one where both are needed"
        )


@error
class NameReserved(DagError, TypeError):
    """A class gives something of its own a name that the framework uses."""

    operator: str
    name: str
    kind: str
    meaning: str
    where: str
    code: ClassVar[str] = "DF052"

    def message(self) -> str:
        return (
            f"class {self.operator} has a {self.kind} {self.name!r}, but that is the name of {self.meaning} ({self.where})\n"
            f"  help: give the {self.kind} another name, such as my_{self.name}"
        )


@error
class ConstructorWritten(DagError, TypeError):
    """A class has an `__init__` that cannot be called with its properties, as tasks do to make their copies."""

    operator: str
    reason: str
    where: str
    code: ClassVar[str] = "DF053"

    def message(self) -> str:
        return (
            f"class {self.operator} has an __init__ of its own that does not take its properties: {self.reason} ({self.where})\n"
            f"  help: write @attrs.define above the class and the properties in its body (`path: str`), without __init__;\n"
            f"        what is made of them belongs in setup()"
        )


@error
class SettingsNotAttrs(DagError, TypeError):
    """The settings that an application asks for are of a class that dagflow cannot fill."""

    type: str
    kind: str
    where: str
    code: ClassVar[str] = "DF054"

    def message(self) -> str:
        return (
            f"the settings of populate_dag() are {self.type}, which is {self.kind}: no setting would reach it ({self.where})\n"
            f"  help: write @attrs.define above class {self.type}, or annotate a mapping: conf: Mapping[str, Any]"
        )


@error
class SignatureWrong(DagError, TypeError):
    """A method cannot be called as the framework calls it."""

    operator: str
    method: str
    called: str
    reason: str
    where: str
    code: ClassVar[str] = "DF055"

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

    def message(self) -> str:
        return (
            f"class {self.operator}: the handler {self.method}() takes {self.handler_type}, but port {self.port!r} gives "
            f"{self.port_type} ({self.where})\n  difference: {self.difference}\n"
            f"  help: annotate the parameter with {self.port_type}, or declare the port as what the handler takes"
        )
