"""The DAG that an application fills: operators, and streams between their ports."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast

import attrs

from dagflow.errors import DagError
from dagflow.errors.dag import (
    DuplicateName,
    EmptyName,
    ForeignPort,
    NotAnOperator,
    PortTaken,
    SourceTaken,
    StreamWithoutSink,
    UnknownName,
)
from dagflow.model.operator import Operator
from dagflow.model.ports import InputPort, OneRecordType, OutputPort, Port, ports_of
from dagflow.model.source import caller

OperatorType = TypeVar("OperatorType", bound=Operator)

PORT_ATTRIBUTES = ("partition_parallel",)
OPERATOR_ATTRIBUTES = ("partitioner",)


@attrs.frozen
class PortName:
    """A port of an operator by names."""

    operator: str
    port: str

    def __str__(self) -> str:
        return f"{self.operator}.{self.port}"


@attrs.define(eq=False)
class OperatorNode:
    """An operator of a DAG: its name, the user's line, and attributes that the framework reads."""

    name: str
    operator: Operator
    where: str
    attributes: dict[str, Any] = attrs.field(factory=dict)
    port_attributes: dict[str, dict[str, Any]] = attrs.field(factory=dict)


@attrs.frozen
class Stream:
    """One source port, any number of sinks."""

    name: str
    source: PortName
    sinks: tuple[PortName, ...]
    where: str


class DAG:
    """What `populate_dag(dag, conf)` fills.

    Nothing here raises for a mistake in the DAG: all problems are collected and reported together when it is checked.

    >>> from dagflow import DAG
    >>> from operators import Console, FileSplitterInput
    >>> dag = DAG()
    >>> files = dag.add_operator("files", FileSplitterInput(files=["/tmp"]))
    >>> show = dag.add_operator("show", Console())
    >>> dag.add_stream("found", files.files_metadata_output, show.input)
    """

    def __init__(self, name: str = "application") -> None:
        self.name = name
        self._nodes: dict[str, OperatorNode] = {}
        self._streams: dict[str, Stream] = {}
        self._problems: list[DagError] = []

    @property
    def operators(self) -> Mapping[str, OperatorNode]:
        """The operators by name, in the order in which they were added."""
        return MappingProxyType(self._nodes)

    @property
    def streams(self) -> Mapping[str, Stream]:
        """The streams by name, in the order in which they were added."""
        return MappingProxyType(self._streams)

    @property
    def problems(self) -> tuple[DagError, ...]:
        """What was wrong with the calls so far; `dagflow.model.checks.check` adds what is wrong with the whole."""
        return tuple(self._problems)

    def add_operator(self, name: str, operator: OperatorType, **attributes: Any) -> OperatorType:
        """Adds an operator and returns it. `attributes`: `partitioner`."""
        where = caller()
        if not isinstance(cast("object", operator), Operator):
            self._problems.append(NotAnOperator(wanted=f"an operator (named {name!r})", got=repr(operator), where=where))
            return operator
        known = next((n for n in self._nodes.values() if n.operator is operator), None)
        if not _usable(name):
            self._problems.append(EmptyName(kind="operator", name=name, where=where))
        elif name in self._nodes:
            if known is None or known.name != name:
                self._problems.append(DuplicateName(kind="operator", name=name, first=self._nodes[name].where, second=where))
        elif known is not None:
            text = f"an operator of its own (this one is {known.name!r} already)"
            self._problems.append(NotAnOperator(wanted=text, got=f"{name!r}", where=where))
        else:
            self._nodes[name] = OperatorNode(name, operator, where)
            self.set_attributes(operator, **attributes)
        return operator

    def add_stream(self, name: str, source: OutputPort[OneRecordType], *sinks: InputPort[OneRecordType]) -> None:
        """Connects an output port with one or more input ports of the same type."""
        where = caller()
        if not _usable(name):
            self._problems.append(EmptyName(kind="stream", name=name, where=where))
            return
        if name in self._streams:
            self._problems.append(DuplicateName(kind="stream", name=name, first=self._streams[name].where, second=where))
            return
        if not sinks:
            self._problems.append(StreamWithoutSink(stream=name, where=where))
        source_name = self._port(name, source, OutputPort, "an output port", where)
        sink_names = [self._port(name, sink, InputPort, "an input port", where) for sink in sinks]
        if source_name is None:
            return
        for other in self._streams.values():
            if other.source == source_name:
                ends = {"first": other.name, "second": name, "first_where": other.where, "second_where": where}
                self._problems.append(SourceTaken(port=str(source_name), **ends))
                return
        taken = {sink: s for s in self._streams.values() for sink in s.sinks}
        good: list[PortName] = []
        for sink_name in sink_names:
            if sink_name is None:
                continue
            if sink_name in taken or sink_name in good:
                other = taken.get(sink_name, Stream(name, source_name, (), where))
                ends = {"first": other.name, "second": name, "first_where": other.where, "second_where": where}
                self._problems.append(PortTaken(port=str(sink_name), **ends))
            else:
                good.append(sink_name)
        self._streams[name] = Stream(name, source_name, tuple(good), where)

    def set_attributes(self, operator: Operator, **attributes: Any) -> None:
        """Sets attributes of an operator: `partitioner`, what sizes its partitions instead of the operator itself."""
        node = self.node_of(operator)
        where = caller()
        for key, value in attributes.items():
            if key not in OPERATOR_ATTRIBUTES:
                self._problems.append(UnknownName("attribute of an operator", key, OPERATOR_ATTRIBUTES, where))
            elif node is None:
                self._problems.append(NotAnOperator(wanted="an operator of this DAG", got=repr(operator), where=where))
            else:
                node.attributes[key] = value

    def set_port_attributes(self, port: Port, **attributes: Any) -> None:
        """Sets attributes of a port: `partition_parallel` of an input port."""
        where = caller()
        node = self.node_of(port.operator)
        if node is None:
            self._problems.append(ForeignPort(stream="(attribute)", port=repr(port), where=where))
            return
        for key, value in attributes.items():
            if key not in PORT_ATTRIBUTES:
                self._problems.append(UnknownName("attribute of a port", key, PORT_ATTRIBUTES, where))
            else:
                node.port_attributes.setdefault(port.name, {})[key] = value

    def node_of(self, operator: object) -> OperatorNode | None:
        """The node of an operator of this DAG."""
        return next((n for n in self._nodes.values() if n.operator is operator), None)

    def operator(self, name: str) -> Operator:
        """The operator of a name. Raises UnknownName, with the nearest known."""
        if name not in self._nodes:
            raise UnknownName("operator", name, tuple(self._nodes))
        return self._nodes[name].operator

    def _port(self, stream: str, port: Any, kind: type[Port], wanted: str, where: str) -> PortName | None:
        if not isinstance(port, kind):
            got = repr(port)
            if isinstance(port, Operator):
                names = [n for n, p in ports_of(type(port)).items() if isinstance(p, kind)]
                got = f"the operator {type(port).__name__} (its ports: {', '.join(names)})"
            self._problems.append(NotAnOperator(wanted=f"{wanted} (stream {stream!r})", got=got, where=where))
            return None
        node = self.node_of(port.operator)
        if node is None:
            owner = type(port.operator).__name__ if port.operator is not None else "a class"
            self._problems.append(ForeignPort(stream=stream, port=f"{owner}.{port.name}", where=where))
            return None
        return PortName(node.name, port.name)


def _usable(name: object) -> bool:
    return isinstance(name, str) and name.strip() != "" and all(c.isalnum() or c in "_- ." for c in name)
