"""The step `partial`: partial aggregations before exchanges (a map-side combine), so that fewer records cross them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dagflow.model.graph.checks import CheckedDag
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
            own_types = types_behind(operator, dag.types[source])
            if source.operator not in in_tasks and own_types["output"] is Any:
                continue  # its rows have no form as work items, which go from the driver to tasks
            put_before(
                nodes, streams, types, sink, OperatorNode(before, operator, node.where, inside=node.inside), port, own_types
            )
    if len(nodes) == len(dag.nodes):
        return plan
    return attrs.evolve(plan, dag=with_nodes(dag, nodes, streams, types))


def put_before(
    nodes: dict[str, OperatorNode],
    streams: dict[str, Stream],
    types: dict[PortName, Any],
    sink: PortName,
    node: OperatorNode,
    port: str,
    own_types: Mapping[str, Any],
) -> None:
    """Put an operator with the ports `input` and `output` on the stream to a port; its output goes to `port` of that operator."""
    into = PortName(sink.operator, port)
    nodes[node.name] = node
    types |= {PortName(node.name, each): tp for each, tp in own_types.items()}
    types[into] = types[PortName(node.name, "output")]
    old = next(s for s in streams.values() if sink in s.sinks)
    route, entry = old.route(sink), PortName(node.name, "input")
    routes = {**old.routes, entry: route}
    streams[old.name] = attrs.evolve(old, sinks=tuple(entry if k == sink else k for k in old.sinks), routes=routes)
    streams[node.name] = Stream(node.name, PortName(node.name, "output"), (into,), old.where)


def with_nodes(
    dag: CheckedDag, nodes: Mapping[str, OperatorNode], streams: dict[str, Stream], types: dict[PortName, Any]
) -> CheckedDag:
    """Return a DAG with other operators, in an order in which every stream leads forward."""
    edges = [(s.source.operator, k.operator) for s in streams.values() for k in s.sinks]
    return attrs.evolve(dag, nodes={name: nodes[name] for name in order(nodes, edges)}, streams=streams, types=types)


def types_behind(operator: Operator, arriving: Any) -> dict[str, Any]:
    """Return the types of the ports of an operator whose input has a type."""
    bound = own_bindings(operator)
    bind_input(operator, "input", arriving, bound)
    bind_columns(operator, bound)
    return port_types(operator, bound)
