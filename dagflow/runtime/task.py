"""The stage program: what one task does, the same in process and on Spark. Runners only call `run_task`."""

from __future__ import annotations

import contextlib
import copy
import functools
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from dagflow.errors import DagflowError
from dagflow.errors.dag import PortUnbound
from dagflow.errors.run import OperatorFailed
from dagflow.model.context import Clock, Cursor, FileMaker, ItemPart, OperatorContext, SystemClock
from dagflow.model.event_time import EventTime
from dagflow.model.kept import freeze, kept_by, renew, thaw
from dagflow.model.map_state import KeptMap
from dagflow.model.operator import ErrorRecord, Operator
from dagflow.model.plain import decode
from dagflow.model.ports import BATCH, RECORD, STREAM, handlers_of, output_ports
from dagflow.model.records import ReaderRecord
from dagflow.runtime import partition_state
from dagflow.runtime.exchange.hottest import ExchangeFigures
from dagflow.runtime.exchange.passing import Passing, nothing_sent
from dagflow.runtime.exchange.rows import Row, batch_of, records_of
from dagflow.runtime.exchange.sender import Sender
from dagflow.runtime.failure import Abort, abort, describe, sample, text_of
from dagflow.runtime.flow import Inlet, Outlet
from dagflow.runtime.footprint import Footprint
from dagflow.runtime.keyed_state import KeyedStates
from dagflow.runtime.program import Program, ProgramOperator, SendPlan, TaskSpec
from dagflow.runtime.report import SAMPLES, OperatorFigures
from dagflow.runtime.sharing.at_work import AtWork
from dagflow.runtime.sharing.parts import Part, narrowed
from dagflow.runtime.typecheck import type_check


class Node:
    """An operator at work in a task."""

    def __init__(self, plan: ProgramOperator, context: OperatorContext, window: int | None) -> None:
        self.name = plan.name
        self.operator: Operator = plan.operator
        self.context = context
        self.window = window
        self.inlets: dict[str, Inlet] = {}
        self.outlets: dict[str, Outlet] = {}
        self.figures = OperatorFigures()

    def emitted(self) -> int:
        """How many records have been handed on so far, those in buffers included."""
        return sum(o.count + o.pending for o in self.outlets.values())

    def flush(self) -> None:
        """Hands on what the operator has emitted."""
        for outlet in self.outlets.values():
            outlet.flush()

    def drop(self) -> None:
        """Forgets what the operator has emitted and has not been handed on."""
        for outlet in self.outlets.values():
            outlet.drop()

    def fail(self, doing: str, error: BaseException, record: Any) -> NoReturn:
        """Ends the task."""
        raise abort(self.name, self.window, doing, error, record, self.context.cursor) from error

    def bad_record(self, doing: str, error: BaseException, record: Any) -> None:
        """Does with a record what the operator's `on_error` says."""
        if self.operator.on_error == "fail" or getattr(error, "is_fatal", False):
            self.fail(doing, error, record)
        self.figures.errors += 1
        cursor = self.context.cursor
        position = record.position if isinstance(record, ReaderRecord) else cursor.position
        if len(self.figures.samples) < SAMPLES:
            self.figures.samples.append(sample(error, record, cursor.path, position))
        outlet = self.outlets.get("errors")
        if self.operator.on_error == "route" and outlet is not None:
            position = position if isinstance(position, int) else None  # a key, say: the sample has it
            outlet.emit(ErrorRecord(self.name, self.context.window, cursor.path, position, describe(error), text_of(record)))

    def open(self, is_open: bool) -> None:
        """Whether the operator may emit: within a window."""
        for outlet in self.outlets.values():
            outlet.is_open = is_open

    def refuse_pending(self, doing: str) -> None:
        """Fails when the operator has emitted outside a window."""
        for port, outlet in self.outlets.items():
            if outlet.pending:
                self.fail(doing, PortUnbound(port=port, operator=self.name), None)

    def hold(self) -> None:
        """From now on, keeps back what the operator emits."""
        for outlet in self.outlets.values():
            outlet.hold()

    def release(self, keep: bool) -> None:
        """Hands on what was kept back, or forgets it."""
        for outlet in self.outlets.values():
            outlet.release(keep)

    def kept(self) -> dict[str, Any]:
        """A copy of what the operator keeps within the window."""
        values = {name: getattr(self.operator, name) for name in kept_by(type(self.operator))}
        return {n: v.savepoint() if isinstance(v, KeptMap) else copy.deepcopy(v) for n, v in values.items()}

    def put_back(self, kept: dict[str, Any]) -> None:
        """Gives the operator back what it kept."""
        for name, value in kept.items():
            if isinstance(now := self.operator.__dict__.get(name), KeptMap):
                now.roll_back(value)
            else:
                self.operator.__dict__[name] = value

    @contextlib.contextmanager
    def discarding(self) -> Iterator[None]:
        """While this lasts, what the operator emits goes nowhere."""
        inlets = {name: outlet.inlets for name, outlet in self.outlets.items()}
        self.drop()
        for outlet in self.outlets.values():
            outlet.inlets = []
        try:
            yield
        finally:
            self.drop()
            for name, outlet in self.outlets.items():
                outlet.inlets = inlets[name]

    def call(self, doing: str) -> Any:
        """Calls a lifecycle method without arguments; what it returns."""
        try:
            return getattr(self.operator, doing)()
        except Abort:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code may raise anything
            self.fail(f"{doing}()", error, None)

    def total(self) -> OperatorFigures:
        """The operator's figures so far."""
        self.figures.records_in = sum(i.count for i in self.inlets.values())
        self.figures.converted = sum(i.converted for i in self.inlets.values())
        self.figures.records_out = sum(o.count for n, o in self.outlets.items() if n != "errors")
        self.figures.counters = dict(self.context.counters)
        return self.figures


class Flow:
    """The operators of a program, connected: deliver items, end the window, read the figures. A context manager."""

    def __init__(
        self,
        program: Program,
        spec: TaskSpec,
        files: FileMaker | None = None,
        clock: Clock | None = None,
        work: AtWork | None = None,
        send: Callable[[Row], None] = nothing_sent,
    ) -> None:
        self.spec = spec
        self._send = send
        self._receives = program.receives
        self._keyed = program.keyed
        self.senders: dict[str, list[Sender]] = {}
        self._types = {(o.name, port): p.type for o in program.operators for port, p in o.inputs.items()}
        self.cursor = Cursor()
        self.nodes: dict[str, Node] = {}
        for plan in program.operators:
            context = OperatorContext(
                name=plan.name,
                partition=spec.partition,
                partitions=spec.partitions,
                window=spec.window,
                slots=spec.slots,
                continuous=spec.continuous,
                clock=clock or SystemClock(),
                files=files,
                cursor=self.cursor,
                sharing=work,
                agreed=spec.agreed.get(plan.name),
                event_time=spec.event_times.get(plan.name, EventTime()),
            )
            node = self.nodes[plan.name] = Node(plan, context, spec.window)
            context.on_bad_record = functools.partial(node.bad_record, "reading")
            context.on_flush = node.flush
        for plan in reversed(program.operators):
            self._connect(plan, [each for each in program.sends if each.source[0] == plan.name])
        self._entered: list[Node] = []
        self.kept: dict[str, partition_state.Encoded] = {}

    def _connect(self, plan: ProgramOperator, sends: Sequence[SendPlan]) -> None:
        node = self.nodes[plan.name]
        handlers = handlers_of(type(node.operator))
        for port, into in plan.inputs.items():
            bound = getattr(node.operator, port)
            bound.record_type, bound.columns = into.type, self.spec.columns.get(plan.name, {}).get(port)
            handler = getattr(node.operator, handlers[port][into.form])
            node.inlets[port] = Inlet(node, port, into.type, into.form, handler)
        for port in output_ports(type(node.operator)):
            bound = getattr(node.operator, port)
            out = plan.outputs.get(port)
            sinks: list[Inlet | Sender] = [self.nodes[n].inlets[sink] for n, sink in out.sinks] if out is not None else []
            senders = [Sender(node, each, self.spec, self._send) for each in sends if each.source[1] == port]
            self.senders.setdefault(plan.name, []).extend(senders)
            sinks += senders
            check = type_check(f"{plan.name}.{port}", out.type) if out is not None and self.spec.checked else None
            outlet = Outlet(node, port, out.type if out is not None else None, sinks, check)
            if out is not None:
                node.outlets[port] = outlet
                bound.emit, bound.emit_all, bound.emit_batch = outlet.emit, outlet.emit_all, outlet.emit_batch
                bound.wants_batches = out.wants_batches
            else:
                bound.emit = bound.emit_all = bound.emit_batch = _nowhere
            bound.is_connected = out is not None

    def __enter__(self) -> Flow:
        try:
            for node in self.nodes.values():
                self._entered.append(node)
                try:
                    node.operator.setup(node.context)
                except Exception as error:  # noqa: BLE001  # user code may raise anything
                    node.fail("setup()", error, None)
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
            try:
                for outlet in node.outlets.values():
                    outlet.drop()
                node.call("teardown")
                node.refuse_pending("teardown()")
            except Abort as problem:
                first = first or problem
        if first is not None and not failing:
            raise first

    def begin_window(self, window: int) -> None:
        """Begins a window in all operators, upstream first."""
        for node in self.nodes.values():
            node.refuse_pending("setup()")
            node.open(True)
        for node in self.nodes.values():
            node.window = node.context.window = window
            node.context.window_closed = False
            renew(node.operator)
            try:
                node.operator.begin_window(window)
            except Abort:
                raise
            except Exception as error:  # noqa: BLE001  # user code may raise anything
                node.fail("begin_window()", error, None)
            node.flush()

    def restore(self, begun: Mapping[str, Sequence[partition_state.Encoded]]) -> None:
        """Gives operators what their predecessors have left, merged where there are several; before `setup`, which sees it."""
        for name, parts in begun.items():
            node = self.nodes[name]
            for declared, values in partition_state.left_to(node.operator, parts):
                value = values[0]
                if len(values) > 1 and declared.merge is not None:
                    try:
                        value = declared.merge(values)
                    except Exception as error:  # noqa: BLE001  # user code may raise anything
                        node.fail(f"merge of State {declared.name!r}", error, None)
                node.operator.__dict__[declared.name] = value

    def deliver(self, operator: str, port: str, records: list[Any]) -> None:
        """Hands records to an input port and lets them flow to the end."""
        self.nodes[operator].inlets[port].take_records(records)

    def decoded(self, item: tuple[str, str, Any]) -> Any:
        """A work item `(operator, port, encoded item)` as its operator gets it."""
        operator, port, encoded = item
        return decode(encoded, self._types[operator, port])

    def deliver_item(self, item: tuple[str, str, Any], value: Any, part: Part | None = None) -> None:
        """Hands over a work item, or a part of one. `value`: the item as its operator gets it."""
        if part is not None and not part.is_whole:
            self.cursor.part = ItemPart(value, part.start, part.stop, part.completes)
            value = narrowed(value, part)
            if part.start is not None:
                self.nodes[item[0]].inlets[item[1]].count -= 1  # it counts where its start is read
        self.deliver(item[0], item[1], [value])
        self.cursor.part = None

    def deliver_rows(self, rows: Iterable[Row]) -> None:
        """Hands over what arrives over exchanges."""
        for row in rows:
            self.cursor.sender = self.spec.sender(row.src)
            operator, port = self._receives[row.tag >> 1]
            inlet = self.nodes[operator].inlets[port]
            if row.tag & 1:
                inlet.take_records(records_of(row.blob))
            else:
                inlet.take_batch(batch_of(row.blob))
        self.cursor.sender = None

    def end_window(self) -> None:
        """Ends the window in all operators, upstream first; what they emit then flows on."""
        for node in self.nodes.values():
            node.call("end_window")
            node.flush()
            for sender in self.senders.get(node.name, ()):
                sender.finish()
            node.flush()
        for node in self.nodes.values():
            node.open(False)

    def keep(self) -> None:
        """Takes down what operators keep over windows: `kept`. Raises StateNotPlain."""
        kept = {}
        for name, node in self.nodes.items():
            elsewhere = partition_state.keyed_maps(node.operator) if name in self._keyed else ()
            kept[name] = partition_state.kept_states(node.operator, name, elsewhere)
        self.kept = {name: states for name, states in kept.items() if states}

    def figures(self) -> dict[str, OperatorFigures]:
        """The figures of all operators by name."""
        return {name: node.total() for name, node in self.nodes.items()}

    def exchanges(self) -> dict[str, ExchangeFigures]:
        """What went over exchanges, by the port that they lead to."""
        return {sender.port: sender.figures for senders in self.senders.values() for sender in senders}

    def event_times(self) -> dict[str, int]:
        """The latest times of records that operators have told."""
        return {name: node.context.latest for name, node in self.nodes.items() if node.context.latest is not None}

    def notes(self) -> dict[str, list[str]]:
        """What the operators have noted for the driver."""
        return {name: node.context.notes for name, node in self.nodes.items() if node.context.notes}


def _nowhere(what: object) -> None:
    """Where records of an unconnected port go."""


def run_flow(
    program_bytes: bytes,
    spec: TaskSpec,
    files: FileMaker | None = None,
    clock: Clock | None = None,
    begun: Mapping[str, Sequence[partition_state.Encoded]] | None = None,
    footprint: Footprint | None = None,
    work: AtWork | None = None,
    passing: Passing | None = None,
    keyed: KeyedStates | None = None,
) -> Flow:
    """One task from setup to teardown; the flow that it leaves holds the figures, and what operators keep. Raises Abort.

    `begun`: the states that predecessors have left, by operator; `footprint`: where to write down which record comes next;
    `work`: what there is to do, where parts of it may go to other tasks; `passing`: what comes and goes over exchanges; `keyed`:
    the maps of keyed operators.
    """
    program: Program = pickle.loads(program_bytes)  # made by this launch, handed over in memory or by Spark
    passing = passing or Passing()
    flow = Flow(program, spec, files, clock, work, passing.send)
    flow.cursor.footprint = footprint
    flow.restore(begun or {})
    if keyed is not None:
        keyed.restore((name, flow.nodes[name].operator) for name in sorted(program.keyed))
    with flow:
        flow.begin_window(spec.window)
        if work is not None:
            for held in work.items(flow):
                flow.deliver_item(held.item, held.value, held.part)
        else:
            for number, item in enumerate(spec.items):
                flow.deliver_item(item, flow.decoded(item), spec.parts[number] if spec.parts else None)
        flow.cursor.move(None, None)
        flow.deliver_rows(passing.arriving)
        flow.end_window()
        flow.keep()
    return flow


def failure_of(error: BaseException) -> DagflowError:
    """The error that an exception out of `run_flow` stands for."""
    if isinstance(error, Abort):
        return error.error
    if isinstance(error, DagflowError):
        return error
    return OperatorFailed(operator="(the framework)", doing="a task", error=describe(error))


__all__ = ["BATCH", "RECORD", "STREAM", "Flow", "Node", "failure_of", "run_flow"]
