"""A plan view as a picture: lines of text with one lane for each stream, Mermaid, and DOT."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator

from dagflow.errors.shown import visible
from dagflow.page.diagram.layout import Box
from dagflow.page.diagram.picture import group_title, nested, on_the_way, operator_of
from dagflow.planning.view import OperatorView, PlanView, SinkView, StreamView
from dagflow.render.style import Style


def graph_text(view: PlanView, style: Style | None = None) -> str:
    """The DAG from top to bottom: a dot an operator, a lane for each stream that is on its way to a sink.

    >>> from dagflow import DAG
    >>> from dagflow.planning.view import plan_view
    >>> from operators import Console, FileSplitterInput
    >>> dag = DAG("demo")
    >>> files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    >>> show = dag.add_operator("show", Console())
    >>> dag.add_stream("found", files.files_metadata_output, show.input)
    >>> print(graph_text(plan_view(dag, "checked")))
    ● files  FileSplitterInput
    │ found: FileMetadata  files_metadata_output → show.input
    ● show  Console
    """
    style, view = style or Style(), visible(view)
    drawing = _Lanes(style)
    drawn: set[str] = set()
    leaving: dict[str, list[StreamView]] = {}
    for stream in view.streams:
        leaving.setdefault(operator_of(stream.source), []).append(stream)
    for operator in ordered(view):
        drawn.add(operator.name)
        drawing.node(operator, leaving.get(operator.name, []), drawn)
    return "\n".join(drawing.lines)


class _Lanes:
    """Columns of lanes; each lane is a stream on its way to the operator that it leads to. Empty columns are used again."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.lanes: list[str | None] = []
        self.lines: list[str] = []

    def node(self, operator: OperatorView, streams: list[StreamView], drawn: set[str]) -> None:
        mine = [i for i, target in enumerate(self.lanes) if target == operator.name]
        if len(mine) > 1:
            self._line(self._branches(mine, "╯", "┴"))
        for column in mine[1:]:
            self.lanes[column] = None
        column = mine[0] if mine else self._free(0)
        self.lanes[column] = operator.name
        where = operator.stage or operator.placement
        text = f"{self.style.paint('bold', operator.name)}  {operator.class_name}"
        self._line(self._plain({column: "●"}), text + (f"  {self.style.paint('dim', where)}" if where else ""))
        targets = [operator_of(sink.port) for s in streams for sink in s.sinks]
        targets = [target for target in targets if target not in drawn]  # a circle's way back has no lane
        self.lanes[column] = targets[0] if targets else None
        columns = [column]
        for target in targets[1:]:
            columns.append(self._free(column + 1))
            self.lanes[columns[-1]] = target
        first = self._branches(columns, "╮", "┬") if len(columns) > 1 else self._plain({})
        for stream in streams:
            self._line(first, _label(stream, self.style))
            first = self._plain({})

    def _free(self, start: int) -> int:
        for column in range(start, len(self.lanes)):
            if self.lanes[column] is None:
                return column
        self.lanes.extend([None] * (max(0, start - len(self.lanes)) + 1))
        return len(self.lanes) - 1

    def _plain(self, marks: dict[int, str]) -> str:
        return " ".join(marks.get(i, " " if lane is None else "│") for i, lane in enumerate(self.lanes)).rstrip()

    def _branches(self, columns: list[int], last: str, between: str) -> str:
        """A line that joins columns, or parts them; other lanes that it crosses go on behind it."""
        parts = []
        for i, lane in enumerate(self.lanes):
            inside = columns[0] <= i < columns[-1]
            if i == columns[0]:
                mark = "├"
            elif i in columns:
                mark = last if i == columns[-1] else between
            elif inside:
                mark = "─" if lane is None else "┼"
            else:
                mark = " " if lane is None else "│"
            parts.append(mark + ("─" if inside else " "))
        return "".join(parts).rstrip()

    def _line(self, lanes: str, text: str = "") -> None:
        self.lines.append(f"{lanes} {text}".rstrip())


def _label(stream: StreamView, style: Style) -> str:
    port = stream.source.rpartition(".")[2]
    sinks = ", ".join(sink.port + (f" ({'; '.join(_on_the_way(sink))})" if _on_the_way(sink) else "") for sink in stream.sinks)
    return f"{stream.title}  " + style.paint("dim", f"{port} → {sinks or 'nowhere'}")


def _on_the_way(sink: SinkView) -> list[str]:
    """Return how records reach a port: the exchange that they cross, and their form."""
    crossing = None if sink.exchange is None else f"exchange {sink.exchange}"
    return [what for what in (crossing, sink.conversion) if what is not None]


def ordered(view: PlanView) -> list[OperatorView]:
    """The operators such that every stream leads forward, ties as written; those of a circle come last, as written."""
    before: dict[str, set[str]] = {o.name: set() for o in view.operators}
    for stream in view.streams:
        for sink in stream.sinks:
            before[operator_of(sink.port)].add(operator_of(stream.source))
    left, placed, done = list(view.operators), list[OperatorView](), set[str]()
    while left:
        following = next((o for o in left if before[o.name] <= done), left[0])
        placed.append(following)
        done.add(following.name)
        left.remove(following)
    return placed


def mermaid(view: PlanView) -> str:
    """The DAG as a Mermaid flowchart: ports and types on the arrows; the driver, each stage and each module as a box.

    >>> from dagflow import DAG
    >>> from dagflow.planning.view import plan_view
    >>> from operators import Console, FileSplitterInput
    >>> dag = DAG("demo")
    >>> files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    >>> show = dag.add_operator("show", Console())
    >>> dag.add_stream("found", files.files_metadata_output, show.input)
    >>> print(mermaid(plan_view(dag, "checked")))
    flowchart LR
      op_files["files<br/>FileSplitterInput"]
      op_show["show<br/>Console"]
      op_files -- "found: FileMetadata<br/>files_metadata_output → input" --> op_show
    """
    ids, numbers = _ids(o.name for o in view.operators), itertools.count()

    def begin(box: Box) -> str:
        name = {"driver": "driver", "stage": f"stage_{box.name}"}.get(box.kind) or f"module_{next(numbers)}"
        return f'subgraph {name}["{_escaped(group_title(box, view))}"]'

    def shape(operator: OperatorView) -> str:
        text = f'"{_escaped(operator.name)}<br/>{_escaped(operator.class_name)}"'
        return f"{ids[operator.name]}[[{text}]]" if operator.is_module else f"{ids[operator.name]}[{text}]"

    lines = ["flowchart LR", *_boxed(view, begin, "end", shape)]
    for stream in view.streams:
        source, _, port = stream.source.rpartition(".")
        for sink in stream.sinks:
            target, _, into = sink.port.rpartition(".")
            label = [stream.title, f"{port} → {into}", *_on_the_way(sink)]
            arrow = "<br/>".join(_escaped(part) for part in label)
            lines.append(f'  {ids[source]} -- "{arrow}" --> {ids[target]}')
    return "\n".join(lines)


def graph_dot(view: PlanView) -> str:
    """Return a plan view as DOT, the language of Graphviz: a cluster for the driver, each stage and each module.

    >>> from dagflow import DAG
    >>> from dagflow.planning.view import plan_view
    >>> print(graph_dot(plan_view(DAG("demo"), "logical")))
    digraph "demo" {
      rankdir=LR; node [shape=box, style=rounded, fontname="sans-serif"]; edge [fontname="sans-serif", fontsize=10];
    }
    <BLANKLINE>
    """
    view, numbers = visible(view), itertools.count()
    lines = [f"digraph {_quoted(view.application)} {{"]
    lines.append(
        '  rankdir=LR; node [shape=box, style=rounded, fontname="sans-serif"]; edge [fontname="sans-serif", fontsize=10];'
    )
    lines += _boxed(
        view,
        lambda box: f"subgraph cluster_{next(numbers)} {{\n  label={_quoted(group_title(box, view))};",
        "}",
        lambda operator: f"{_quoted(operator.name)} [label={_quoted(f'{operator.name}{chr(10)}{operator.class_name}')}];",
    )
    for stream in view.streams:
        for sink in stream.sinks:
            label = _quoted("\n".join([stream.title, *on_the_way(sink)]))
            style = ", style=dashed" if sink.exchange or sink.crosses else ""
            lines.append(f"  {_quoted(operator_of(stream.source))} -> {_quoted(operator_of(sink.port))} [label={label}{style}];")
    return "\n".join([*lines, "}\n"])


def _boxed(view: PlanView, begin: Callable[[Box], str], end: str, leaf: Callable[[OperatorView], str]) -> Iterator[str]:
    """Yield the lines of all operators; those of the driver, a stage or a module stand between the lines of a box."""
    operators = {operator.name: operator for operator in view.operators}

    def lines(boxes: Iterable[Box], indent: str) -> Iterator[str]:
        for box in boxes:
            if box.children:
                yield from (f"{indent}{line}" for line in begin(box).split("\n"))
                yield from lines(box.children, f"{indent}  ")
                yield f"{indent}{end}"
            else:
                yield f"{indent}{leaf(operators[box.name])}"

    yield from lines(nested(view, {name: Box(name) for name in operators}), "  ")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _ids(names: Iterable[str]) -> dict[str, str]:
    """An id for each operator: Mermaid takes letters and digits only, and has reserved words."""
    ids: dict[str, str] = {}
    for name in names:
        base = wanted = "op_" + re.sub(r"\W", "_", name, flags=re.ASCII)
        number = 2
        while wanted in ids.values():
            wanted, number = f"{base}_{number}", number + 1
        ids[name] = wanted
    return ids


def _escaped(text: str) -> str:
    """Text inside Mermaid's quotes, where HTML counts."""
    for character, code in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "#quot;"), ("`", "#96;")):
        text = text.replace(character, code)
    return text
