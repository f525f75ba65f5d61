"""The step `current`: sinks behind streams whose rows may be taken back get all rows that stand."""

from __future__ import annotations

import attrs

from dagflow.model.graph.dag import OperatorNode
from dagflow.planning.partial_aggregation import put_before, types_behind, with_nodes
from dagflow.planning.plan import Plan

CURRENT = "current"


def add_current_results(plan: Plan) -> Plan:
    """Put `SINK.current` on each changing stream to a sink that keeps the current result."""
    dag = plan.dag
    nodes, streams, types, changing = dict(dag.nodes), dict(dag.streams), dict(dag.types), dag.changing
    for name, node in dag.nodes.items():
        for source, sink in dag.upstream(name):
            behind = node.operator.behind_current() if source in changing else None
            if behind is None:
                continue
            current, operator = behind
            nodes[name] = attrs.evolve(node, operator=operator)
            before = OperatorNode(f"{name}.{CURRENT}", current, node.where, inside=node.inside)
            put_before(nodes, streams, types, sink, before, sink.port, types_behind(current, dag.types[source]))
    return plan if len(nodes) == len(dag.nodes) else attrs.evolve(plan, dag=with_nodes(dag, nodes, streams, types))
