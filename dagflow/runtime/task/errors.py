"""Errors of operators that cannot travel to tasks."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import DagError
from dagflow.errors.base import error


@error
class NotPicklable(DagError, TypeError):
    """An operator cannot be sent to the tasks: one of its properties cannot be pickled."""

    operator: str
    attribute: str
    reason: str
    where: str
    code: ClassVar[str] = "DF021"
    example = {"operator": "lookup", "attribute": "connection", "reason": "cannot pickle 'socket' object", "where": "app.py:12"}

    def message(self) -> str:
        return (
            f"operator {self.operator!r} cannot be sent to the tasks: its property {self.attribute!r} cannot be pickled ({self.reason})\n  {self.where}\n"
            "  help: make connections, locks and open files in setup(), which each task calls"
        )
