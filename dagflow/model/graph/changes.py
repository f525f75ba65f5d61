"""Changing streams: those whose rows may be taken back. Solved along the DAG, like types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dagflow.errors import DagError
from dagflow.model.errors.dag import ChangesRefused
from dagflow.model.graph.dag import OperatorNode, PortName, Stream, arriving_streams
from dagflow.model.operator.base import Operator
from dagflow.model.operator.dataframes import DataFrameOperator
from dagflow.model.operator.ports import output_ports
from dagflow.model.operator.state import state_fields


def is_function_of_rows(operator: Operator) -> bool:
    """Return whether what an operator emits follows from single rows: it says so, or it keeps nothing and emits nothing later."""
    is_plain = not state_fields(type(operator)) and type(operator).end_window is Operator.end_window
    return operator.scope == "rows" or (operator.scope is None and is_plain and not isinstance(operator, DataFrameOperator))


def changing_ports(nodes: Mapping[str, OperatorNode], streams: Mapping[str, Stream]) -> dict[PortName, str]:
    """Return the output ports whose streams are changing ones, each with the operator that takes rows back.

    `nodes`: in an order in which every stream leads forward.
    """
    into, changing = arriving_streams(streams), dict[PortName, str]()
    for name, node in nodes.items():
        operator = node.operator
        above = next((changing[stream.source] for stream, _ in into.get(name, ()) if stream.source in changing), None)
        by = name if operator.emits_changes else above
        if by is None or operator.emits_changes is False or (by == above and not follows_changes(operator)):
            continue
        ports = output_ports(type(operator)).items()
        changing.update({PortName(name, name_of): by for name_of, port in ports if name_of != "errors" and not port.only_adds})
    return changing


def changes_refused(nodes: Mapping[str, OperatorNode], streams: Mapping[str, Stream]) -> Iterator[DagError]:
    """Yield a problem for each stream whose rows may be taken back, and that leads to an operator that cannot follow."""
    changing, sources = changing_ports(nodes, streams), {stream.source.operator for stream in streams.values()}
    for stream in streams.values():
        if (by := changing.get(stream.source)) is None:
            continue
        for sink in stream.sinks:
            node = nodes[sink.operator]
            if not follows_changes(node.operator, emits=sink.operator in sources):
                yield ChangesRefused(
                    port=str(sink),
                    operator=type(node.operator).__name__,
                    by=by,
                    where=node.where,
                    by_where=nodes[by].where,
                    is_sink=sink.operator not in sources,
                )


def follows_changes(operator: Operator, *, emits: bool = True) -> bool:
    """Return whether an operator can follow rows that are taken back. `emits`: something follows from its rows."""
    is_plain = is_function_of_rows(operator) and type(operator).end_window is Operator.end_window
    return (
        operator.takes_changes
        or operator.behind_current() is not None
        or (emits and is_plain and not isinstance(operator, DataFrameOperator))
    )
