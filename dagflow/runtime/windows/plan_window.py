"""The driver's half of a window: input operators and what follows them emit the window's work items."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import attrs

from dagflow.ledger import InputSlice
from dagflow.model.graph.dag import PortName
from dagflow.model.operator.base import InputOperator, Operator
from dagflow.model.operator.context import Clock, OperatorContext
from dagflow.model.operator.protocols import EmitsItems
from dagflow.model.operator.state import renew
from dagflow.model.types.plain_data import Encoded, encode
from dagflow.planning.plan import Plan, Stage
from dagflow.planning.scopes import takes_launch_whole
from dagflow.runtime.events import Event, Warned
from dagflow.runtime.garbage import few_collections
from dagflow.runtime.run_folder.reports import OperatorFigures, TaskReport
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.runtime.stage.failure import abort
from dagflow.runtime.stage.node import Node
from dagflow.runtime.stage.outlet import StreamEnd
from dagflow.runtime.stage.program import TAKEN_BACK, RunOptions, TaskSpec
from dagflow.runtime.task.attempt_files import AttemptFiles
from dagflow.runtime.task.compile import WorkItems, driver_program, loaded, pickled
from dagflow.runtime.task.flow import Flow
from dagflow.runtime.windows.compatibility import added, properties, shape
from dagflow.runtime.windows.datasets import ReadsDataset
from dagflow.runtime.windows.emission import waiting
from dagflow.runtime.windows.event_time import followers
from dagflow.runtime.windows.readers import ItemAssignment, Readers, known_to
from dagflow.scaling import Backlog, KnowsBacklog
from dagflow.state import MapLog
from dagflow.state.driver_state import DriverStates, types_of

_END_OF_TIME = 1 << 62  # in microseconds; more comes from a wrong clock or a wrong unit
MAX_EMITTED = 1_000_000
"""Records after which a window is closed whose input operators never pause: the driver holds a window's work items in memory."""
IDLE = 0.01  # seconds between two questions to input operators that have nothing at the moment


class Driver:
    """The driver's operators, alive for the whole run. A context manager.

    Args:
        last: the plan of the last window, from which they resume.
        maps: the log of their `MapState`.
        readers: the numbers of readers; None: those that `plan` and `last` lead to.

    Attributes:
        warnings: what is to be told of states that the last window has left; `tell` tells it.
    """

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        epoch: str,
        clock: Clock,
        last: WindowPlan | None,
        maps: MapLog,
        readers: Readers | None = None,
    ) -> None:
        self.plan = plan
        self._options, self._epoch = options, epoch
        self._clock = clock
        self._readers = readers or Readers(plan, slots=options.slots, clock=clock, last=last)
        program = loaded(pickled(driver_program(plan), plan, travels=False))
        task = TaskSpec.alone("driver", attrs.evolve(options, checked=True))  # work items are few: each is checked
        self._flow = Flow(program, task, clock=clock)
        self._states = DriverStates({name: node.operator for name, node in self._flow.nodes.items()}, maps)
        self.warnings = self._states.restore(last)
        self._takes_all = plan.emission.is_final or (not options.continuous and takes_launch_whole(plan.written))
        # input operators, and those that go on by themselves with what they were given (a splitter in the middle of a file)
        self._inputs = [n for n in self._flow.nodes.values() if isinstance(n.operator, EmitsItems)]
        self._ports = {str(port): port for port in plan.work_ports()}
        self._watermarks = dict(last.watermarks) if last is not None else {}
        self._agreed = dict(last.agreed) if last is not None else {}
        self._emitted_at = last.emitted_at if last is not None else 0.0
        self._follows, self._waits = set(followers(plan)), set(waiting(plan))
        self._send: Callable[[Event], None] | None = None
        self.exhausted = False
        self.known = Backlog()  # what input operators know of and have not emitted

    def __enter__(self) -> Driver:
        self._flow.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._flow.__exit__(*error)

    def tell(self, send: Callable[[Event], None]) -> None:
        """Send the warnings so far, and from now on those of operators (`context.warn`)."""
        self._send = send
        for text in self.warnings:
            send(Warned(text=text))
        for node in self._flow.nodes.values():
            node.context.services.on_warn = partial(_warn, send, node.name)

    def operator(self, name: str) -> Operator | None:
        """Return the live operator of a name."""
        node = self._flow.nodes.get(name)
        return None if node is None else node.operator

    def listen(self, source: PortName, end: StreamEnd) -> None:
        """Send the records of a connected output port to one more end of its stream."""
        self._flow.nodes[source.operator].outlets[source.port].inlets.append(end)

    def emitted(self) -> dict[str, int]:
        """Return how many records each input operator has emitted in the window by now, while it is being filled."""
        return {node.name: node.emitted() for node in self._inputs}

    def pending_items(self) -> list[Sequence[Any]]:
        """Return the work items that the window has by now, for each port that they go to."""
        return [_collector(self._flow, name).pending for name in self._ports]

    @few_collections()
    def plan_window(self, window: int, seconds: float | None, stop: Callable[[], bool]) -> WindowPlan | None:
        """Open a window, let the input operators fill it, and say what it is to do; None when nothing came.

        `seconds`: how long it may stay open. In a continuous run an empty window ends then too; otherwise it stays open until
        something comes or all input operators are exhausted. A bounded run whose results are to cover all input takes it as one
        window, however long it is.
        """
        flow = self._flow
        self._states.begin()
        files = AttemptFiles(window, self._epoch, "driver", self._options.durable, self._options.base)
        for node in flow.nodes.values():
            node.context.services.files = files
            reset(node)
        slices: dict[str, InputSlice] = {}
        with flow.window(window):
            filling = partial(fill, self._inputs, self._clock, continuous=self._options.continuous, stop=stop)
            if self._takes_all:
                self.exhausted = filling(seconds=None, reopen=partial(self._reopen, window, slices))
            else:
                self.exhausted = filling(seconds=seconds)
        figures = flow.figures()
        items = {name: _collector(flow, name).take() for name in self._ports}
        items |= {TAKEN_BACK + name: _collector(flow, name).take(retracted=True) for name in self._ports}
        watermarks, slices = self._asked_watermarks(), self._joined(slices, self._asked_slices())
        has_advanced = watermarks != self._watermarks or any(each.new_block is not None for each in slices.values())
        is_idle = not any(f.records_out or f.records_in or f.errors for f in figures.values())
        if is_idle and not has_advanced and not any(items.values()):
            files.abandon()
            return None
        self._watermarks = watermarks
        flow.stage()
        own = {name: each for name, each in figures.items() if name not in self._ports}
        driver = TaskReport("driver", 0, own, files.finish(), flow.notes(), staged=flow.staged)
        return self._window_plan(window, items, driver, slices, emits=self.is_due())

    def _reopen(self, window: int, slices: dict[str, InputSlice], node: Node) -> None:
        """Let an input operator that has closed the window fill it further, as if it began another one."""
        slices.update(self._joined(slices, self._asked_slices()))
        node.call("end_window")
        node.flush()
        renew(node.operator)
        node.context.signals.window_closed = False
        node.call("begin_window", window)
        node.flush()

    @staticmethod
    def _joined(before: Mapping[str, InputSlice], after: Mapping[str, InputSlice]) -> dict[str, InputSlice]:
        """Return the slices of datasets that two parts of a window take together."""
        return {name: before[name].joined(each) if name in before else each for name, each in after.items()}

    def plan_emission(self, window: int) -> WindowPlan:
        """Plan a window without input, which is an emission point. That of a bounded run is its end."""
        self._states.begin()
        figures = {name: OperatorFigures() for name in self._flow.nodes if name not in self._ports}
        driver = TaskReport("driver", 0, figures)
        planned = self._window_plan(window, {}, driver, {}, emits=True)
        return attrs.evolve(planned, is_end=not self._options.continuous)

    def is_due(self) -> bool:
        """Return whether a window that is planned now is an emission point.

        That of a bounded run is the window that exhausts its input, or the one behind it where event time ends there.
        """
        if self._options.continuous:
            return self.plan.emission.is_due(self._clock.now(), self._emitted_at)
        return not self._waits or (self.exhausted and not self._follows)

    def _asked_watermarks(self) -> dict[str, int]:
        """Return the present watermarks of input operators that know one. A watermark never goes back."""
        watermarks = dict(self._watermarks)
        for node in self._inputs:
            if isinstance(node.operator, InputOperator):
                watermark = node.call("watermark")
                if watermark is not None:
                    if type(watermark) is not int or abs(watermark) > _END_OF_TIME:  # else no ledger could ever take the window
                        node.fail(
                            "watermark()", TypeError(f"{watermark!r} is not an integer of microseconds since the epoch"), None
                        )
                    watermarks[node.name] = max(watermark, watermarks.get(node.name, watermark))
        return watermarks

    def _asked_slices(self) -> dict[str, InputSlice]:
        """Return the slices of datasets that the window takes."""
        asked = {n.name: n.call("input_slice") for n in self._inputs if isinstance(n.operator, ReadsDataset)}
        return {name: each for name, each in asked.items() if each is not None}

    def _stage_without(self, partitions: Mapping[str, int], always: set[str]) -> Stage | None:
        """Return the next stage with tasks in a window whose number is not set yet; `partitions`: the numbers set, by head.

        `always`: the operators that run without records. That may be a stage of level 0 without work items: its operators get
        records from those.
        """
        for stage in (each for each in self.plan.stages if each.level > 0 and each.head not in partitions):
            if always & set(stage.operators) or any(b.head in partitions for b in self.plan.stages_before(stage)):
                return next(each for each in self.plan.stages if each.head == stage.head and each.is_leading)
        return None

    def _window_plan(
        self,
        window: int,
        items: dict[str, list[Any]],
        driver: TaskReport,
        slices: Mapping[str, InputSlice],
        *,
        emits: bool,
    ) -> WindowPlan:
        by_stage: dict[str, list[list[Any]]] = {}
        assigned: dict[str, ItemAssignment] = {}
        asked = {n.name: n.call("backlog") for n in self._inputs if isinstance(n.operator, KnowsBacklog)}
        self.known = sum(asked.values(), Backlog())
        backlogs = known_to(self.plan, asked)
        for stage in (each for each in self.plan.stages if each.level == 0):
            mine: list[Any] = []
            ports: list[tuple[str, str, int]] = []
            for (name, port), sign in itertools.product(self._ports.items(), ("", TAKEN_BACK)):
                if port.operator == stage.head:
                    own = items.pop(sign + name, [])
                    ports.append((sign + port.port, f"a work item of {name}", len(own)))
                    mine += own
            if not mine:
                continue
            self._agree(stage.head, window, list(mine))  # the operator may keep the list, or change it
            assigned[stage.head] = self._readers.assign(stage, window, mine, backlogs[stage.name])
            mine.reverse()  # each is forgotten once it is encoded: there may be a million
            by_stage[stage.head] = Encoded([port, encode(mine.pop(), what)] for port, what, count in ports for _ in range(count))
        partitions = {head: each.partitions for head, each in assigned.items()}
        owners: dict[str, list[int]] = {}
        always = self._follows | self._waits if emits else self._follows
        while (due := self._stage_without(partitions, always)) is not None:
            if due.level == 0:
                by_stage[due.head], assigned[due.head] = [], self._readers.assign(due, window, [], backlogs[due.name])
                partitions[due.head] = assigned[due.head].partitions
                continue
            readers = sum(each.partitions for each in assigned.values())
            partitions[due.head] = self._readers.above(due, window, readers)
            owners |= {due.head: key_owners} if (key_owners := self._readers.owners(due)) else {}
        is_final = self.plan.emission.is_final
        states = {} if is_final else self._states.save(window)  # before the plan is published, which names what is saved
        now = self._clock.now()
        self._emitted_at = now if emits else self._emitted_at
        advanced = [name for name in map(attrgetter("name"), self._inputs) if self._has_advanced(name, driver)]
        return WindowPlan(
            window=window,
            items=by_stage,
            partitions=partitions,
            levels={stage.name: stage.level for stage in self.plan.stages},
            places={head: each.places for head, each in assigned.items()},
            weights={head: each.weights for head, each in assigned.items()},
            owners=owners,
            states=states,
            state_types=types_of({name: node.operator for name, node in self.plan.dag.nodes.items()}),
            agreed=dict(self._agreed),
            advanced=advanced,
            driver=driver,
            shape=shape(self.plan) | added(self.plan),
            properties=properties(self.plan),
            watermarks=dict(self._watermarks),
            inputs={name: encode(each, f"the input slice of operator {name!r}") for name, each in slices.items()},
            planned_at=now,
            emits=emits,
            emitted_at=self._emitted_at,
            is_final=is_final,
        )

    def _agree(self, head: str, window: int, items: list[Any]) -> None:
        """Ask the operator that gets work items what its tasks are to know."""
        context = OperatorContext(name=head, window=window, clock=self._clock)
        if self._send is not None:
            context.services.on_warn = partial(_warn, self._send, head)
        try:
            agreed = self.plan.dag.nodes[head].operator.agree(items, self._agreed.get(head), context)
        except Exception as error:  # user code may raise anything
            raise abort(head, window, "agree()", error, None, context.services.cursor) from error
        if agreed is not None:
            self._agreed[head] = encode(agreed, f"what operator {head!r} agrees on")

    def _has_advanced(self, name: str, driver: TaskReport) -> bool:
        figures = driver.operators[name]
        return bool(figures.records_out or figures.errors or self._states.has_changed(name))


def fill(
    inputs: Sequence[Node],
    clock: Clock,
    *,
    continuous: bool,
    seconds: float | None,
    stop: Callable[[], bool],
    reopen: Callable[[Node], None] | None = None,
) -> bool:
    """Let input operators fill an open window. Return whether all of them are exhausted. See `Driver.plan_window`.

    `reopen`: given where the window takes all input; called for each operator that would have ended it.
    """
    opened = clock.monotonic()
    anything = any(node.emitted() for node in inputs)  # begin_window may have emitted
    exhausted = False
    while not stop():
        before = sum(node.emitted() for node in inputs)
        for node in inputs:
            if not node.context.signals.window_closed:
                node.call("emit_tuples")
                node.flush()
        total = sum(node.emitted() for node in inputs)
        emitted = total > before
        anything = anything or emitted
        exhausted = not emitted and all(_exhausted(node) for node in inputs)
        if seconds is not None and clock.monotonic() - opened >= seconds:
            break
        closed = [node for node in inputs if node.context.signals.window_closed]
        if reopen is None and (total >= MAX_EMITTED or closed):
            break
        if exhausted and not continuous:
            break
        if not emitted and anything and reopen is None and (seconds is None or not continuous):
            break
        if reopen is not None:
            for node in closed if emitted else [node for node in inputs if not _exhausted(node)]:
                reopen(node)
        if not emitted:
            clock.sleep(IDLE)
    return exhausted


def _collector(flow: Flow, name: str) -> WorkItems:
    operator = flow.nodes[name].operator
    assert isinstance(operator, WorkItems)
    return operator


def _warn(send: Callable[[Event], None], operator: str, text: str) -> None:
    send(Warned(text=f"operator {operator!r}: {text}"))


def reset(node: Node) -> None:
    """Reset the figures of a node before its next window."""
    node.figures = type(node.figures)()
    node.account.seconds = 0.0
    node.context.signals.counters.clear()
    node.context.signals.notes = []
    for outlet in node.outlets.values():
        outlet.count = 0
    for inlet in node.inlets.values():
        inlet.count = inlet.converted = 0


def _exhausted(node: Node) -> bool:
    return bool(node.call("is_exhausted"))
