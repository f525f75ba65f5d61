"""A plan view as nested boxes with their places: the driver and the stages, the modules in them, the operators in those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from dagflow.errors.shown import visible
from dagflow.page.diagram.layout import Box, Point, arrange
from dagflow.planning.plan import DRIVER
from dagflow.planning.view import OperatorView, PlanView, SinkView, StreamView

LINE = 17.0
"""The height of a line of text."""
MAX_LETTERS = 30
_LETTER = 7.3  # the mean width of a letter of a name


@attrs.frozen
class Arrow:
    """A stream to one of its sinks, and its route: points from left to right."""

    stream: StreamView
    sink: SinkView
    points: Sequence[Point]

    @property
    def source(self) -> str:
        """The operator that it leaves."""
        return operator_of(self.stream.source)

    @property
    def target(self) -> str:
        """The operator that it leads to."""
        return operator_of(self.sink.port)


@attrs.frozen(kw_only=True)
class Picture:
    """The boxes and arrows of a plan view. `root` holds all boxes; its `width` and `height` are those of the picture."""

    view: PlanView
    root: Box
    operators: dict[str, OperatorView]
    arrows: tuple[Arrow, ...]

    def boxes(self) -> Iterator[tuple[Box, OperatorView]]:
        """Yield the box of each operator."""
        for box in self.root.leaves():
            if box.name in self.operators:
                yield box, self.operators[box.name]


def picture_of(view: PlanView, lines: int = 2) -> Picture:
    """Lay out a plan view. `lines`: the lines of text in the box of an operator.

    >>> from dagflow import DAG
    >>> from dagflow.planning.view import plan_view
    >>> from operators import Console, FileSplitterInput
    >>> dag = DAG("demo")
    >>> files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    >>> show = dag.add_operator("show", Console())
    >>> dag.add_stream("found", files.files_metadata_output, show.input)
    >>> picture = picture_of(plan_view(dag, "staged"))
    >>> [group.name for group in picture.root.groups()], [box.name for box, operator in picture.boxes()]
    (['driver'], ['files', 'show'])
    """
    view = visible(view)
    operators = {operator.name: operator for operator in view.operators}
    least = 112 if lines == 2 else 158  # figures are longer than short names
    leaves = {name: Box(name, max(_width(operator), least), lines * LINE + 16) for name, operator in operators.items()}
    root = Box("", kind="root", children=list(nested(view, leaves)))
    ways = arrange(root, [(operator_of(s.source), operator_of(sink.port)) for s in view.streams for sink in s.sinks])
    arrows = []
    for stream in view.streams:
        for sink in stream.sinks:
            source, target = operator_of(stream.source), operator_of(sink.port)
            if source == target:
                box = leaves[source]
                ways[source, target] = [(box.x + box.width, box.y + box.height / 2), (box.x, box.y + box.height / 2)]
            arrows.append(Arrow(stream, sink, ways[source, target]))
    return Picture(view=view, root=root, operators=operators, arrows=tuple(arrows))


def on_the_way(sink: SinkView) -> list[str]:
    """Return how records reach a port, in words: as work items, over an exchange, converted."""
    crossing = "work items of windows" if sink.crosses else None if sink.exchange is None else f"exchange {sink.exchange}"
    return [what for what in (crossing, sink.conversion) if what is not None]


def operator_of(port: str) -> str:
    """Return the operator of `operator.port`; names of operators may hold dots."""
    return port.rpartition(".")[0]


def shortened(text: str) -> str:
    """Return a text that fits into a box. A long one loses its middle.

    >>> shortened("a name that is much too long for its box")
    'a name that is …g for its box'
    """
    return text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS // 2]}…{text[-MAX_LETTERS // 2 + 2 :]}"


def _width(operator: OperatorView) -> float:
    letters = max(len(shortened(operator.name)), len(shortened(operator.class_name)))
    return round(letters * _LETTER + 24, 1)


def nested(view: PlanView, leaves: Mapping[str, Box]) -> Iterator[Box]:
    """Yield a box for the driver and for each stage, with those of modules in them. What is not staged yet is in neither.

    `leaves`: the boxes of operators by name.
    """
    driver = [operator for operator in view.operators if operator.placement == DRIVER]
    if driver:
        yield Box("driver", kind="driver", children=list(_modules(view, driver, None, leaves)))
    others = [operator for operator in view.operators if operator.stage is None and operator.placement != DRIVER]
    yield from _modules(view, others, None, leaves)
    for stage in view.stages:
        mine = [operator for operator in view.operators if operator.stage == stage.name]
        if mine:
            yield Box(stage.name, kind="stage", children=list(_modules(view, mine, None, leaves)))


def group_title(box: Box, view: PlanView) -> str:
    """Return the title of the box of the driver, a stage or a module."""
    if box.kind == "module":
        return f"{box.name}: {next(module.class_name for module in view.modules if module.name == box.name)}"
    return "driver" if box.kind == "driver" else f"stage {box.name}"


def _modules(view: PlanView, mine: Sequence[OperatorView], module: str | None, leaves: Mapping[str, Box]) -> Iterator[Box]:
    """Yield the boxes of operators that are all somewhere in a module (None: anywhere), those of an inner module in a box."""
    above = {each.name: each.inside for each in view.modules}
    groups: dict[tuple[bool, str], list[OperatorView]] = {}
    for operator in mine:
        inner = operator.inside if operator.inside != module else None
        while inner is not None and above.get(inner) not in (module, None):
            inner = above[inner]
        groups.setdefault((inner is not None, inner if inner is not None else operator.name), []).append(operator)
    for (is_module, name), inside in groups.items():
        if is_module and name != module:
            yield Box(name, kind="module", children=list(_modules(view, inside, name, leaves)))
        else:
            yield from (leaves[operator.name] for operator in inside)
