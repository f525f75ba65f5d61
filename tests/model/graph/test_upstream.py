from __future__ import annotations

from typing import TypeVar

from dagflow import DAG, InputPort, Operator, OutputPort
from dagflow.model.graph.dag import PortName
from dagflow.model.graph.upstream import nearest_declaration

R = TypeVar("R")
S = TypeVar("S")


class Source(Operator):
    output = OutputPort[object]()


class Passes(Operator):
    """Lets the records of one input pass, and looks at those of another."""

    input = InputPort[R]()
    other = InputPort[S]()
    output = OutputPort[R]()


class Joins(Operator):
    left = InputPort[R]()
    right = InputPort[R]()
    output = OutputPort[R]()


class Makes(Operator):
    input = InputPort[R]()
    output = OutputPort[str]()


def found(middle: Operator, *ports: str) -> str | None:
    """Return the source's answer as far as `middle` passes it on; each of its `ports` gets the records of a source."""
    dag = DAG("d")
    operator = dag.add_operator("middle", middle)
    for port in ports:
        source = dag.add_operator(f"to {port}", Source())
        dag.add_stream(port, source.output, getattr(operator, port))
    end = dag.add_operator("end", Makes())
    dag.add_stream("end", operator.output, end.input)

    def said(port: PortName) -> str | None:
        return port.operator if port.operator.startswith("to ") else None

    return nearest_declaration(dag.operators, dag.streams.values(), PortName("middle", "output"), said)


def test_of_the_input_whose_records_pass() -> None:
    assert found(Passes(), "input", "other") == "to input"


def test_nobody_knows_where_several_meet_or_others_are_made() -> None:
    assert found(Joins(), "left", "right") is None
    assert found(Makes(), "input") is None
    assert found(Passes(), "other") is None
