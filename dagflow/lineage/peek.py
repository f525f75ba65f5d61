"""The records that flow through one port: what leads to it runs in this process, on a sample of its input."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.errors import DagflowError
from dagflow.launching.build import LoadedApplication
from dagflow.lineage.errors import PortNotPeekable
from dagflow.lineage.row_search import position_of
from dagflow.local.spool import Spool
from dagflow.logs import within
from dagflow.model.errors.dag import UnknownName
from dagflow.model.graph.dag import PortName, Stream
from dagflow.model.operator.context import SystemClock
from dagflow.model.operator.ports import BATCH, RECORD, InputPort, ports_of
from dagflow.model.operator.protocols import HasRange, LocatesRows
from dagflow.model.operator.sink import Sink
from dagflow.model.types.comparison import type_name
from dagflow.planning.plan import Plan
from dagflow.runtime.exchange.channels import TaskChannels
from dagflow.runtime.garbage import few_collections
from dagflow.runtime.run_folder.reports import OperatorFigures
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.runtime.stage.blame import shown_records
from dagflow.runtime.stage.failure import Abort
from dagflow.runtime.stage.node import operator_at_work
from dagflow.runtime.stage.outlet import Step
from dagflow.runtime.stage.program import RunOptions, TaskSpec
from dagflow.runtime.task.compile import loaded, pickled, stage_program
from dagflow.runtime.task.flow import Flow
from dagflow.runtime.task.recording_files import RecordingFiles
from dagflow.runtime.windows.event_time import event_times
from dagflow.runtime.windows.jobs import levels_of, tasks_of, with_source
from dagflow.runtime.windows.plan_window import Driver
from dagflow.state import MapLog, StartStates
from dagflow.state.task_states import TaskStates, declared_states
from dagflow.storage import MemoryStore

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLE = 100_000
"""Records of a reader after which its window ends."""
_MAX_ITEMS = 100
_MAX_BYTES = 32 << 20
"""The driver plans no more than these into a window of a sample: work items of readers, and bytes of their blocks."""


@attrs.frozen(kw_only=True)
class PeekedRecord:
    """A record that came through a port.

    Attributes:
        record: as it came; of a batch, a row as a record of the port's type, or as a dictionary where that is not known.
        window: the number of its window in the sample.
        path, position: the place in its source of the record that led to it, where that is known.
        is_retracted: it is taken back.
    """

    record: Any
    window: int = 0
    path: str | None = None
    position: Any = None
    is_retracted: bool = False


@attrs.frozen(kw_only=True)
class PeekedRecords:
    """The first records that came through a port.

    Attributes:
        application: its name.
        port: the port, as `operator.port`; `type`: of its records.
        records: in the order in which they came.
        is_all: no more would come.
        remarks: what differs from a launch.
        problem: the error that ended the sample before there were enough.
    """

    application: str
    port: str
    type: str
    records: tuple[PeekedRecord, ...] = ()
    is_all: bool = False
    remarks: tuple[str, ...] = ()
    problem: DagflowError | None = None


@attrs.frozen(kw_only=True)
class PeekablePort:
    """A port that records flow through: its name, their type, and the ports that the stream leads to."""

    port: str
    type: str
    stream: str
    sinks: tuple[str, ...] = ()


def peekable_ports(built: LoadedApplication) -> list[PeekablePort]:
    """Return the ports at which streams start, upstream first."""
    dag = built.plan().written
    places = {name: place for place, name in enumerate(dag.nodes)}
    streams = sorted(dag.streams.values(), key=lambda stream: places[stream.source.operator])
    return [
        PeekablePort(
            port=str(stream.source),
            type=type_name(dag.types[stream.source]),
            stream=stream.name,
            sinks=tuple(map(str, stream.sinks)),
        )
        for stream in streams
    ]


def peek_at(built: LoadedApplication, port: str, *, n: int = 20, sample: int = SAMPLE) -> PeekedRecords:
    """Run the operators upstream of a port in this process, until `n` records have come through it.

    Nothing is written, and no other operator is set up. Behind an exchange, and where operators keep `State`, one window runs, in
    one partition. A window ends after `sample` records of a reader.

    Args:
        built: the application.
        n: the number of records.
        sample: the number of records of each reader.
        port: `operator.port`; of an input port, the records that the stream brings. The name of an operator alone stands for its
            only port with a stream.

    Raises UnknownName, PortNotPeekable, and what planning raises. An error of an operator is the result's `problem`.
    """
    plan = built.plan()
    shown, source = _resolve(built, plan, port)
    dag = plan.dag if source.operator in plan.dag.nodes else plan.written
    led = _with_stream(plan, source).leading_to(source.operator)
    for name in led.driver:
        operator = led.dag.nodes[name].operator
        if isinstance(operator, Sink) or operator.output_folders():
            raise PortNotPeekable(str(shown), f"operator {name!r} upstream of it writes, and runs on the driver")
    sampling = _Sampling(led, source, n, sample)
    problem = sampling.go()
    remarks = [*sampling.remarks()]
    exchange = plan.exchanges.get(shown)
    if exchange is not None:
        remarks.append(f"shown as they are before the exchange ({exchange})")
    return PeekedRecords(
        application=built.dag.name,
        port=str(shown),
        type=type_name(dag.types[source]),
        records=tuple(sampling.records),
        is_all=sampling.is_all and problem is None,
        remarks=tuple(remarks),
        problem=problem,
    )


def _resolve(built: LoadedApplication, plan: Plan, text: str) -> tuple[PortName, PortName]:
    """Return the port that a text names, and the output port whose records it shows."""
    names = {**plan.dag.nodes, **built.expanded.modules}
    operator, _, port = text.rpartition(".")
    if text in names or operator not in names:
        operator, port = text, ""
    if operator not in names:
        known = operator.rpartition(".")[0] or operator
        raise UnknownName("operator", known, tuple(names))
    if not port:
        port = _only_port(plan, operator)
    node = plan.dag.nodes.get(operator)
    ports = ports_of(type(built.expanded.modules[operator].module if node is None else node.operator))
    if port not in ports:
        raise UnknownName("port", f"{operator}.{port}", tuple(f"{operator}.{each}" for each in ports))
    shown = PortName(operator, port)
    end = built.expanded.behind.get(shown, (shown,))[0]
    if not isinstance(ports[port], InputPort) and end in plan.dag.types:
        return shown, end
    stream = plan.written.stream_into(end) or plan.dag.stream_into(end)
    if stream is None:
        raise PortNotPeekable(str(shown), "no stream leads to it")
    return shown, stream.source


def _only_port(plan: Plan, operator: str) -> str:
    """Return the port to show of an operator: the only one at which a stream starts, of a sink the one where it ends."""
    streams = list(plan.written.streams.values())
    leaving = [stream.source for stream in streams if stream.source.operator == operator]
    ports = leaving or [sink for stream in streams for sink in stream.sinks if sink.operator == operator]
    if len(ports) == 1:
        return ports[0].port
    choice = ", ".join(map(str, ports)) or "none: no stream starts or ends there"
    raise PortNotPeekable(operator, f"it is not a single port; those with a stream: {choice}")


def _with_stream(plan: Plan, source: PortName) -> Plan:
    """Return the plan with a stream from a port, if there is none: it leads nowhere."""
    if plan.dag.stream_from(source) is not None:
        return plan
    operator = plan.dag.nodes[source.operator].operator
    into = {form for sink, form in plan.forms.handled.items() if sink.operator == source.operator} or {RECORD}
    can = set[str]().union(*(operator.emitted_forms(source.port, form) for form in into))
    form = RECORD if RECORD in can or source.port == "errors" else BATCH
    stream = Stream(f"peek at {source}", source, (), "")
    return attrs.evolve(
        plan,
        dag=attrs.evolve(plan.dag, streams={**plan.dag.streams, stream.name: stream}),
        forms=attrs.evolve(plan.forms, emitted={**plan.forms.emitted, source: form}),
    )


class _Enough(BaseException):
    """All records that are wanted have come. Not an `Exception`: user code must not catch it."""


class _SampleRead(BaseException):
    """The head of a task has emitted its sample. Not an `Exception`: user code must not catch it."""


class _Sampling:
    """Runs a plan until enough records have come through a port.

    Args:
        plan: only the operators that lead to the port; those before exchanges run in one partition.
        source: the output port.
        n: the number of records that are wanted.
        sample: the number of records of each reader.
    """

    def __init__(self, plan: Plan, source: PortName, n: int, sample: int) -> None:
        self.records: list[PeekedRecord] = []
        self.is_all = False
        self._plan, self._source, self._n, self._sample = plan, source, n, sample
        self._type = plan.dag.types[source]
        self._has_exchange = bool(plan.exchanges)
        self._keeping = [
            name for stage in plan.stages for name in stage.operators if declared_states(plan.dag.nodes[name].operator)
        ]
        self._programs = {stage.name: pickled(stage_program(plan, stage.name), plan, travels=False) for stage in plan.stages}
        self._options = RunOptions(base=os.getcwd(), durable=False)
        self._is_one_window = self._has_exchange or bool(self._keeping)
        self._read: dict[str, int] = {}
        self._cut: set[str] = set()  # heads that had more than the sample
        self._rejected: dict[str, OperatorFigures] = {}
        self._emitted = dict.fromkeys(plan.dag.nodes, 0)
        self._window = 0
        self._has_more_windows = False
        self._head: _HeadTap | None = None

    def go(self) -> DagflowError | None:
        """Run windows until there are enough records. Return the error that ended them."""
        try:
            with few_collections(), within(at_work=operator_at_work):
                self._windows()
        except _Enough:
            pass
        except Abort as abort:
            return abort.error
        except DagflowError as error:
            return error
        return None

    def _windows(self) -> None:
        driver = Driver(self._plan, self._options, "peek", SystemClock(), None, MapLog(MemoryStore()))
        with driver:
            if self._source.operator in self._plan.driver:
                driver.listen(self._source, self)
            for self._window in count():
                window = driver.plan_window(self._window, None, lambda: self._is_filled(driver))
                if window is not None:
                    self._count(window.driver.operators)
                    self._run(window)
                if driver.exhausted or self._cut or (window is not None and self._is_one_window and any(window.items.values())):
                    break
            self._has_more_windows = not driver.exhausted and not self._cut
            self.is_all = driver.exhausted and not self._cut

    def _is_filled(self, driver: Driver) -> bool:
        """Return whether the work items are enough for a sample: blocks, or records of input operators."""
        for items in driver.pending_items():
            blocks = [item for item in items[:_MAX_ITEMS] if isinstance(item, HasRange)]
            sizes = (item.stop - item.start for item in blocks if isinstance(item.start, int) and isinstance(item.stop, int))
            if len(blocks) >= _MAX_ITEMS or sum(sizes) >= _MAX_BYTES:
                return True
        over = {name for name, number in driver.emitted().items() if number >= self._sample}
        self._cut |= over
        return bool(over)

    def _run(self, window: WindowPlan) -> None:
        """Run the tasks of a window, one for each stage."""
        alone = attrs.evolve(
            window,
            partitions=dict.fromkeys(window.partitions, 1),
            places={head: [0] * len(items) for head, items in window.items.items()},
            owners={},
        )
        times = {name: attrs.evolve(time, is_end=True) for name, time in event_times(self._plan, window, None).items()}
        specs = tasks_of(self._plan, alone, self._options, "peek")
        levels = levels_of(self._plan)
        with Spool() as spool:
            for spec in specs:
                spool.transform(self._plan, spec)
                task = attrs.evolve(spec, facts=attrs.evolve(spec.facts, event_times=times))
                try:
                    self._task(task, spool.channels(spec, levels))
                except Abort as abort:
                    raise with_source(abort.error, specs) from abort

    def _task(self, spec: TaskSpec, channels: TaskChannels) -> None:
        flow = Flow(loaded(self._programs[spec.stage]), spec, RecordingFiles(), send=channels.send)
        flow.restore(TaskStates(MemoryStore(), False, spec.window, 0, spec.keys, StartStates()))
        if self._source.operator in flow.nodes:
            flow.nodes[self._source.operator].outlets[self._source.port].inlets.append(self)
        self._head = None
        if spec.layout.level == 0 and spec.head in flow.nodes:
            self._head = _HeadTap(flow, spec.head, self._n, self._sample - self._read.get(spec.head, 0))
            flow.tap(emitted={spec.head: self._head.portions}, received={})
        try:
            with flow, flow.window(spec.window):
                self._deliver(flow, spec, channels)
        finally:
            figures = flow.figures()
            if self._head is not None:
                self._read[spec.head] = self._read.get(spec.head, 0) + self._head.count
                self._cut |= {spec.head} if self._head.is_over else set()
                figures[spec.head] = attrs.evolve(figures[spec.head], records_out=self._head.count)
            self._count(figures)

    def _count(self, figures: Mapping[str, OperatorFigures]) -> None:
        for name, each in figures.items():
            self._rejected.setdefault(name, OperatorFigures()).add(attrs.evolve(each, records_in=0))
            self._emitted[name] += each.records_out

    def _deliver(self, flow: Flow, spec: TaskSpec, channels: TaskChannels) -> None:
        try:
            for item, _ in spec.work.with_parts():
                flow.deliver_item(item, flow.decoded(item))
            flow.cursor.move(None, None)
            flow.deliver_rows(channels.incoming)
        except _SampleRead:
            pass
        except Abort:
            for node in flow.nodes.values():  # what was emitted before the error may be enough
                with suppress(Abort, _SampleRead):
                    node.flush()
            raise

    def steps(self, chunk: list[Any] | pa.RecordBatch, retracts: bool) -> Iterator[Step]:
        """Take the records of the port. See `StreamEnd.steps`."""
        room = self._n - len(self.records)
        rows = chunk[:room] if isinstance(chunk, list) else shown_records(chunk.slice(0, room), self._type)
        path, position = (None, None) if self._head is None else self._head.place
        for row in rows:
            self.records.append(
                PeekedRecord(record=row, window=self._window, path=path, position=position, is_retracted=retracts)
            )
        if len(self.records) >= self._n:
            raise _Enough
        return iter(())

    def remarks(self) -> Iterator[str]:
        """Yield what differs from a launch, and what was left out."""
        if not self.records:
            yield f"records that came out: {', '.join(f'{name} {number:,}' for name, number in self._emitted.items())}"
        for head in sorted(self._cut):
            yield f"the sample ends after {self._sample:,} records of {head!r}: --sample N reads more"
        if self._has_exchange:
            yield "one window in one partition: groups and totals are those of the sample"
        if self._keeping:
            yield f"the state of {', '.join(map(repr, self._keeping))} begins empty, and one window runs"
        if self._has_more_windows:
            yield "later windows were not run"
        for name, figures in self._rejected.items():
            if figures.errors:
                first = f"; the first: {figures.samples[0]}" if figures.samples else ""
                yield f"{name!r} rejected {figures.errors:,} record{'s' if figures.errors != 1 else ''}{first}"


class _HeadTap:
    """Hands on what the head of a task emits in small portions, so that the port gets no more than it needs, and knows its place.

    Attributes:
        count: the records handed on.
        is_over: more came than the sample takes.
        place: the path and the position of the record that is being handed on, as far as they are known.
    """

    def __init__(self, flow: Flow, head: str, singles: int, room: int) -> None:
        operator = flow.nodes[head].operator
        self._flow = flow
        self._locates = operator.origin_of if isinstance(operator, LocatesRows) else None
        self._singles, self._room = singles, room
        self.count = 0
        self.is_over = False
        self.place: tuple[str | None, Any] = (None, None)

    def portions(self, chunk: list[Any] | pa.RecordBatch, retracts: bool) -> Iterator[list[Any] | pa.RecordBatch]:
        """Yield the parts of a chunk. Raises _SampleRead once the sample is read; what comes after is dropped."""
        start, whole = 0, len(chunk)
        while start < whole and not self.is_over:
            if self.count >= self._room:
                self.is_over, self.place = True, (None, None)
                raise _SampleRead
            size = min(1 if isinstance(chunk, list) else self._size(), whole - start, self._room - self.count)
            part = chunk[start : start + size] if isinstance(chunk, list) else chunk.slice(start, size)
            self.place = self._flow.cursor.path, self._position(part, start)
            self.count += size
            yield part
            start += size
        self.place = (None, None)

    def _size(self) -> int:
        """Return the rows of the next portion of a batch: single ones at first, whose places are known, then ever more."""
        return 1 if self.count < self._singles else self.count

    def _position(self, part: Any, row: int) -> Any:
        single = part[0] if isinstance(part, list) else part
        if (known := position_of(single)) is not None:
            return known[1]
        if isinstance(part, list) or self._locates is None or part.num_rows > 1:
            return None
        return getattr(self._locates(row), "position", None)
