"""Modules to expand, to check and to draw."""

from __future__ import annotations

from typing import Any, Generic

import attrs
from typing_extensions import TypeVar

from dagflow import DAG, InputOperator, InputPort, Module, Operator, OutputPort, ProxyInputPort, ProxyOutputPort

T = TypeVar("T", default=Any)


@attrs.define
class Source(InputOperator):
    output = OutputPort[str]()
    numbers = OutputPort[int]()

    def emit_tuples(self) -> None: ...


@attrs.define
class Step(Operator):
    input = InputPort[str]()
    output = OutputPort[str]()

    @input.process
    def each(self, record: str) -> None:
        self.output.emit(record)


@attrs.define
class Anything(Operator):
    """Says nothing of its types."""

    input = InputPort[Any]()
    output = OutputPort[Any]()

    @input.process
    def each(self, record: object) -> None:
        self.output.emit(record)


@attrs.define
class Both(Operator):
    """Two inputs that must both be there."""

    left = InputPort[str]()
    right = InputPort[str]()

    @left.process
    def from_left(self, record: str) -> None: ...

    @right.process
    def from_right(self, record: str) -> None: ...


@attrs.define
class Sink(Operator, Generic[T]):
    input = InputPort[T]()

    @input.process
    def each(self, record: object) -> None: ...


@attrs.define
class TwoSteps(Module):
    """Two steps in a row; what the first one makes leaves too."""

    input = ProxyInputPort[str]()
    first = ProxyOutputPort[str]()
    output = ProxyOutputPort[str]()

    def populate_dag(self, dag: DAG) -> None:
        a, b = dag.add_operator("a", Step()), dag.add_operator("b", Step())
        dag.add_stream("between", a.output, b.input)
        self.input.set(a.input)
        self.first.set(a.output)
        self.output.set(b.output)


@attrs.define
class Nested(Module):
    """As often two steps as is said, one in the other's place."""

    depth: int = 1

    input = ProxyInputPort[str]()
    output = ProxyOutputPort[str]()

    def populate_dag(self, dag: DAG) -> None:
        inner = dag.add_module("inner", Nested(self.depth - 1)) if self.depth > 1 else dag.add_module("steps", TwoSteps())
        self.input.set(inner.input)
        self.output.set(inner.output)


@attrs.define
class Spread(Module):
    """Two operators get all that comes."""

    input = ProxyInputPort[str]()

    def populate_dag(self, dag: DAG) -> None:
        left, right = dag.add_operator("left", Sink[str]()), dag.add_operator("right", Sink[str]())
        self.input.set(left.input, right.input)


@attrs.define
class Passing(Module, Generic[T]):
    """Operators that say nothing of their types, in a module that does."""

    input = ProxyInputPort[T]()
    output = ProxyOutputPort[T]()

    def populate_dag(self, dag: DAG) -> None:
        inner = dag.add_operator("inner", Anything())
        self.input.set(inner.input)
        self.output.set(inner.output)
