"""The columns that arrive at operators whose types do not declare them, derived from the agreement of their readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dagflow.model.graph.dag import PortName
from dagflow.model.graph.upstream import nearest_declaration
from dagflow.model.types.forms import schema_of
from dagflow.planning.plan import Plan

Columns = list[tuple[str, str]]
"""Columns as pairs of name and Arrow type."""


def late_columns(plan: Plan, agreed: Mapping[str, Any], operator: str) -> Columns | None:
    """Return the columns that arrive at an operator with one input, once its readers have agreed on theirs; None if unknown."""
    upstream = plan.dag.upstream(operator)
    return _columns_of(plan, agreed, upstream[0][0]) if len(upstream) == 1 else None


def late_inputs(plan: Plan, agreed: Mapping[str, Any]) -> dict[str, dict[str, Columns]]:
    """Return the same for the ports of operators with several inputs in tasks, by operator and port.

    They need the columns even if no record arrives at a port, which depends on the data.
    """
    columns_by_port: dict[str, dict[str, Columns]] = {}
    for operator in (name for stage in plan.stages for name in stage.operators):
        upstream = plan.dag.upstream(operator)
        for source, sink in upstream if len(upstream) > 1 else ():
            columns = None if schema_of(plan.dag.types[sink]) is not None else _columns_of(plan, agreed, source)
            if columns is not None:
                columns_by_port.setdefault(operator, {})[sink.port] = columns
    return columns_by_port


def _columns_of(plan: Plan, agreed: Mapping[str, Any], source: PortName) -> Columns | None:
    def emitted_columns(port: PortName) -> Columns | None:
        return plan.dag.nodes[port.operator].operator.emitted_columns(port.port, agreed.get(port.operator))

    return nearest_declaration(plan.dag.nodes, plan.dag.streams.values(), source, emitted_columns)
