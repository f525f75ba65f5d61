"""What can be wrong with the modules of a DAG."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors.base import DagError, error


@error
class ProxyUnset(DagError):
    """A module does not say which port stands behind one of its own."""

    port: str
    type: str
    where: str
    code: ClassVar[str] = "DF030"

    def message(self) -> str:
        name = self.port.rpartition(".")[2]
        return (
            f"nothing stands behind port {self.port} of a module ({self.where})\n"
            f"  help: in {self.type}.populate_dag(), say which port inside it is: self.{name}.set(operator.port)"
        )


@error
class ModuleBroken(DagError):
    """The code of a module raised when it was to fill its part of the DAG."""

    module: str
    type: str
    error: str
    frames: str
    where: str
    code: ClassVar[str] = "DF031"

    def message(self) -> str:
        text = f"module {self.module!r}: {self.type}.populate_dag() failed: {self.error}"
        return "\n".join([text, *([self.frames] if self.frames else []), f"  {self.where}"])
