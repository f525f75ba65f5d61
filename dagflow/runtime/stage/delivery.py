"""Records flow inside one task: outlets collect what operators emit, inlets hand it to handlers in the form they take."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from dagflow.model.errors.running import WrongRecordType
from dagflow.model.operator.ports import BATCH, STREAM
from dagflow.model.types.forms import to_batch, to_records
from dagflow.model.types.records import ReaderRecord
from dagflow.runtime.stage.blame import first_failing_row, raising, record_of, refuse_mistyped
from dagflow.runtime.stage.failure import Abort, emitting_frames
from dagflow.runtime.stage.program import PortPlan

if TYPE_CHECKING:
    import pyarrow as pa

    from dagflow.runtime.stage.node import Node

CHUNK = 8192  # records that an outlet holds at the most, and rows of a batch that become Python objects at once
MAX_NESTED = 32
"""Handlers that may be in the midst of emitting, one behind the other: each takes some of Python's 1,000 stack frames."""


class StreamEnd(Protocol):
    """The end of a stream: the inlet of an operator in this task, or a sender to a task of a later level."""

    def steps(self, chunk: list[Any] | pa.RecordBatch) -> Iterator[Step]:
        """Take records or a batch, and return the steps that follow from them in this task."""
        ...


Step = tuple[StreamEnd, "list[Any] | pa.RecordBatch"]
Tap = Callable[[Any], Iterable[Any]]
"""Listens to chunks: yields a chunk in the parts in which it goes on, and resumes when all that follows from a part is done."""


class Steps:
    """Hands chunks to inlets, and what their operators emit to the inlets behind them, depth first.

    What is still to be done is on a stack of its own, not on Python's: a chain of operators may have any length.
    """

    def __init__(self) -> None:
        self._nested = 0

    @property
    def is_deep(self) -> bool:
        """Return whether handlers nest so deep already that what the innermost one emits has to wait until it returns."""
        return self._nested >= MAX_NESTED

    def run(self, steps: Iterator[Step]) -> None:
        """Take steps, and all those that follow from them."""
        stack = [steps]
        self._nested += 1
        try:
            while stack:
                for inlet, chunk in stack[-1]:
                    stack.append(inlet.steps(chunk))
                    break
                else:
                    stack.pop()
        finally:
            self._nested -= 1


class Outlet:
    """The end of a connected output port: a buffer, and the inlets of the stream's sinks; senders to other levels.

    A buffer never outlives the chunk that its operator is working on, so memory is bounded by the chunks that readers make.
    """

    def __init__(
        self, node: Node, port: str, tp: Any, inlets: Sequence[StreamEnd], check: Callable[[Any], None] | None = None
    ) -> None:
        self.node = node
        self.port = port
        self.type = tp
        self.inlets = list(inlets)
        self.count = 0
        self.buffer: list[Any] = []
        self._held: list[tuple[int, Any]] | None = None
        self._check = check
        self._unchanged = node.unchanged
        self.tap: Tap | None = None
        self.emit = self._make_emit() if check is None and self._unchanged is None else self._checked_emit

    def _make_emit(self) -> Callable[[Any], None]:
        buffer, append, flush = self.buffer, self.buffer.append, self.flush

        def emit(record: Any) -> None:
            append(record)
            if len(buffer) >= CHUNK:
                flush()

        return emit

    def _checked_emit(self, record: Any) -> None:
        if self._check is not None:
            self._checked(record)
        if self._unchanged is not None:
            self._unchanged.emitted(self.port, record)
        self.buffer.append(record)
        if len(self.buffer) >= CHUNK:
            self.flush()

    def emit_all(self, records: Iterable[Any]) -> None:
        """Emit all records of an iterable, in bounded chunks."""
        if self._check is not None or self._unchanged is not None:
            for record in records:
                self._checked_emit(record)
            return
        iterator = iter(records)
        buffer = self.buffer
        while True:
            # what was appended before an exception stays in the buffer: a resumed handler goes on behind the bad record
            buffer.extend(islice(iterator, CHUNK - len(buffer)))
            if len(buffer) < CHUNK:
                return
            self.flush()

    def _checked(self, record: Any) -> None:
        assert self._check is not None
        try:
            self._check(record)
        except WrongRecordType as error:
            error.window, error.frames = self.node.window, emitting_frames()
            error.happened(operator=self.node.name, window=self.node.window)
            raise Abort(error) from None  # the operator is wrong, not the record: no `on_error` skips it

    def check_all(self, check: Callable[[Any], None]) -> Callable[[Any], None]:
        """From now on, checks what is emitted. Returns what is to be the port's `emit`."""
        self._check, self.emit = check, self._checked_emit
        return self.emit

    def emit_batch(self, batch: pa.RecordBatch) -> None:
        """Emit a batch behind what has been emitted so far."""
        self.flush()
        if batch.num_rows == 0:
            return
        if self._check is not None:
            for record in _records_of(batch, self.type):
                self._checked(record)
        if self._unchanged is not None:
            self._unchanged.emitted(self.port, batch)
        self._pass(batch.num_rows, batch)
        self.node.hand_on()

    def flush(self) -> None:
        """Hand on what has been collected."""
        self.collect()
        self.node.hand_on()

    def collect(self) -> None:
        """Put what has been collected behind what the operator is to hand on next."""
        if self.buffer:
            chunk = self.buffer[:]
            self.buffer.clear()
            self._pass(len(chunk), chunk)

    def _pass(self, count: int, records: list[Any] | pa.RecordBatch) -> None:
        if not self.node.is_open:
            raise self.node.not_open(self.port)
        if self._held is not None:
            self._held.append((count, records))
            return
        self.count += count
        self.node.waiting.append((self, records))

    def portions(self, records: list[Any] | pa.RecordBatch) -> Iterable[list[Any] | pa.RecordBatch]:
        """The parts in which records are handed on, each when all is done that follows from the one before."""
        if self.tap is not None:
            return self.tap(records)
        cursor = self.node.context.cursor
        return (records,) if cursor.crash_marker is None else cursor.crash_marker.portions(cursor.path, records)

    def hold(self) -> None:
        """From now on, keeps back what is emitted."""
        self._held = []

    def release(self, keep: bool) -> None:
        """Hand on what was kept back when the handler returns, or forget it."""
        if keep:
            self.collect()
        else:
            self.buffer.clear()
        held, self._held = self._held or [], None
        for count, records in held if keep else ():
            self._pass(count, records)

    @property
    def pending(self) -> int:
        """The number of records that are emitted and not handed on."""
        return len(self.buffer) + sum(count for count, _ in self._held or ())

    def drop(self) -> None:
        """Forget what has been collected."""
        self.buffer.clear()


class Unconnected:
    """Stands behind an output port without a stream: what is emitted goes nowhere, and is refused where others' would be."""

    def __init__(self, node: Node, port: str) -> None:
        self.node = node
        self.port = port

    def emit(self, what: object) -> None:
        """See `OutputPort.emit` and `emit_batch`."""
        if not self.node.is_open:
            raise self.node.not_open(self.port)

    def emit_all(self, records: Iterable[Any]) -> None:
        """See `OutputPort.emit_all`: what makes the records runs all the same, as with a stream."""
        self.emit(records)
        for _ in records:
            pass


class Inlet:
    """The front of an input port: turns what arrives into the form of the handler, and deals with bad records."""

    def __init__(
        self, node: Node, port: str, plan: PortPlan, handler: Callable[[Any], None], emitter: Node | None = None
    ) -> None:
        self.node = node
        self.port = port
        self.type = plan.type
        self.form = plan.form
        self.source = plan.source
        self.emitter = emitter
        self.handler = handler
        self.tap: Tap | None = None
        self.count = 0
        self.converted = 0

    def take(self, chunk: list[Any] | pa.RecordBatch) -> None:
        """Handle records or a batch, and all that follows from them."""
        self.node.steps.run(self.steps(chunk))

    def steps(self, chunk: list[Any] | pa.RecordBatch) -> Iterator[Step]:
        """Handle records or a batch, and return what is to be handled next: what the operator has emitted."""
        return self._steps(chunk) if self.tap is None else (step for part in self.tap(chunk) for step in self._steps(part))

    def _steps(self, chunk: list[Any] | pa.RecordBatch) -> Iterator[Step]:
        if isinstance(chunk, list):
            self.count += len(chunk)
            if self.form == BATCH:
                self.converted += len(chunk)
                batch = self._to_batch(chunk, self.type if self.type is not Any else _type_of(chunk[0]))
                if batch is not None:
                    self._batch(batch)
            else:
                self._records(chunk)
        else:
            self.count += chunk.num_rows
            if self.form != BATCH:
                self.converted += chunk.num_rows
                return self._converted(chunk)
            self._batch(chunk)
        return self.node.following()

    def _converted(self, batch: pa.RecordBatch) -> Iterator[Step]:
        """Handle the rows of a batch as records, so many at once that memory is bounded."""
        for start in range(0, batch.num_rows, CHUNK):
            rows = batch.slice(start, CHUNK)
            try:
                records = to_records(rows, self.type)
            except (KeyError, IndexError) as error:  # it has other columns
                self._refuse_mistyped(rows.slice(0, 1).to_pylist()[0])
                self.node.fail(f"the conversion to records before {self.port!r}", error, None)
            self._records(records)
            yield from self.node.following()

    def _to_batch(self, chunk: list[Any], tp: Any) -> pa.RecordBatch | None:
        """The batch of the records that can be converted, None if none can; the others go where `on_error` says."""
        try:
            return to_batch(chunk, tp)
        except TypeError as error:
            doing = f"the conversion to batches before {self.port!r}"
            if len(chunk) == 1:
                self._refuse_mistyped(chunk[0])
                self.node.bad_record(doing, error, chunk[0])
                return None
            half = len(chunk) // 2
            parts = [part for part in (self._to_batch(chunk[:half], tp), self._to_batch(chunk[half:], tp)) if part is not None]
            return joined(parts)

    def _records(self, chunk: list[Any]) -> None:
        unchanged = self.node.unchanged
        if unchanged is not None:
            chunk = unchanged.received(self.port, chunk)
        self.node.last, self.node.is_busy = (self, chunk), True
        iterator: Any = iter(chunk)  # a list iterator: it knows how many are left
        handler = self.handler
        while True:
            before = iterator.__length_hint__()
            try:
                if self.form == STREAM:
                    handler(iterator)
                    if iterator.__length_hint__():
                        text = f"the stream handler of {self.port!r} left {iterator.__length_hint__()} records unread"
                        self.node.fail(self._doing, ValueError(text), None)  # no record's fault: no `on_error` skips it
                else:
                    for record in iterator:
                        handler(record)
                self.node.is_busy = False
                if unchanged is not None:
                    unchanged.check(self._doing)
                return
            except Abort:
                raise
            except (Exception, SystemExit) as error:  # noqa: BLE001  # user code may raise anything
                left = iterator.__length_hint__()
                if left == before or isinstance(error, SystemExit):
                    self.node.fail(self._doing, error, None)  # raised before it took a record
                self._refuse_mistyped(chunk[len(chunk) - left - 1])
                self.node.bad_record(self._doing, error, chunk[len(chunk) - left - 1])
                if not left:
                    self.node.is_busy = False
                    return

    def _refuse_mistyped(self, record: Any) -> None:
        """End the task where a record that could not be handled is not of its type: its operator is wrong, not the record."""
        if self.source is not None:
            refuse_mistyped(record, self.source, self.node.window, self.emitter)

    @property
    def _doing(self) -> str:
        return f"{self.handler.__name__}() of port {self.port!r}"

    def _batch(self, batch: pa.RecordBatch) -> None:
        unchanged = self.node.unchanged
        if unchanged is not None:
            batch = unchanged.received(self.port, batch)
        self.node.last, self.node.is_busy = (self, batch), True
        if self.node.operator.on_error == "fail":
            try:
                self.handler(batch)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # user code may raise anything
                self._fail(batch, error)
        else:
            self._tolerant(batch)
        self.node.is_busy = False
        if unchanged is not None:
            unchanged.check(self._doing)

    def _refuse_other_columns(self, batch: pa.RecordBatch) -> None:
        with contextlib.suppress(OverflowError, ValueError, IndexError):  # of the right type, but with no value in Python
            self._refuse_mistyped(_records_of(batch.slice(0, 1), self.type)[0])

    def _fail(self, batch: pa.RecordBatch, error: BaseException) -> NoReturn:
        """End the task with the first row for which the handler raises on its own, and with what it raises for that row."""
        self._refuse_other_columns(batch)
        blame = self.node.context.cursor.blame
        is_fatal = getattr(error, "is_fatal", False)  # of no single row
        if not is_fatal and (blame is None or blame.error is not error):  # else the operator has said which record it is
            with self.node.discarding():
                found = first_failing_row(batch, self.type, raising(self.handler))
            if found is not None:
                self.node.fail(self._doing, found.error, found.record)
        self.node.fail(self._doing, error, None)

    def _tolerant(self, batch: pa.RecordBatch) -> None:
        """Handle a batch; if the handler raises, each half of it, down to the rows that are to blame.

        What a try that raised has emitted and kept in its WindowState is undone; of a single row, what it emitted stays, as in
        the record form.
        """
        kept = self.node.kept()
        self.node.hold()
        try:
            self.handler(batch)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code may raise anything
            self._refuse_other_columns(batch)
            self.node.release(keep=batch.num_rows == 1)
            if isinstance(error, SystemExit) or getattr(error, "is_fatal", False):
                self._fail(batch, error)
            if batch.num_rows == 1:
                self.node.bad_record(self._doing, error, record_of(batch, self.type))
                self.node.collect()
                return
            self.node.put_back(kept)
            half = batch.num_rows // 2
            self._tolerant(batch.slice(0, half))
            self._tolerant(batch.slice(half))
        except BaseException:
            self.node.release(keep=False)
            raise
        else:
            self.node.release(keep=True)


def _records_of(batch: pa.RecordBatch, tp: Any) -> list[Any]:
    """The records of a batch of type `tp`; of one that has other columns than the type, dicts."""
    try:
        return to_records(batch, tp)
    except (KeyError, IndexError):
        rows: list[Any] = batch.to_pylist()
        return rows


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch | None:
    """One batch of several of the same schema; None of none."""
    import pyarrow as pa

    if len(batches) < 2:
        return batches[0] if batches else None
    whole: pa.RecordBatch = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    return whole


def _type_of(record: Any) -> Any:
    return ReaderRecord[type(record.record)] if isinstance(record, ReaderRecord) else type(record)  # type: ignore[misc]
