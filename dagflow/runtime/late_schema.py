"""The columns that sinks write, where types do not say them: what readers have agreed on, followed along the streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dagflow.model.dag import PortName
from dagflow.model.ports import ports_of
from dagflow.model.types import is_variable
from dagflow.plan.plan import Plan

Columns = list[tuple[str, str]]
"""Names and Arrow types."""


def late_columns(plan: Plan, agreed: Mapping[str, Any], operator: str) -> Columns | None:
    """The columns of what arrives at an operator with one input, once its readers have agreed on theirs; None: nobody knows.

    They pass operators whose output has the type of their input, whatever it is (`InputPort[R]`, `OutputPort[R]`): these let
    batches through, or rows of them.
    """
    upstream = plan.dag.upstream(operator)
    return _emitted(plan, agreed, upstream[0][0]) if len(upstream) == 1 else None


def _emitted(plan: Plan, agreed: Mapping[str, Any], port: PortName) -> Columns | None:
    operator = plan.dag.nodes[port.operator].operator
    said = operator.emitted_columns(port.port, agreed.get(port.operator))
    if said is not None:
        return said
    declared = ports_of(type(operator))
    kind = declared[port.port].declared_type
    if not is_variable(kind):
        return None
    sources = [source for source, sink in plan.dag.upstream(port.operator) if declared[sink.port].declared_type is kind]
    return _emitted(plan, agreed, sources[0]) if len(sources) == 1 else None
