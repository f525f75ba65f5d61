"""The checks of a DAG: small functions that yield problems. `OF_OPERATORS`, `OF_STREAMS` and `OF_COLUMNS` list them."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import UnionType
from typing import Any, get_args, get_origin

import attrs

from dagflow.errors import DagError, DagflowError
from dagflow.model.errors.dag import (
    ClassWrong,
    ColumnNeeded,
    ColumnsRefused,
    Cycle,
    DagErrors,
    EmptyDag,
    InputUnconnected,
    NotAPartitioner,
    NotPartitionable,
    OutputUnconnected,
    PortTypeError,
    PropertyRefused,
    RootNotInput,
    WatermarkMissing,
)
from dagflow.model.errors.running import StateNotPlain
from dagflow.model.graph.changes import changes_refused, changing_ports
from dagflow.model.graph.class_checks import awaits, line_of_name, of_operator
from dagflow.model.graph.dag import DAG, OperatorNode, PortName, Route, Stream, arriving_streams
from dagflow.model.graph.expand import ExpandedDag, expand
from dagflow.model.graph.infer import bind_columns, bind_input, bind_output, own_bindings, port_types
from dagflow.model.graph.module import ModuleNode
from dagflow.model.graph.partitioning import key_given, partitioner_of, wrong_keys
from dagflow.model.graph.stream_columns import ColumnSolver
from dagflow.model.graph.topology import cycles, order
from dagflow.model.operator.base import InputOperator, Operator
from dagflow.model.operator.map_state import KeyedState, MapState, type_arguments
from dagflow.model.operator.ports import handlers_of, input_ports, output_ports
from dagflow.model.operator.protocols import AcceptedType, SchemaAware
from dagflow.model.operator.state import State, state_fields
from dagflow.model.types.comparison import Bindings, difference, is_vague, type_name
from dagflow.model.types.forms import schema_of
from dagflow.model.types.plain_data import encode, never_plain

Types = dict[PortName, Any]
"""The type of every port; `Any` where it is not known."""


@attrs.frozen
class CheckedDag:
    """A DAG without problems.

    Attributes:
        nodes: the operators by name, in an order in which every stream leads forward.
        streams: the streams by name.
        types: the type of every port; `Any` where it is not known.
        modules: the modules that were inlined, by name, outer ones first.
    """

    name: str
    nodes: dict[str, OperatorNode]
    streams: dict[str, Stream]
    types: dict[PortName, Any]
    modules: dict[str, ModuleNode] = attrs.field(factory=dict)

    def stream_from(self, port: PortName) -> Stream | None:
        """Return the stream that starts at an output port."""
        return self._from.get(port)

    def stream_into(self, port: PortName) -> Stream | None:
        """Return the stream that leads into an input port."""
        return next((stream for stream, sink in self._into.get(port.operator, ()) if sink == port), None)

    def upstream(self, name: str) -> list[tuple[PortName, PortName]]:
        """Return `(source, sink)` of every connected input port of an operator."""
        return [(stream.source, sink) for stream, sink in self._into.get(name, ())]

    def above(self, name: str) -> set[str]:
        """Return the names of all operators upstream of an operator."""
        above, remaining = set[str](), [name]
        while remaining:
            new = {source.operator for source, _ in self.upstream(remaining.pop())} - above
            above |= new
            remaining += new
        return above

    def columns(self, agreed: Mapping[str, Any] | None = None, *, is_running: bool = False) -> ColumnSolver:
        """Return what is known about the rows of streams. `agreed` and `is_running`: see ColumnSolver."""
        return ColumnSolver(self.nodes, self.streams, self.types, agreed or {}, is_running)

    @cached_property
    def changing(self) -> Mapping[PortName, str]:
        """The output ports whose rows may be taken back, each with the operator that does."""
        return changing_ports(self.nodes, self.streams)

    @cached_property
    def _from(self) -> dict[PortName, Stream]:
        return {stream.source: stream for stream in self.streams.values()}

    @cached_property
    def _into(self) -> dict[str, list[tuple[Stream, PortName]]]:
        return arriving_streams(self.streams)


def check(dag: DAG | ExpandedDag) -> CheckedDag:
    """Run all checks. Raises the only problem, or `DagErrors` with all of them in the order of the rules."""
    dag = expand(dag) if isinstance(dag, DAG) else dag
    problems = list(dag.problems)
    types: Types = {}
    for rule in (*OF_OPERATORS, *OF_STREAMS) if dag.is_whole else OF_OPERATORS:
        problems += rule(dag)
    if dag.is_whole:
        types, misfits = infer(dag)
        problems += misfits
        solver = ColumnSolver(dag.operators, dag.streams, types)
        for of_columns in OF_COLUMNS:
            problems += of_columns(dag, solver)
    raise_all(problems)
    names = order(dag.operators, _edges(dag))
    return CheckedDag(dag.name, {name: dag.operators[name] for name in names}, dict(dag.streams), types, dict(dag.modules))


def raise_all(problems: Sequence[DagError]) -> None:
    """Raise the only problem, or `DagErrors` with all. Without problems, do nothing."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise DagErrors(tuple(problems))


def not_empty(dag: ExpandedDag) -> Iterator[DagError]:
    """Refuse a DAG without operators."""
    if not dag.operators and not dag.problems:
        yield EmptyDag(dag.name)


def properties(dag: ExpandedDag) -> Iterator[DagError]:
    """Refuse properties that their operator refuses (check 2 of Apache Apex)."""
    for node in dag.operators.values():
        try:
            node.operator.check()
        except DagError as problem:
            yield problem
        except ValueError as problem:
            yield PropertyRefused(operator=node.name, reason=str(problem), where=node.where)
            continue
        for method in ("input_paths", "output_folders", "written_schema"):
            try:
                getattr(node.operator, method)()
            except Exception as problem:  # noqa: BLE001  # user code may raise anything
                reason = f"{method}() raised {type(problem).__name__}: {problem}"
                yield PropertyRefused(operator=node.name, reason=reason, where=node.where)


def declarations(dag: ExpandedDag) -> Iterator[DagError]:
    """Check the declarations of operator classes."""
    for operator in {type(node.operator): node.operator for node in dag.operators.values()}.values():
        yield from of_operator(operator)


def handlers_handle(dag: ExpandedDag) -> Iterator[DagError]:
    """Refuse handlers that yield or await, since nothing would run them."""
    for node in dag.operators.values():
        for port, forms in handlers_of(type(node.operator)).items():
            for method in forms.values():
                function = inspect.unwrap(getattr(type(node.operator), method))
                if inspect.isgeneratorfunction(function) or awaits(function):
                    yield ClassWrong(
                        operator=type(node.operator).__qualname__,
                        reason=f"the handler {method}() of port {port!r} yields or awaits: nothing would run it ({node.where})",
                        help="emit instead: self.output.emit(record) for each `yield record`",
                    )


def states_can_be_saved(dag: ExpandedDag) -> Iterator[DagError]:
    """Refuse what `State` and `MapState` cannot save: the first window that keeps some of it would fail."""
    for operator in {type(node.operator): node.operator for node in dag.operators.values()}.values():
        yield from states_saved(operator)


def states_saved(operator: Operator) -> Iterator[DagError]:
    """Yield the states of an operator that can never be saved, because of their keys or values."""
    cls = type(operator)
    for name, declared in state_fields(cls).items():
        if not isinstance(declared, State):
            continue
        wrongs: list[tuple[str, str]] = []
        if isinstance(declared, MapState):
            key = type_arguments(declared)[0]
            kind = get_origin(key) or key
            if isinstance(kind, type) and kind not in (str, int, UnionType):
                wrongs.append((f"the keys of MapState {name!r} are {type_name(key)}", "keys are str or int: make text of them"))
        if (wrong := _never_saved(declared)) is not None:
            wrongs.append((f"{type(declared).__name__} {name!r} keeps {wrong}, which cannot be saved", _PLAIN))
        for reason, remedy in wrongs:
            where = line_of_name(next(each for each in cls.__mro__ if name in vars(each)), name)  # only now: it parses the module
            yield ClassWrong(cls.__qualname__, f"{reason} ({where})", help=remedy)


_PLAIN = (
    "keep None, bool, int, float, str, bytes, and lists, tuples, string-keyed dicts and attrs classes of these: "
    "for a set, a sorted list, or a dict with the value True; for a time, its isoformat() or timestamp()"
)


def _never_saved(declared: State[Any]) -> str | None:
    """Return the part of a state that can never be saved: of its declared type, or of the value that it begins with."""
    wrong = never_plain(type_arguments(declared)[-1])
    if wrong is None and not isinstance(declared, KeyedState):
        try:
            encode(declared.initial(), declared.name)
        except StateNotPlain as error:
            return error.got
    return wrong


def partitionable(dag: ExpandedDag) -> Iterator[DagError]:
    """Refuse partitioning of operators that must not be copied (checks 4 and 5 of Apache Apex)."""
    for node in dag.operators.values():
        if node.operator.partitionable:
            continue
        for port, attributes in node.port_attributes.items():
            if attributes.get("partition_parallel"):
                yield NotPartitionable(node.name, f"its port {port!r} has partition_parallel set", node.where)
        for port, declared in input_ports(type(node.operator)).items():
            if declared.partition_parallel:
                yield NotPartitionable(node.name, f"its class declares port {port!r} partition_parallel", node.where)
        for port in input_ports(type(node.operator)):
            if key_given(node, port) is not None:
                yield NotPartitionable(node.name, f"its port {port!r} has a key (partition_by)", node.where)
        if partitioner_of(node) is not None:
            yield NotPartitionable(node.name, "it has a partitioner", node.where)


def partitioners(dag: ExpandedDag) -> Iterator[DagError]:
    """Refuse partitioners without `define_partitions`."""
    for node in dag.operators.values():
        partitioner = partitioner_of(node)
        partitioner = node.operator if partitioner == "self" else partitioner
        is_one = callable(getattr(partitioner, "define_partitions", None)) and not isinstance(partitioner, type)
        if node.operator.partitionable and partitioner is not None and not is_one:
            shown = (
                f"the class {partitioner.__name__}, not an object of it" if isinstance(partitioner, type) else repr(partitioner)
            )
            yield NotAPartitioner(node.name, shown, node.where)


def inputs_connected(dag: ExpandedDag) -> Iterator[DagError]:
    """Refuse input ports without a stream, unless they are optional (check 7 of Apache Apex)."""
    connected = {sink for s in dag.streams.values() for sink in s.sinks}
    fed = {sink.operator for sink in connected}
    for node in dag.operators.values():
        if node.name not in fed and not isinstance(node.operator, InputOperator):
            continue  # gets nothing at all: `roots` says so
        for port, declared in input_ports(type(node.operator)).items():
            if not declared.optional and PortName(node.name, port) not in connected:
                name = PortName(node.name, port)
                yield InputUnconnected(str(name), type_name(declared.declared_type), node.where, dag.proxy_of(name))


def outputs_connected(dag: ExpandedDag) -> Iterator[DagError]:
    """Refuse output ports without a stream, unless they are optional (check 11 of Apache Apex)."""
    connected = {s.source for s in dag.streams.values()}
    for node in dag.operators.values():
        for port, declared in output_ports(type(node.operator)).items():
            wanted = not declared.optional or (port == "errors" and node.operator.on_error == "route")
            if wanted and PortName(node.name, port) not in connected:
                name = PortName(node.name, port)
                yield OutputUnconnected(str(name), type_name(declared.declared_type), node.where, dag.proxy_of(name))


def acyclic(dag: ExpandedDag) -> Iterator[DagError]:
    """Refuse cycles (check 12 of Apache Apex)."""
    for path in cycles(dag.operators, _edges(dag)):
        lines = []
        for source, sink in itertools.pairwise(path):
            stream = next(
                s for s in dag.streams.values() if s.source.operator == source and any(k.operator == sink for k in s.sinks)
            )
            lines.append(f"{source} → {sink}  stream {stream.name!r}  {stream.where}")
        yield Cycle(tuple(path), tuple(lines))


def roots(dag: ExpandedDag) -> Iterator[DagError]:
    """Refuse operators without input that are not input operators (check 15 of Apache Apex)."""
    fed = {sink.operator for s in dag.streams.values() for sink in s.sinks}
    for node in dag.operators.values():
        if node.name not in fed and not isinstance(node.operator, InputOperator):
            yield RootNotInput(node.name, type(node.operator).__name__, node.where)


def keys(dag: ExpandedDag, solver: ColumnSolver) -> Iterator[DagError]:
    """Refuse keys that records lack or that cannot be hashed, and a key on some of the ports of an operator only."""
    columns, into = _columns(solver), arriving_streams(dag.streams)
    for node in dag.operators.values():
        if node.operator.partitionable:
            yield from wrong_keys(node, [sink.port for _, sink in into.get(node.name, ())], columns, solver.types)


def columns_needed(dag: ExpandedDag, solver: ColumnSolver) -> Iterator[DagError]:
    """Refuse streams that lack a column which their operator needs, where the columns are known."""
    columns = _columns(solver)
    for sink in [sink for s in dag.streams.values() for sink in s.sinks]:
        node = dag.operators[sink.operator]
        for said_by, names in node.operator.needed_columns(sink.port).items():
            known = columns(sink)
            for name in names if known is not None else ():
                if name not in (known or ()):
                    yield ColumnNeeded(str(sink), said_by, name, tuple(known or ()), node.where)


def columns_accepted(dag: ExpandedDag, solver: ColumnSolver) -> Iterator[DagError]:
    """Refuse streams whose columns their operator cannot take, where the types are known."""
    for port, kind in solver.types.items():
        node = dag.operators[port.operator]
        cls = type(node.operator)
        if cls.check_columns is SchemaAware.check_columns or port.port not in input_ports(cls):
            continue  # types need pyarrow, which takes a while to load
        if (schema := schema_of(kind)) is not None:
            try:
                node.operator.check_columns(port.port, schema)
            except DagflowError as error:
                yield ColumnsRefused(str(port), error.message(), node.where)


def watermarks(dag: ExpandedDag) -> Iterator[DagError]:
    """Refuse sources without a watermark before operators that emit only by the watermark."""
    above = _edges(dag)
    for node in dag.operators.values():
        properties = node.operator.waits_for_sources()
        for name in sorted(_above(node.name, above)) if properties is not None else ():
            source = dag.operators[name].operator
            if isinstance(source, InputOperator) and not source.tells_watermark():
                yield WatermarkMissing(node.name, str(properties), name, node.where)


def changes(dag: ExpandedDag) -> Iterator[DagError]:
    """Refuse operators that cannot follow rows that are taken back."""
    if not cycles(dag.operators, _edges(dag)):
        nodes = {name: dag.operators[name] for name in order(dag.operators, _edges(dag))}
        yield from changes_refused(nodes, dag.streams)


OF_OPERATORS: tuple[Callable[[ExpandedDag], Iterator[DagError]], ...] = (
    not_empty,
    properties,
    declarations,
    handlers_handle,
    states_can_be_saved,
    partitionable,
    partitioners,
)
OF_STREAMS: tuple[Callable[[ExpandedDag], Iterator[DagError]], ...] = (
    inputs_connected,
    outputs_connected,
    acyclic,
    roots,
    watermarks,
    changes,
)
OF_COLUMNS: tuple[Callable[[ExpandedDag, ColumnSolver], Iterator[DagError]], ...] = (
    keys,
    columns_needed,
    columns_accepted,
)


def infer(dag: ExpandedDag) -> tuple[Types, list[DagError]]:
    """Return the type of every port, solved forward along the streams, and the problems."""
    if cycles(dag.operators, _edges(dag)):
        return {}, []
    solving, into = _TypeSolver(dag), arriving_streams(dag.streams)
    bound: dict[str, Bindings] = {name: own_bindings(node.operator) for name, node in dag.operators.items()}
    for name in order(dag.operators, _edges(dag)):
        node = dag.operators[name]
        arriving = into.get(name, [])
        ends = [solving.through_modules(stream, sink) for stream, sink in arriving]
        for (_, sink), (_, tp) in zip(arriving, ends, strict=True):
            bind_input(node.operator, sink.port, tp, bound[name])
        bind_columns(node.operator, bound[name])
        for port, tp in port_types(node.operator, bound[name]).items():
            solving.types[PortName(name, port)] = tp
        for (stream, sink), (end, tp) in zip(arriving, ends, strict=True):
            if solving.join(stream.route(sink), end, tp, sink, solving.types[sink]):
                solving.accept(stream.route(sink), end, tp, sink, node.operator.accepted_type(sink.port))
    return solving.types, list(solving.problems.values())


@attrs.define
class _TypeSolver:
    """The state of the solution: types of ports, bindings of modules, and problems by the two ends that do not fit."""

    dag: ExpandedDag
    types: dict[PortName, Any] = attrs.field(factory=dict)
    bound: dict[str, Bindings] = attrs.field(factory=dict)
    problems: dict[tuple[PortName, PortName], DagError] = attrs.field(factory=dict)

    def through_modules(self, stream: Stream, sink: PortName) -> tuple[PortName, Any]:
        """Return the last port before a sink and the type of its records. Ports of modules have types of their own."""
        route, end, tp = stream.route(sink), stream.source, self.types[stream.source]
        for proxy in route.through:
            module = self.dag.modules[proxy.operator].module
            bindings = self.bound.setdefault(proxy.operator, own_bindings(module))
            is_input = proxy.port in input_ports(type(module))
            (bind_input if is_input else bind_output)(module, proxy.port, tp, bindings)
            promised = port_types(module, bindings)[proxy.port]
            fits = self.join(route, end, tp, proxy, promised)
            end, tp = proxy, tp if fits and not is_vague(tp) else promised
        return end, tp

    def join(self, route: Route, source: PortName, source_type: Any, sink: PortName, sink_type: Any) -> bool:
        """Return whether records of one type can go from one port to the next; note a problem where they cannot."""
        reason = difference(source_type, sink_type)
        if reason is not None:
            makes = f"makes {type_name(sink_type)} of {type_name(source_type)}"
            remedy = f"put an operator between them that {makes}, such as Map(function)"
            self._note(route, source, source_type, sink, type_name(sink_type), reason, remedy)
        return reason is None

    def accept(self, route: Route, source: PortName, source_type: Any, sink: PortName, accepted: AcceptedType | None) -> None:
        """Note a problem where no record of a type is one that the operator accepts."""
        if accepted is None or difference(source_type, accepted.type) is None:
            return
        members = get_args(accepted.type) or (accepted.type,)
        if all(difference(member, source_type) is not None for member in members):
            reason = f"{type_name(source_type)} is not {accepted.name}"
            self._note(route, source, source_type, sink, accepted.name, reason, accepted.help)

    def _note(
        self, route: Route, source: PortName, source_type: Any, sink: PortName, sink_type: str, difference: str, remedy: str
    ) -> None:
        self.problems[source, sink] = PortTypeError(
            stream=route.stream,
            source=str(source),
            source_type=type_name(source_type),
            source_where=self._where(source),
            sink=str(sink),
            sink_type=sink_type,
            sink_where=self._where(sink),
            difference=difference,
            stream_where=route.where,
            help=remedy,
        )

    def _where(self, port: PortName) -> str:
        return (self.dag.operators.get(port.operator) or self.dag.modules[port.operator]).where


def _columns(solver: ColumnSolver) -> Callable[[PortName], Sequence[str] | None]:
    """Return a function from an input port to the columns of its records; None for unknown ones."""

    def columns(port: PortName) -> Sequence[str] | None:
        known = solver.into(port).types if solver.types else None  # streams that lead back have no types
        return None if known is None else tuple(known)

    return columns


def _above(name: str, edges: Sequence[tuple[str, str]]) -> set[str]:
    """Return all operators upstream of an operator."""
    upstream: set[str] = set()
    remaining = [name]
    while remaining:
        sink = remaining.pop()
        new = {start for start, end in edges if end == sink} - upstream
        upstream |= new
        remaining += new
    return upstream


def _edges(dag: ExpandedDag) -> list[tuple[str, str]]:
    return [(s.source.operator, sink.operator) for s in dag.streams.values() for sink in s.sinks]
