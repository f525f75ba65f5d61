from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.page.diagram.layout import Box, arrange


@st.composite
def nested(draw: st.DrawFn) -> tuple[Box, list[tuple[str, str]]]:
    """Operators in groups in groups, and streams among them that lead from earlier to later ones."""
    count = draw(st.integers(1, 14))
    leaves = [Box(f"o{n}", draw(st.sampled_from([60.0, 130.0])), draw(st.sampled_from([30.0, 50.0]))) for n in range(count)]
    places = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=count, max_size=count))
    groups: dict[int, dict[int, list[Box]]] = {}
    for leaf, (outer, inner) in zip(leaves, places, strict=True):
        groups.setdefault(outer, {}).setdefault(inner, []).append(leaf)
    boxes = []
    for outer, inside in groups.items():
        inner = [Box(f"g{outer}.{n}", children=each, kind="module") if n else each for n, each in inside.items()]
        children = [box for each in inner for box in (each if isinstance(each, list) else [each])]
        boxes += [Box(f"g{outer}", children=children, kind="stage")] if outer else children
    number = st.integers(0, count - 1)
    pairs = draw(st.lists(st.tuples(number, number), max_size=30))
    return Box("", children=boxes), [(f"o{min(pair)}", f"o{max(pair)}") for pair in pairs]


def overlap(a: Box, b: Box) -> bool:
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


@given(nested())
def test_boxes_do_not_overlap_and_streams_lead_to_the_right(drawn: tuple[Box, list[tuple[str, str]]]) -> None:
    root, edges = drawn
    ways = arrange(root, edges)
    leaves = {leaf.name: leaf for leaf in root.leaves()}
    for box in (root, *root.groups()):
        assert not [(a.name, b.name) for a, b in itertools.combinations(box.children, 2) if overlap(a, b)]
        for child in box.children:
            assert box.x <= child.x
            assert child.x + child.width <= box.x + box.width
            assert box.y <= child.y
            assert child.y + child.height <= box.y + box.height + 0.01
    for source, target in edges:
        if source == target:
            continue
        points = ways[source, target]
        a, b = leaves[source], leaves[target]
        assert a.x + a.width < b.x
        assert [x for x, _ in points] == sorted(x for x, _ in points)
        assert points[0] == pytest.approx((a.x + a.width, a.y + a.height / 2), abs=0.11)
        assert points[-1] == pytest.approx((b.x, b.y + b.height / 2), abs=0.11)


@given(nested())
def test_no_stream_passes_through_an_operator_it_does_not_belong_to(drawn: tuple[Box, list[tuple[str, str]]]) -> None:
    root, edges = drawn
    ways = arrange(root, edges)
    for (source, target), points in ways.items():
        for leaf in root.leaves():
            if leaf.name in (source, target):
                continue
            for (x, y), (x2, y2) in itertools.pairwise(points):
                if y == y2 and x < leaf.x + leaf.width and leaf.x < x2:
                    assert not leaf.y < y < leaf.y + leaf.height


def test_a_circle_has_a_layout() -> None:
    root = Box("", children=[Box(name, 50, 30) for name in "abc"])
    ways = arrange(root, [("a", "b"), ("b", "c"), ("c", "a"), ("b", "b")])
    assert len(ways) == 3
    assert root.children[0].x < root.children[1].x < root.children[2].x


def test_a_group_that_a_stream_leaves_and_comes_back_to_is_dissolved() -> None:
    group = Box("m", children=[Box("a", 50, 30), Box("c", 50, 30)], kind="module")
    root = Box("", children=[group, Box("b", 50, 30)])
    arrange(root, [("a", "b"), ("b", "c")])
    assert [box.name for box in root.children] == ["a", "c", "b"]
    assert not list(root.groups())


def test_a_thousand_operators_have_a_layout() -> None:
    groups = [Box(f"s{k}", children=[Box(f"o{n}", 150, 50) for n in range(200 * k, 200 * k + 200)]) for k in range(5)]
    ways = arrange(Box("", children=groups), [(f"o{max(0, n - 1 - n * 7 % 30)}", f"o{n}") for n in range(1, 1000)])
    assert len(ways) == 999


def test_the_same_boxes_have_the_same_places() -> None:
    def places() -> list[tuple[float, float]]:
        root = Box("", children=[Box(f"o{n}", 50, 30) for n in range(40)])
        arrange(root, [(f"o{n // 2}", f"o{n}") for n in range(1, 40)])
        return [(box.x, box.y) for box in root.children]

    assert places() == places()
