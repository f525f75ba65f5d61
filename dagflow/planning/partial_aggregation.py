"""The step `partial`: partial aggregations before exchanges (a map-side combine), so that fewer records cross them."""

from __future__ import annotations

from typing import Any

import attrs

from dagflow.model.graph.dag import OperatorNode, PortName, Stream
from dagflow.model.graph.infer import bind_columns, bind_input, own_bindings, port_types
from dagflow.model.graph.partitioning import key_of_port
from dagflow.model.graph.topology import order
from dagflow.model.operator.base import Operator
from dagflow.planning.plan import Plan
from dagflow.planning.relays import names_in_tasks

PARTIAL = "partial"


def add_partial_aggregations(plan: Plan) -> Plan:
    """Put `OPERATOR.partial` on each stream to a keyed port whose operator has a partial aggregation."""
    dag = plan.dag
    nodes, streams, types, in_tasks = dict(dag.nodes), dict(dag.streams), dict(dag.types), names_in_tasks(dag)
    for name, node in dag.nodes.items():
        for source, sink in dag.upstream(name):
            before = f"{name}.{PARTIAL}"
            if node.operator.on_error == "route" or source.operator == before or key_of_port(node, sink.port) is None:
                continue
            partial = node.operator.partial_aggregation(sink.port)
            if partial is None:
                continue
            operator, port = partial
            into = PortName(name, port)
            own_types = _types(operator, dag.types[source])
            if source.operator not in in_tasks and own_types["output"] is Any:
                continue  # its rows have no form as work items, which go from the driver to tasks
            nodes[before] = OperatorNode(before, operator, node.where, inside=node.inside)
            types |= {PortName(before, each): tp for each, tp in own_types.items()}
            types[into] = types[PortName(before, "output")]
            old = next(s for s in streams.values() if sink in s.sinks)
            route, entry = old.route(sink), PortName(before, "input")
            routes = {**old.routes, entry: route}
            streams[old.name] = attrs.evolve(old, sinks=tuple(entry if k == sink else k for k in old.sinks), routes=routes)
            streams[before] = Stream(before, PortName(before, "output"), (into,), old.where)
    if len(nodes) == len(dag.nodes):
        return plan
    edges = [(s.source.operator, k.operator) for s in streams.values() for k in s.sinks]
    dag = attrs.evolve(dag, nodes={name: nodes[name] for name in order(nodes, edges)}, streams=streams, types=types)
    return attrs.evolve(plan, dag=dag)


def _types(operator: Operator, arriving: Any) -> dict[str, Any]:
    bound = own_bindings(operator)
    bind_input(operator, "input", arriving, bound)
    bind_columns(operator, bound)
    return port_types(operator, bound)
