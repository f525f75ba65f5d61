"""Errors of the page of a run."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import ConfigError, InfrastructureError
from dagflow.errors.base import error


@error
class NoRun(ConfigError, LookupError):
    """The path is not the output of a run, nor a run folder. `near`: the path that may have been meant."""

    place: str
    reason: str = ""
    near: str | None = None
    code: ClassVar[str] = "DF298"
    example = {"place": "outt", "reason": "there is no such file or folder", "near": "out"}
    general_remedy = "name the output folder of an application, or its run folder"

    def message(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        advice = f"help: {self.general_remedy}" if self.near is None else f"did you mean {self.near}?"
        return f"no run has written to {self.place}{why}\n  {advice}"


@error
class PortInUse(InfrastructureError, OSError):
    """`dagflow ui` cannot listen on a port."""

    port: int
    reason: str
    host: str = "127.0.0.1"
    code: ClassVar[str] = "DF488"
    example = {"port": 8321, "reason": "Address already in use"}

    def message(self) -> str:
        return f"cannot listen on port {self.port} of {self.host}: {self.reason}\n  help: --port 0 takes any free port"
