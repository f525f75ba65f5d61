"""Errors of operators that cannot travel to tasks."""

from __future__ import annotations

from dagflow.errors import DagError
from dagflow.errors.base import error


@error("DF021")
class NotPicklable(DagError, TypeError):
    """An operator cannot be sent to the tasks: one of its properties cannot be pickled."""

    operator: str
    attribute: str
    reason: str
    where: str
    template = (
        "operator {operator!r} cannot be sent to the tasks: its property {attribute!r} cannot be pickled ({reason})\n"
        "  {where}\n"
        "  help: make connections, locks and open files in setup(), which each task calls"
    )
    example = {"operator": "lookup", "attribute": "connection", "reason": "cannot pickle 'socket' object", "where": "app.py:12"}
