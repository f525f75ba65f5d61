"""The DAG that an application fills: operators, and streams between their ports."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar, cast

import attrs

from dagflow.errors import DagError
from dagflow.exports import shown_in_notebooks
from dagflow.model.errors.classes import NotAnOperator
from dagflow.model.errors.dag import (
    DuplicateName,
    EmptyName,
    ForeignPort,
    FormatUnknown,
    PortTaken,
    SourceTaken,
    StreamWithoutSink,
    UnknownName,
)
from dagflow.model.graph.module import Module, ModuleNode
from dagflow.model.operator.base import Operator
from dagflow.model.operator.call_sites import caller
from dagflow.model.operator.ports import DAG_OF, PROXIES, InputPort, OneRecordType, OutputPort, Port, ports_of

OperatorType = TypeVar("OperatorType", bound=Operator)
ModuleType = TypeVar("ModuleType", bound=Module)

PORT_ATTRIBUTES = ("partition_parallel", "partition_by")
OPERATOR_ATTRIBUTES = ("partitioner", "partition_by")


@attrs.frozen
class PortName:
    """A port of an operator by names."""

    operator: str
    port: str

    def __str__(self) -> str:
        return f"{self.operator}.{self.port}"


@attrs.define(eq=False)
class OperatorNode:
    """An operator of a DAG: its name, the user's line, attributes that the framework reads, and the module that it is in."""

    name: str
    operator: Operator
    where: str
    attributes: dict[str, Any] = attrs.field(factory=dict)
    port_attributes: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    inside: str | None = None


@attrs.frozen
class Route:
    """The route to one sink of a stream: the stream that leads to it, and the ports of modules on the way, from the source on."""

    stream: str
    where: str
    through: tuple[PortName, ...] = ()


@attrs.frozen
class Stream:
    """One source port, any number of sinks. `routes`: those of the sinks that ports of modules lead to or from."""

    name: str
    source: PortName
    sinks: tuple[PortName, ...]
    where: str
    routes: Mapping[PortName, Route] = attrs.field(factory=dict, eq=False, repr=False)

    def route(self, sink: PortName) -> Route:
        """Return the route to a sink."""
        return self.routes.get(sink) or Route(self.name, self.where)


def arriving_streams(streams: Mapping[str, Stream]) -> dict[str, list[tuple[Stream, PortName]]]:
    """Return the streams that lead to each operator that has any, with the port that they lead into."""
    into: dict[str, list[tuple[Stream, PortName]]] = {}
    for stream in streams.values():
        for sink in stream.sinks:
            into.setdefault(sink.operator, []).append((stream, sink))
    return into


class DAG:
    """The graph of operators that `populate_dag(dag, conf)` fills.

    Nothing here raises for a mistake in the DAG: all problems are collected and reported together when it is checked.
    A module's `populate_dag` fills a DAG of its own, whose names all begin with the module's.

    >>> from dagflow import DAG
    >>> from operators import Console, FileSplitterInput
    >>> dag = DAG()
    >>> files = dag.add_operator("files", FileSplitterInput(files=["/tmp"]))
    >>> show = dag.add_operator("show", Console())
    >>> dag.add_stream("found", files.files_metadata_output, show.input)
    """

    def __init__(self, name: str = "application", *, module: ModuleNode | None = None) -> None:
        self.name = name
        self._module = module
        self._nodes: dict[str, OperatorNode] = {}
        self._modules: dict[str, ModuleNode] = {}
        self._names: dict[str, str] = {}
        self._streams: dict[str, Stream] = {}
        self._nodes_by_id: dict[int, OperatorNode] = {}  # of operators, which need not be hashable
        self._modules_by_id: dict[int, ModuleNode] = {}
        self._streams_by_port: dict[PortName, Stream] = {}  # by source and by sink
        self._problems: list[DagError] = []

    _repr_mimebundle_ = shown_in_notebooks("dag_bundle")

    def __repr__(self) -> str:
        return f"<DAG {self.name}: {len(self._nodes)} operators, {len(self._streams)} streams>"

    @property
    def operators(self) -> Mapping[str, OperatorNode]:
        """The operators by name, in the order in which they were added; those in modules are not among them."""
        return MappingProxyType(self._nodes)

    @property
    def modules(self) -> Mapping[str, ModuleNode]:
        """The modules by name, in the order in which they were added."""
        return MappingProxyType(self._modules)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of operators and modules, in the order in which they were added."""
        return tuple(self._names)

    @property
    def streams(self) -> Mapping[str, Stream]:
        """The streams by name, in the order in which they were added."""
        return MappingProxyType(self._streams)

    @property
    def problems(self) -> tuple[DagError, ...]:
        """The problems of the calls so far; `dagflow.model.graph.checks.check` adds those of the whole DAG."""
        return tuple(self._problems)

    def add_operator(self, name: str, operator: OperatorType, **attributes: Any) -> OperatorType:
        """Add an operator and return it. `attributes`: see `set_attributes`."""
        where = self._caller()
        if not isinstance(cast("object", operator), Operator):
            self._problems.append(_no_part(f"an operator (named {name!r})", operator, where))
            return operator
        full = self._new_name("operator", name, self.node_of(operator), where)
        if full is not None:
            self._nodes[full] = self._nodes_by_id[id(operator)] = OperatorNode(full, operator, where, inside=self._inside)
            vars(operator)[DAG_OF] = self
            self.set_attributes(operator, **attributes)
        return operator

    def add_module(self, name: str, module: ModuleType) -> ModuleType:
        """Add a module and return it. Its `populate_dag` is called later, when configuration has set its properties."""
        where = self._caller()
        if not isinstance(cast("object", module), Module):
            self._problems.append(_no_part(f"a module (named {name!r})", module, where))
            return module
        full = self._new_name("module", name, self._module_node_of(module), where)
        if full is not None:
            self._modules[full] = self._modules_by_id[id(module)] = ModuleNode(full, module, where, self._inside)
            vars(module)[DAG_OF] = self
        return module

    def _new_name(self, kind: str, name: str, known: OperatorNode | ModuleNode | None, where: str) -> str | None:
        """Return the full name of a new part; None, with a problem, if it cannot have it. The same part may be added again."""
        full = self._full(name)
        if not _usable(name):
            self._problems.append(EmptyName(kind=kind, name=name, where=where))
        elif full in self._names:
            if known is None or known.name != full:
                both = kind if (full in self._modules) == (kind == "module") else "part"
                self._problems.append(DuplicateName(kind=both, name=full, first=self._names[full], second=where))
        elif known is not None:
            wanted = f"{'an operator' if kind == 'operator' else 'a module'} of its own (this one is {known.name!r} already)"
            self._problems.append(NotAnOperator(wanted=wanted, got=repr(full), where=where))
        else:
            self._names[full] = where
            return full
        return None

    def add_stream(self, name: str, source: OutputPort[OneRecordType], *sinks: InputPort[OneRecordType]) -> None:
        """Connect an output port with one or more input ports of the same type."""
        where = self._caller()
        if not _usable(name):
            self._problems.append(EmptyName(kind="stream", name=name, where=where))
            return
        name = self._full(name)
        if name in self._streams:
            self._problems.append(DuplicateName(kind="stream", name=name, first=self._streams[name].where, second=where))
            return
        if not sinks:
            self._problems.append(StreamWithoutSink(stream=name, where=where))
        source_name = self.port_name(source, OutputPort, name, where)
        sink_names = [self.port_name(sink, InputPort, name, where) for sink in sinks]
        if source_name is None:
            return
        if (other := self._streams_by_port.get(source_name)) is not None:
            ends = {"first": other.name, "second": name, "first_where": other.where, "second_where": where}
            self._problems.append(SourceTaken(port=str(source_name), **ends))
            return
        good: list[PortName] = []
        for sink_name in sink_names:
            if sink_name is None:
                continue
            if sink_name in self._streams_by_port or sink_name in good:
                other = self._streams_by_port.get(sink_name, Stream(name, source_name, (), where))
                ends = {"first": other.name, "second": name, "first_where": other.where, "second_where": where}
                self._problems.append(PortTaken(port=str(sink_name), **ends))
            else:
                good.append(sink_name)
        stream = self._streams[name] = Stream(name, source_name, tuple(good), where)
        self._streams_by_port |= dict.fromkeys((source_name, *good), stream)

    def read(
        self,
        paths: Any,
        format: Any = None,
        schema: Any = None,
        columns: Sequence[str] | None = None,
        *,
        name: str | None = None,
        **properties: Any,
    ) -> OutputPort[Any]:
        """Read the rows of files: add what splits them into blocks and what reads these, and return the port of the rows.

        Args:
            paths: files, folders and patterns (`*`, `?`, `[ab]`, `**` for any folders): paths or URLs, one or a list.
            format: `csv`, `json_lines`, `parquet`, `avro`, or a format with options, such as `CsvFormat(delimiter=";")`.
                None: by the ends of the files' names.
            schema: the columns with their types, as of `ScanReader`; None: as the files have them.
            columns: which columns, in this order; None: all.
            name: of the reader in the DAG; None: `read`, or `read_2`, …. The splitter is called `NAME_files`.
            properties: others of `ScanReader` (`drift`, `on_bad_row`, `where`, `max_readers`, …), or of `FileSplitterInput`
                (`block_size`, …).

        Raises TypeError for a property that neither has.

        >>> dag = DAG()
        >>> rows = dag.read("sales/*.csv", schema="shop: string, price: decimal128(9, 2)", name="sales")
        >>> list(dag.operators)
        ['sales_files', 'sales']
        """
        # the library stands above the DAG, and is named here only
        parts = importlib.import_module("operators.files.reading").parts_of(
            paths, format, schema=schema, columns=columns, **properties
        )
        name, where = self._free_name("read") if name is None else name, self._caller()
        self._problems += [] if parts.problem is None else [FormatUnknown(parts.problem, where)]
        splitter, reader = self.add_operator(f"{name}_files", parts.splitter), self.add_operator(name, parts.reader)
        self.connect(splitter.blocks_metadata_output, reader)
        rows: OutputPort[Any] = reader.batches
        return rows

    def connect(self, source: OutputPort[Any], target: Any, name: str | None = None) -> Any:
        """Connect an output port with an operator, or with one of its input ports. `source.to(target, name)` does the same."""
        where, is_port = self._caller(), isinstance(target, InputPort)
        owner: Any = target.operator if is_port else target
        if not isinstance(owner, Operator | Module):
            self._problems.append(_no_part("an operator, or an input port of one", target, where))
            return None
        if name is not None or (self.node_of(owner) is None and self._module_node_of(owner) is None):
            add: Any = self.add_operator if isinstance(owner, Operator) else self.add_module
            add(self._free_name(_snake_case(type(owner).__name__)) if name is None else name, owner)
        if (port := target if is_port else self._only_input(owner, where)) is not None:
            self._lead_to(source, port, where)
        ports = ports_of(type(owner)).items()
        names = [name for name, port in ports if isinstance(port, OutputPort) and name != "errors" and not port.completed_items]
        only = ["output"] if "output" in names else names
        return getattr(owner, only[0]) if len(only) == 1 else None

    def _only_input(self, owner: Operator | Module, where: str) -> InputPort[Any] | None:
        """Return the input port of an operator that must be connected; None, with a problem, where that is not one port."""
        inputs = {name: port for name, port in ports_of(type(owner)).items() if isinstance(port, InputPort)}
        names = [name for name, port in inputs.items() if not port.optional] or list(inputs)
        if len(names) == 1:
            port: InputPort[Any] = getattr(owner, names[0])
            return port
        got = f"{type(owner).__name__}, which has {'several' if names else 'none'}" + (f" ({', '.join(names)})" if names else "")
        help_ = f"name one: port.to(operator.{names[0]})" if names else "a stream leads to an operator with an input port"
        self._problems.append(NotAnOperator("an operator with one input port", got, where, help_))
        return None

    def _lead_to(self, source: OutputPort[Any], sink: InputPort[Any], where: str) -> None:
        """Lead the stream from an output port, which may be a new one, to an input port."""
        wanted = f"{type(source.operator).__name__}.{source.name}"
        if (start := self.port_name(source, OutputPort, wanted, where)) is None:
            return
        if (stream := self._streams_by_port.get(start)) is None:
            self.add_stream(self._free_name(str(start).removeprefix(f"{self._inside}."), self._streams), source, sink)
        elif (end := self.port_name(sink, InputPort, stream.name, where)) in self._streams_by_port:
            other = self._streams_by_port[end]
            ends = {"first": other.name, "second": stream.name, "first_where": other.where, "second_where": where}
            self._problems.append(PortTaken(port=str(end), **ends))
        elif end is not None:
            routes = {**stream.routes, end: Route(stream.name, where)}
            longer = attrs.evolve(stream, sinks=(*stream.sinks, end), routes=routes)
            self._streams[stream.name] = longer
            self._streams_by_port |= dict.fromkeys((start, *longer.sinks), longer)

    def _free_name(self, name: str, taken: Mapping[str, Any] | None = None) -> str:
        """Return a name that is not taken yet, by an operator or module: this one, or with a number."""
        taken = self._names if taken is None else taken
        numbered = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
        return next(each for each in numbered if self._full(each) not in taken)

    def set_attributes(self, operator: Operator, **attributes: Any) -> None:
        """Set attributes of an operator.

        `partitioner`: what sizes its partitions instead of the operator itself. `partition_by`: the key of all its input ports.
        """
        node = self.node_of(operator)
        where = self._caller()
        for key, value in attributes.items():
            if key not in OPERATOR_ATTRIBUTES:
                self._problems.append(UnknownName("attribute of an operator", key, OPERATOR_ATTRIBUTES, where))
            elif node is None:
                self._problems.append(NotAnOperator(wanted="an operator of this DAG", got=repr(operator), where=where))
            else:
                node.attributes[key] = value

    def set_port_attributes(self, port: Port, **attributes: Any) -> None:
        """Set attributes of an input port: `partition_parallel`, `partition_by`."""
        where = self._caller()
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
        """Return the node of an operator of this DAG."""
        return self._nodes_by_id.get(id(operator))

    def operator(self, name: str) -> Operator:
        """Return the operator of a name. Raises UnknownName, with the nearest known."""
        full = self._full(name)
        if full not in self._nodes:
            raise UnknownName("operator", name, tuple(self._nodes))
        return self._nodes[full].operator

    def port_name(self, port: Any, kind: type[Port], said_by: str, where: str, sayer: str = "stream") -> PortName | None:
        """Return the name of a port; None, with a problem, if it is of another kind or belongs to another DAG.

        `said_by`: the stream (or what else `sayer` says) that names it.
        """
        wanted = f"an {'input' if kind is InputPort else 'output'} port ({sayer} {said_by!r})"
        if isinstance(port, kind) and port.operator is None:
            help_ = f"name the port of the operator that dag.add_operator() has returned: operator.{port.name}"
            self._problems.append(NotAnOperator(wanted, f"port {port.name!r} of a class", where, help_))
            return None
        if not isinstance(port, kind):
            got = repr(port)
            if isinstance(port, Operator | Module):
                names = [n for n, p in ports_of(type(port)).items() if isinstance(p, kind)]
                what = "operator" if isinstance(port, Operator) else "module"
                got = f"the {what} {type(port).__name__} (its ports: {', '.join(names)})"
            elif isinstance(port, type) and issubclass(port, Operator | Module):
                self._problems.append(_no_part(wanted, port, where))
                return None
            self._problems.append(NotAnOperator(wanted=wanted, got=got, where=where))
            return None
        node = self.node_of(port.operator) or self._module_node_of(port.operator)
        if node is None:
            own = self._module is not None and port.operator is self._module.module and isinstance(port, PROXIES)
            self._problems.append(ForeignPort(said_by, f"{type(port.operator).__name__}.{port.name}", where, sayer, own))
            return None
        return PortName(node.name, port.name)

    def _module_node_of(self, module: object) -> ModuleNode | None:
        return self._modules_by_id.get(id(module))

    @property
    def _inside(self) -> str | None:
        return self._module.name if self._module is not None else None

    def _full(self, name: str) -> str:
        return f"{self._module.name}.{name}" if self._module is not None else name

    def _caller(self) -> str:
        return f"{self._module.line} → {caller()}" if self._module is not None else caller()


def _no_part(wanted: str, got: Any, where: str) -> NotAnOperator:
    """Return the error for a value that is neither an operator nor a module, or is the wrong one of the two."""
    cls = got if isinstance(got, type) else type(got)
    for kind, add, wrong_place in ((Operator, "add_operator", "a module"), (Module, "add_module", "an operator")):
        if issubclass(cls, kind):
            call = f"{cls.__name__}(…)" if cls is got else "…"
            advice = f"dag.{add}(name, {call})" if wanted.startswith(wrong_place) else f"make an object of the class: {call}"
            return NotAnOperator(wanted, f"class {cls.__name__}" if cls is got else f"a {cls.__name__}", where, advice)
    return NotAnOperator(wanted, repr(got), where)


def _snake_case(name: str) -> str:
    """Return the name of a class as that of an operator.

    >>> _snake_case("CsvWriter"), _snake_case("TopN"), _snake_case("SQLWriter")
    ('csv_writer', 'top_n', 'sql_writer')
    """
    return re.sub("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _usable(name: object) -> bool:
    return isinstance(name, str) and name.strip() != "" and all(c.isalnum() or c in "_- ." for c in name)
