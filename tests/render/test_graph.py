from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG
from dagflow.planning.view import OperatorView, PlanView, SinkView, StreamView, plan_view
from dagflow.render.graph import graph_dot, graph_text, mermaid, ordered
from tests.golden.compare import Golden
from tests.render import sample


@pytest.mark.parametrize("make", [sample.chain, sample.diamond, sample.modules])
def test_pictures(make: object, golden: Golden) -> None:
    view = plan_view(make(), "staged")  # type: ignore[operator]
    golden(f"graph_{view.application}.txt", graph_text(view) + "\n")
    golden(f"graph_{view.application}.mermaid", mermaid(view) + "\n")


def test_a_circle_can_be_drawn_as_written(golden: Golden) -> None:
    view = plan_view(sample.circle(), "logical")
    golden("graph_circle.txt", graph_text(view) + "\n")
    golden("graph_circle.mermaid", mermaid(view) + "\n")


def test_a_module_is_one_node_as_written_and_a_box_later(golden: Golden) -> None:
    assert '  op_lines[["lines<br/>CleanedFiles"]]' in mermaid(plan_view(sample.modules(), "logical"))
    golden("graph_modules_checked.mermaid", mermaid(plan_view(sample.modules(), "checked")) + "\n")


def test_dot(golden: Golden) -> None:
    golden("graph_modules.dot", graph_dot(plan_view(sample.modules(), "staged")))


def operator(name: str) -> OperatorView:
    return OperatorView(name=name, class_name="Op", module="m", where="app.py:1", properties=(), inputs=(), outputs=())


@st.composite
def dags(draw: st.DrawFn) -> PlanView:
    """Views of any DAG: streams lead forward, from one source to any sinks."""
    count = draw(st.integers(1, 9))
    names = [f"n{i}" for i in range(count)]
    streams = []
    for source in range(count - 1):
        for port in range(draw(st.integers(0, 2))):
            sinks = draw(st.lists(st.integers(source + 1, count - 1), max_size=3))
            found = tuple(SinkView(port=f"{names[i]}.in{k}") for k, i in enumerate(sinks))
            streams.append(
                StreamView(name=f"s{source}x{port}", source=f"{names[source]}.out{port}", sinks=found, where="app.py:2")
            )
    order = draw(st.permutations(names))
    return PlanView(application="any", step="logical", operators=tuple(operator(n) for n in order), streams=tuple(streams))


@given(dags())
def test_each_operator_and_stream_is_drawn_once_and_all_lanes_end(view: PlanView) -> None:
    lines = graph_text(view).split("\n")
    dots = [line for line in lines if "●" in line]
    assert sorted(re.search(r"n\d", line).group() for line in dots) == sorted(o.name for o in view.operators)  # type: ignore[union-attr]
    for stream in view.streams:
        assert sum(f" {stream.name}  " in line for line in lines) == 1
    assert not set("│┼") & set(lines[-1])


@given(dags())
def test_lanes_go_on_from_line_to_line(view: PlanView) -> None:
    """An edge that leaves a line downwards arrives in the next one at the same place."""
    down, up = set("│●├┬┼╮"), set("│●├┴┼╯")
    lines = [re.split(r" (?=[a-z])", line, maxsplit=1)[0] for line in graph_text(view).split("\n")]
    for above, below in pairwise(lines):
        for column, mark in enumerate(below):
            if mark in up - {"●"} and column % 2 == 0:
                assert above[column : column + 1] in down
        for column, mark in enumerate(above):
            if mark in down - {"●"} and column % 2 == 0:
                assert below[column : column + 1] in up


@given(dags())
def test_operators_are_ordered_forward(view: PlanView) -> None:
    place = {o.name: i for i, o in enumerate(ordered(view))}
    assert len(place) == len(view.operators)
    for stream in view.streams:
        for sink in stream.sinks:
            assert place[stream.source.split(".")[0]] < place[sink.port.split(".")[0]]


def test_mermaid_survives_any_name() -> None:
    view = PlanView(
        application="odd",
        step="logical",
        operators=(operator("end"), operator('a "b"'), operator("a-b"), operator("a.b"), operator("Größe")),
        streams=(StreamView(name="x<y>", source="a.b.out", sinks=(SinkView(port="end.in"),), where="", type="list[`T`]"),),
    )
    text = mermaid(view)
    ids = re.findall(r"^  (\w+)\[", text, re.MULTILINE)
    assert len(set(ids)) == len(ids) == 5
    assert "end" not in ids
    assert 'op_a_b_2 -- "x&lt;y&gt;: list[#96;T#96;]<br/>out → in" --> op_end' in text


@pytest.mark.parametrize("make", [sample.diamond, sample.modules])
def test_every_mermaid_line_has_a_known_form(make: Callable[[], DAG]) -> None:
    lines = mermaid(plan_view(make(), "staged")).split("\n")
    assert sum("subgraph" in line for line in lines) == sum(line.strip() == "end" for line in lines)
    for line in lines:
        assert re.fullmatch(r'flowchart LR| +subgraph \w+\["[^"]*"\]| +end| +\w+\["[^"]*"\]|  \w+ -- "[^"]*" --> \w+', line), line
