"""The step `columns`: readers leave out the columns that no operator behind them reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from dagflow.model.graph.dag import PortName
from dagflow.model.graph.partitioning import key_given, own_key
from dagflow.model.operator.ports import handlers_of, output_ports
from dagflow.model.types.keys import known_columns
from dagflow.planning.plan import Plan
from dagflow.planning.scopes import keeps_over_windows

ERRORS = "errors"


def leave_out_columns(plan: Plan) -> Plan:
    """Tell each operator which columns of its rows are read. Records of a class have all their columns."""
    dag = plan.dag
    nodes, wanted = dict(dag.nodes), columns_wanted(plan)
    for port, columns in wanted.items():
        if columns is not None and known_columns(dag.types.get(port, Any)) is None:
            node = nodes[port.operator]
            nodes[port.operator] = attrs.evolve(node, operator=node.operator.reading_only(port.port, columns))
    return attrs.evolve(plan, dag=attrs.evolve(dag, nodes=nodes))


def columns_wanted(plan: Plan) -> dict[PortName, frozenset[str] | None]:
    """Return the columns that are read behind each output port with a stream; None: all of them."""
    dag = plan.dag
    sinks = {stream.source: stream.sinks for stream in dag.streams.values()}
    wanted: dict[PortName, frozenset[str] | None] = {}
    for name in reversed(dag.nodes):  # their order leads forward
        for port in output_ports(type(dag.nodes[name].operator)):
            source = PortName(name, port)
            if source not in sinks:
                continue
            read = [_read_at(plan, sink, wanted, sinks.keys()) for sink in sinks[source]]
            wanted[source] = None if None in read else frozenset().union(*(each for each in read if each is not None))
    return wanted


def _read_at(
    plan: Plan, sink: PortName, wanted: Mapping[PortName, frozenset[str] | None], with_stream: Collection[PortName]
) -> frozenset[str] | None:
    """Return the columns that are read at an input port.

    Records that cannot be handled go out whole. Rows that are kept over launches are kept whole: a later version of the
    application may read more.
    """
    node = plan.dag.nodes[sink.operator]
    if PortName(sink.operator, ERRORS) in with_stream or _handles_more(type(node.operator)):
        return None
    keeps = keeps_over_windows(node.operator) and not plan.emission.is_final

    def behind(port: str) -> frozenset[str] | None:
        return None if keeps else wanted.get(PortName(sink.operator, port), frozenset())

    read = node.operator.columns_read(sink.port, behind)
    key = key_given(node, sink.port)
    if read is None or key is own_key(node, sink.port):
        return read
    names = (key,) if isinstance(key, str) else key  # the DAG gives it, and the operator does not know
    return read.union(names) if isinstance(names, tuple | list) else read if names is None else None


def _handles_more(cls: Any) -> bool:
    """Return whether a subclass has a handler of its own, which may read other columns than its base class says."""

    def owner(name: str) -> Any:
        return next(base for base in cls.__mro__ if name in vars(base))

    says = owner("columns_read")
    own = (says.__module__, says.__qualname__)  # a class with ports of its own stands for the one that it is made from
    before = [base for base in cls.__mro__[: cls.__mro__.index(says)] if (base.__module__, base.__qualname__) != own]
    return any(owner(name) in before for forms in handlers_of(cls).values() for name in forms.values())
