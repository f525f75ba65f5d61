"""The partitioning that operators ask for by class, attributes and ports; and its checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dagflow.errors import DagError
from dagflow.model.errors.dag import NetHandlerWrong
from dagflow.model.errors.partitioning import KeyConflict, KeyFixed, KeyMissing, KeyRefused, KeyTypeRefused
from dagflow.model.graph.dag import OperatorNode, PortName
from dagflow.model.operator.ports import input_ports, net_mark
from dagflow.model.types.equality import not_hashable
from dagflow.model.types.keys import WHOLE, Key, key_of

UNSET: Any = object()


def partitioner_of(node: OperatorNode) -> Any:
    """Return the partitioner of an operator: the attribute, else the operator's own; None for most."""
    return node.attributes.get("partitioner", node.operator.partitioner)


def parallel_of(node: OperatorNode, port: str) -> bool | None:
    """Return whether an input port is parallel with the operator upstream: by the attribute, else by its declaration."""
    declared = input_ports(type(node.operator))[port].partition_parallel
    is_parallel: bool | None = node.port_attributes.get(port, {}).get("partition_parallel", declared)
    return is_parallel


def key_given(node: OperatorNode, port: str) -> Any:
    """Return the key of an input port: the first of its attribute, the operator's attribute, the operator's method, its class."""
    for attributes in (node.port_attributes.get(port, {}), node.attributes):
        if "partition_by" in attributes:
            return attributes["partition_by"]
    return own_key(node, port)


def own_key(node: OperatorNode, port: str) -> Any:
    """Return the key that an operator's class declares for an input port, without attributes."""
    said = node.operator.partition_key(port)
    return said if said is not None else input_ports(type(node.operator))[port].partition_by


def key_of_port(node: OperatorNode, port: str) -> Key | None:
    """Return the key of an input port of a checked DAG."""
    return key_of(key_given(node, port))


def _same_key(given: Any, own: Any) -> bool:
    try:
        return key_of(given) == key_of(own)
    except ValueError:
        return False


def wrong_keys(
    node: OperatorNode,
    connected: Iterable[str],
    columns: Callable[[PortName], Sequence[str] | None],
    types: Mapping[PortName, Any],
) -> Iterator[DagError]:
    """Yield the mistakes in the keys of an operator.

    `connected`: its input ports with a stream; `columns` of their records, and the `types` of these.
    """
    keyed, missing = list[str](), list[str]()
    for port in connected:
        name, given = str(PortName(node.name, port)), key_given(node, port)
        if node.operator.partition_key_fixed and not _same_key(given, own := own_key(node, port)):
            yield KeyFixed(name, repr(given), str(key_of(own)), node.where)
            continue
        (missing if given is None else keyed).append(port)
        try:
            key = key_of(given)
        except ValueError as error:
            yield KeyRefused(name, repr(given), str(error), (), node.where)
            continue
        mark = net_mark(node.operator, port)
        if mark is not None and (key is None or not {*key.columns} <= {*(mark.names or key.columns)}):
            unmet = f"equal rows of port {port!r}, which @{port}.net counts, may be in two partitions: its key is {key}"
            help_ = f'{port} = InputPort[…](partition_by="*"), or partition by some of the columns in @{port}.net(names=[…])'
            yield NetHandlerWrong(type(node.operator).__qualname__, f"{unmet} ({node.where})", help_)
        if key is None:
            continue
        known = columns(PortName(node.name, port))
        named = () if mark is None or mark.names is None else mark.names
        for column in dict.fromkeys((*key.columns, *named)) if known is not None else ():
            if column not in (known or ()) and column != WHOLE:
                yield KeyRefused(name, repr(column), "its records have no such column", tuple(known or ()), node.where)
        for tp in key.types(types.get(PortName(node.name, port), Any)):
            reason = not_hashable(tp)
            if reason is not None:
                yield KeyTypeRefused(name, str(key), reason, node.where)
        if parallel_of(node, port):
            yield KeyConflict(name, str(key), node.where)
    if keyed and missing:
        yield KeyMissing(node.name, tuple(keyed), tuple(missing), node.where)
