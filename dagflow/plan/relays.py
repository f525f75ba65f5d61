"""Relays: what brings records of operators on the driver to those in tasks that also, or only, get records over an exchange."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

import attrs

from dagflow.model.checks import CheckedDag
from dagflow.model.dag import OperatorNode, PortName, Stream
from dagflow.model.dataframes import DataFrameOperator
from dagflow.model.graph import order
from dagflow.model.operator import Operator
from dagflow.model.partitioning import key_of_port, partitioner_of
from dagflow.model.ports import InputPort, OutputPort
from dagflow.scaling import StatelessPartitioner

T = TypeVar("T")


@attrs.define
class Relay(Operator, Generic[T]):
    """Passes the work items of a port on in a task of its own: the framework puts it before such ports."""

    partitioner: ClassVar[Any] = StatelessPartitioner(1)

    input = InputPort[T]()
    output = OutputPort[T]()

    @input.process
    def each(self, record: T) -> None:
        """Passes a record on."""
        self.output.emit(record)


def relayed(dag: CheckedDag) -> CheckedDag:
    """The DAG with a relay on each stream from the driver to a port whose operator needs an exchange.

    These are operators that also get records from tasks, and such that are keyed, or Spark's, and follow the driver.
    """
    in_tasks: set[str] = set()
    needing: list[tuple[PortName, PortName]] = []
    for name, node in dag.nodes.items():
        upstream = dag.upstream(name)
        above = [source.operator in in_tasks for source, _ in upstream]
        asks = isinstance(node.operator, DataFrameOperator) or any(key_of_port(node, k.port) is not None for _, k in upstream)
        if upstream and (any(above) or asks or partitioner_of(node) is not None):
            in_tasks.add(name)
            if any(above) or asks:
                needing += [pair for pair, is_above in zip(upstream, above, strict=True) if not is_above]
    if not needing:
        return dag
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
    return attrs.evolve(dag, nodes={name: nodes[name] for name in order(nodes, edges)}, streams=streams, types=types)
