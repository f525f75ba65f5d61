"""One operator in a task, step by step, with a clock and with files in memory."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.model.errors.dag import UnknownName
from dagflow.model.graph.class_checks import of_operator
from dagflow.model.graph.infer import own_bindings, port_types
from dagflow.model.operator.base import Operator
from dagflow.model.operator.context import Clock, OperatorContext
from dagflow.model.operator.ports import BATCH, NET, RECORD, STREAM, OutputPort, handlers_of, input_ports, output_ports
from dagflow.model.types.forms import to_records
from dagflow.model.types.plain_data import dumps
from dagflow.planning.forms import preferred_form
from dagflow.runtime.stage.failure import reported_errors
from dagflow.runtime.stage.inlet import Inlet
from dagflow.runtime.stage.node import PortFront
from dagflow.runtime.stage.outlet import Outlet, Step
from dagflow.runtime.stage.program import OutputPlan, PortPlan, Program, ProgramOperator, RunOptions, TaskSpec
from dagflow.runtime.task.flow import Flow
from dagflow.state.task_states import encoded_states, restore_states
from dagflow.testing.errors import WindowNotBegun

if TYPE_CHECKING:
    import pyarrow as pa


class FakeClock:
    """A clock for tests: only `sleep` and `advance` move it. Threads may share it.

    Args:
        now: seconds since the epoch at the beginning.

    Attributes:
        slept: the arguments of all calls of `sleep`, in order.

    >>> clock = FakeClock(now=100.0)
    >>> clock.sleep(2.5)
    >>> clock.now(), clock.monotonic(), clock.slept
    (102.5, 2.5, [2.5])
    """

    def __init__(self, now: float = 1_000_000_000.0) -> None:
        self._begin = now
        self._passed = 0.0
        self._lock = threading.Lock()
        self.slept: list[float] = []

    def now(self) -> float:
        """Return the seconds since the epoch."""
        with self._lock:
            return self._begin + self._passed

    def monotonic(self) -> float:
        """Return the seconds since the clock was made."""
        with self._lock:
            return self._passed

    def sleep(self, seconds: float) -> None:
        """Move the clock, and return at once. Raises ValueError for negative seconds, as `time.sleep`."""
        self.advance(seconds)
        with self._lock:
            self.slept.append(seconds)

    def advance(self, seconds: float) -> None:
        """Move the clock. Raises ValueError for negative seconds: a monotonic clock never goes back."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} s")
        with self._lock:
            self._passed += seconds


def check_class(operator: Operator) -> None:
    """Raise what a DAG would raise for the properties and the class of an operator: ValueError, DagError."""
    operator.check()
    for problem in of_operator(operator):
        raise problem


@attrs.define(eq=False)
class MemoryFile:
    """A file that a sink has written in a test.

    Attributes:
        data: its bytes so far.
        rows: as many as the sink has counted.
        writes: the number of bytes of each write.
        times_opened: 2 and more where the sink has closed it and written to it again.
        is_open: False when the sink has closed it.
    """

    data: bytearray = attrs.field(factory=bytearray)
    rows: int = 0
    writes: list[int] = attrs.field(factory=list)
    times_opened: int = 0
    is_open: bool = False

    def write(self, data: Any, /) -> int:
        """See `AttemptFile.write`. Raises ValueError when the file is closed."""
        if not self.is_open:
            raise ValueError("write to a closed file")
        self.writes.append(memoryview(data).nbytes)
        self.data += data
        return self.writes[-1]

    def records(self, count: int) -> None:
        """See `AttemptFile.records`."""
        self.rows += count

    def close(self) -> None:
        """See `AttemptFile.close`."""
        self.is_open = False


@attrs.define(eq=False)
class MemoryFiles:
    """The files that a sink writes in a test, by name within its output folder; nothing reaches the disk.

    Attributes:
        files: in the order in which they were opened first.
        most_open: the largest number of files that were open at once.
    """

    files: dict[str, MemoryFile] = attrs.field(factory=dict)
    most_open: int = 0

    def create(self, operator: str, folder: str, name: str) -> MemoryFile:
        """See `FileMaker.create`."""
        file = self.files.setdefault(name, MemoryFile())
        file.is_open = True
        file.times_opened += 1
        self.most_open = max(self.most_open, sum(each.is_open for each in self.files.values()))
        return file

    @property
    def contents(self) -> dict[str, bytes]:
        """The bytes of each file."""
        return {name: bytes(file.data) for name, file in self.files.items()}


@attrs.define(eq=False)
class _Received:
    """The end of the stream of one output port."""

    type: Any
    records: list[Any]

    retracted: list[Any]

    def steps(self, chunk: list[Any] | pa.RecordBatch, retracts: bool) -> Iterator[Step]:
        """See `StreamEnd.steps`."""
        records = self.retracted if retracts else self.records
        records += chunk if isinstance(chunk, list) else to_records(chunk, self.type)
        return iter(())


def _count_calls(port: OutputPort[Any], outlet: Outlet, chunks: list[tuple[str, int]]) -> None:
    """From now on, note how many records each call of `emit_all` and `emit_batch` emits."""
    inner_all, inner_batch = port.emit_all, port.emit_batch

    def emit_all(records: Iterable[Any]) -> None:
        before = outlet.count + outlet.pending
        inner_all(records)
        chunks.append(("records", outlet.count + outlet.pending - before))

    def emit_batch(batch: pa.RecordBatch) -> None:
        inner_batch(batch)
        chunks.append(("batch", batch.num_rows))

    port.emit_all, port.emit_batch = emit_all, emit_batch


class OperatorTask:
    r"""One operator at work in a task, fed step by step. A context manager.

    Prefer `run_operator`, which runs whole windows on a copy. This is for tests that inspect it between steps: the operator's own
    attributes, its files before the window ends, the size of what it emits. It works on the operator itself, which must not
    be used again afterwards. A window begins with the first records, and ends with `end_window()` or with the context. What
    sinks write stays in memory.

    Args:
        operator: what is tested.
        in_batches: True: the operators downstream accept batches, so it may emit them.
        name: the operator's name in its errors and files.
        window: the number of the first window.
        partition: which of how many copies the operator is told to be.
        slots: how many tasks it is told can work at once.
        continuous: True: the operator is told that the run continues when the input is exhausted.
        clock: where it takes time from. Default: one that stands still until it is told otherwise.
        states: what it begins with: `states()` of an earlier task.

    Attributes:
        operator: what is tested.
        context: the context that the operator got in `setup`.
        clock: the clock of the task.
        files: the files of the operator.
        emitted, retracted: all records that it has emitted, and those that it has taken back, by output port.
        chunks: by output port, its calls of `emit_all` and `emit_batch`: lists of `("records" or "batch", number of records)`.

    Raises what `run_operator` raises.

    >>> from operators import RecordWriter
    >>> with OperatorTask(RecordWriter("out")) as task:
    ...     task.give("input", ["a", "b"])
    ...     task.give("input", ["c"], form="record")
    >>> task.files.contents
    {'part-000000-0000': b'a\nb\nc\n'}
    """

    def __init__(
        self,
        operator: Operator,
        *,
        in_batches: bool = False,
        name: str = "operator",
        window: int = 0,
        partition: int = 0,
        slots: int = 2,
        continuous: bool = False,
        clock: Clock | None = None,
        states: Mapping[str, Any] | None = None,
    ) -> None:
        check_class(operator)
        self.operator = operator
        self.clock = clock or FakeClock()
        self.files = MemoryFiles()
        self._next_window = window
        self._types = port_types(operator, own_bindings(operator))
        changes = bool(operator.takes_changes or operator.emits_changes)
        outputs = {port: OutputPlan(self._types[port], (), in_batches, changes) for port in output_ports(type(operator))}
        options = RunOptions(slots=slots, continuous=continuous, base=os.getcwd(), durable=False, checked=True)
        spec = TaskSpec(window=window, epoch="test", stage="test", partition=partition, partitions=partition + 1, options=options)
        program = Program("test", (ProgramOperator(name, operator, {}, outputs),))
        restore_states(operator, dict(states or {}))
        self._flow = Flow(program, spec, self.files, self.clock)
        self._node = self._flow.nodes[name]
        self.emitted: dict[str, list[Any]] = {port: [] for port in outputs}
        self.retracted: dict[str, list[Any]] = {port: [] for port in outputs}
        self.chunks: dict[str, list[tuple[str, int]]] = {port: [] for port in outputs}
        for port in input_ports(type(operator)):
            vars(getattr(operator, port)).update(is_changing=operator.takes_changes, record_type=self._types[port])
        for port, outlet in self._node.outlets.items():
            outlet.inlets.append(_Received(self._types[port], self.emitted[port], self.retracted[port]))
            _count_calls(getattr(operator, port), outlet, self.chunks[port])

    @property
    def context(self) -> OperatorContext:
        """The context that the operator got in `setup`."""
        return self._node.context

    @property
    def counters(self) -> dict[str, int]:
        """The numbers that the operator has counted."""
        return self.context.signals.counters

    @property
    def skipped(self) -> int:
        """The number of records that its `on_error` skipped."""
        return self._node.figures.errors

    def __enter__(self) -> OperatorTask:
        with reported_errors():
            self._flow.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None and self._node.is_open:
                self.end_window()
        except BaseException as problem:
            error = problem
            raise
        finally:
            with reported_errors():
                self._flow.__exit__(kind, error, trace)

    def begin_window(self) -> None:
        """Begin the next window."""
        self._before = {port: len(records) for port, records in self.emitted.items()}
        with reported_errors():
            self._window = self._flow.window(self._next_window)
            self._window.__enter__()
        self._next_window += 1

    def give(self, port: str, data: Sequence[Any] | pa.RecordBatch, form: str | None = None, *, retracts: bool = False) -> None:
        """Hand records, or a record batch, to an input port.

        Args:
            port: the port.
            data: the records.
            form: `record`, `stream` or `batch`, as in `run_operator`.
            retracts: they are taken back.
        """
        self._begin_if_needed()
        chunk = list(data) if isinstance(data, Sequence) else data
        with self._flushed():
            self._inlet(port, form or self._preferred(port, is_batch=not isinstance(chunk, list))).take(chunk, retracts)

    def emit_tuples(self) -> int:
        """Call `emit_tuples` of an input operator once. Return the number of records that it has emitted."""
        self._begin_if_needed()
        before = self._node.emitted()
        with self._flushed():
            self._node.call("emit_tuples")
        return self._node.emitted() - before

    def end_window(self) -> dict[str, list[Any]]:
        """End the window. Return the records that it has emitted in it, by output port. Raises WindowNotBegun.

        Limits of rejected records are not applied, since they are for the sum over all tasks: `run_operator` applies them.
        """
        if not self._node.is_open:
            raise WindowNotBegun(type(self.operator).__name__)
        with reported_errors():
            self._window.__exit__(None, None, None)
        return {port: records[self._before[port] :] for port, records in self.emitted.items()}

    def states(self) -> dict[str, Any]:
        """Return its `State` as it is saved with a window."""
        saved: dict[str, Any] = json.loads(dumps(encoded_states(self.operator, self._node.name)))
        return saved

    def _begin_if_needed(self) -> None:
        if not self._node.is_open:
            self.begin_window()

    @contextmanager
    def _flushed(self) -> Iterator[None]:
        """Collect what the operator emits, also what it emits before it fails."""
        try:
            with reported_errors():
                yield
        finally:
            with reported_errors():
                self._node.flush()

    def _offered(self, port: str) -> frozenset[str]:
        handlers = handlers_of(type(self.operator))
        if port not in handlers:
            raise UnknownName(f"input port of {type(self.operator).__name__}", port, tuple(handlers))
        return self.operator.offered_forms(port) & frozenset(handlers[port])

    def _preferred(self, port: str, is_batch: bool) -> str:
        return preferred_form(BATCH if is_batch else RECORD, self._offered(port))

    def _inlet(self, port: str, form: str) -> PortFront:
        offered = self._offered(port)
        if form not in offered:
            forms = tuple(each for each in (RECORD, STREAM, BATCH, NET) if each in offered)
            raise UnknownName(f"form of {type(self.operator).__name__}", form, forms)
        inlet = self._node.inlets.get(port)
        if inlet is None or inlet.form != form:
            handler = getattr(self.operator, handlers_of(type(self.operator))[port][form])
            inlet = self._node.inlets[port] = Inlet(self._node, port, PortPlan(form, self._types[port]), handler)
        return inlet
