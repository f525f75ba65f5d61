"""The output ports of an operator at work: outlets collect what it emits, and hand it on to the inlets behind them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from dagflow.model.errors.dag import PortUnbound
from dagflow.model.errors.running import RetractionUndeclared, WrongRecordType
from dagflow.model.operator.context import OperatorContext
from dagflow.model.operator.ports import OutputPort
from dagflow.model.types.forms import to_records
from dagflow.model.types.records import excerpt
from dagflow.model.types.snapshots import SAMPLES, ValueSample
from dagflow.runtime.stage.conversion import runs_of_records
from dagflow.runtime.stage.errors import RecordChanged
from dagflow.runtime.stage.failure import Abort, emitting_frames
from dagflow.runtime.stage.task_time import TaskTime
from dagflow.runtime.stage.unchanged import Unchanged

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 8192  # records that an outlet holds at the most, and rows of a batch that become Python objects at once
SAMPLED_EVERY = 1 << 17  # records, from one series of samples to the next
MAX_NESTED = 32
"""Handlers that may be in the midst of emitting, one behind the other: each takes some of Python's 1,000 stack frames."""


class StreamEnd(Protocol):
    """The end of a stream: the inlet of an operator in this task, or a sender to a task of a later level."""

    def steps(self, chunk: list[Any] | pa.RecordBatch, retracts: bool) -> Iterator[Step]:
        """Take records or a batch, which are inserted or retracted; return the steps that follow from them in this task."""
        ...


Step = tuple[StreamEnd, "list[Any] | pa.RecordBatch", bool]
"""A chunk on its way: its end, the chunk, and its sign: True where its rows are taken back."""
Tap = Callable[[Any, bool], Iterable[Any]]
"""Listens to chunks, with their signs: yields a chunk in the parts in which it goes on, and resumes when all that follows from a
part is done."""


class Steps:
    """Hands chunks to inlets, and what their operators emit to the inlets behind them, depth first.

    What is still to be done is on a stack of its own, not on Python's: a chain of operators may have any length.

    Attributes:
        time: of the task.
    """

    def __init__(self, time: TaskTime) -> None:
        self.time = time
        self._nested = 0

    @property
    def is_deep(self) -> bool:
        """Return whether handlers nest so deep already that what the innermost one emits has to wait until it returns."""
        return self._nested >= MAX_NESTED

    def run(self, steps: Iterator[Step]) -> None:
        """Take steps, and all those that follow from them."""
        stack = [steps]
        self._nested += 1
        before = self.time.charge(self.time.own)  # operators charge what they do themselves
        try:
            while stack:
                for inlet, chunk, retracts in stack[-1]:
                    stack.append(inlet.steps(chunk, retracts))
                    break
                else:
                    stack.pop()
        finally:
            self._nested -= 1
            self.time.charge(before)


class EmittingNode(Protocol):
    """An operator at work, as far as its outlets need it (`dagflow.runtime.stage.node.Node`)."""

    name: str
    window: int | None
    context: OperatorContext
    waiting: list[tuple[Outlet, Any, bool]]
    unchanged: Unchanged | None
    is_open: bool
    handed_on: Any
    emits_nowhere: bool

    def hand_on(self) -> None:
        """Hand on what is waiting."""
        ...

    def not_open(self, port: str) -> PortUnbound:
        """Return the error of an `emit` outside a window."""
        ...


class Outlet:
    """The end of a connected output port: a buffer, and the inlets of the stream's sinks; senders to other levels.

    A buffer never outlives the chunk that its operator is working on, so memory is bounded by the chunks that readers make. What
    is emitted has the sign of that chunk, and what is retracted has the other one.
    """

    def __init__(
        self, node: EmittingNode, port: str, tp: Any, inlets: Sequence[StreamEnd], check: Callable[[Any], None] | None = None
    ) -> None:
        self.node = node
        self.port = port
        self.type = tp
        self.inlets = list(inlets)
        self.count = 0
        self.buffer: list[Any] = []
        self.retracted: list[Any] = []
        self._held: list[tuple[int, Any, bool]] | None = None
        self._check = check
        self._unchanged = node.unchanged
        self.tap: Tap | None = None
        self.takes_mixed_batches = False
        self.is_changing = False
        self.empty_batches = False
        self._port: OutputPort[Any] | None = None
        self._samples: list[ValueSample] = []
        self._left_to_sample = 0
        self._samples_again_at = sys.maxsize  # at this count
        self.emit = self._make_emit() if check is None and self._unchanged is None else self._checked_emit

    def bind(self, port: OutputPort[Any]) -> None:
        """Make the port of an operator emit here."""
        self._port = port
        port.emit, port.emit_all, port.emit_batch = self.emit, self.emit_all, self.emit_batch
        port.retract, port.retract_batch = self.retract, self.retract_batch

    def begin_samples(self) -> None:
        """Look after the next few records: they must not change between `emit` and the moment when they are handed on."""
        if self._port is not None and self._unchanged is None:
            self._left_to_sample = SAMPLES
            self._samples_again_at = self.count + SAMPLED_EVERY
            self._port.emit = self._sampled_emit

    def _sampled_emit(self, record: Any) -> None:
        if self._left_to_sample:
            self._left_to_sample -= 1
            self._samples += ValueSample.of(record)
            if not self._left_to_sample and self._port is not None:
                self._port.emit = self.emit
        self.emit(record)

    def _make_emit(self) -> Callable[[Any], None]:
        buffer, append, flush = self.buffer, self.buffer.append, self.flush

        def emit(record: Any) -> None:
            append(record)
            if len(buffer) >= CHUNK:
                flush()

        return emit

    def _checked_emit(self, record: Any) -> None:
        self._add(record, self.buffer)

    def _add(self, record: Any, buffer: list[Any]) -> None:
        if self._check is not None:
            self._checked(record)
        if self._unchanged is not None:
            self._unchanged.emitted(self.port, record)
        buffer.append(record)
        if len(buffer) >= CHUNK:
            self.flush()

    def emit_all(self, records: Iterable[Any]) -> None:
        """Emit all records of an iterable, in bounded chunks."""
        if self._check is not None or self._unchanged is not None:
            for record in records:
                self._sampled_emit(record)
            return
        iterator = iter(records)
        buffer = self.buffer
        while True:
            for record in islice(iterator, self._left_to_sample):
                self._sampled_emit(record)
            # what was appended before an exception stays in the buffer: a resumed handler goes on behind the bad record
            buffer.extend(islice(iterator, CHUNK - len(buffer)))
            if len(buffer) < CHUNK:
                return
            self.flush()

    def retract(self, record: Any) -> None:
        """Take back a record that was emitted before, in this window or an earlier one."""
        self._refuse_undeclared()
        self._add(record, self.retracted)

    def _checked(self, record: Any) -> None:
        assert self._check is not None
        try:
            self._check(record)
        except WrongRecordType as error:
            error.window, error.frames = self.node.window, emitting_frames()
            error.happened(operator=self.node.name, window=self.node.window)
            raise Abort(error) from None  # the operator is wrong, not the record: no `on_error` skips it

    def check_all(self, check: Callable[[Any], None]) -> Callable[[Any], None]:
        """Check what is emitted from now on. Return the function that the port must use as its `emit`."""
        self._check, self.emit = check, self._checked_emit
        return self.emit

    def emit_batch(self, batch: pa.RecordBatch) -> None:
        """Emit a batch behind what has been emitted so far."""
        self._whole(batch, self.node.context.retracts)

    def retract_batch(self, batch: pa.RecordBatch) -> None:
        """Take back the rows of a batch."""
        self._refuse_undeclared()
        self._whole(batch, not self.node.context.retracts)

    def _refuse_undeclared(self) -> None:
        if not self.is_changing:
            raise RetractionUndeclared(port=self.port, operator=self.node.name)

    def _whole(self, batch: pa.RecordBatch, retracts: bool) -> None:
        self.flush()
        if batch.num_rows == 0 and not self.empty_batches:
            return
        if self._check is not None:
            for record in _existing(batch, self.type):
                self._checked(record)
        if self._unchanged is not None:
            self._unchanged.emitted(self.port, batch)
        self._pass(batch.num_rows, batch, retracts)
        self.node.handed_on = batch
        self.node.hand_on()
        self.node.handed_on = None

    def flush(self) -> None:
        """Hand on what has been collected."""
        self.collect()
        self.node.hand_on()

    def collect(self) -> None:
        """Put what has been collected behind what the operator is to hand on next."""
        sign = self.node.context.retracts
        if self._samples:
            self._refuse_changed()
        for buffer, retracts in ((self.retracted, not sign), (self.buffer, sign)):
            if buffer:
                chunk = buffer[:]
                buffer.clear()
                self._pass(len(chunk), chunk, retracts)

    def _refuse_changed(self) -> None:
        """End the task if a sampled record has changed: since it was emitted, no other operator has had it."""
        samples, self._samples = self._samples, []
        for sample in samples:
            if sample.has_changed():
                texts = {"before": excerpt(sample.before), "after": excerpt(sample.value)}
                raise Abort(
                    RecordChanged(self.node.name, self.port, "emitted", "more was emitted", **texts, window=self.node.window)
                )

    def _pass(self, count: int, records: list[Any] | pa.RecordBatch, retracts: bool) -> None:
        if not self.node.is_open:
            raise self.node.not_open(self.port)
        if self._held is not None:
            self._held.append((count, records, retracts))
            return
        self.count += count
        if self.count >= self._samples_again_at:
            self.begin_samples()
        if retracts:
            self.node.context.count("retracted", count)
        self.node.waiting.append((self, records, retracts))

    def portions(self, records: list[Any] | pa.RecordBatch, retracts: bool) -> Iterable[list[Any] | pa.RecordBatch]:
        """Yield the portions in which records are passed on, each after everything that follows from the one before."""
        if self.tap is not None:
            return self.tap(records, retracts)
        cursor = self.node.context.services.cursor
        return (records,) if cursor.crash_marker is None else cursor.crash_marker.portions(cursor.path, records)

    def hold(self) -> None:
        """Keep back what is emitted from now on."""
        self._held = []

    def release(self, keep: bool) -> None:
        """Hand on what was kept back when the handler returns, or forget it."""
        if keep:
            self.collect()
        else:
            self.drop()
        held, self._held = self._held or [], None
        for count, records, retracts in held if keep else ():
            self._pass(count, records, retracts)

    @property
    def pending(self) -> int:
        """The number of records that are emitted and not handed on."""
        return len(self.buffer) + len(self.retracted) + sum(count for count, *_ in self._held or ())

    def drop(self) -> None:
        """Forget what has been collected."""
        self.buffer.clear()
        self.retracted.clear()
        self._samples.clear()


class Unconnected:
    """The end of an output port without a stream. Records go nowhere; an `emit` outside a window is refused all the same."""

    def __init__(self, node: EmittingNode, port: str) -> None:
        self.node = node
        self.port = port

    def emit(self, what: object) -> None:
        """See `OutputPort.emit` and `emit_batch`."""
        if not self.node.is_open:
            raise self.node.not_open(self.port)
        self.node.emits_nowhere = True

    def emit_all(self, records: Iterable[Any]) -> None:
        """See `OutputPort.emit_all`: what makes the records runs all the same, as with a stream."""
        self.emit(records)
        for _ in records:
            pass


def _existing(batch: pa.RecordBatch, tp: Any) -> Iterator[Any]:
    """Yield the records of a batch. A row that has none is the affair of the inlet that takes records."""
    try:
        runs = list(runs_of_records(batch, tp))
    except (KeyError, IndexError):
        runs = [(0, records_of(batch, tp))]
    for _, records in runs:
        yield from () if isinstance(records, Exception) else records


def records_of(batch: pa.RecordBatch, tp: Any) -> list[Any]:
    """Return the records of a batch of type `tp`; dicts if its columns are not those of the type."""
    try:
        return to_records(batch, tp)
    except (KeyError, IndexError):
        rows: list[Any] = batch.to_pylist()
        return rows
