"""A picture as self-contained SVG."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Mapping, Sequence

from dagflow.page.diagram.layout import Box, Point
from dagflow.page.diagram.picture import LINE, Arrow, Picture, group_title, on_the_way, picture_of, shortened
from dagflow.planning.view import OperatorView, PlanView

STYLE = """\
.dagflow-graph{--dg-back:#fff;--dg-ink:#1c2024;--dg-dim:#6a7280;--dg-line:#9aa3b0;--dg-box:#fff;--dg-edge:#c9ced6;\
--dg-stage:#f5f6f8;--dg-rim:#e2e5ea;--dg-accent:#b45309;background:var(--dg-back);\
font:13px/1.3 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;max-width:100%;height:auto}
@media (prefers-color-scheme:dark){.dagflow-graph{--dg-back:#16181c;--dg-ink:#e7e9ec;--dg-dim:#9aa2ae;--dg-line:#6b7482;\
--dg-box:#22262c;--dg-edge:#454c57;--dg-stage:#1c1f24;--dg-rim:#2c3138;--dg-accent:#f0a04b}}
.dagflow-graph text{fill:var(--dg-ink);stroke:none}
.dagflow-graph .dim{fill:var(--dg-dim);font-size:11.5px}
.dagflow-graph .name{font-weight:600}
.dagflow-graph .title{fill:var(--dg-dim);font-size:11.5px}
.dagflow-graph .box{fill:var(--dg-box);stroke:var(--dg-edge)}
.dagflow-graph .group{fill:var(--dg-stage);stroke:var(--dg-rim)}
.dagflow-graph .module{fill:none;stroke:var(--dg-edge);stroke-dasharray:4 3}
.dagflow-graph .edge{fill:none;stroke:var(--dg-line);stroke-width:1.4}
.dagflow-graph .items{stroke-dasharray:2 3}
.dagflow-graph .exchange{stroke:var(--dg-accent)}
.dagflow-graph .mark{fill:var(--dg-accent)}
.dagflow-graph .head{fill:var(--dg-line)}
.dagflow-graph .label{fill:var(--dg-accent);font-size:11px;paint-order:stroke;stroke:var(--dg-back);stroke-width:3px}
"""


def graph_svg(view: PlanView, lines: Mapping[str, str] | None = None) -> str:
    """Return a plan view as an SVG picture: stages as boxes, exchanges in a colour of their own, for light and dark pages.

    `lines`: a further line of text for the boxes of operators, by name.

    >>> from dagflow import DAG
    >>> from dagflow.planning.view import plan_view
    >>> graph_svg(plan_view(DAG("demo"), "logical"))[:45]
    '<svg xmlns="http://www.w3.org/2000/svg" class'
    """
    picture = picture_of(view, lines=3 if lines else 2)
    return "\n".join([*_begin(picture), *_body(picture, lines or {}), "</svg>\n"])


def _begin(picture: Picture) -> Iterator[str]:
    width, height = max(picture.root.width, 1), max(picture.root.height, 1)
    title = _text(f"The operators and streams of {picture.view.application}")
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dagflow-graph" role="img" aria-label="{title}" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">'
    )
    yield f"<style>{STYLE}</style>"
    yield (
        '<defs><marker id="dagflow-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0 0.5 7.5 4 0 7.5z"/></marker></defs>'
    )


def _body(picture: Picture, lines: Mapping[str, str]) -> Iterator[str]:
    for group in picture.root.groups():
        yield _group(group, picture)
    for arrow in picture.arrows:
        yield _arrow(arrow)
    for box, operator in picture.boxes():
        yield _operator(box, operator, lines.get(operator.name))


def _group(box: Box, picture: Picture) -> str:
    style = "module" if box.kind == "module" else "group"
    rect = f'<rect class="{style}" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="8"/>'
    title = _text(shortened(group_title(box, picture.view)))
    return f'{rect}<text class="title" x="{box.x + 12:g}" y="{box.y + 18:g}">{title}</text>'


def _operator(box: Box, operator: OperatorView, line: str | None) -> str:
    x, y = box.x + 12, box.y + LINE + 4
    texts = [
        f'<text class="name" x="{x:g}" y="{y:g}">{_text(shortened(operator.name))}</text>',
        f'<text class="dim" x="{x:g}" y="{y + LINE:g}">{_text(shortened(operator.class_name))}</text>',
    ]
    if line is not None:
        texts.append(f'<text class="dim" x="{x:g}" y="{y + 2 * LINE:g}">{_text(shortened(line))}</text>')
    about = [f"{operator.name}: {operator.class_name}", *([operator.placement] if operator.placement else []), operator.where]
    rect = f'<rect class="box" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="6"/>'
    return f"<g><title>{_text(chr(10).join(about))}</title>{rect}{''.join(texts)}</g>"


def _arrow(arrow: Arrow) -> str:
    sink = arrow.sink
    style = "edge exchange" if sink.exchange else "edge items" if sink.crosses else "edge"
    about = [arrow.stream.title, f"{arrow.stream.source} → {sink.port}", *on_the_way(sink)]
    path = f'<path class="{style}" d="{curve(arrow.points)}" marker-end="url(#dagflow-head)"/>'
    mark = _exchange(arrow.points, sink.exchange) if sink.exchange else ""
    return f"<g><title>{_text(chr(10).join(about))}</title>{path}{mark}</g>"


def _exchange(points: Sequence[Point], exchange: str) -> str:
    """Return a diamond and the exchange's name, in the middle of the longest part of a route."""
    (x, y), (x2, y2) = max(itertools.pairwise(points), key=lambda pair: pair[1][0] - pair[0][0])
    x, y = (x + x2) / 2, (y + y2) / 2
    label = _text(shortened(exchange))
    diamond = f'<path class="mark" d="M{x - 5:g} {y:g} {x:g} {y - 5:g} {x + 5:g} {y:g} {x:g} {y + 5:g}z"/>'
    return f'{diamond}<text class="label" text-anchor="middle" x="{x:g}" y="{y - 9:g}">{label}</text>'


def curve(points: Sequence[Point]) -> str:
    """Return the SVG path of a route: level between points of one height, else a curve that begins and ends level.

    >>> curve([(0, 5), (10, 5), (20, 9)])
    'M0 5L10 5C15 5 15 9 20 9'
    """
    (x, y), *others = points
    parts = [f"M{x:g} {y:g}"]
    for to_x, to_y in others:
        middle = (x + to_x) / 2
        parts.append(f"L{to_x:g} {to_y:g}" if to_y == y else f"C{middle:g} {y:g} {middle:g} {to_y:g} {to_x:g} {to_y:g}")
        x, y = to_x, to_y
    return "".join(parts)


def _text(text: str) -> str:
    """Escape a text for XML. Lone surrogates, of names that are not UTF-8, cannot be encoded and become escapes."""
    return html.escape(text.encode("utf-8", "backslashreplace").decode())
