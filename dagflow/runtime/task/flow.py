"""The stage program: what one task does, the same in process and on Spark. Runners call `execute`, which calls `run_flow`."""

from __future__ import annotations

import contextlib
import functools
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, get_origin

from dagflow.errors import DagflowError
from dagflow.model.operator.context import (
    Clock,
    Cursor,
    EventTime,
    FileMaker,
    ItemPart,
    OperatorContext,
    OperatorServices,
    SystemClock,
)
from dagflow.model.operator.ports import BATCH, NET, RECORD, STREAM, handle_net, handlers_of, input_ports, output_ports
from dagflow.model.operator.sink import Sink
from dagflow.model.operator.state import freeze, renew, thaw
from dagflow.model.types.plain_data import decode, encode
from dagflow.model.types.records import ReaderRecord
from dagflow.model.types.typecheck import type_check
from dagflow.runtime.exchange.channels import TaskChannels, nothing_sent
from dagflow.runtime.exchange.rows import Row
from dagflow.runtime.exchange.sender import Sender
from dagflow.runtime.live.task import LiveTask
from dagflow.runtime.rebalancing.task_work import TaskWork
from dagflow.runtime.run_folder.reports import ExchangeFigures, OperatorFigures
from dagflow.runtime.stage.errors import OperatorFailed
from dagflow.runtime.stage.failure import Abort, describe
from dagflow.runtime.stage.inlet import Inlet
from dagflow.runtime.stage.node import Node
from dagflow.runtime.stage.outlet import Outlet, Steps, StreamEnd, Tap, Unconnected
from dagflow.runtime.stage.parts import Part, narrowed
from dagflow.runtime.stage.program import TAKEN_BACK, OutputPlan, Program, ProgramOperator, SendPlan, TaskSpec
from dagflow.runtime.stage.task_time import TaskTime
from dagflow.runtime.stage.unchanged import Unchanged
from dagflow.runtime.task.crash_marker import CrashMarker
from dagflow.state.task_states import MergeFailed, TaskStates


class Flow:
    """The operators of a program, connected: deliver items, end the window, read the figures. A context manager."""

    def __init__(
        self,
        program: Program,
        spec: TaskSpec,
        files: FileMaker | None = None,
        clock: Clock | None = None,
        work: TaskWork | None = None,
        send: Callable[[Row], None] = nothing_sent,
        time: TaskTime | None = None,
    ) -> None:
        self.spec = spec
        self.time = time or TaskTime()
        self._send_row = send
        self._receives = program.receives
        self.senders: dict[str, list[Sender]] = {}
        self._types = {(o.name, port): p.type for o in program.operators for port, p in o.inputs.items()}
        self.cursor = Cursor()
        steps = Steps(self.time)
        self.nodes: dict[str, Node] = {}
        for plan in program.operators:
            context = OperatorContext(
                name=plan.name,
                partition=spec.partition,
                partitions=spec.partitions,
                window=spec.window,
                slots=spec.options.slots,
                continuous=spec.options.continuous,
                application=spec.options.application,
                staging_folder=spec.options.staging_folder,
                clock=clock or SystemClock(),
                agreed=spec.facts.agreed.get(plan.name),
                event_time=spec.facts.event_times.get(plan.name, EventTime()),
                emits=plan.name not in spec.facts.withheld,
                services=OperatorServices(files=files, cursor=self.cursor, stealable=None if work is None else work.stealable),
            )
            node = self.nodes[plan.name] = Node(plan, context, spec.window, steps)
            context.services.on_bad_record = functools.partial(node.bad_record, "reading")
            context.services.on_reject = node.reject
            context.services.on_never_inserted = node.never_inserted
            context.services.on_flush = node.flush
            if spec.options.enforce_immutability:
                node.unchanged = Unchanged(plan.name)
        for plan in reversed(program.operators):
            self._connect(plan, [each for each in program.sends if each.source[0] == plan.name])
        self._entered: list[Node] = []
        self.staged: dict[str, Any] = {}

    def _send(self, row: Row) -> None:
        with self.time.charging(self.time.waiting):
            self._send_row(row)

    def _connect(self, plan: ProgramOperator, sends: Sequence[SendPlan]) -> None:
        node = self.nodes[plan.name]
        handlers = handlers_of(type(node.operator))
        for port, into in plan.inputs.items():
            bound = getattr(node.operator, port)
            bound.record_type, bound.columns = into.type, self.spec.facts.columns.get(plan.name, {}).get(port)
            bound.is_changing = into.is_changing
            handler = getattr(node.operator, handlers[port][into.form])
            emitter = self.nodes.get(into.source.operator) if into.source is not None else None
            node.inlets[port] = Inlet(node, port, into, handler, emitter)
        for port in output_ports(type(node.operator)):
            bound = getattr(node.operator, port)
            out = plan.outputs.get(port)
            sinks: list[StreamEnd] = [self.nodes[n].inlets[sink] for n, sink in out.sinks] if out is not None else []
            senders = [Sender(node, each, self.spec, self._send) for each in sends if each.source[1] == port]
            self.senders.setdefault(plan.name, []).extend(senders)
            sinks += senders
            check = type_check(f"{plan.name}.{port}", out.type) if out is not None and self.spec.options.checked else None
            if out is not None:
                outlet = node.outlets[port] = Outlet(node, port, out.type, sinks, check)
                outlet.bind(bound)
                outlet.is_changing, outlet.empty_batches = out.is_changing, bound.empty_batches
                bound.wants_batches = out.wants_batches
                outlet.takes_mixed_batches = bound.takes_mixed_batches = not senders and self._takes_mixed_batches(out)
            else:
                nowhere = Unconnected(node, port)
                bound.emit, bound.emit_all, bound.emit_batch = nowhere.emit, nowhere.emit_all, nowhere.emit
                bound.retract = bound.retract_batch = nowhere.emit
            bound.is_connected = out is not None

    def _takes_mixed_batches(self, out: OutputPlan) -> bool:
        """Return whether each row that leaves by a port names its block, here and wherever it goes in this task."""
        if not out.wants_batches or (get_origin(out.type) or out.type) is not ReaderRecord:
            return False
        nodes = [self.nodes[name] for name, _ in out.sinks]
        inlets = [node.inlets[port] for node, (_, port) in zip(nodes, out.sinks, strict=True)]
        return all(inlet.form == BATCH for inlet in inlets) and all(
            outlet.takes_mixed_batches for node in nodes for outlet in node.outlets.values()
        )

    def __enter__(self) -> Flow:
        try:
            for node in self.nodes.values():
                self._entered.append(node)
                try:
                    with self.time.charging(node.account):
                        node.operator.setup(node.context)
                except BaseException as error:  # noqa: BLE001  # user code may raise anything
                    node.fail("setup()", error, None)
                node.refuse_pending()
                node.outside = "a method that was called between windows"
                freeze(node.operator)
        except BaseException:
            self._leave(failing=True)
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._leave(failing=error is not None)

    def _leave(self, failing: bool) -> None:
        entered, self._entered = self._entered, []
        first: BaseException | None = None
        for node in reversed(entered):
            thaw(node.operator)
            node.outside = "teardown()"
            try:
                node.drop()
                node.call("teardown")
                node.refuse_pending()
            except Abort as problem:
                first = first or problem
        if first is not None and not failing:
            raise first

    def _begin_window(self, window: int) -> None:
        """Begin a window in all operators, downstream first: what one of them emits then reaches a window that has begun."""
        for node in self.nodes.values():
            node.refuse_pending()
            node.window = node.context.window = window
            node.context.signals.window_closed = False
            renew(node.operator)
            node.is_open = True
            if node.unchanged is not None:
                node.unchanged.begin(window)
            for outlet in node.outlets.values():
                outlet.begin_samples()
        for node in reversed(self.nodes.values()):
            node.call("begin_window", window)
            node.flush()

    def restore(self, states: TaskStates) -> None:
        """Give operators their states, before `setup`, which sees them."""
        try:
            states.restore({name: node.operator for name, node in self.nodes.items()})
        except MergeFailed as failed:
            self.nodes[failed.operator].fail(f"merge of State {failed.state!r}", failed.error, None)

    def deliver(self, operator: str, port: str, records: list[Any]) -> None:
        """Hand records to an input port and let them flow to the end. `-port`: they are taken back."""
        self.nodes[operator].inlets[port.removeprefix(TAKEN_BACK)].take(records, port.startswith(TAKEN_BACK))

    def decoded(self, item: tuple[str, str, Any]) -> Any:
        """Return a work item `(operator, port, encoded item)` as its operator gets it."""
        operator, port, encoded = item
        return decode(encoded, self._types[operator, port.removeprefix(TAKEN_BACK)])

    def deliver_item(self, item: tuple[str, str, Any], value: Any, part: Part | None = None) -> None:
        """Hand over a work item, or a part of one. `value`: the item as its operator gets it."""
        if part is not None and not part.is_whole:
            self.cursor.part = ItemPart(value, part.start, part.stop, part.completes)
            value = narrowed(value, part)
            if part.start is not None:
                self.nodes[item[0]].inlets[item[1].removeprefix(TAKEN_BACK)].count -= 1  # it counts where its start is read
        self.deliver(item[0], item[1], [value])
        self.cursor.part = None

    def deliver_rows(self, rows: Iterable[Row]) -> None:
        """Hand over what arrives over exchanges."""
        for row in self.time.during(self.time.waiting, rows):
            self.cursor.sender = self.spec.sender(row.src)
            operator, port = self._receives[row.exchange]
            node = self.nodes[operator]
            with self.time.charging(node.account):
                records = row.records()
            node.inlets[port].take(records, row.retracts)
        self.cursor.sender = None

    @contextlib.contextmanager
    def window(self, number: int) -> Iterator[None]:
        """Begin a window, and end it when all is delivered. After an exception it is left open: the task has failed."""
        self._begin_window(number)
        yield
        self.cursor.move(None, None)
        self._end_window()

    def tap(self, *, emitted: Mapping[str, Tap], received: Mapping[str, Tap]) -> None:
        """Listen to the chunks that operators emit, and to those that they receive; both by operator."""
        for name, tap in emitted.items():
            for port, outlet in self.nodes[name].outlets.items():
                outlet.tap = tap
                getattr(self.nodes[name].operator, port).takes_mixed_batches = False  # a tap hears of each item by itself
        for name, tap in received.items():
            for inlet in self.nodes[name].inlets.values():
                inlet.tap = tap

    def _end_window(self) -> None:
        """End the window in all operators, upstream first; what they emit then flows on."""
        for node in self.nodes.values():
            for port in input_ports(type(node.operator)):
                if (inlet := node.inlets.get(port)) is not None and inlet.form == NET:
                    inlet.returned = node.call(inlet.handler.__name__, node.operator, port, inlet.handler, method=handle_net)
            node.call("end_window")
            node.flush()
            with self.time.charging(node.account):
                for sender in self.senders.get(node.name, ()):
                    sender.finish()
            node.flush()
            for inlet in node.inlets.values():
                inlet.refuse_returned()
        for node in self.nodes.values():
            node.is_open = False

    def stage(self) -> None:
        """Let sinks stage what they have collected for the window: `staged`."""
        described = {name: node.call("stage") for name, node in self.nodes.items() if isinstance(node.operator, Sink)}
        self.staged = {name: each for name, each in described.items() if each is not None}
        for name, each in self.staged.items():
            encode(each, f"stage() of {name!r}")  # raises StateNotPlain

    def figures(self) -> dict[str, OperatorFigures]:
        """Return the figures of all operators by name."""
        return {name: node.total() for name, node in self.nodes.items()}

    def exchanges(self) -> dict[str, ExchangeFigures]:
        """Return the figures of exchanges, by the port that they lead to."""
        return {sender.port: sender.figures for senders in self.senders.values() for sender in senders}

    def event_times(self) -> dict[str, int]:
        """Return the latest event times that operators have reported."""
        latest = {name: node.context.signals.latest_event_time for name, node in self.nodes.items()}
        return {name: time for name, time in latest.items() if time is not None}

    def held(self) -> dict[str, int]:
        """Return how many changes more, or fewer, operators keep back for the next emission point."""
        return {name: held for name, node in self.nodes.items() if (held := node.context.signals.held)}

    def notes(self) -> dict[str, list[str]]:
        """Return the notes of operators for the driver."""
        return {name: node.context.signals.notes for name, node in self.nodes.items() if node.context.signals.notes}


def run_flow(
    program_bytes: bytes,
    spec: TaskSpec,
    files: FileMaker | None = None,
    clock: Clock | None = None,
    states: TaskStates | None = None,
    crash_marker: CrashMarker | None = None,
    work: TaskWork | None = None,
    channels: TaskChannels | None = None,
    stages: bool = False,
    time: TaskTime | None = None,
    live: LiveTask | None = None,
) -> Flow:
    """Run one task from setup to teardown, and return its flow, which holds the figures. Raises Abort.

    `states`: of its operators; `crash_marker`: the file that names the next record; `work`: the items, if
    other tasks may read parts of them; `channels`: the rows of exchanges; `stages`: sinks may write to their stores;
    `time`: that of the task; `live`: shows others how far it is.
    """
    program: Program = pickle.loads(program_bytes)  # made by this launch, handed over in memory or by Spark
    channels = channels or TaskChannels()
    flow = Flow(program, spec, files, clock, work, channels.send, time)
    time = flow.time
    if live is not None:
        live.watch(flow)
    flow.cursor.crash_marker = crash_marker
    if states is not None:
        with time.charging(time.loading):
            flow.restore(states)
    with flow:
        with flow.window(spec.window):
            if work is not None:
                for item, value, part in time.during(time.waiting, work.items(flow)):
                    flow.deliver_item(item, value, part)
            else:
                for item, part in spec.work.with_parts():
                    flow.deliver_item(item, flow.decoded(item), part)
            flow.cursor.move(None, None)
            flow.deliver_rows(channels.incoming)
        if stages:
            flow.stage()
        if states is not None:
            with time.charging(time.storing):
                states.capture()
    return flow


def failure_of(error: BaseException) -> DagflowError:
    """Return the error of dagflow for an exception from `run_flow`."""
    if isinstance(error, Abort):
        return error.error
    if isinstance(error, DagflowError):
        return error
    return OperatorFailed(operator="(the framework)", doing="a task", error=describe(error))


__all__ = ["BATCH", "RECORD", "STREAM", "Flow", "Node", "failure_of", "run_flow"]
