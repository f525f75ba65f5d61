from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputOperator, InputPort, Operator, OperatorContext, OutputPort, State, WindowState
from dagflow.errors import StateNotPlain
from dagflow.ledger import EntryRef, InputSlice
from dagflow.model.types.plain_data import decode
from dagflow.planning.steps import make_plan
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.runtime.stage.program import RunOptions
from dagflow.runtime.windows import plan_window
from dagflow.runtime.windows.plan_window import IDLE, Driver
from dagflow.scaling import Partition, PartitioningContext, resized
from dagflow.state import MapLog
from dagflow.storage import MemoryStore
from dagflow.testing import FakeClock


@attrs.define
class Source(InputOperator):
    """Emits one number a call: those of `script`; None stands for a call that emits nothing, "close" closes the window."""

    script: list[Any]

    output = OutputPort[int]()
    at = State(0)

    def setup(self, context: OperatorContext) -> None:
        self._context = context

    def emit_tuples(self) -> None:
        if self.at < len(self.script):
            what = self.script[self.at]
            self.at += 1
            if what == "close":
                self._context.close_window()
            elif what is not None:
                self.output.emit(what)

    def is_exhausted(self) -> bool:
        return self.at >= len(self.script)


@attrs.define
class Reader(Operator):
    partitioner = "self"

    input = InputPort[int]()

    @input.process
    def each(self, item: int) -> None: ...

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> list[Partition]:
        return resized(partitions, context.slots or 1)

    def item_weight(self, item: int) -> int:
        return item


def driver(
    source: Operator,
    clock: FakeClock,
    states: Any = None,
    continuous: bool = False,
    slots: int = 2,
    watermarks: dict[str, int] | None = None,
) -> Driver:
    dag = DAG()
    files: Any = dag.add_operator("source", source)
    reader = dag.add_operator("reader", Reader())
    dag.add_stream("items", files.output, reader.input)
    options = RunOptions(slots=slots, continuous=continuous, durable=False)
    last = WindowPlan(
        window=0,
        items={},
        partitions={},
        places={},
        states=states or {},
        state_types={"source": {"at": "int"}},
        driver=TaskReport("driver", 0),
        watermarks=watermarks or {},
    )
    return Driver(make_plan(dag), options, "r", clock, last, MapLog(MemoryStore()))


def items(plan: WindowPlan | None) -> list[Any] | None:
    return None if plan is None else [item for _, item in plan.items.get("reader", [])]


def plan_all(
    script: list[Any], count: int, seconds: float | None = None, continuous: bool = False
) -> tuple[list[Any], FakeClock, bool]:
    clock = FakeClock()
    with driver(Source(script), clock, continuous=continuous) as running:
        planned = [items(running.plan_window(n, seconds, lambda: False)) for n in range(count)]
        return planned, clock, running.exhausted


class Restless(InputOperator):
    """Emits whenever it is asked, so it is never asked whether it is exhausted."""

    output = OutputPort[int]()

    def emit_tuples(self) -> None:
        for number in range(7):
            self.output.emit(number)


def test_an_input_operator_that_never_pauses_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_window, "MAX_EMITTED", 20)
    with driver(Restless(), FakeClock()) as running:
        planned = [items(running.plan_window(n, None, lambda: False)) for n in range(2)]
        assert planned == [[*range(7)] * 3] * 2
        assert not running.exhausted


def test_a_window_holds_all_that_comes_until_nothing_does() -> None:
    planned, _, exhausted = plan_all([1, 2, None, 3], 2)
    assert planned == [[1, 2], [3]]
    assert exhausted


def test_a_window_that_is_closed_ends_at_once() -> None:
    assert plan_all([1, "close", 2, 3, "close"], 2)[0] == [[1], [2, 3]]


def test_an_idle_source_is_asked_again_until_something_comes() -> None:
    planned, clock, _ = plan_all([None, None, 1], 1)
    assert planned == [[1]]
    assert clock.slept == [IDLE, IDLE]


def test_when_nothing_comes_there_is_no_window() -> None:
    planned, _, exhausted = plan_all([], 1)
    assert (planned, exhausted) == ([None], True)


def test_a_window_ends_in_time() -> None:
    planned, _, exhausted = plan_all([1, 2, 3], 2, seconds=0)
    assert planned == [[1], [2]]
    assert not exhausted


def test_a_continuous_run_waits_until_its_window_ends() -> None:
    planned, clock, _ = plan_all([1, None, 2], 2, seconds=0.5, continuous=True)
    assert planned == [[1, 2], None]
    assert clock.monotonic() == pytest.approx(1.0, abs=0.05)


def test_a_run_that_is_stopped_asks_no_more() -> None:
    with driver(Source([1, 2]), FakeClock()) as running:
        assert running.plan_window(0, None, lambda: True) is None


def test_the_plan_says_who_does_what_and_how_it_goes_on() -> None:
    with driver(Source([1, 9, 1, 1]), FakeClock(now=5.0)) as running:
        plan = running.plan_window(0, None, lambda: False)
    assert plan is not None
    assert (plan.items, plan.partitions, plan.places) == (
        {"reader": [["input", 1], ["input", 9], ["input", 1], ["input", 1]]},
        {"reader": 2},
        {"reader": [0, 0, 1, 1]},
    )
    assert plan.states == {"source": {"at": 4}}
    assert plan.planned_at == 5.0
    assert plan.driver.operators["source"].records_out == 4


def test_a_driver_goes_on_from_the_states_of_the_last_plan() -> None:
    with driver(Source([1, 2, 3]), FakeClock(), {"source": {"at": 2}, "gone": {"x": 1}}) as running:
        assert items(running.plan_window(7, None, lambda: False)) == [3]
        found = running.operator("source")
        assert isinstance(found, Source)
        assert found.at == 3
        assert running.operator("nobody") is None


@attrs.define
class Timed(Source):
    """A source whose script holds pairs: what to emit, and the watermark from then on."""

    known = State[int | None](None)

    def emit_tuples(self) -> None:
        if self.at < len(self.script):
            what, self.known = self.script[self.at]
            self.at += 1
            if what is not None:
                self.output.emit(what)

    def watermark(self) -> int | None:
        return self.known


def watermarks(script: list[Any], count: int, before: dict[str, int] | None = None) -> list[Any]:
    found = []
    with driver(Timed(script), FakeClock(), watermarks=before) as running:
        for n in range(count):
            plan = running.plan_window(n, 0, lambda: False)
            found.append(None if plan is None else (items(plan), plan.watermarks))
    return found


def test_a_watermark_alone_makes_a_window() -> None:
    script = [(1, None), (2, 10), (None, 10), (None, 20), (3, 20)]
    assert watermarks(script, 6) == [
        ([1], {}),
        ([2], {"source": 10}),
        None,
        ([], {"source": 20}),
        ([3], {"source": 20}),
        None,
    ]


def test_a_watermark_never_goes_back_and_is_never_forgotten() -> None:
    script = [(1, 10), (2, 5), (3, None), (None, 9)]
    assert watermarks(script, 4) == [([1], {"source": 10}), ([2], {"source": 10}), ([3], {"source": 10}), None]


def test_a_driver_goes_on_from_the_watermarks_of_the_last_plan() -> None:
    assert watermarks([(None, 10), (1, 5), (None, 11)], 3, {"source": 10}) == [None, ([1], {"source": 10}), ([], {"source": 11})]


@attrs.define
class OfDataset(Source):
    """A source that reads a dataset of which only data-less entries come."""

    seq = State(0)
    began = WindowState(0)

    def begin_window(self, window: int) -> None:
        self.began = self.seq

    def emit_tuples(self) -> None:
        super().emit_tuples()
        self.seq = self.at

    def dataset_id(self) -> str | None:
        return "d"

    def input_slice(self) -> InputSlice | None:
        if self.seq == 0:
            return None
        before = EntryRef(self.began, "h") if self.began else None
        return InputSlice(dataset_id="d", prev_block=before, new_block=EntryRef(self.seq, "h") if self.seq > self.began else None)


def test_progress_in_a_dataset_alone_makes_a_window() -> None:
    with driver(OfDataset([None, 1, None]), FakeClock()) as running:
        plans = [running.plan_window(n, 0, lambda: False) for n in range(4)]
    assert [items(plan) for plan in plans] == [[], [1], [], None]
    slices = [decode(plan.inputs["source"], InputSlice) for plan in plans if plan is not None]
    assert [each.prev_block for each in slices] == [None, EntryRef(1, "h"), EntryRef(2, "h")]
    assert slices[-1].new_block == EntryRef(3, "h")


def test_the_plan_of_a_window_keeps_watermarks_and_inputs() -> None:
    from dagflow.runtime.run_folder.window_log import WindowLog
    from dagflow.storage import MemoryStore

    with driver(OfDataset([1]), FakeClock(), watermarks={"source": 7}) as running:
        plan = running.plan_window(0, None, lambda: False)
    assert plan is not None
    log = WindowLog(MemoryStore())
    log.plan(plan)
    assert log.read_plan(0) == plan


@attrs.define
class BadState(Source):
    seen = State[Any](None)

    def emit_tuples(self) -> None:
        super().emit_tuples()
        self.seen = {1}


def test_state_must_be_plain() -> None:
    with (
        driver(BadState([1]), FakeClock()) as running,
        pytest.raises(StateNotPlain, match="State 'seen' of operator 'source' holds a set"),
    ):
        running.plan_window(0, None, lambda: False)


def test_relative_folders_of_sinks_on_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dagflow.testing import run_dag
    from operators import RecordWriter

    monkeypatch.chdir(tmp_path)

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("source", Source([1, 2]))
        from operators import Map

        text = dag.add_operator("text", Map(str))
        out = dag.add_operator("out", RecordWriter("out"))
        dag.add_stream("numbers", source.output, text.input)
        dag.add_stream("lines", text.output, out.input)

    run_dag(populate_dag)
    assert (tmp_path / "out" / "part-000000-0000").read_text() == "1\n2\n"
