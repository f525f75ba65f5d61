"""The step `relayed`: relays bring records of the driver to operators that get records over an exchange."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

import attrs

from dagflow.model.graph.checks import CheckedDag
from dagflow.model.graph.dag import OperatorNode, PortName, Stream
from dagflow.model.graph.partitioning import key_of_port, partitioner_of
from dagflow.model.graph.topology import order
from dagflow.model.operator.base import Operator
from dagflow.model.operator.dataframes import DataFrameOperator
from dagflow.model.operator.ports import InputPort, OutputPort
from dagflow.planning.plan import Plan
from dagflow.scaling import StatelessPartitioner

T = TypeVar("T")


@attrs.define
class Relay(Operator, Generic[T]):
    """Forwards the work items of a port, in a task of its own. Added by the planner."""

    partitioner: ClassVar[Any] = StatelessPartitioner(1)

    input = InputPort[T]()
    output = OutputPort[T]()

    @input.process
    def each(self, record: T) -> None:
        """Forward a record."""
        self.output.emit(record)


def names_in_tasks(dag: CheckedDag) -> set[str]:
    """Return the operators that run in tasks: partitioned ones, those that need an exchange, and all behind them."""
    names: set[str] = set()
    for name, node in dag.nodes.items():
        upstream = dag.upstream(name)
        above = any(source.operator in names for source, _ in upstream)
        if upstream and (above or _asks(dag, name) or partitioner_of(node) is not None):
            names.add(name)
    return names


def _asks(dag: CheckedDag, name: str) -> bool:
    """Return whether an operator needs an exchange before it."""
    node = dag.nodes[name]
    return isinstance(node.operator, DataFrameOperator) or any(
        key_of_port(node, k.port) is not None for _, k in dag.upstream(name)
    )


def add_relays(plan: Plan) -> Plan:
    """Put a relay on each stream from the driver to a port that needs an exchange.

    These are ports of operators that also get records from tasks, that are keyed, or that are DataFrame operators.
    """
    dag = plan.dag
    in_tasks = names_in_tasks(dag)
    needing: list[tuple[PortName, PortName]] = []
    for name in dag.nodes:
        upstream = dag.upstream(name)
        from_driver = [pair for pair in upstream if pair[0].operator not in in_tasks]
        if len(from_driver) < len(upstream) or _asks(dag, name):
            needing += from_driver
    if not needing:
        return plan
    nodes, streams, types = dict(dag.nodes), dict(dag.streams), dict(dag.types)
    for source, sink in needing:
        name = f"relay to {sink}"
        old = next(s for s in streams.values() if s.source == source)
        nodes[name] = OperatorNode(name, Relay(), dag.nodes[sink.operator].where)
        entry, way_out = PortName(name, "input"), PortName(name, "output")
        types[entry] = types[way_out] = dag.types[source]
        types[PortName(name, "errors")] = dag.types[PortName(source.operator, "errors")]
        streams[old.name] = attrs.evolve(old, sinks=tuple(entry if each == sink else each for each in old.sinks))
        streams[name] = Stream(name, way_out, (sink,), old.where, {sink: old.routes[sink]} if sink in old.routes else {})
    edges = [(s.source.operator, k.operator) for s in streams.values() for k in s.sinks]
    dag = attrs.evolve(dag, nodes={name: nodes[name] for name in order(nodes, edges)}, streams=streams, types=types)
    return attrs.evolve(plan, dag=dag)
