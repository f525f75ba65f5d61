"""Errors of the command line."""

from __future__ import annotations

from dagflow.errors import InfrastructureError
from dagflow.errors.base import error


@error("DF489")
class OutputLost(InfrastructureError, OSError):
    """Standard output cannot be written: its disk is full, or it is closed."""

    reason: str
    template = "cannot write to standard output: {reason}"
    example = {"reason": "No space left on device"}
    general_remedy = "write the output to another place"
