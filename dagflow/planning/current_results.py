"""The step `current`: what stands at the ends of changing streams, and reaches sinks at emission points."""

from __future__ import annotations

from typing import Any

import attrs

from dagflow.model.graph.checks import CheckedDag
from dagflow.model.graph.dag import OperatorNode, PortName
from dagflow.model.operator.base import Operator
from dagflow.model.operator.ports import output_ports
from dagflow.model.operator.sink import Sink
from dagflow.planning.emission import writes_whole
from dagflow.planning.errors import NotSupported
from dagflow.planning.held_changes import HeldChanges
from dagflow.planning.partial_aggregation import put_before, types_behind, with_nodes
from dagflow.planning.plan import Plan
from dagflow.planning.unique_rows import UniqueRows

CURRENT, HELD, UNIQUE = "current", "held", "unique"


def add_current_results(plan: Plan) -> Plan:
    """Put an operator on each changing stream where it ends, and before sinks that keep a result, which emits at emission points.

    Before a sink that keeps the current result, `SINK.current` emits all rows that stand, unless the operator behind whose output
    the sink comes has them and emits them by itself. Before other operators from which no
    changes follow, `SINK.held` emits the net changes since the last emission point, unless each window is one. Before sinks that
    find rows by keys, `SINK.unique` finds rows that these do not tell apart, unless the DAG excludes them.
    """
    dag = plan.dag
    nodes, streams, types, changing = dict(dag.nodes), dict(dag.streams), dict(dag.types), dag.changing
    columns = dag.columns()
    for name, node in dag.nodes.items():
        ends = [(source, sink) for source, sink in dag.upstream(name) if source in changing or writes_whole(dag, node)]
        for source, sink in ends:
            behind = node.operator.behind_current()
            place = name if len(ends) == 1 else str(sink)
            added: list[tuple[str, Operator]] = []
            waits = ends_changes(dag, node) if behind is None else not behind[0].waits_for_emission
            if waits and not plan.emission.is_each_window:
                added.append((HELD, HeldChanges[Any]()))
            if (keys := node.operator.row_keys()) and not columns.into(sink).identifies(keys):
                added.append((UNIQUE, UniqueRows[Any](keys=keys)))
            if behind is not None:
                nodes[name] = attrs.evolve(node, operator=behind[1])
                if (giving := _emitting_result(dag, source, behind[0])) is None:
                    added.append((CURRENT, _in_order(dag, source, behind[0], node) or behind[0]))
                else:
                    nodes[source.operator] = attrs.evolve(nodes[source.operator], operator=giving)
            into, port, arrives = sink, sink.port, types[sink]
            for label, operator in reversed(added):
                operator.on_error = "skip" if node.operator.on_error == "skip" else "fail"  # nothing gets what it would route
                own_types = types_behind(operator, dag.types[source])
                new = OperatorNode(f"{place}.{label}", operator, node.where, inside=node.inside)
                put_before(nodes, streams, types, into, new, port, own_types)
                into, port = PortName(new.name, "input"), "input"
            if behind is None:  # what comes are the rows that came before: a port with a class of its own still gets objects
                types[sink] = arrives
    return plan if nodes == dag.nodes else attrs.evolve(plan, dag=with_nodes(dag, nodes, streams, types))


def _emitting_result(dag: CheckedDag, source: PortName, before_sink: Operator) -> Operator | None:
    """Return the operator at the begin of a stream that emits all rows that stand; None where it cannot, or others follow it."""
    stream = dag.stream_from(source)
    is_alone = stream is not None and len(stream.sinks) == 1
    gets_all = before_sink.waits_for_emission and not before_sink.emits_changes  # not the changes, nor partitions that have any
    return dag.nodes[source.operator].operator.emitting_result() if is_alone and gets_all else None


def _in_order(dag: CheckedDag, source: PortName, before_sink: Operator, sink: OperatorNode) -> Operator | None:
    """Return the operator that gives a sink its rows in the order of the operator before it; None where they have none."""
    ordering = dag.nodes[source.operator].operator.ordering() if before_sink.waits_for_emission else None
    if ordering is not None and before_sink.emits_changes:
        raise NotSupported(
            f"{sink.name!r} keeps its partitions apart, so its files cannot have the order of {source.operator!r}",
            sink.where,
            f"leave partition_columns of {sink.name!r} out; or put a TopN in the place of {source.operator!r}, or nothing",
        )
    return ordering


def ends_changes(dag: CheckedDag, node: OperatorNode) -> bool:
    """Return whether a changing stream ends at an operator: no changes follow from those that come, or they leave there."""
    if not any(source in dag.changing for source, _ in dag.upstream(node.name)):
        return False
    ports = (PortName(node.name, port) for port in output_ports(type(node.operator)))
    is_followed = any(port in dag.changing and dag.stream_from(port) is not None for port in ports)
    return not is_followed or isinstance(node.operator, Sink) or bool(node.operator.output_folders())
