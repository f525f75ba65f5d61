"""The base of all modules: a named part of a DAG, filled by a method, with ports of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, get_origin

import attrs

from dagflow.model.errors.dag import ClassWrong
from dagflow.model.operator.component import Component
from dagflow.model.operator.ports import MARKS, PROXIES, Port

if TYPE_CHECKING:
    from dagflow.model.graph.dag import DAG

P = TypeVar("P")


@attrs.define(slots=False, eq=False)
class Module(Component):
    """The base of all modules: operators that are used together, as one unit with settings and ports.

    Subclasses are attrs classes, whose fields are their settings. `populate_dag(dag)` adds operators (or further modules) to a
    DAG of its own and binds its proxy ports to ports inside. When an application runs, the module itself is
    gone: its operators are called `MODULE.OPERATOR`, in plans, pictures, reports, errors and configuration.

    >>> import attrs
    >>> from dagflow import DAG, Module, ProxyInputPort, ProxyOutputPort
    >>> from operators import Filter, Map
    >>> @attrs.define
    ... class LongWords(Module):
    ...     least: int = 3
    ...
    ...     input = ProxyInputPort[str]()
    ...     output = ProxyOutputPort[str]()
    ...
    ...     def populate_dag(self, dag):
    ...         strip = dag.add_operator("strip", Map[str, str](str.strip))
    ...         long = dag.add_operator("long", Filter[str](lambda word: len(word) >= self.least))
    ...         dag.add_stream("stripped", strip.output, long.input)
    ...         self.input.set(strip.input)
    ...         self.output.set(long.output)
    >>> dag = DAG()
    >>> words = dag.add_module("words", LongWords(least=4))
    >>> from dagflow.model.graph.expand import expand
    >>> list(expand(dag).operators)
    ['words.strip', 'words.long']
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, value in vars(cls).items():
            if isinstance(value, Port) and not isinstance(value, PROXIES):
                raise ClassWrong(
                    operator=cls.__qualname__,
                    reason=f"port {name!r} is an {type(value).__name__}, but a module handles and emits no records itself",
                    help=f"write {name} = Proxy{type(value).__name__}[…](), or derive the class from Operator",
                )
            if hasattr(value, MARKS):
                raise ClassWrong(
                    operator=cls.__qualname__,
                    reason=f"{name}() is marked as a handler, but a module handles no records itself",
                    help="write an operator with that handler, and add it in populate_dag()",
                )

    def populate_dag(self, dag: DAG) -> None:
        """Add the operators and streams to `dag`, and set all proxy ports. Called when the settings are known."""
        raise NotImplementedError

    def make(self, part: type[P], **properties: Any) -> P:
        """Return an operator or module of a class, with all properties that it and this module both have, and others.

        >>> @attrs.define
        ... class Inner(Module):
        ...     least: int = 3
        ...     most: int = 9
        >>> @attrs.define
        ... class Outer(Module):
        ...     least: int = 3
        >>> Outer(least=4).make(Inner, most=7)
        Inner(least=4, most=7)
        """
        kind: Any = get_origin(part) or part
        own = {field.alias: field.name for field in attrs.fields(type(self))}
        shared = {each.alias: getattr(self, own[each.alias]) for each in attrs.fields(kind) if each.init and each.alias in own}
        return part(**{**shared, **properties})


@attrs.frozen(eq=False)
class ModuleNode:
    """A module of a DAG: its name, where it was added, and the name of the module that it is in."""

    name: str
    module: Module
    where: str
    inside: str | None = None

    @property
    def line(self) -> str:
        """The line of the application with which all began: that of the outermost module."""
        return self.where.partition(" → ")[0]
