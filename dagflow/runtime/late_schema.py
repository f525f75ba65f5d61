"""The columns that sinks write, where types do not say them: what readers have agreed on, followed along the streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dagflow.model.dag import PortName
from dagflow.model.passed_on import passed_on
from dagflow.plan.plan import Plan

Columns = list[tuple[str, str]]
"""Names and Arrow types."""


def late_columns(plan: Plan, agreed: Mapping[str, Any], operator: str) -> Columns | None:
    """The columns of what arrives at an operator with one input, once its readers have agreed on theirs; None: nobody knows."""

    def said(port: PortName) -> Columns | None:
        return plan.dag.nodes[port.operator].operator.emitted_columns(port.port, agreed.get(port.operator))

    upstream = plan.dag.upstream(operator)
    return passed_on(plan.dag.nodes, plan.dag.streams.values(), upstream[0][0], said) if len(upstream) == 1 else None
