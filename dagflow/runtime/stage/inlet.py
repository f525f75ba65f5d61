"""The input ports of an operator at work: an inlet hands records to the handler in the form that it takes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from dagflow.model.operator.context import RecordOrigin
from dagflow.model.operator.ports import IN_COLUMNS, NET, NET_CHANGES, STREAM
from dagflow.model.types.forms import open_fields, schema_of, to_batch
from dagflow.model.types.records import ReaderRecord, excerpt
from dagflow.runtime.stage.blame import (
    emit_method,
    first_failing_row,
    line_of,
    may_be_of,
    no_arrow_form,
    raising,
    record_of,
    refuse_mistyped,
)
from dagflow.runtime.stage.conversion import runs_of_records
from dagflow.runtime.stage.errors import ResultNotEmitted
from dagflow.runtime.stage.failure import is_fatal
from dagflow.runtime.stage.node import Node
from dagflow.runtime.stage.outlet import CHUNK, Step, Tap, records_of
from dagflow.runtime.stage.program import PortPlan

if TYPE_CHECKING:
    import pyarrow as pa


class Inlet:
    """The front of an input port: turns what arrives into the form of the handler, and deals with bad records."""

    def __init__(self, node: Node, port: str, plan: PortPlan, handler: Callable[[Any], Any], emitter: Node | None = None) -> None:
        self.node = node
        self.port = port
        self.type = plan.type
        self.form = plan.form
        self.source = plan.source
        self.is_changing = plan.is_changing
        self.emitter = emitter
        self.handler = handler
        self.tap: Tap | None = None
        self.count = 0
        self.converted = 0
        self._batch_at_hand: tuple[pa.RecordBatch, int] | None = None  # as it came, and the row at which the chunk at hand begins
        self.returned: Any = None  # by the handler, in this window
        self._time = node.steps.time

    def take(self, chunk: list[Any] | pa.RecordBatch, retracts: bool = False) -> None:
        """Handle records or a batch, and all that follows from them. `retracts`: their sign."""
        self.node.steps.run(self.steps(chunk, retracts))

    def steps(self, chunk: list[Any] | pa.RecordBatch, retracts: bool) -> Iterator[Step]:
        """Handle records or a batch, and return what is to be handled next: what the operator has emitted."""
        if self.tap is None:
            return self._steps(chunk, retracts)
        return (step for part in self.tap(chunk, retracts) for step in self._steps(part, retracts))

    def _steps(self, chunk: list[Any] | pa.RecordBatch, retracts: bool) -> Iterator[Step]:
        before = self._time.charge(self.node.account)
        self._batch_at_hand = None if isinstance(chunk, list) else (chunk, 0)
        self.node.context.retracts = retracts
        try:
            if isinstance(chunk, list):
                self.count += len(chunk)
                if self.form in IN_COLUMNS:
                    self.converted += len(chunk)
                    batch = self._to_batch(chunk, self.type if self.type is not Any else _type_of(chunk[0]))
                    if batch is not None:
                        self._batch(batch)
                else:
                    self._records(chunk)
            else:
                self.count += chunk.num_rows
                if self.form not in IN_COLUMNS:
                    self.converted += chunk.num_rows
                    return self._converted(chunk, retracts)
                self._batch(chunk)
            return self.node.following()
        finally:
            self.node.context.retracts = False
            self._time.charge(before)

    def _converted(self, batch: pa.RecordBatch, retracts: bool) -> Iterator[Step]:
        """Handle the rows of a batch as records, so many at once that memory is bounded."""
        for start in range(0, batch.num_rows, CHUNK):
            doing, rows = f"the conversion to records before {self.port!r}", batch.slice(start, CHUNK)
            with self._time.charging(self.node.account):
                try:
                    runs = list(runs_of_records(rows, self.type))
                except (KeyError, IndexError) as error:  # it has other columns
                    self._refuse_mistyped(rows.slice(0, 1).to_pylist()[0])
                    self.node.fail(doing, error, None)
            for first, records in runs:
                with self._time.charging(self.node.account):
                    self._batch_at_hand = batch, start + first
                    self.node.context.retracts = retracts
                    if isinstance(records, Exception):
                        self.node.bad_record(doing, records, record_of(rows.slice(first, 1), self.type), self.origin_at(0))
                        self.node.collect()
                    else:
                        self._records(records)
                following = self.node.following()
                self.node.context.retracts = False
                yield from following

    def _to_batch(self, chunk: list[Any], tp: Any) -> pa.RecordBatch | None:
        """Return the records that can be converted as a batch, None if none can. For the others `on_error` applies."""
        try:
            return to_batch(chunk, tp)
        except TypeError as error:
            doing = f"the conversion to batches before {self.port!r}"
            if len(chunk) == 1:
                self._refuse_mistyped(chunk[0])
                has_columns = schema_of(tp) is not None or open_fields(tp) is not None
                problem = error if has_columns else no_arrow_form(chunk[0], self.node, self.port, self.source, self.emitter)
                self.node.bad_record(doing, problem, chunk[0])
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
        self.node.iterator = iterator
        handler = self.handler
        while True:
            before = iterator.__length_hint__()
            try:
                if self.form == STREAM:
                    if (returned := handler(iterator)) is not None:
                        self.returned = returned
                    if iterator.__length_hint__():
                        text = f"the stream handler of {self.port!r} left {iterator.__length_hint__()} records unread"
                        self.node.fail(self.doing, ValueError(text), None)  # no record's fault: no `on_error` skips it
                else:
                    for record in iterator:
                        if (returned := handler(record)) is not None:
                            self.returned = returned
                self.node.is_busy = False
                if unchanged is not None:
                    unchanged.check(self.doing)
                return
            except (Exception, SystemExit) as error:  # noqa: BLE001  # user code may raise anything
                left = iterator.__length_hint__()
                if left == before or isinstance(error, SystemExit):
                    self.node.fail(self.doing, error, None)  # raised before it took a record
                row = len(chunk) - left - 1
                self._refuse_mistyped(chunk[row])
                self.node.bad_record(self.doing, error, chunk[row], self.origin_at(row))
                if not left:
                    self.node.is_busy = False
                    return
            except BaseException as error:  # noqa: BLE001  # such as CancelledError of asyncio
                left = iterator.__length_hint__()
                self.node.fail(self.doing, error, None if left == before else chunk[-left - 1])

    def origin_at(self, row: int) -> RecordOrigin | None:
        """Return the exact origin of a row of the chunk at hand, if the operator before is a reader that knows it."""
        if self.emitter is None or self._batch_at_hand is None:
            return None
        batch, first = self._batch_at_hand
        return self.emitter.row_origin(batch, first + row)

    def _refuse_mistyped(self, record: Any) -> None:
        """End the task where a record that could not be handled is not of its type: its operator is wrong, not the record."""
        if self.source is not None:
            refuse_mistyped(record, self.source, self.node.window, self.emitter)

    def refuse_returned(self) -> None:
        """At the end of a window, fail if the handler has returned records, and the operator has emitted none."""
        returned, self.returned = self.returned, None
        node = self.node
        if returned is None or node.has_emitted():
            return
        outlets = (outlet for outlet in node.outlets.values() if outlet.port != "errors" and may_be_of(returned, outlet.type))
        if (outlet := next(outlets, None)) is not None:
            error = ResultNotEmitted(
                operator=node.name,
                handler=self.handler.__name__,
                port=self.port,
                output=outlet.port,
                returned=excerpt(returned),
                emit=emit_method(returned, outlet.type),
                where=line_of(self.handler),
            )
            node.fail(self.doing, error, None)

    @property
    def doing(self) -> str:
        """The handler and its port, for messages."""
        return f"{self.handler.__name__}() of port {self.port!r}"

    def _batch(self, batch: pa.RecordBatch) -> None:
        if self.form == NET:
            getattr(self.node.operator, NET_CHANGES).setdefault(self.port, []).append((batch, self.node.context.sign))
            return
        unchanged = self.node.unchanged
        if unchanged is not None:
            batch = unchanged.received(self.port, batch)
        self.node.last, self.node.is_busy = (self, batch), True
        if self.node.operator.on_error == "fail":
            try:
                if (returned := self.handler(batch)) is not None:
                    self.returned = returned
            except (Exception, SystemExit) as error:  # noqa: BLE001  # user code may raise anything
                self._fail(batch, error)
            except BaseException as error:  # noqa: BLE001  # such as CancelledError of asyncio
                self.node.fail(self.doing, error, None)
        else:
            self._tolerant(batch, 0)
        self.node.is_busy = False
        if unchanged is not None:
            unchanged.check(self.doing)

    def _refuse_other_columns(self, batch: pa.RecordBatch) -> None:
        with contextlib.suppress(OverflowError, ValueError, IndexError):  # of the right type, but with no value in Python
            self._refuse_mistyped(records_of(batch.slice(0, 1), self.type)[0])

    def _fail(self, batch: pa.RecordBatch, error: BaseException, first: int = 0) -> NoReturn:
        """End the task with the first row for which the handler raises on its own, and with what it raises for that row."""
        self._refuse_other_columns(batch)
        blame = self.node.context.services.cursor.blame
        if not is_fatal(error) and (blame is None or blame.error is not error):  # else the operator has named the record
            with self.node.discarding():
                failing = first_failing_row(batch, self.type, raising(self.handler))
            if failing is not None:
                self.node.fail(self.doing, failing.error, failing.record, self.origin_at(first + failing.row))
        self.node.fail(self.doing, error, None)

    def _tolerant(self, batch: pa.RecordBatch, first: int) -> None:
        """Handle a batch, from row `first` of the one at hand on; if the handler raises, each half, down to the rows to blame.

        What a try that raised has emitted and kept in its WindowState is undone; of a single row, what it emitted stays, as in
        the record form.
        """
        kept = self.node.kept()
        self.node.hold()
        try:
            if (returned := self.handler(batch)) is not None:
                self.returned = returned
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code may raise anything
            self._refuse_other_columns(batch)
            self.node.release(keep=batch.num_rows == 1)
            if isinstance(error, SystemExit) or is_fatal(error):
                self._fail(batch, error, first)
            if batch.num_rows == 1:
                self.node.bad_record(self.doing, error, record_of(batch, self.type), self.origin_at(first))
                self.node.collect()
                return
            self.node.put_back(kept)
            half = batch.num_rows // 2
            self._tolerant(batch.slice(0, half), first)
            self._tolerant(batch.slice(half), first + half)
        except BaseException as error:  # noqa: BLE001  # such as CancelledError of asyncio
            self.node.release(keep=False)
            self.node.fail(self.doing, error, None)
        else:
            self.node.release(keep=True)


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch | None:
    """Join batches of the same schema into one; None for no batches."""
    import pyarrow as pa

    if len(batches) < 2:
        return batches[0] if batches else None
    whole: pa.RecordBatch = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    return whole


def _type_of(record: Any) -> Any:
    return ReaderRecord[type(record.record)] if isinstance(record, ReaderRecord) else type(record)  # type: ignore[misc]
