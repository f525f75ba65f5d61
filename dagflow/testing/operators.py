"""One operator on its own: run as a task runs it, on given records; its emitted records are collected."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.local.spool import transform_runner
from dagflow.model.errors.dag import UnknownName
from dagflow.model.graph.infer import bind_input, own_bindings, port_types
from dagflow.model.operator.base import InputOperator, Operator, limits_of
from dagflow.model.operator.context import Clock, EventTime, FileMaker, OperatorContext, SystemClock
from dagflow.model.operator.dataframes import INPUT, OUTPUT, DataFrameOperator
from dagflow.model.operator.map_state import MapState
from dagflow.model.operator.ports import BATCH, IN_COLUMNS, RECORD, STREAM, handlers_of, input_ports, output_ports
from dagflow.model.types.forms import to_batch, to_records
from dagflow.model.types.plain_data import encode
from dagflow.model.types.records import ReaderRecord, Window
from dagflow.model.types.typecheck import type_check
from dagflow.planning.errors import NotSupported
from dagflow.planning.forms import preferred_form
from dagflow.runtime.exchange.dataframes import check_values
from dagflow.runtime.exchange.fitting import fitted
from dagflow.runtime.run_folder.files import Replaces
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.runtime.stage.failure import reported_errors
from dagflow.runtime.stage.program import (
    DataFrameTransform,
    OutputPlan,
    PortPlan,
    Program,
    ProgramOperator,
    RunOptions,
    TaskSpec,
    WindowFacts,
)
from dagflow.runtime.task.attempt_files import AttemptFiles, place
from dagflow.runtime.task.compile import WorkItems, loaded, pickled
from dagflow.runtime.task.flow import Flow
from dagflow.runtime.windows.commit import decide, roll_forward, sweep
from dagflow.runtime.windows.event_time import latest
from dagflow.runtime.windows.plan_window import fill, reset
from dagflow.state.errors import ChangedInPlace
from dagflow.state.task_states import declared_states, encoded_states, restore_states
from dagflow.storage import MemoryStore
from dagflow.testing.tasks import check_class

if TYPE_CHECKING:
    import pyarrow as pa

Given = Mapping[str, Sequence[Any]]


class Emitted(dict[str, list[Any]]):
    """The records that an operator emitted, by output port. The port `errors` is there only when something came out of it.

    Attributes:
        retracted: the records that the operator has taken back, by output port.
        counters: what the operator counted (`context.count`).
        skipped: how many records its `on_error` skipped.
    """

    def __init__(self, ports: Mapping[str, list[Any]]) -> None:
        super().__init__(ports)
        self.retracted: dict[str, list[Any]] = {}
        self.counters: dict[str, int] = {}
        self.skipped = 0

    def forget(self) -> None:
        """Forget the records and figures so far."""
        for records in self.values():
            records.clear()
        self.retracted.clear()
        self.counters.clear()
        self.skipped = 0


def run_operator(
    operator: Operator,
    records: Given,
    *,
    form: str | None = None,
    window: int = 0,
    windows: int | None = None,
    seconds: float | None = None,
    partition: int = 0,
    partitions: int = 1,
    slots: int = 2,
    continuous: bool = False,
    clock: Clock | None = None,
) -> Emitted:
    """Run one operator as a task does, without Spark, and return the records that it emitted, by output port.

    It works on a copy that was pickled, as in a run; it is set up and torn down, its fields are frozen; every record that goes in
    and comes out is checked against its port's type. Files of sinks are in place at the end, as after a decided window.

    Args:
        operator: stays as it is: what runs is a copy.
        records: by input port, the records of one window, or a list of `Window([...])`. Input operators take none. Ports with a
            handler for batches also take `pyarrow.RecordBatch` and `Table`, as they come from a scan.
        form: `record`, `stream` or `batch`: which of its handlers to call. Default: the one that the framework takes for records.
        window: the number of the first window.
        windows: for input operators, how many windows to fill at most. Default: all, until the operator is exhausted.
        seconds: for input operators, how long a window stays open; 0: for one call of `emit_tuples`. Default: until it is full,
            or nothing comes any more.
        partition: which of how many copies the operator is told to be.
        partitions: how many copies it is told that there are.
        slots: how many tasks it is told can work at once.
        continuous: whether it is told that the run continues when the input is exhausted.
        clock: where it takes time from.

    Each window gets a copy of its own, as in tasks; input operators, and others that must not be copied, live for all of them.
    `State` is kept from window to window. A body of DataFrames runs in the active Spark session, or in a local one of its own.

    Raises:
        OperatorFailed: the operator raised; its own exception is the `__cause__`.
        ExpectationFailed: a window has more rejected records than `max_rejects`, or the limit of an `Expect`, allows.
        WrongRecordType: a record is not of its port's type.
        FieldFrozen: the operator assigned what is not declared.
        ChangedInPlace: it changed a value of a `MapState` without assigning it.
        ValueError: its own `check()` rejects its properties.
        DagError: a DAG would refuse its class, for a list that all copies share, say.

    >>> from operators import Filter
    >>> run_operator(Filter(lambda line: line != ""), {"input": ["a", "", "b"]})
    {'output': ['a', 'b']}
    >>> import pyarrow.compute as pc
    >>> run_operator(Filter(pc.field("value") > 1), {"input": [Window([1, 2]), Window([3])]})
    {'output': [2, 3]}
    """
    if isinstance(operator, DataFrameOperator):
        given = [each.get(INPUT, []) for each in windows_of(records)]
        return Emitted({OUTPUT: run_transform(operator, given, _types(operator, records), window)})
    bench = Bench(operator, records, form=form)
    spec = TaskSpec(
        window=window,
        epoch="test",
        stage="test",
        partition=partition,
        partitions=partitions,
        options=RunOptions(slots=slots, continuous=continuous, base=os.getcwd(), durable=False, checked=True),
    )
    with reported_errors():
        if isinstance(operator, InputOperator):
            bench.fill(spec, windows, seconds, clock or SystemClock())
        else:
            bench.feed(spec, windows_of(records), clock or SystemClock())
    return bench.emitted


class TakenBack(dict[str, Sequence[Any]]):
    """Records by input port that are taken back."""


def windows_of(records: Given) -> list[dict[str, Sequence[Any]]]:
    """Return the records of each window by port."""
    split = {
        port: list(given) if given and all(isinstance(item, Window) for item in given) else [given]
        for port, given in records.items()
    }
    count = max((len(windows) for windows in split.values()), default=1)
    return [{port: windows[n] for port, windows in split.items() if n < len(windows)} for n in range(count)]


@attrs.define(init=False)
class Bench:
    """A program of one operator, with a collector behind each of its output ports."""

    operator: Operator
    program: bytes
    emitted: Emitted
    types: dict[str, Any]
    _log: WindowLog

    def __init__(self, operator: Operator, records: Given, *, form: str | None = None, is_changing: bool = False) -> None:
        if not isinstance(operator, Operator):
            raise TypeError(f"{operator!r} is not an operator")
        check_class(operator)
        self.operator = operator
        self.emitted = Emitted({port: [] for port in output_ports(type(operator)) if port != "errors"})
        self._log = WindowLog(MemoryStore())
        known = tuple(input_ports(type(operator)))
        for port in records:
            if port not in known:
                raise UnknownName(f"input port of {type(operator).__name__}", port, known)
        self.types = _types(operator, records)
        if form is None and any(_goes_as_batch(operator, port, each) for port, given in records.items() for each in _flat(given)):
            form = BATCH
        self.program = pickled(_program(operator, self.types, list(records), form, is_changing), travels=False)

    def flow(
        self, spec: TaskSpec, files: FileMaker | None = None, clock: Clock | None = None, before: Operator | None = None
    ) -> Flow:
        """Return the program as a flow on a fresh copy. `before`: an operator whose `output` leads to the tested input port."""
        program = loaded(self.program)
        if before is not None:
            sinks = tuple((NAME, port) for port in program.operators[0].inputs)
            first = ProgramOperator("before", before, {}, {"output": OutputPlan(Any, sinks, wants_batches=False)})
            program = attrs.evolve(program, operators=(first, *program.operators))
        return Flow(program, spec, files, clock)

    def run(self, flow: Flow, window: int, *chunks: Given) -> None:
        """Run one window of given records, in chunks; some are `TakenBack`."""

        def body() -> None:
            for given in chunks:
                self._deliver(flow, given)

        self._within(flow, window, body)

    def feed(self, spec: TaskSpec, windows: Sequence[Given], clock: Clock) -> None:
        """Run windows of given records: each on a fresh copy, or all on one if the operator must not be copied."""
        states: dict[str, Any] = {}
        agreed: Any = None
        seen: int | None = None
        follows = self.operator.follows_event_time
        with ExitStack() as stack:
            flow = None
            for number, given in enumerate([*windows, {}] if follows else windows):
                at = attrs.evolve(spec, window=spec.window + number)
                agreed = self._agree(given, agreed, at)
                # behind the last window comes the end of the run
                times = {NAME: EventTime(seen=seen, is_end=number == len(windows))} if follows else {}
                at = attrs.evolve(at, facts=WindowFacts(agreed={NAME: agreed}, event_times=times))
                if flow is not None and self.operator.partitionable:
                    stack.close()
                    flow = None
                if flow is None:
                    flow = self.flow(at, clock=clock)
                    restore_states(flow.nodes[NAME].operator, states)
                    stack.enter_context(flow)
                with self._committed(flow, at):
                    self.run(flow, at.window, given)
                seen = latest({} if seen is None else {NAME: seen}, flow.event_times()).get(NAME)
                states = encoded_states(flow.nodes[NAME].operator, type(self.operator).__name__)

    def _agree(self, given: Given, before: Any, spec: TaskSpec) -> Any:
        """Return what the operator agrees on for a window of work items."""
        items = [record for records in given.values() for record in records]
        return self.operator.agree(items, before, OperatorContext(name=NAME, window=spec.window)) if items else before

    def fill(self, spec: TaskSpec, windows: int | None, seconds: float | None, clock: Clock) -> None:
        """Run windows that the operator fills itself."""
        exhausted = False
        with self.flow(spec, clock=clock) as flow:

            def body() -> None:
                nonlocal exhausted
                nodes = [flow.nodes[NAME]]
                exhausted = fill(nodes, clock, continuous=spec.options.continuous, seconds=seconds, stop=lambda: False)

            number = 0
            while not exhausted and (windows is None or number < windows):
                at = attrs.evolve(spec, window=spec.window + number)
                with self._committed(flow, at):
                    self._within(flow, at.window, body)
                number += 1

    def _within(self, flow: Flow, window: int, body: Callable[[], object]) -> None:
        reset(flow.nodes[NAME])
        try:
            with _nothing_in_place(flow.nodes[NAME].operator), flow.window(window):
                body()
        finally:
            self._collect(flow)

    @contextmanager
    def _committed(self, flow: Flow, spec: TaskSpec) -> Iterator[None]:
        """Give a window attempt files; afterwards, do what follows from a decision."""
        node = flow.nodes[NAME]
        files = AttemptFiles(spec.window, spec.epoch, spec.name, False, spec.options.base)
        node.context.services.files = files
        try:
            yield
            flow.stage()
            report = TaskReport(spec.name, 0, {NAME: node.total()}, files.finish(), flow.notes(), staged=flow.staged)
            self._decide(spec.window, report, node.operator)
        except BaseException:
            files.abandon()
            raise
        finally:
            sweep(self._log, {spec.window}, [place(folder, spec.options.base) for folder in self.operator.output_folders()])

    def _deliver(self, flow: Flow, given: Given) -> None:
        for port, records in given.items():
            check, retracts = type_check(f"{NAME}.{port}", self.types[port], "was given"), isinstance(given, TakenBack)
            for in_columns, run in groupby(records, functools.partial(_goes_as_batch, self.operator, port)):
                together = list(run)
                if in_columns:
                    for columns in together:
                        for batch in columns.to_batches() if hasattr(columns, "to_batches") else [columns]:
                            flow.nodes[NAME].inlets[port].take(batch, retracts)
                    continue
                if check is not None:
                    for record in together:
                        check(record)
                flow.nodes[NAME].inlets[port].take(together, retracts)

    def _decide(self, window: int, report: TaskReport, live: Operator) -> None:
        plan = WindowPlan(window=window, items={}, partitions={}, places={}, states={}, driver=report)
        replacing = {} if live.kept_snapshots() is None else {NAME: Replaces.ROWS}
        halves = {NAME: live if not live.partitionable else loaded(self.program).operators[0].operator}
        limits = {NAME: limits_of(live)}
        decision = decide(self._log, plan, "test", (), 0.0, False, limits=limits, replacing=replacing, operators=halves)
        roll_forward(self._log, decision, halves, False)

    def _collect(self, flow: Flow) -> None:
        for port in output_ports(type(self.operator)):
            collector = flow.nodes[f"{NAME}.{port}"].operator
            assert isinstance(collector, WorkItems)
            items = collector.take()
            if items or port in self.emitted:
                self.emitted.setdefault(port, []).extend(items)
            if retracted := collector.take(retracted=True):
                self.emitted.retracted.setdefault(port, []).extend(retracted)
        figures = flow.nodes[NAME].total()
        self.emitted.skipped += figures.errors
        for name, n in figures.counters.items():
            self.emitted.counters[name] = self.emitted.counters.get(name, 0) + n


@contextmanager
def _nothing_in_place(operator: Operator) -> Iterator[None]:
    """Raise ChangedInPlace when an operator changes a value of a `MapState` without assigning it: a run would not save it."""
    maps = {name: getattr(operator, name) for name, kept in declared_states(operator).items() if isinstance(kept, MapState)}
    before = {name: {key: encode(value, name) for key, value in kept.items()} for name, kept in maps.items()}
    for kept in maps.values():
        kept.saved()
    yield
    for name, kept in maps.items():
        assigned = kept.changes().assigned
        for key, value in kept.items():
            if key not in assigned and encode(value, name) != before[name].get(key):
                raise ChangedInPlace(type(operator).__name__, name, repr(key))


NAME = "operator"
"""The name of the operator in its program."""


def _types(operator: Operator, records: Given) -> dict[str, Any]:
    """Return the types of all ports: those that the operator declares, otherwise those of the records."""
    bindings = own_bindings(operator)
    for port, given in records.items():
        kinds = [_type_of(record) for record in _flat(given) if not _goes_as_batch(operator, port, record)]
        if kinds and all(kind == kinds[0] for kind in kinds):
            bind_input(operator, port, kinds[0], bindings)
    return port_types(operator, bindings)


def _flat(given: Sequence[Any]) -> list[Any]:
    """Return the records of all windows."""
    return [record for window in windows_of({"": given}) for record in window[""]]


def _goes_as_batch(operator: Operator, port: str, record: Any) -> bool:
    """Return whether a record is a batch or table (told without importing pyarrow), on a port that takes batches."""
    is_columns = type(record).__module__ == "pyarrow.lib" and type(record).__name__ in ("RecordBatch", "Table")
    return is_columns and not IN_COLUMNS.isdisjoint(operator.offered_forms(port))


def _type_of(record: Any) -> Any:
    if isinstance(record, ReaderRecord):
        return ReaderRecord[_type_of(record.record)]  # type: ignore[misc]  # made at run time
    if isinstance(record, list) and record:
        kinds = [_type_of(item) for item in record]
        if all(kind == kinds[0] for kind in kinds):
            return list[kinds[0]]  # type: ignore[valid-type]
    return type(record)


def _program(operator: Operator, types: dict[str, Any], used: list[str], form: str | None, is_changing: bool) -> Program:
    inputs = {port: PortPlan(_handled(operator, port, form), types[port], is_changing=is_changing) for port in used}
    outputs, collectors = {}, []
    handled = {into.form for into in inputs.values()} or {RECORD}
    offered: set[str] = set()
    for port in used:
        offered |= operator.offered_forms(port)
    for port in output_ports(type(operator)):
        can = frozenset().union(*(operator.emitted_forms(port, one) for one in handled)) if port != "errors" else {RECORD}
        offered |= can if port != "errors" else set()
        batches = BATCH in can and (form == BATCH or RECORD not in can)
        collector = f"{NAME}.{port}"
        changes = is_changing or bool(operator.takes_changes or operator.emits_changes)
        outputs[port] = OutputPlan(types[port], ((collector, "input"),), batches, changes)
        collectors.append(ProgramOperator(collector, WorkItems(), {"input": PortPlan(RECORD, types[port])}, {}))
    if form is not None and form not in offered:
        raise UnknownName(f"form of {type(operator).__name__}", form, tuple(f for f in (RECORD, STREAM, BATCH) if f in offered))
    return Program("test", (ProgramOperator(NAME, operator, inputs, outputs), *collectors))


def _handled(operator: Operator, port: str, form: str | None) -> str:
    offered = operator.offered_forms(port) & set(handlers_of(type(operator)).get(port, ()))
    if not offered:
        name = type(operator).__name__
        raise NotSupported(
            f"port {name}.{port} has no handler", "run_operator", f"write a method of {name} marked @{port}.process"
        )
    return form if form in offered and form is not None else preferred_form(RECORD, offered)


def run_transform(
    operator: DataFrameOperator, windows: Sequence[Sequence[Any]], types: Mapping[str, Any], first: int
) -> list[Any]:
    """Apply an operator to windows of records, or of batches. Raises NotSupported where its columns are not declared."""
    columns = {port: operator.columns(port, types[port]) for port in (INPUT, OUTPUT)}
    given, made = columns[INPUT], columns[OUTPUT]
    if given is None or made is None:
        name = type(operator).__name__
        reason = f"nothing says the columns of {name}"
        raise NotSupported(reason, "run_operator", f"{name}[In, Out](…), or input_schema=… and output_schema=…")
    with_values = sorted(operator.columns_with_values(types[OUTPUT]))
    rows: list[Any] = []
    with closing(transform_runner()) as here:
        for number, records in enumerate(windows):
            transform = DataFrameTransform(
                operator=NAME,
                window=first + number,
                level=1,
                tag=0,
                first=0,
                partitions=1,
                given=given,
                made=made,
                function=operator.transform,
            )
            for batch in here.made(transform, (fitted(batch, given, NAME) for batch in _batches(records, types[INPUT]))):
                check_values(batch, with_values, NAME)
                rows += to_records(batch, types[OUTPUT])
    return rows


def _batches(records: Sequence[Any], kind: Any) -> Iterator[pa.RecordBatch]:
    plain = []
    for record in records:
        if type(record).__module__ == "pyarrow.lib":  # told without importing it
            yield from record.to_batches() if hasattr(record, "to_batches") else (record,)
        else:
            plain.append(record)
    if plain:
        yield to_batch(plain, kind)
