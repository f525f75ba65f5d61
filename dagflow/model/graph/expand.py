"""The step `expanded`: a DAG with its modules inlined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from dagflow.errors import DagError
from dagflow.errors.frames import raised
from dagflow.model.errors.dag import ClassWrong, DuplicateName, ModuleBroken, PortTaken, PropertyRefused, ProxyUnset
from dagflow.model.graph.class_checks import of_module
from dagflow.model.graph.dag import DAG, OperatorNode, PortName, Route, Stream
from dagflow.model.graph.module import ModuleNode
from dagflow.model.operator.ports import PROXIES, InputPort, OutputPort, ProxyInputPort, ProxyOutputPort, ports_of

DEEPEST = 50
"""The greatest depth of modules in each other. A deeper one contains itself."""

Configure = Callable[[ModuleNode], bool]
"""A function that sets the properties of a module, and returns True if the module can be filled with them."""


@attrs.frozen
class ExpandedDag:
    """A DAG whose modules are inlined: all that is left are operators, called `module.operator`.

    Attributes:
        operators: the operators by name; those of a module stand where it stood.
        streams: the streams by name, from operators to operators.
        problems: what was wrong so far, with the calls and with the modules.
        modules: the modules that were inlined, by name, outer ones first.
        behind: for each port of a module the ports of operators that stand behind it.
        is_whole: whether all modules could be inlined; if not, there are no streams.
    """

    name: str
    operators: Mapping[str, OperatorNode]
    streams: Mapping[str, Stream]
    problems: tuple[DagError, ...]
    modules: Mapping[str, ModuleNode]
    behind: Mapping[PortName, tuple[PortName, ...]]
    is_whole: bool

    def proxy_of(self, port: PortName) -> str:
        """Return the outermost port of a module that leads to or from an operator's port; empty where none does."""
        return next((str(proxy) for proxy, ports in self.behind.items() if port in ports), "")


def expand(dag: DAG, configure: Configure = lambda node: True) -> ExpandedDag:
    """Fill the modules of a DAG, and those in them, and put their operators and streams in their places.

    `configure` is called for each module before its `populate_dag`. Nothing is raised: mistakes are among the problems.
    """
    filling = _Expansion(configure, list(dag.problems))
    filling.take(dag, 0)
    streams = dict(dag.streams)
    if filling.modules:
        streams = _joined(filling) if filling.is_whole else {}
    return ExpandedDag(
        dag.name,
        filling.operators,
        streams,
        tuple(filling.problems),
        filling.modules,
        {proxy: tuple(port for port, _ in _ends(filling.targets, proxy)) for proxy in filling.targets},
        filling.is_whole,
    )


@attrs.define
class _Expansion:
    """The state of an expansion. `targets`: for each port of a module the ports behind it, one step further in."""

    configure: Configure
    problems: list[DagError]
    operators: dict[str, OperatorNode] = attrs.field(factory=dict)
    modules: dict[str, ModuleNode] = attrs.field(factory=dict)
    streams: list[Stream] = attrs.field(factory=list)
    targets: dict[PortName, tuple[PortName, ...]] = attrs.field(factory=dict)
    is_whole: bool = True

    def take(self, dag: DAG, depth: int) -> None:
        """Add the operators and streams of a DAG and, in their places, those of its modules."""
        self.streams += dag.streams.values()
        for name in dag.names:
            node = dag.operators.get(name) or dag.modules[name]
            known = self.operators.get(name) or self.modules.get(name)
            if known is not None:
                self.problems.append(DuplicateName(kind="part", name=name, first=known.where, second=node.where))
            elif isinstance(node, OperatorNode):
                self.operators[name] = node
            else:
                self.modules[name] = node
                inner = self.filled(node, depth)
                self.is_whole = self.is_whole and inner is not None
                if inner is not None:
                    self.take(inner, depth + 1)

    def filled(self, node: ModuleNode, depth: int) -> DAG | None:
        """Return the DAG that a module fills. If it cannot, note a problem and return None."""
        module, cls, before = node.module, type(node.module).__qualname__, len(self.problems)
        inner = DAG(node.name, module=node)
        for proxy in _proxies(node):
            proxy.targets = ()  # of an earlier expansion
        if depth >= DEEPEST:
            self.problems.append(
                ClassWrong(
                    operator=cls,
                    reason=f"modules lie {depth} deep in each other at {node.name!r} ({node.where})",
                    help="a module cannot contain itself: add an operator in its place, or nothing",
                )
            )
        elif self.configure(node) and self.checked(node):
            try:
                module.populate_dag(inner)
            except DagError as problem:
                self.problems.append(problem)
            except Exception as error:  # noqa: BLE001  # user code may raise anything
                self.problems.append(ModuleBroken(node.name, cls, *raised(error), node.where))
            else:
                wrong = list(self.connected(node, inner))
                self.problems += [*inner.problems, *wrong]
        else:
            return None
        return inner if len(self.problems) == before else None

    def checked(self, node: ModuleNode) -> bool:
        """Check a module's class and its properties."""
        wrong = list(of_module(node.module))
        self.problems += wrong
        if wrong:
            return False
        try:
            node.module.check()
        except DagError as problem:
            self.problems.append(problem)
        except ValueError as problem:
            self.problems.append(PropertyRefused(node.name, str(problem), node.where, kind="module"))
        else:
            return True
        return False

    def connected(self, node: ModuleNode, inner: DAG) -> Iterator[DagError]:
        """Note the ports behind the ports of a module, and yield the problems with them."""
        cls = type(node.module).__qualname__
        for field in attrs.fields(type(node.module)):
            if f"{node.name}.{field.name}" in inner.names:
                yield ClassWrong(
                    operator=cls,
                    reason=f"{field.name!r} is both a property and the name of an operator inside",
                    help=f"give one of them another name, so that it is clear what operator.{node.name}.{field.name} sets",
                )
        taken = {sink: (s.name, s.where) for s in inner.streams.values() for sink in s.sinks}
        for proxy in _proxies(node):
            name = PortName(node.name, proxy.name)
            if not proxy.targets:
                yield ProxyUnset(str(name), cls, node.where)
                continue
            is_input = isinstance(proxy, ProxyInputPort)
            where = f"{node.line} → {proxy.where}"
            kind = InputPort if is_input else OutputPort
            targets = [inner.port_name(port, kind, str(name), where, "port") for port in proxy.targets]
            for port in targets:
                if is_input and port is not None:
                    if port in taken:
                        first, first_where = taken[port]
                        ends = {"first": first, "first_where": first_where, "second": str(name), "second_where": where}
                        yield PortTaken(port=str(port), **ends)
                    taken[port] = (str(name), where)
            self.targets[name] = tuple(port for port in targets if port is not None)


def _proxies(node: ModuleNode) -> Iterator[ProxyInputPort[Any] | ProxyOutputPort[Any]]:
    for name in ports_of(type(node.module)):
        port = getattr(node.module, name)
        assert isinstance(port, PROXIES)
        yield port


def _ends(
    targets: Mapping[PortName, tuple[PortName, ...]], port: PortName, through: tuple[PortName, ...] = ()
) -> Iterator[tuple[PortName, tuple[PortName, ...]]]:
    """Yield the ports of operators behind a port, with the ports of modules that lead there, outer ones first."""
    if port not in targets:
        yield port, through
    for target in targets.get(port, ()):
        yield from _ends(targets, target, (*through, port))


def _joined(filling: _Expansion) -> dict[str, Stream]:
    """Return the streams between operators. Those from the same port become one, with the name of the outermost."""
    by_source: dict[PortName, Stream] = {}
    names: dict[str, str] = {}
    for written in filling.streams:
        source, out = next(_ends(filling.targets, written.source))
        routes = {
            sink: Route(written.name, written.where, (*reversed(out), *through))
            for end in written.sinks
            for sink, through in _ends(filling.targets, end)
        }
        if written.name in names:
            ends = {"first": names[written.name], "second": written.where}
            filling.problems.append(DuplicateName(kind="stream", name=written.name, **ends))
        names.setdefault(written.name, written.where)
        first = by_source.get(source, Stream(written.name, source, (), written.where))
        by_source[source] = attrs.evolve(first, sinks=(*first.sinks, *routes), routes={**first.routes, **routes})
    place = {name: number for number, name in enumerate(filling.operators)}
    streams = sorted(by_source.values(), key=lambda stream: place.get(stream.source.operator, len(place)))
    return {stream.name: stream for stream in streams}
