"""Modules inlined: names, streams through proxies, and what can be wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG, Module, ProxyInputPort, ProxyOutputPort
from dagflow.errors import (
    ClassWrong,
    Cycle,
    DagErrors,
    DuplicateName,
    ForeignPort,
    InputUnconnected,
    ModuleBroken,
    NotAnOperator,
    PortTaken,
    PortTypeError,
    PropertyRefused,
    ProxyUnset,
    SourceTaken,
)
from dagflow.model.graph.checks import check
from dagflow.model.graph.dag import PortName
from dagflow.model.graph.expand import ExpandedDag, expand
from tests.model.modules import Both, Nested, Passing, Sink, Source, Spread, Step, TwoSteps


def edges(dag: ExpandedDag) -> list[str]:
    return [f"{name}: {s.source} → {', '.join(map(str, s.sinks))}" for name, s in dag.streams.items()]


def test_operators_stand_in_the_module_s_place_and_streams_lead_through_its_ports() -> None:
    dag = DAG()
    source = dag.add_operator("source", Source())
    steps = dag.add_module("steps", TwoSteps())
    sink = dag.add_operator("sink", Sink[str]())
    dag.add_stream("into", source.output, steps.input)
    dag.add_stream("out", steps.output, sink.input)
    assert dag.names == ("source", "steps", "sink")
    found = expand(dag)
    assert list(found.operators) == ["source", "steps.a", "steps.b", "sink"]
    assert [node.inside for node in found.operators.values()] == [None, "steps", "steps", None]
    assert edges(found) == [
        "into: source.output → steps.a.input",
        "steps.between: steps.a.output → steps.b.input",
        "out: steps.b.output → sink.input",
    ]
    assert list(check(dag).nodes) == ["source", "steps.a", "steps.b", "sink"]
    assert re.fullmatch(r"\S+test_expand\.py:\d+ → \S+modules\.py:\d+", found.operators["steps.a"].where)


def test_a_dag_without_modules_is_as_it_was_written() -> None:
    dag = DAG()
    dag.add_stream("s", dag.add_operator("source", Source()).output, dag.add_operator("sink", Sink[str]()).input)
    found = expand(dag)
    assert (dict(found.operators), dict(found.streams)) == (dict(dag.operators), dict(dag.streams))
    assert found.is_whole


def test_a_port_inside_may_have_sinks_inside_and_outside() -> None:
    """They become one stream: the user of a module need not know that there is another sink."""
    dag = DAG()
    source, steps = dag.add_operator("source", Source()), dag.add_module("steps", TwoSteps())
    dag.add_stream("into", source.output, steps.input)
    dag.add_stream("early", steps.first, dag.add_operator("sink", Sink[str]()).input)
    found = expand(dag)
    assert edges(found) == [
        "into: source.output → steps.a.input",
        "early: steps.a.output → sink.input, steps.b.input",
    ]
    ways = found.streams["early"].routes
    assert [(way.stream, way.through) for way in ways.values()] == [
        ("early", (PortName("steps", "first"),)),
        ("steps.between", ()),
    ]
    assert not found.problems


def test_what_arrives_at_a_module_may_go_to_several_operators() -> None:
    dag = DAG()
    source, spread = dag.add_operator("source", Source()), dag.add_module("spread", Spread())
    dag.add_stream("all", source.output, spread.input, dag.add_operator("sink", Sink[str]()).input)
    assert edges(expand(dag)) == ["all: source.output → spread.left.input, spread.right.input, sink.input"]


@given(st.integers(1, 12))
def test_modules_may_lie_in_modules(depth: int) -> None:
    dag = DAG()
    source, nested = dag.add_operator("source", Source()), dag.add_module("m", Nested(depth))
    dag.add_stream("into", source.output, nested.input)
    before = ".".join(["m", *["inner"] * (depth - 1), "steps"])
    found = expand(dag)
    assert list(found.operators) == ["source", f"{before}.a", f"{before}.b"]
    assert len(found.modules) == depth + 1
    assert edges(found)[0] == f"into: source.output → {before}.a.input"
    assert len(found.streams["into"].routes[PortName(f"{before}.a", "input")].through) == depth + 1
    assert found.operators[f"{before}.a"].where.count(" → ") == 1  # the user's line, and the innermost one


def test_each_expansion_is_a_new_one() -> None:
    dag = DAG()
    dag.add_stream("into", dag.add_operator("source", Source()).output, dag.add_module("m", TwoSteps()).input)
    first, second = expand(dag), expand(dag)
    assert edges(first) == edges(second)
    assert first.operators["m.a"].operator is not second.operators["m.a"].operator
    assert first.operators["source"].operator is second.operators["source"].operator


def test_modules_are_configured_before_they_are_filled_outer_ones_first() -> None:
    asked = []

    def configure(node: Any) -> bool:
        asked.append(node.name)
        if node.name == "m":
            node.module.depth = 2
        return True

    dag = DAG()
    dag.add_stream("into", dag.add_operator("source", Source()).output, dag.add_module("m", Nested()).input)
    assert "m.inner.steps.a" in expand(dag, configure).operators
    assert asked == ["m", "m.inner", "m.inner.steps"]


def wrong_into(dag: DAG) -> None:
    source, steps = dag.add_operator("source", Source()), dag.add_module("steps", TwoSteps())
    dag.add_stream("numbers", source.numbers, steps.input)


def wrong_out(dag: DAG) -> None:
    source, steps = dag.add_operator("source", Source()), dag.add_module("steps", TwoSteps())
    dag.add_stream("into", source.output, steps.input)
    dag.add_stream("early", steps.first, dag.add_operator("sink", Sink[int]()).input)


@attrs.define
class Promising(Module):
    """Says of its output what is not so."""

    input = ProxyInputPort[str]()
    output = ProxyOutputPort[int]()

    def populate_dag(self, dag: DAG) -> None:
        step = dag.add_operator("step", Step())
        self.input.set(step.input)
        self.output.set(step.output)


def promising(dag: DAG) -> None:
    source, inner = dag.add_operator("source", Source()), dag.add_module("m", Promising())
    dag.add_stream("into", source.output, inner.input)
    dag.add_stream("out", inner.output, *(dag.add_operator(f"sink{i}", Sink[int]()).input for i in range(2)))


@pytest.mark.parametrize(
    ("make", "stream", "source", "sink", "reason"),
    [
        (wrong_into, "numbers", "source.numbers", "steps.input", "int is not str"),
        (wrong_out, "early", "steps.first", "sink.input", "str is not int"),
        (promising, "out", "m.step.output", "m.output", "str is not int"),
    ],
)
def test_types_are_compared_at_the_ports_of_modules(
    make: Callable[[DAG], None], stream: str, source: str, sink: str, reason: str
) -> None:
    dag = DAG()
    make(dag)
    with pytest.raises(PortTypeError) as found:
        check(dag)
    problem = found.value
    assert (problem.stream, problem.source, problem.sink, problem.difference) == (stream, source, sink, reason)


def passing(module: Any, wanted: type) -> DAG:
    dag = DAG()
    source, inner = dag.add_operator("source", Source()), dag.add_module("m", module)
    dag.add_stream("into", source.output, inner.input)
    dag.add_stream("out", inner.output, dag.add_operator("sink", Sink[wanted]()).input)  # type: ignore[valid-type]
    return dag


def test_type_variables_of_modules_are_solved() -> None:
    """The operators inside say nothing; the module says that what comes out is as what goes in."""
    check(passing(Passing(), str))
    with pytest.raises(PortTypeError, match="str is not int"):
        check(passing(Passing(), int))
    with pytest.raises(PortTypeError) as found:
        check(passing(Passing[int](), int))
    assert (found.value.source, found.value.sink) == ("source.output", "m.input")


def test_what_a_module_promises_is_known_behind_it() -> None:
    dag = passing(Passing(), str)
    generic = dag.add_operator("generic", Sink())
    again = dag.add_module("again", Passing())
    dag.add_stream("on", dag.operator("source").numbers, again.input)  # type: ignore[attr-defined]
    dag.add_stream("end", again.output, generic.input)
    assert check(dag).types[PortName("generic", "input")] is int


def problem_of(module: Module) -> Any:
    dag = DAG()
    dag.add_operator("source", Source())
    dag.add_module("m", module)
    with pytest.raises((DagErrors, ValueError, TypeError)) as found:
        check(dag)
    return found.value


@attrs.define
class Wrong(Module):
    """Filled by a function; `least` has a rule."""

    fill: Callable[[Any, DAG], None]
    least: int = 1

    input = ProxyInputPort[str]()

    def check(self) -> None:
        if self.least < 1:
            raise ValueError(f"least is {self.least}, but must be at least 1")

    def populate_dag(self, dag: DAG) -> None:
        self.fill(self, dag)


def step(dag: DAG, name: str = "step") -> Step:
    return dag.add_operator(name, Step())


def raises(module: Any, dag: DAG) -> None:
    step(dag)
    raise KeyError("no such thing")


def twice(module: Any, dag: DAG) -> None:
    module.input.set(step(dag).input)
    step(dag)


def taken(module: Any, dag: DAG) -> None:
    first, second = step(dag), step(dag, "second")
    dag.add_stream("inner", first.output, second.input)
    module.input.set(second.input)


def own_port(module: Any, dag: DAG) -> None:
    module.input.set(step(dag).input)
    dag.add_stream("own", module.input, dag.operator("step").input)  # type: ignore[attr-defined]


def like_a_property(module: Any, dag: DAG) -> None:
    module.input.set(step(dag, "least").input)


@pytest.mark.parametrize(
    ("module", "kind", "words"),
    [
        (
            Wrong(lambda m, dag: step(dag) and None),
            ProxyUnset,
            "port m.input of a module is not bound to a port inside.*self.input.set",
        ),
        (Wrong(raises), ModuleBroken, "module 'm': Wrong.populate_dag\\(\\) failed: KeyError: 'no such thing'.*in raises"),
        (Wrong(twice, least=0), PropertyRefused, "module 'm' has invalid properties: least is 0"),
        (Wrong(twice), DuplicateName, "two operators are called 'm.step'"),
        (Wrong(taken), PortTaken, "two streams lead into m.second.input.*'m.inner'.*'m.input'"),
        (Wrong(own_port), NotAnOperator, "was given where an output port"),
        (Wrong(like_a_property), ClassWrong, "'least' is both a property and the name of an operator inside"),
        (Wrong(lambda m, dag: m.input.set(Step().input)), ForeignPort, "port 'm.input' names port Step.input"),
        (Wrong(lambda m, dag: m.input.set(step(dag).output)), NotAnOperator, r"where an input port \(port 'm.input'\)"),
        (Wrong(lambda m, dag: m.input.set(step(dag))), NotAnOperator, r"the operator Step \(its ports: input\)"),
    ],
)
def test_what_is_wrong_with_a_module_is_told_with_its_name(module: Module, kind: type, words: str) -> None:
    problem = problem_of(module)
    assert type(problem) is kind
    assert re.search(words, str(problem), re.DOTALL)


@attrs.define
class Endless(Module):
    input = ProxyInputPort[str]()

    def populate_dag(self, dag: DAG) -> None:
        self.input.set(dag.add_module("m", Endless()).input)


def test_a_module_that_contains_itself_is_refused() -> None:
    assert "modules lie 50 deep in each other" in str(problem_of(Endless()))


def test_a_broken_module_hides_no_mistakes_of_operators_and_makes_no_others() -> None:
    """Its streams are not known: what they lead to is not told to be unconnected."""
    dag = DAG()
    wrong = dag.add_module("wrong", Wrong(raises))
    source = dag.add_operator("source", Source())
    dag.add_stream("into", source.output, wrong.input)
    dag.add_operator("lonely", Step())
    dag.add_module("also", Wrong(twice, least=-1))
    with pytest.raises(DagErrors) as found:
        check(dag)
    assert [type(problem) for problem in found.value.problems] == [ModuleBroken, PropertyRefused]


def test_an_unconnected_port_is_told_with_the_module_s_port() -> None:
    dag = DAG()
    source = dag.add_operator("source", Source())
    join = dag.add_module("m", Joined())
    dag.add_stream("into", source.output, join.left)
    with pytest.raises(InputUnconnected, match=r"input port m\.join\.right.*\n.*\n.*add_stream\(name, source, m\.right\)"):
        check(dag)


@attrs.define
class Joined(Module):
    left = ProxyInputPort[str]()
    right = ProxyInputPort[str]()

    def populate_dag(self, dag: DAG) -> None:
        join = dag.add_operator("join", Both())
        self.left.set(join.left)
        self.right.set(join.right)


def test_a_circle_through_a_module_is_told_with_its_operators() -> None:
    dag = DAG()
    steps = dag.add_module("m", TwoSteps())
    dag.add_stream("back", steps.output, steps.input)
    with pytest.raises((Cycle, DagErrors), match=r"m\.a → m\.b → m\.a"):
        check(dag)


def test_names_are_unique_among_operators_and_modules() -> None:
    dag = DAG()
    module = dag.add_module("m", Spread())
    dag.add_operator("m", Step())
    assert dag.add_module("m", module) is module  # the same again is fine
    dag.add_module("other", module)
    dag.add_operator("m.left", Step())
    kinds = [type(problem) for problem in expand(dag).problems]
    assert kinds == [DuplicateName, NotAnOperator, DuplicateName]
    assert "two parts are called 'm'" in str(dag.problems[0])


def test_modules_and_operators_are_not_mistaken_for_each_other() -> None:
    dag = DAG()
    dag.add_operator("m", Spread())  # type: ignore[type-var]
    dag.add_module("o", Step())  # type: ignore[type-var]
    first, second = dag.problems
    assert "help: dag.add_module(name, …)" in str(first)
    assert "was given where a module (named 'o') is expected" in str(second)


def test_a_port_of_a_module_takes_and_starts_one_stream() -> None:
    dag = DAG()
    source, steps = dag.add_operator("source", Source()), dag.add_module("m", TwoSteps())
    dag.add_stream("one", source.output, steps.input, steps.input)
    dag.add_stream("two", steps.output, dag.add_operator("a", Step()).input)
    dag.add_stream("three", steps.output, dag.add_operator("b", Step()).input)
    assert [type(problem) for problem in dag.problems] == [PortTaken, SourceTaken]
