from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from dagflow.page import graph_svg
from dagflow.planning.view import OperatorView, PlanView, SinkView, StreamView, plan_view
from dagflow.render.graph import graph_dot
from tests.render import sample

SVG = "{http://www.w3.org/2000/svg}"


def drawing(view: PlanView) -> ET.Element:
    return ET.fromstring(graph_svg(view))  # which is well-formed XML


def texts(root: ET.Element, style: str) -> list[str | None]:
    return [each.text for each in root.iter(f"{SVG}text") if each.get("class") == style]


@pytest.mark.parametrize("make", [sample.chain, sample.diamond, sample.modules])
def test_a_picture_has_each_operator_stage_and_stream(make: object) -> None:
    view = plan_view(make(), "staged")  # type: ignore[operator]
    root = drawing(view)
    assert set(texts(root, "name")) == {operator.name for operator in view.operators}
    assert {f"stage {stage.name}" for stage in view.stages} <= set(texts(root, "title"))
    paths = [each for each in root.iter(f"{SVG}path") if (each.get("class") or "").startswith("edge")]
    assert len(paths) == sum(len(stream.sinks) for stream in view.streams)


def test_modules_are_boxes() -> None:
    assert "lines: CleanedFiles" in texts(drawing(plan_view(sample.modules(), "staged")), "title")


def test_a_circle_can_be_drawn_as_written() -> None:
    assert texts(drawing(plan_view(sample.circle(), "logical")), "name")


def test_names_are_escaped() -> None:
    name = 'a"<script>alert(1)</script>&\n\x1b\udc80'
    operator = OperatorView(name=name, class_name="<b>", module="m", where="app.py:1", properties=(), inputs=(), outputs=())
    sink = SinkView(port=f"{name}.in", exchange="hash by <i>")
    stream = StreamView(name="</svg>", source=f"{name}.out", sinks=(sink,), where="app.py:2", type="<T>")
    view = PlanView(application="</svg><img onerror=alert(1)>", step="staged", operators=(operator,), streams=(stream,))
    text = graph_svg(view)
    ET.fromstring(text)
    assert "<script" not in text
    assert "<img" not in text
    assert '\\"<script>' in graph_dot(view)


def test_exchanges_are_marked_with_their_kind() -> None:
    operators = tuple(
        OperatorView(name=name, class_name="Op", module="m", where="app.py:1", properties=(), inputs=(), outputs=())
        for name in "ab"
    )
    sink = SinkView(port="b.input", exchange="hash by key")
    streams = (StreamView(name="s", source="a.output", sinks=(sink,), where="app.py:2"),)
    root = drawing(PlanView(application="demo", step="staged", operators=operators, streams=streams))
    assert texts(root, "label") == ["hash by key"]
