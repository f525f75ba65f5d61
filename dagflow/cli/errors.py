"""Errors of the command line."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import InfrastructureError
from dagflow.errors.base import error


@error
class OutputLost(InfrastructureError, OSError):
    """Standard output cannot be written: its disk is full, or it is closed."""

    code: ClassVar[str] = "DF489"
    example = {"reason": "No space left on device"}
    general_remedy = "write the output to another place"

    reason: str

    def message(self) -> str:
        return f"cannot write to standard output: {self.reason}"
