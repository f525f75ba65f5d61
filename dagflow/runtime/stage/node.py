"""An operator at work in a task, with its inlets and outlets."""

from __future__ import annotations

import contextlib
import copy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, Protocol

from dagflow.model.errors.dag import PortUnbound
from dagflow.model.errors.running import NeverInserted
from dagflow.model.operator.base import ErrorRecord, Operator
from dagflow.model.operator.context import OperatorContext, RecordOrigin
from dagflow.model.operator.map_state import TrackedDict
from dagflow.model.operator.ports import NET_CHANGES
from dagflow.model.operator.protocols import LocatesRows
from dagflow.model.operator.state import state_fields
from dagflow.model.operator.table_state import KeyedTable
from dagflow.runtime.run_folder.reports import SAMPLES, OperatorFigures
from dagflow.runtime.stage.failure import RUNTIME, abort, describe, is_fatal, is_of_user_code, sample, sample_of, text_of
from dagflow.runtime.stage.outlet import Outlet, Step, Steps, StreamEnd, Tap
from dagflow.runtime.stage.program import ProgramOperator, SourcePlan
from dagflow.runtime.stage.task_time import TimeAccount
from dagflow.runtime.stage.unchanged import Unchanged

_NOTHING: Iterator[Step] = iter(())


class PortFront(StreamEnd, Protocol):
    """The front of an input port, as far as its operator's node needs it (`dagflow.runtime.stage.inlet.Inlet`)."""

    form: str
    handler: Callable[[Any], Any]
    count: int
    converted: int
    returned: Any
    source: SourcePlan | None
    is_changing: bool
    tap: Tap | None

    def take(self, chunk: Any, retracts: bool = False) -> None:
        """Handle records or a batch, and all that follows from them."""
        ...

    def origin_at(self, row: int) -> RecordOrigin | None:
        """Return the exact origin of a row of what its handler was called with; None if it is not known."""
        ...

    def refuse_returned(self) -> None:
        """At the end of a window, fail if the handler has returned records, and the operator has emitted none."""
        ...


class Node:
    """An operator at work in a task."""

    def __init__(self, plan: ProgramOperator, context: OperatorContext, window: int | None, steps: Steps) -> None:
        self.name = plan.name
        self.operator: Operator = plan.operator
        self.context = context
        self.window = window
        self.inlets: dict[str, PortFront] = {}
        self.outlets: dict[str, Outlet] = {}
        self.figures = OperatorFigures()
        self.steps = steps
        self.account = TimeAccount()
        self.waiting: list[tuple[Outlet, Any, bool]] = []  # what has been emitted and is to be handed on, in order; its signs
        self.emits_nowhere = False  # it has emitted by a port without a stream
        self.handed_on: Any = None  # the batch that it has emitted and that is handed on now
        self.last: tuple[PortFront, Any] | None = None  # what its handler was called with last
        self.is_busy = False  # its handler has not returned
        self.iterator: Any = None  # over the records that its handler was called for last
        self.unchanged: Unchanged | None = None
        self.is_open = False  # the operator may emit: only within windows
        self.outside = "setup()"  # while it is not open, what may have called `emit`

    def emitted(self) -> int:
        """Return the number of records emitted so far, those in buffers included."""
        return sum(o.count + o.pending for o in self.outlets.values())

    def has_emitted(self) -> bool:
        """Return whether the operator has emitted anything, or has rejected a record, in this task."""
        return self.emits_nowhere or self.figures.errors > 0 or any(outlet.count for outlet in self.outlets.values())

    def flush(self) -> None:
        """Hand on what the operator has emitted."""
        self.collect()
        self.hand_on()

    def collect(self) -> None:
        """Put what outlets have collected behind what is waiting."""
        for outlet in self.outlets.values():
            outlet.collect()

    def hand_on(self) -> None:
        """Hand on what is waiting, now: so memory is bounded while a handler emits. It stays where handlers nest too deep."""
        if self.waiting and not self.steps.is_deep:
            self.steps.run(self._steps())

    def following(self) -> Iterator[Step]:
        """Return steps that deliver what the operator has emitted by now, inlet by inlet."""
        for outlet in self.outlets.values():
            if outlet.buffer or outlet.retracted:
                outlet.collect()
        return self._steps() if self.waiting else _NOTHING

    def _steps(self) -> Iterator[Step]:
        waiting, self.waiting = self.waiting, []
        for outlet, records, retracts in waiting:
            for portion in outlet.portions(records, retracts):
                for inlet in outlet.inlets:
                    yield inlet, portion, retracts

    def drop(self) -> None:
        """Forget what the operator has emitted and has not been handed on."""
        self.waiting.clear()
        for outlet in self.outlets.values():
            outlet.drop()

    def fail(self, doing: str, error: BaseException, record: Any, origin: RecordOrigin | None = None) -> NoReturn:
        """End the task with an `Abort`, or with what has ended it already.

        `origin`: that of the record, where it is known better than by the cursor.
        """
        if not is_of_user_code(error):
            raise error
        raise abort(self.name, self.window, doing, error, record, self.context.services.cursor, origin) from error

    def bad_record(self, doing: str, error: BaseException, record: Any, origin: RecordOrigin | None = None) -> None:
        """Handle a bad record as the operator's `on_error` says."""
        if self.operator.on_error == "fail" or is_fatal(error):
            self.fail(doing, error, record, origin)
        if self.context.retracts:  # it failed when it was inserted, too: nothing followed from it
            self.context.count("failed_retractions")
            return
        self.figures.errors += 1
        origin = origin or self.context.services.cursor.origin_of(record)
        if len(self.figures.samples) < SAMPLES:
            self.figures.samples.append(sample(error, record, origin))
        outlet = self.outlets.get("errors")
        if self.operator.on_error == "route" and outlet is not None:
            position = origin.position if isinstance(origin.position, int) else None  # a key, say: the sample has it
            outlet.emit(ErrorRecord(self.name, self.context.window, origin.path, position, describe(error), text_of(record)))

    def never_inserted(self, group: str, rows: int) -> None:
        """Count rows that are taken back and have never come. Raises NeverInserted where `on_error` is `fail`."""
        if self.operator.on_error == "fail":
            sources = [each.source.written for each in self.inlets.values() if each.source and each.is_changing]
            raise NeverInserted(group=group, rows=rows, sources=tuple(sources))
        self.context.count("never_inserted", rows)

    def reject(self, reason: str, records: Sequence[Any], count: int, at: Sequence[RecordOrigin | int] = ()) -> None:
        """Count rejected records, and keep the first few as samples. `at`: their places, or their rows in the batch at hand."""
        if self.context.retracts:  # they were rejected when they came
            self.context.count("failed_retractions", count)
            return
        self.figures.errors += count
        shown = records[: SAMPLES - len(self.figures.samples)]
        places: Sequence[RecordOrigin | int | None] = at or [None] * len(shown)
        for record, place in zip(shown, places, strict=False):
            origin = place if isinstance(place, RecordOrigin) else self._origin_at(place, record)
            self.figures.samples.append(sample_of(reason, record, origin or self.context.services.cursor.origin_of(record)))

    def _origin_at(self, row: int | None, record: Any) -> RecordOrigin | None:
        """Return the origin of a row of the batch at hand, or of the record at hand (`row` None); None if it is not known."""
        if self.last is None or not self.is_busy:
            return None
        inlet, chunk = self.last
        if row is None and isinstance(chunk, list) and self.iterator is not None:
            at = len(chunk) - self.iterator.__length_hint__() - 1
            row = at if chunk[at] is record else None  # the operator may have read further
        return None if row is None else inlet.origin_at(row)

    def row_origin(self, batch: Any, row: int) -> RecordOrigin | None:
        """Return the exact origin of a row of a batch that this operator is handing on; None if the operator does not know it."""
        if batch is not self.handed_on or not isinstance(self.operator, LocatesRows):
            return None
        origin = self.operator.origin_of(row)
        if origin.position is None and origin.line is None:
            return None
        cursor = self.context.services.cursor
        return RecordOrigin(cursor.path, origin.position, cursor.sender, origin.line, is_exact=origin.position is not None)

    def refuse_pending(self) -> None:
        """Fail when the operator has emitted outside a window."""
        for port, outlet in self.outlets.items():
            if outlet.pending:
                self.fail(self.outside, self.not_open(port), None)

    def not_open(self, port: str) -> PortUnbound:
        """Return the error of an `emit` outside a window."""
        return PortUnbound(port=port, operator=self.name, doing=self.outside)

    def hold(self) -> None:
        """Keep back what the operator emits from now on."""
        for outlet in self.outlets.values():
            outlet.hold()

    def release(self, keep: bool) -> None:
        """Hand on what was kept back, or forget it."""
        for outlet in self.outlets.values():
            outlet.release(keep)

    def kept(self) -> dict[str, Any]:
        """Return a copy of the operator's state within the window."""
        values = {name: getattr(self.operator, name) for name in state_fields(type(self.operator)) if name != NET_CHANGES}
        return {n: v.savepoint() if isinstance(v, TrackedDict | KeyedTable) else copy.deepcopy(v) for n, v in values.items()}

    def put_back(self, kept: dict[str, Any]) -> None:
        """Give the operator back what it kept."""
        for name, value in kept.items():
            if isinstance(now := self.operator.__dict__.get(name), TrackedDict | KeyedTable):
                now.roll_back(value)
            else:
                self.operator.__dict__[name] = value

    @contextlib.contextmanager
    def discarding(self) -> Iterator[None]:
        """Discard what the operator emits while this lasts."""
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

    def call(self, doing: str, *arguments: Any, method: Callable[..., Any] | None = None) -> Any:
        """Call a lifecycle method, or another one under that name, and return its result."""
        try:
            with self.steps.time.charging(self.account):
                returned = (method or getattr(self.operator, doing))(*arguments)
        except BaseException as error:  # noqa: BLE001  # user code may raise anything
            self.fail(f"{doing}()", error, None)
        if self.unchanged is not None:
            self.unchanged.check(f"{doing}()", whole_window=doing == "end_window")
        return returned

    def so_far(self) -> OperatorFigures:
        """Return the figures until now, for another thread: in and out, errors, bytes and seconds."""
        left = self.iterator.__length_hint__() if self.iterator is not None else 0  # of the chunk that it is at
        size = self.context.signals.counters.get("bytes", 0)
        return OperatorFigures(
            records_in=sum(inlet.count for inlet in self.inlets.values()) - left,
            records_out=sum(o.count + o.pending for n, o in self.outlets.items() if n != "errors"),
            errors=self.figures.errors,
            counters={"bytes": size} if size else {},
            seconds=round(self.steps.time.so_far(self.account), 3),
        )

    def total(self) -> OperatorFigures:
        """Return the operator's figures so far."""
        self.figures.records_in = sum(i.count for i in self.inlets.values())
        self.figures.converted = sum(i.converted for i in self.inlets.values())
        self.figures.records_out = sum(o.count for n, o in self.outlets.items() if n != "errors")
        self.figures.counters = dict(self.context.signals.counters)
        self.figures.seconds = round(self.account.seconds, 6)
        return self.figures


def operator_at_work() -> tuple[str, int | None] | None:
    """Return the name and the window of the operator whose code calls this, found from the stack; None for no operator."""
    for frame, _ in traceback.walk_stack(sys._getframe(1)):
        if frame.f_code.co_filename.startswith(RUNTIME):
            here = frame.f_locals
            for each in (here.get("self"), getattr(here.get("self"), "node", None), here.get("node")):
                if isinstance(each, Node):
                    return each.name, each.window
    return None
