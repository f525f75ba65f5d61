"""Windows of one keyed operator in one task, as a slot runs them: restored, filled, captured, and saved on a disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs
import pyarrow as pa

from dagflow import InputPort, MapState, Operator, OutputPort
from dagflow.model.types.keys import KeyAssignment
from dagflow.runtime.stage.program import OutputPlan, PortPlan, Program, ProgramOperator, RunOptions, TaskSpec
from dagflow.runtime.task.flow import Flow
from dagflow.state import StateRef
from dagflow.state.references import StartStates, chains
from dagflow.state.task_states import MapCache, TaskStates, sweep_attempts, sweep_replaced
from dagflow.storage import open_store

ALL = KeyAssignment(1)
NAME = "kept"


@attrs.define
class CountedByHandler(Operator):
    """A running count of a user: a handler for each record, and a `MapState`."""

    input = InputPort[int](partition_by="value")
    output = OutputPort[int]()
    counts = MapState[int, int]()

    @input.process
    def each(self, key: int) -> None:
        """Count a key."""
        self.counts[key] = self.counts.get(key, 0) + 1


class Dropped(Operator):
    """Takes what comes, in either form."""

    input = InputPort[Any]()

    @input.stream
    def all(self, records: Iterator[Any]) -> None:
        """Take records."""
        for _ in records:
            pass

    @input.batch
    def batch(self, batch: pa.RecordBatch) -> None:
        """Take a batch."""


@attrs.define
class Slot:
    """One slot that runs the windows of an operator: each begins with the references of the one before it.

    Attributes:
        folder: the run folder, by path or URL.
        operator: the keyed operator.
        form: of its handler.
        cache: what the process keeps from window to window; an empty one is a new process.
        clock: what windows are measured by. Processor seconds do not count other work on the machine.
    """

    folder: str
    operator: Operator
    form: str
    cache: MapCache = attrs.field(factory=MapCache)
    clock: Callable[[], float] = time.process_time
    window: int = 0
    left: list[StateRef] = attrs.field(factory=list)

    def run(self, chunks: Iterable[Any]) -> float:
        """Run a window, and return the seconds that it took."""
        type_ = Any if self.form == "batch" else int
        batches = "batch" in self.operator.emitted_forms("output", self.form)
        program = Program(
            "bench",
            (
                ProgramOperator(
                    NAME,
                    attrs.evolve(self.operator),
                    {"input": PortPlan(self.form, type_)},
                    {"output": OutputPlan(Any, (("end", "input"),), batches, is_changing=bool(self.operator.emits_changes))},
                ),
                ProgramOperator("end", Dropped(), {"input": PortPlan("batch" if batches else "stream", Any)}, {}),
            ),
        )
        spec = TaskSpec.alone("bench", RunOptions(slots=1, base=self.folder, durable=False))
        store = open_store(self.folder, durable=False)
        began = self.clock()
        states = TaskStates(store, False, self.window, 0, ALL, StartStates(chains={NAME: chains(self.left, 0, ALL)}), self.cache)
        flow = Flow(program, spec)
        flow.restore(states)
        with flow, flow.window(self.window):
            for chunk in chunks:
                flow.nodes[NAME].inlets["input"].take(chunk)
        states.capture()
        self.left = [states.save()[NAME]]
        seconds = self.clock() - began
        sweep_attempts(store, self.window, {NAME: self.left})
        sweep_replaced(store, {self.window: {NAME: self.left}})
        self.window += 1
        return seconds
