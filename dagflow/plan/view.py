"""One frozen, JSON-safe view of a plan at a named step: everything that is drawn or printed of an application comes from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import attrs

from dagflow.config import Layers, Setting, effective
from dagflow.errors.dag import UnknownName
from dagflow.model.checks import CheckedDag, check, partitioner_of, raise_all
from dagflow.model.dag import DAG, OperatorNode, PortName
from dagflow.model.expand import ExpandedDag, expand
from dagflow.model.module import Module, ModuleNode
from dagflow.model.operator import InputOperator, Operator
from dagflow.model.ports import input_ports, output_ports
from dagflow.model.types import type_name
from dagflow.plan.place import DRIVER, place
from dagflow.plan.plan import PHASES, Plan, Stage, make_plan
from dagflow.scaling import bounds

VERSION = 1
CONTROL_ROWS = "one control row a task comes back (its name; figures or the error), no records"


@attrs.frozen(kw_only=True)
class PropertyView:
    """A property that is not its default, as a user would write it (secrets: `***`), and where its value comes from."""

    name: str
    value: str
    origin: str


@attrs.frozen(kw_only=True)
class PortView:
    """A port of an operator. `type`: None before the step `checked`. `stream`: None where no stream is connected."""

    name: str
    type: str | None
    stream: str | None


@attrs.frozen(kw_only=True)
class OperatorView:
    """An operator: what it is, and from the steps `placed` and `staged` on where it runs, and why there.

    `inside`: the module that it is in, None for none. `is_module`: that it is a module itself, as at the step `logical`.
    """

    name: str
    class_name: str
    module: str
    where: str
    properties: tuple[PropertyView, ...]
    inputs: tuple[PortView, ...]
    outputs: tuple[PortView, ...]
    placement: str | None = None
    why: str | None = None
    stage: str | None = None
    inside: str | None = None
    is_module: bool = False


@attrs.frozen(kw_only=True)
class SinkView:
    """Where a stream leads to.

    Attributes:
        port: `operator.port`.
        form: the form that the port's handler takes (`record`, `stream` or `batch`); None before the step `staged`.
        conversion: what is converted before it, such as `batches → records`; None where nothing is.
        crosses: whether it leads from the driver to the tasks: what travels are a window's work items.
    """

    port: str
    form: str | None = None
    conversion: str | None = None
    crosses: bool = False


@attrs.frozen(kw_only=True)
class StreamView:
    """A stream. `form`: in which records are emitted, `record` or `batch`; None before the step `staged`.

    `columns`: where the columns of its batches come from, where the type does not say them.
    """

    name: str
    source: str
    sinks: tuple[SinkView, ...]
    where: str
    type: str | None = None
    form: str | None = None
    columns: str | None = None


@attrs.frozen(kw_only=True)
class StageView:
    """Operators fused into one pass of one task. `head` gets the work items.

    Attributes:
        min_readers, max_readers: the bounds of its partitions, as far as its partitioner tells them.
        policy: by what their number is chosen between the bounds.
        splittable: whether a work item may be cut while it is being read; None where the head does not say.
    """

    name: str
    operators: tuple[str, ...]
    head: str
    level: int
    min_readers: int | None = None
    max_readers: int | None = None
    policy: str | None = None
    splittable: bool | None = None


@attrs.frozen(kw_only=True)
class PlanView:
    """An application's plan at one of the `PHASES`.

    Attributes:
        operators: the operators; at the step `logical` the modules too, each where it was added.
        modules: the modules that have been inlined, outer ones first.
        spark: what Spark will be given, as lines; of the step `spark` only.
    """

    v: int = VERSION
    application: str
    step: str
    steps: tuple[str, ...] = PHASES
    operators: tuple[OperatorView, ...]
    streams: tuple[StreamView, ...]
    stages: tuple[StageView, ...] = ()
    spark: tuple[str, ...] = ()
    modules: tuple[OperatorView, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The view as plain data: dicts, tuples, text, numbers, None."""
        return attrs.asdict(self)


Applied = Mapping[str, Mapping[str, Setting]]


def plan_view(of: DAG | ExpandedDag | Plan, step: str = "staged", applied: Applied | None = None) -> PlanView:
    """The view of an application at a step: `logical`, `expanded`, `checked`, `placed`, `staged` or `spark`.

    Args:
        of: the DAG, from which as much is worked out as the step needs (the first two need no checks), or what has been made of
            it: of that, the step `logical` shows what it knows.
        step: one of `PHASES`.
        applied: which properties configuration has set, as `apply_operators` tells it: they are shown with their origin.

    Raises DagError where the DAG does not pass the checks or has modules that cannot be inlined, UnknownName for other steps.

    >>> from dagflow import DAG
    >>> from operators import Console, FileSplitterInput
    >>> dag = DAG("demo")
    >>> files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    >>> show = dag.add_operator("show", Console())
    >>> dag.add_stream("found", files.files_metadata_output, show.input)
    >>> view = plan_view(dag, "placed")
    >>> [(o.name, o.placement) for o in view.operators], view.streams[0].type
    ([('files', 'driver'), ('show', 'driver')], 'FileMetadata')
    """
    if step not in PHASES:
        raise UnknownName("step", step, PHASES)
    number = PHASES.index(step)
    if number < PHASES.index("checked"):
        return _logical(of, step, applied)
    if number >= PHASES.index("staged"):
        return _staged(of if isinstance(of, Plan) else make_plan(of), step, applied)
    dag = of.dag if isinstance(of, Plan) else check(of)
    view = _view(dag, dag.nodes, step, applied)
    return view if step == "checked" else _with_placement(view, dag, place(dag))


def _logical(of: DAG | ExpandedDag | Plan, step: str, applied: Applied | None) -> PlanView:
    if isinstance(of, Plan):
        return _view(of.dag, of.dag.nodes, step, applied)
    if isinstance(of, DAG):
        if step == "logical":
            nodes = {name: of.operators.get(name) or of.modules[name] for name in of.names}
            return attrs.evolve(_view(of, nodes, step, applied), modules=())
        of = expand(of)
    if not of.is_whole:
        raise_all(of.problems)
    return _view(of, of.operators, step, applied)


def _view(
    dag: DAG | ExpandedDag | CheckedDag, nodes: Mapping[str, OperatorNode | ModuleNode], step: str, applied: Applied | None
) -> PlanView:
    """The view of what the user wrote, with the types of all ports where they are known."""
    types = dag.types if isinstance(dag, CheckedDag) else None
    properties = _properties({**dag.modules, **nodes}, applied)
    leading = {s.source: s.name for s in dag.streams.values()} | {k: s.name for s in dag.streams.values() for k in s.sinks}

    def ports(name: str, known: Mapping[str, Any]) -> Iterator[PortView]:
        for port in known:
            whole = PortName(name, port)
            tp = type_name(types[whole]) if types is not None and whole in types else None
            yield PortView(name=port, type=tp, stream=leading.get(whole))

    def view(node: OperatorNode | ModuleNode) -> OperatorView:
        cls = type(_of(node))
        return OperatorView(
            name=node.name,
            class_name=cls.__qualname__,
            module=cls.__module__,
            where=node.where,
            properties=tuple(properties[node.name]),
            inputs=tuple(ports(node.name, input_ports(cls))),
            outputs=tuple(ports(node.name, output_ports(cls))),
            inside=node.inside,
            is_module=isinstance(node, ModuleNode),
        )

    shown = tuple(
        StreamView(
            name=stream.name,
            source=str(stream.source),
            sinks=tuple(SinkView(port=str(sink)) for sink in stream.sinks),
            where=stream.where,
            type=type_name(types[stream.source]) if types is not None else None,
            columns=_columns(dag, stream) if types is not None else None,
        )
        for stream in dag.streams.values()
    )
    operators, modules = tuple(map(view, nodes.values())), tuple(map(view, dag.modules.values()))
    return PlanView(application=dag.name, step=step, operators=operators, streams=shown, modules=modules)


def _columns(dag: DAG | ExpandedDag | CheckedDag, stream: Any) -> str | None:
    """Where the columns of a stream come from, if its type does not say them."""
    node = dag.nodes[stream.source.operator] if isinstance(dag, CheckedDag) else None
    return None if node is None else node.operator.columns_told(stream.source.port)


def _of(node: OperatorNode | ModuleNode) -> Operator | Module:
    return node.module if isinstance(node, ModuleNode) else node.operator


def _properties(nodes: Mapping[str, OperatorNode | ModuleNode], applied: Applied | None) -> dict[str, list[PropertyView]]:
    modules = {name: node.module for name, node in nodes.items() if isinstance(node, ModuleNode)}
    operators = {name: node.operator for name, node in nodes.items() if isinstance(node, OperatorNode)}
    rows = effective(None, Layers(), operators=operators, modules=modules, applied=applied)
    found: dict[str, list[PropertyView]] = {}
    for name, node in nodes.items():
        kind = "module" if name in modules else "operator"
        group, before = f"{kind} {name} ({type(_of(node)).__name__})", f"operator.{name}."
        mine = [row for row in rows if row.group == group and row.origin != "default"]
        found[name] = [PropertyView(name=row.key.removeprefix(before), value=row.value, origin=row.origin) for row in mine]
    return found


def _with_placement(view: PlanView, dag: CheckedDag, placement: Mapping[str, str]) -> PlanView:
    operators = tuple(attrs.evolve(o, placement=placement[o.name], why=_why(dag, placement, o.name)) for o in view.operators)
    return attrs.evolve(view, operators=operators)


def _why(dag: CheckedDag, placement: Mapping[str, str], name: str) -> str:
    """Why an operator runs where it does."""
    node, sources = dag.nodes[name], [source.operator for source, _ in dag.upstream(name)]
    if placement[name] == DRIVER:
        return "makes the records" if isinstance(node.operator, InputOperator) else "stands before any partitioned operator"
    above = next((s for s in sources if placement[s] != DRIVER), None)
    if above is not None:
        return f"parallel with {above}"
    return "partitions itself" if partitioner_of(node) == "self" else "has a partitioner"


def _staged(plan: Plan, step: str, applied: Applied | None) -> PlanView:
    view = _view(plan.dag, plan.dag.nodes, step, applied)
    view = _with_placement(view, plan.dag, plan.placement)
    stage_of = {name: stage.name for stage in plan.stages for name in stage.operators}
    crossing = {str(port) for port in plan.work_ports()}
    emitted = {str(port): form for port, form in plan.forms.emitted.items()}
    handled = {str(port): form for port, form in plan.forms.handled.items()}
    converted = {str(port): words for port, words in plan.forms.converted.items()}

    def with_form(sink: SinkView) -> SinkView:
        form, conversion = handled.get(sink.port), converted.get(sink.port)
        return attrs.evolve(sink, form=form, conversion=conversion, crosses=sink.port in crossing)

    return attrs.evolve(
        view,
        operators=tuple(attrs.evolve(o, stage=stage_of.get(o.name)) for o in view.operators),
        streams=tuple(
            attrs.evolve(s, form=emitted.get(s.source), sinks=tuple(with_form(k) for k in s.sinks)) for s in view.streams
        ),
        stages=tuple(_stage_view(plan, stage) for stage in plan.stages),
        spark=_spark_lines(plan) if step == "spark" else (),
    )


def _stage_view(plan: Plan, stage: Stage) -> StageView:
    said = bounds(plan.partitioner(stage))
    head = plan.dag.nodes[stage.head].operator
    splittable = getattr(head, "splittable", None)
    return StageView(
        name=stage.name,
        operators=stage.operators,
        head=stage.head,
        level=0,  # without exchanges, all stages form one level
        min_readers=said.min_readers,
        max_readers=said.max_readers,
        policy=said.policy,
        splittable=splittable and not getattr(head, "sequential", False),
    )


def _spark_lines(plan: Plan) -> tuple[str, ...]:
    if not plan.stages:
        return ("no Spark job: everything runs on the driver",)
    tasks = "; ".join(f"{stage.name}: {_passing(plan, stage)}" for stage in plan.stages)
    lines = ["one job a window, none for a window without work items:", f"  range(0, n, 1, n) → mapInArrow({tasks}) → collect"]
    for stage in plan.stages:
        view = _stage_view(plan, stage)
        bounds = f"{view.min_readers} to {view.max_readers} tasks" if view.max_readers is not None else "its tasks"
        lines.append(
            f"{stage.name}: {bounds} share the window's work items for {stage.head}, neighbours together; {CONTROL_ROWS}"
        )
    lines.append("n: the tasks of all stages together; task i looks its work items up by i, so nothing is shuffled")
    return tuple(lines)


def _passing(plan: Plan, stage: Stage) -> str:
    """The operators of a stage: a chain with arrows, anything else with commas."""
    names = stage.operators
    chain = all([s.operator for s, _ in plan.dag.upstream(b)] == [a] for a, b in pairwise(names))
    return (" → " if chain else ", ").join(names)
