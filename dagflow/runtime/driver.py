"""The driver's half of a window: input operators and what follows them emit the window's work items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

from dagflow.model.context import Clock
from dagflow.model.kept import State, kept_by
from dagflow.model.operator import Operator, fields_of
from dagflow.model.plain import decode, encode
from dagflow.plan.deal import deal
from dagflow.plan.plan import Plan
from dagflow.runtime.compile import WorkItems, driver_program, loaded, pickled
from dagflow.runtime.files import AttemptFiles
from dagflow.runtime.program import TaskSpec
from dagflow.runtime.report import TaskReport
from dagflow.runtime.task import Flow, Node
from dagflow.runtime.window_log import WindowPlan

IDLE = 0.01  # seconds between two questions to input operators that have nothing at the moment


class Driver:
    """The driver's operators, alive for the whole run. A context manager."""

    def __init__(self, plan: Plan, spec: TaskSpec, clock: Clock, states: dict[str, dict[str, Any]]) -> None:
        self.plan = plan
        self._spec = spec
        self._clock = clock
        self._flow = Flow(loaded(pickled(driver_program(plan), plan, travels=False)), spec, clock=clock)
        for name, own in states.items():
            if name in self._flow.nodes:
                restore(self._flow.nodes[name].operator, own)
        # input operators, and those that go on by themselves with what they were given (a splitter in the middle of a file)
        self._inputs = [n for n in self._flow.nodes.values() if hasattr(n.operator, "emit_tuples")]
        self._ports = {str(port): port for port in plan.work_ports()}
        self.exhausted = False

    def __enter__(self) -> Driver:
        self._flow.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._flow.__exit__(*error)

    def operator(self, name: str) -> Operator | None:
        """The live operator of a name."""
        node = self._flow.nodes.get(name)
        return None if node is None else node.operator

    def plan_window(self, window: int, seconds: float | None, stop: Callable[[], bool]) -> WindowPlan | None:
        """Opens a window, lets the input operators fill it, and says what it is to do; None when nothing came.

        `seconds`: how long it may stay open. In a continuous run an empty window ends then too; otherwise it goes on until
        something comes or all input operators are exhausted.
        """
        flow = self._flow
        files = AttemptFiles(window, self._spec.round, "driver", self._spec.durable, self._spec.base)
        for node in flow.nodes.values():
            node.context.files = files
            reset(node)
        flow.begin_window(window)
        self.exhausted = fill(self._inputs, self._clock, continuous=self._spec.continuous, seconds=seconds, stop=stop)
        flow.end_window()
        figures = flow.figures()
        items = {name: _collector(flow, name).take() for name in self._ports}
        if not any(items.values()) and not any(f.records_out or f.records_in or f.errors for f in figures.values()):
            files.abandon()
            return None
        driver = TaskReport("driver", 0, {n: f for n, f in figures.items() if n not in self._ports}, files.finish(), flow.notes())
        return self._window_plan(window, items, driver)

    def _window_plan(self, window: int, items: dict[str, list[Any]], driver: TaskReport) -> WindowPlan:
        by_stage: dict[str, list[list[Any]]] = {}
        places: dict[str, list[int]] = {}
        partitions: dict[str, int] = {}
        for stage in self.plan.stages:
            mine = [(port, item) for name, port in self._ports.items() if port.operator == stage.head for item in items[name]]
            if not mine:
                continue
            sizer = self.plan.partitioner(stage)
            weights = [sizer.item_weight(item) for _, item in mine]
            count = sizer.partition_count(len(mine), sum(weights), self._spec.slots)
            by_stage[stage.head] = [[port.port, encode(item, f"a work item of {port}")] for port, item in mine]
            places[stage.head] = deal(weights, count)
            partitions[stage.head] = count
        return WindowPlan(
            window=window,
            items=by_stage,
            partitions=partitions,
            places=places,
            states=self.states(),
            driver=driver,
            shape=shape(self.plan),
            properties=properties(self.plan),
            planned_at=self._clock.now(),
        )

    def states(self) -> dict[str, dict[str, Any]]:
        """The states of all operators as plain data."""
        found = {name: saved(node.operator, name) for name, node in self._flow.nodes.items()}
        return {name: own for name, own in found.items() if own}


def fill(inputs: Sequence[Node], clock: Clock, *, continuous: bool, seconds: float | None, stop: Callable[[], bool]) -> bool:
    """Lets input operators fill an open window; whether all of them are exhausted. See `Driver.plan_window`."""
    opened = clock.monotonic()
    anything = any(node.emitted() for node in inputs)  # begin_window may have emitted
    exhausted = False
    while not stop():
        before = sum(node.emitted() for node in inputs)
        for node in inputs:
            if not node.context.window_closed:
                node.call("emit_tuples")
                node.flush()
        emitted = sum(node.emitted() for node in inputs) > before
        anything = anything or emitted
        exhausted = not emitted and all(_exhausted(node) for node in inputs)
        if seconds is not None and clock.monotonic() - opened >= seconds:
            break
        if any(node.context.window_closed for node in inputs):
            break
        if not emitted:
            if exhausted and not continuous:
                break
            if anything and (seconds is None or not continuous):
                break
            clock.sleep(IDLE)
    return exhausted


def shape(plan: Plan) -> dict[str, str]:
    """What makes a plan's application the same one: its operators with their classes, its streams with their ends."""
    found = {f"operator {name}": type(node.operator).__qualname__ for name, node in plan.dag.nodes.items()}
    for stream in plan.dag.streams.values():
        for sink in stream.sinks:
            found[f"stream {stream.source} → {sink}"] = ""
    return found


def properties(plan: Plan) -> dict[str, str]:
    """The properties of the operators whose text form says all of them, to see whether they have changed since."""
    found = {}
    for name, node in plan.dag.nodes.items():
        outputs = node.operator.output_folders()
        for field, value in fields_of(node.operator).items():
            if isinstance(value, str) and value in outputs:
                continue  # a folder that was moved is no change
            if isinstance(value, str | int | float | bool | None) or type(value).__name__ == "Expression":
                found[f"{name}.{field}"] = str(value)
    return found


def saved(operator: Operator, name: str) -> dict[str, Any]:
    """The states of an operator as plain data."""
    declared = {n: d for n, d in kept_by(type(operator)).items() if isinstance(d, State)}
    return {n: encode(getattr(operator, n), f"State {n!r} of operator {name!r}") for n in declared}


def restore(operator: Operator, states: dict[str, Any]) -> None:
    """Gives an operator the states that it had."""
    for name, declared in kept_by(type(operator)).items():
        if isinstance(declared, State) and name in states:
            types = get_args(getattr(declared, "__orig_class__", None)) or (Any,)
            operator.__dict__[name] = decode(states[name], types[0])


def _collector(flow: Flow, name: str) -> WorkItems:
    operator = flow.nodes[name].operator
    assert isinstance(operator, WorkItems)
    return operator


def reset(node: Node) -> None:
    """Sets the figures of a node back, before its next window."""
    node.figures = type(node.figures)()
    node.context.counters.clear()
    node.context.notes = []
    for outlet in node.outlets.values():
        outlet.count = 0
    for inlet in node.inlets.values():
        inlet.count = inlet.converted = 0


def _exhausted(node: Node) -> bool:
    operator: Any = node.operator
    return bool(operator.is_exhausted())
