"""One frozen, JSON-safe view of a plan at a named step: everything that is drawn or printed of an application comes from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from dagflow.config import Setting
from dagflow.config.effective import properties
from dagflow.model.errors.dag import UnknownName
from dagflow.model.graph.checks import CheckedDag, raise_all
from dagflow.model.graph.dag import DAG, OperatorNode, PortName
from dagflow.model.graph.expand import ExpandedDag
from dagflow.model.graph.module import Module, ModuleNode
from dagflow.model.graph.partitioning import parallel_of, partitioner_of
from dagflow.model.graph.stream_columns import ColumnSolver
from dagflow.model.operator.base import InputOperator, Operator
from dagflow.model.operator.ports import input_ports, output_ports
from dagflow.model.operator.protocols import GroupsItems, Splittable
from dagflow.model.types.comparison import type_name
from dagflow.model.types.keys import known_columns
from dagflow.planning.current_results import ends_changes
from dagflow.planning.plan import DATAFRAME, DRIVER, FORWARD, KEYED, PARALLEL, SINGLE, Plan, Stage
from dagflow.planning.scopes import covered, depending_on_windows, keeps_over_windows, kept_by
from dagflow.planning.spark_lines import spark_lines
from dagflow.planning.steps import PHASES, Application, after
from dagflow.scaling import Bounds, bounds
from dagflow.state.task_states import declared_maps

VERSION = 1
DEFAULT_COUNT = "as many as the window has readers, at most one a slot"
KEPT_COUNT = "as many as windows have readers, at most one a slot; small windows change nothing"


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

    `covers`: the input that its results cover, where they are not functions of single rows. `emits`: the emission points of what
    it emits, where that is held back, or where a changing stream ends. `keeps`: what it keeps over windows in tasks, and what
    bounds that. `depends_on_windows`: why what it emits or writes depends on how the input is cut into windows.
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
    covers: str | None = None
    emits: str | None = None
    keeps: str | None = None
    depends_on_windows: str | None = None
    stage: str | None = None
    inside: str | None = None
    is_module: bool = False


@attrs.frozen(kw_only=True)
class SinkView:
    """The end of a stream.

    Attributes:
        port: `operator.port`.
        form: the form that the port's handler takes (`record`, `stream`, `batch` or `net`); None before the step `staged`.
        conversion: what is converted before it, such as `batches → records`; None where nothing is.
        crosses: whether it leads from the driver to the tasks: what travels are a window's work items.
        exchange: how records find their partition, where an exchange stands before the port.
        carried: what the exchange carries: `batches`, or `pickled` records.
    """

    port: str
    form: str | None = None
    conversion: str | None = None
    crosses: bool = False
    exchange: str | None = None
    carried: str | None = None


@attrs.frozen(kw_only=True)
class StreamView:
    """A stream. `form`: in which records are emitted, `record` or `batch`; None before the step `staged`.

    `columns`: where the columns of its batches come from, where the type does not say them. `rows`: the columns as far as they
    are known, `name: type`, where the type does not say them; `identified_by`: the columns by which its rows differ.
    `changed_by`: the operator that takes back rows, of a stream whose rows may be taken back. `depends_on_windows`: as that of an
    operator.
    """

    name: str
    source: str
    sinks: tuple[SinkView, ...]
    where: str
    type: str | None = None
    form: str | None = None
    columns: str | None = None
    rows: tuple[str, ...] | None = None
    identified_by: tuple[tuple[str, ...], ...] = ()
    changed_by: str | None = None
    depends_on_windows: str | None = None

    @property
    def title(self) -> str:
        """Its name and its type, as pictures have them."""
        return self.name if self.type is None else f"{self.name}: {self.type}"


@attrs.frozen(kw_only=True)
class StageView:
    """Operators fused into one pass of one task. `head` is at the head of its partitions: in level 0 it gets the work items.

    Attributes:
        level: how many exchanges stand before it, on the longest way.
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
        waits_for: the operators in tasks that keep state over windows: a window waits for them until the one before is decided.
    """

    v: int = VERSION
    application: str
    step: str
    steps: tuple[str, ...] = PHASES
    operators: tuple[OperatorView, ...]
    streams: tuple[StreamView, ...]
    stages: tuple[StageView, ...] = ()
    spark: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    modules: tuple[OperatorView, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the view as plain data: dicts, tuples, text, numbers, None."""
        return attrs.asdict(self)


Applied = Mapping[str, Mapping[str, Setting]]


def plan_view(of: Application, step: str = "staged", applied: Applied | None = None) -> PlanView:
    """Return the view of an application at a step.

    Args:
        of: the DAG, or what has been made of it. Steps that are still to be done are done; a plan is shown as checked for the
            steps `logical` and `expanded`.
        step: one of `PHASES`. The first two need no DAG without mistakes.
        applied: which properties configuration has set, as `apply_operators` returns it: they are shown with their origin.

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
    application = after(of, step)
    if isinstance(application, Plan):
        return _planned(application, step, applied)
    if isinstance(application, DAG):
        nodes = {name: application.operators.get(name) or application.modules[name] for name in application.names}
        return attrs.evolve(_view(application, nodes, step, applied), modules=())
    if not application.is_whole:
        raise_all(application.problems)
    return _view(application, application.operators, step, applied)


def _view(
    dag: DAG | ExpandedDag | CheckedDag,
    nodes: Mapping[str, OperatorNode | ModuleNode],
    step: str,
    applied: Applied | None,
    written: CheckedDag | None = None,
) -> PlanView:
    """Return the view of a DAG, with the types of all ports where they are known. `written`: it without what a planner added."""
    types, changing = (dag.types, dag.changing) if isinstance(dag, CheckedDag) else (None, {})
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
            properties=_properties(node, applied),
            inputs=tuple(ports(node.name, input_ports(cls))),
            outputs=tuple(ports(node.name, output_ports(cls))),
            inside=node.inside,
            is_module=isinstance(node, ModuleNode),
        )

    solver = (written or dag).columns() if isinstance(dag, CheckedDag) else None
    shown = tuple(
        StreamView(
            name=stream.name,
            source=str(stream.source),
            sinks=tuple(SinkView(port=str(sink)) for sink in stream.sinks),
            where=stream.where,
            type=type_name(types[stream.source]) if types is not None else None,
            changed_by=changing.get(stream.source),
            **_columns(solver, stream.source, nodes),
        )
        for stream in dag.streams.values()
    )
    operators, modules = tuple(map(view, nodes.values())), tuple(map(view, dag.modules.values()))
    return PlanView(application=dag.name, step=step, operators=operators, streams=shown, modules=modules)


def _columns(solver: ColumnSolver | None, port: PortName, nodes: Mapping[str, OperatorNode | ModuleNode]) -> dict[str, Any]:
    """Return what the view of the stream from a port says about its columns; nothing for operators that the planner added."""
    if solver is None or port.operator not in solver.operators:
        return {}
    operator: Any = _of(nodes[port.operator])  # as it is planned
    described = operator.describe_columns(port.port)
    known, is_declared = solver.behind(port), known_columns(solver.types[port]) is not None
    rows = tuple(f"{name}: {kind}" if kind else name for name, kind in (known.types or {}).items())
    return {
        "columns": described,
        "rows": rows if rows and not is_declared and described is None else None,
        "identified_by": tuple(sorted(tuple(sorted(each)) for each in known.unique)),
    }


def _of(node: OperatorNode | ModuleNode) -> Operator | Module:
    return node.module if isinstance(node, ModuleNode) else node.operator


def _properties(node: OperatorNode | ModuleNode, applied: Applied | None) -> tuple[PropertyView, ...]:
    kind = "module" if isinstance(node, ModuleNode) else "operator"
    rows = properties(kind, node.name, _of(node), applied, only_given=True)
    before = f"operator.{node.name}."
    return tuple(PropertyView(name=row.key.removeprefix(before), value=row.value, origin=row.origin) for row in rows)


def _planned(plan: Plan, step: str, applied: Applied | None) -> PlanView:
    """Return the view of a plan: all that it has decided by then."""
    stages = {name: stage.name for stage in plan.stages for name in stage.operators}
    crossing = {str(port) for port in plan.work_ports()}
    exchanges = {str(port): str(exchange) for port, exchange in plan.exchanges.items()}
    emitted = {str(port): form for port, form in plan.forms.emitted.items()}
    handled = {str(port): form for port, form in plan.forms.handled.items()}
    converted = {str(port): words for port, words in plan.forms.converted.items()}
    carried = {str(port): what for port, what in plan.forms.crossing.items()}
    depending, ports = depending_on_windows(plan.written)
    depending_ports = {str(port): why for port, why in ports.items()}

    def operator(view: OperatorView) -> OperatorView:
        placement = plan.placement.get(view.name)
        why = _why(plan, view.name) if placement is not None else None
        written = plan.written.nodes.get(view.name)
        covers = None if placement is None or written is None else covered(plan.written, written)
        emits = None if placement is None else _emits(plan, view.name)
        keeps = kept_by(plan.dag, plan.dag.nodes[view.name]) if view.name in stages and not plan.emission.is_final else None
        return attrs.evolve(
            view,
            placement=placement,
            why=why,
            covers=covers,
            emits=emits,
            keeps=None if keeps is None else str(keeps),
            depends_on_windows=None if placement is None else depending.get(view.name),
            stage=stages.get(view.name),
        )

    def sink(view: SinkView) -> SinkView:
        port = view.port
        form, conversion, exchange = handled.get(port), converted.get(port), exchanges.get(port)
        crosses = port in crossing
        return SinkView(
            port=port, form=form, conversion=conversion, crosses=crosses, exchange=exchange, carried=carried.get(port)
        )

    def stream(view: StreamView) -> StreamView:
        why = depending_ports.get(view.source)
        return attrs.evolve(view, form=emitted.get(view.source), sinks=tuple(map(sink, view.sinks)), depends_on_windows=why)

    view = _view(plan.dag, plan.dag.nodes, step, applied, plan.written)
    stage_views = tuple(_stage_view(plan, stage) for stage in plan.stages)
    tasks = {stage.name: (stage.min_readers, stage.max_readers) for stage in stage_views}
    return attrs.evolve(
        view,
        operators=tuple(map(operator, view.operators)),
        streams=tuple(map(stream, view.streams)),
        stages=stage_views,
        spark=spark_lines(plan, tasks) if step == "spark" else (),
        waits_for=tuple(name for name in stages if keeps_over_windows(plan.dag.nodes[name].operator)),
    )


def _emits(plan: Plan, name: str) -> str | None:
    """Return when an operator emits what it keeps back, or gets the changes of a stream that ends there."""
    node = plan.dag.nodes[name]
    if node.operator.waits_for_emission:
        return f"emits {plan.emission}"
    return f"gets changes {plan.emission}" if plan.emission.is_each_window and ends_changes(plan.dag, node) else None


def _why(plan: Plan, name: str) -> str:
    """Return why an operator runs where it does."""
    node, upstream, placement = plan.dag.nodes[name], plan.dag.upstream(name), plan.placement
    if placement[name] == DRIVER:
        return "makes the records" if isinstance(node.operator, InputOperator) else "stands before any partitioned operator"
    if placement[name] == KEYED:
        return "partitioned " + " and ".join(dict.fromkeys(f"by {plan.exchanges[sink].key}" for _, sink in upstream))
    if placement[name] == SINGLE:
        return "one partition" if node.operator.partitionable else "is not partitionable"
    kinds = [plan.exchanges[sink].kind if sink in plan.exchanges else None for _, sink in upstream]
    if DATAFRAME in kinds:
        return "passes on what Spark makes of its input"
    parallel = [s.operator for (s, _), kind in zip(upstream, kinds, strict=True) if kind in (None, FORWARD)]
    above = next((s for s in parallel if placement[s] != DRIVER), None)
    if placement[name] == PARALLEL and above is not None:
        return f"parallel with {above}"
    if partitioner_of(node) is None:
        if node.operator.mixes_partitions:
            return "brings partitions together that are not related"
        asking = next(sink.port for _, sink in upstream if parallel_of(node, sink.port) is False)
        return f"port {asking} is not to be parallel"
    return "partitions itself" if partitioner_of(node) == "self" else "has a partitioner"


def _stage_view(plan: Plan, stage: Stage) -> StageView:
    partitioner = plan.partitioner(stage)
    keeps = any(declared_maps(plan.dag.nodes[name].operator) for name in stage.operators)
    limits = bounds(partitioner) if partitioner is not None else Bounds(policy=KEPT_COUNT if keeps else DEFAULT_COUNT)
    if plan.placement[stage.head] == SINGLE:
        limits = Bounds(1, 1, "always 1")
    head = plan.dag.nodes[stage.head].operator
    splittable = head.splittable if stage.level == 0 and isinstance(head, Splittable) else None
    return StageView(
        name=stage.name,
        operators=stage.operators,
        head=stage.head,
        level=stage.level,
        min_readers=limits.min_readers,
        max_readers=limits.max_readers,
        policy=limits.policy if stage.is_leading else f"as many as {stage.head} has",
        splittable=splittable and not (isinstance(head, GroupsItems) and head.sequential),
    )
