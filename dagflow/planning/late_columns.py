"""The columns that arrive at operators whose types do not declare them, derived from the agreement of their readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dagflow.model.operator.stream_columns import StreamColumns
from dagflow.model.types.forms import schema_of
from dagflow.planning.plan import Plan

Columns = list[tuple[str, str]]
"""Columns as pairs of name and Arrow type."""


def late_columns(plan: Plan, agreed: Mapping[str, Any], operator: str) -> Columns | None:
    """Return the columns that arrive at an operator with one input, once its readers have agreed on theirs; None if unknown."""
    upstream = plan.written.upstream(operator)
    return _typed(plan.written.columns(agreed).behind(upstream[0][0])) if len(upstream) == 1 else None


def late_inputs(plan: Plan, agreed: Mapping[str, Any]) -> dict[str, dict[str, Columns]]:
    """Return the same for the ports of operators with several inputs in tasks, by operator and port.

    They need the columns even if no record arrives at a port, which depends on the data. So a reader without an agreement, which
    has no rows in this window, has those columns that it declares.
    """
    columns_by_port: dict[str, dict[str, Columns]] = {}
    solver = plan.written.columns(agreed, is_running=True)
    for operator in (name for stage in plan.stages for name in stage.operators):
        upstream = plan.written.upstream(operator)
        for source, sink in upstream if len(upstream) > 1 else ():
            columns = None if schema_of(plan.written.types[sink]) is not None else _typed(solver.behind(source))
            if columns is not None:
                columns_by_port.setdefault(operator, {})[sink.port] = columns
    return columns_by_port


def _typed(columns: StreamColumns) -> Columns | None:
    """Return columns all of whose types are known; else None."""
    typed = [(name, kind) for name, kind in (columns.types or {}).items() if kind is not None]
    return None if columns.types is None or len(typed) < len(columns.types) else typed
