"""An operator at work in a task, with its inlets and outlets."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Protocol

from dagflow.model.errors.dag import PortUnbound
from dagflow.model.operator.base import ErrorRecord, Operator
from dagflow.model.operator.context import OperatorContext
from dagflow.model.operator.map_state import TrackedDict
from dagflow.model.operator.state import state_fields
from dagflow.model.types.records import ReaderRecord
from dagflow.runtime.run_folder.reports import SAMPLES, OperatorFigures
from dagflow.runtime.stage.failure import Abort, abort, describe, is_fatal, sample, text_of
from dagflow.runtime.stage.outlet import Outlet, Step, Steps, StreamEnd, Tap
from dagflow.runtime.stage.program import ProgramOperator
from dagflow.runtime.stage.unchanged import Unchanged

_NOTHING: Iterator[Step] = iter(())


class PortFront(StreamEnd, Protocol):
    """The front of an input port, as far as its operator's node needs it (`dagflow.runtime.stage.inlet.Inlet`)."""

    form: str
    handler: Callable[[Any], None]
    count: int
    converted: int
    tap: Tap | None

    def take(self, chunk: Any) -> None:
        """Handle records or a batch, and all that follows from them."""
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
        self.waiting: list[tuple[Outlet, Any]] = []  # what has been emitted and is to be handed on, in order
        self.last: tuple[PortFront, Any] | None = None  # what its handler was called with last
        self.is_busy = False  # its handler has not returned
        self.unchanged: Unchanged | None = None
        self.is_open = False  # the operator may emit: only within windows
        self.outside = "setup()"  # while it is not open, what may have called `emit`

    def emitted(self) -> int:
        """Return the number of records emitted so far, those in buffers included."""
        return sum(o.count + o.pending for o in self.outlets.values())

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
            if outlet.buffer:
                outlet.collect()
        return self._steps() if self.waiting else _NOTHING

    def _steps(self) -> Iterator[Step]:
        waiting, self.waiting = self.waiting, []
        for outlet, records in waiting:
            for portion in outlet.portions(records):
                for inlet in outlet.inlets:
                    yield inlet, portion

    def drop(self) -> None:
        """Forget what the operator has emitted and has not been handed on."""
        self.waiting.clear()
        for outlet in self.outlets.values():
            outlet.drop()

    def fail(self, doing: str, error: BaseException, record: Any) -> NoReturn:
        """End the task."""
        raise abort(self.name, self.window, doing, error, record, self.context.services.cursor) from error

    def bad_record(self, doing: str, error: BaseException, record: Any) -> None:
        """Handle a bad record as the operator's `on_error` says."""
        if self.operator.on_error == "fail" or is_fatal(error):
            self.fail(doing, error, record)
        self.figures.errors += 1
        cursor = self.context.services.cursor
        position = record.position if isinstance(record, ReaderRecord) else cursor.position
        if len(self.figures.samples) < SAMPLES:
            self.figures.samples.append(sample(error, record, cursor.path, position))
        outlet = self.outlets.get("errors")
        if self.operator.on_error == "route" and outlet is not None:
            position = position if isinstance(position, int) else None  # a key, say: the sample has it
            outlet.emit(ErrorRecord(self.name, self.context.window, cursor.path, position, describe(error), text_of(record)))

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
        values = {name: getattr(self.operator, name) for name in state_fields(type(self.operator))}
        return {n: v.savepoint() if isinstance(v, TrackedDict) else copy.deepcopy(v) for n, v in values.items()}

    def put_back(self, kept: dict[str, Any]) -> None:
        """Give the operator back what it kept."""
        for name, value in kept.items():
            if isinstance(now := self.operator.__dict__.get(name), TrackedDict):
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

    def call(self, doing: str) -> Any:
        """Call a lifecycle method without arguments, and return its result."""
        try:
            returned = getattr(self.operator, doing)()
        except Abort:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code may raise anything
            self.fail(f"{doing}()", error, None)
        if self.unchanged is not None:
            self.unchanged.check(f"{doing}()", whole_window=doing == "end_window")
        return returned

    def total(self) -> OperatorFigures:
        """Return the operator's figures so far."""
        self.figures.records_in = sum(i.count for i in self.inlets.values())
        self.figures.converted = sum(i.converted for i in self.inlets.values())
        self.figures.records_out = sum(o.count for n, o in self.outlets.items() if n != "errors")
        self.figures.counters = dict(self.context.signals.counters)
        return self.figures
