"""Live figures: what tasks write, and what the driver makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputPort, Operator, OutputPort
from dagflow.launching.build import build
from dagflow.runtime.events import Event, OperatorProgress
from dagflow.runtime.live.record import WAITS, LiveRecord
from dagflow.runtime.live.task import LiveTask
from dagflow.runtime.live.watch import LiveWatch
from dagflow.runtime.rebalancing.background import BackgroundTask, BackgroundThread
from dagflow.runtime.run_folder.layout import LIVE, kind_of
from dagflow.runtime.run_folder.reports import OperatorFigures, TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.runtime.stage.program import TaskSpec
from dagflow.runtime.stage.task_time import TaskTime
from dagflow.scaling import Backlog
from dagflow.storage import MemoryStore
from dagflow.testing import FakeClock
from operators import BlockReader, Count, FileSplitterInput, JsonLinesWriter, Map
from tests.runtime.stage.test_task_time import Works, flow_of


class NoThread(BackgroundThread):
    def add(self, task: BackgroundTask) -> None:
        self._tasks.append(task)

    def remove(self, task: BackgroundTask) -> None:
        self._tasks.remove(task)


def spec(partition: int = 0, window: int = 3, stage: str = "s0", epoch: str = "r") -> TaskSpec:
    return TaskSpec(window=window, epoch=epoch, stage=stage, partition=partition, partitions=2)


def records_in(folder: Path) -> list[LiveRecord]:
    return [LiveRecord.of(path.read_bytes()) for path in sorted(folder.glob("reports/*"))]


def test_a_task_rewrites_its_figures_once_a_second(tmp_path: Path) -> None:
    clock = FakeClock()
    time = TaskTime(clock.monotonic)
    flow = flow_of(["record", "record"], Works(), Works())
    with LiveTask(spec(), WindowLog.open(str(tmp_path), False), "7", time, clock, NoThread()) as live, flow:
        live.tick()
        assert records_in(tmp_path) == []
        clock.advance(0.5)
        live.tick()  # it has begun
        live.watch(flow)
        with flow.window(0):
            flow.deliver("o0", "input", [1, 2, 3])
        clock.advance(0.9)
        live.tick()
        assert [record.operators for record in records_in(tmp_path)] == [{}]
        clock.advance(0.1)
        live.tick()
        (record,) = records_in(tmp_path)
        assert {name: (own.records_in, own.records_out) for name, own in record.operators.items()} == {"o0": (3, 4), "o1": (4, 0)}
        assert (record.task, record.stage, record.epoch, record.has_ended) == ("s0-0000", "s0", "r", False)
        with time.charging(time.waiting):
            clock.advance(1)
            live.tick()
        assert records_in(tmp_path)[0].doing == WAITS
    assert records_in(tmp_path)[0].has_ended
    (path,) = tmp_path.glob("reports/*")
    assert kind_of(f"reports/{path.name}") is LIVE


def test_a_brief_task_leaves_nothing_and_one_in_an_object_store_neither(tmp_path: Path) -> None:
    clock = FakeClock()
    with LiveTask(spec(), WindowLog.open(str(tmp_path), False), "7", TaskTime(), clock, NoThread()):
        clock.advance(0.1)
    assert records_in(tmp_path) == []
    store = MemoryStore()
    with LiveTask(spec(), WindowLog(store), "7", TaskTime(), clock, NoThread()) as live:
        clock.advance(10)
        live.tick()
    assert store.names() == []


def test_a_disk_that_takes_nothing_does_not_end_a_task(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("no folder")
    clock = FakeClock()
    with LiveTask(spec(), WindowLog.open(str(tmp_path), False), "7", TaskTime(), clock, NoThread()) as live:
        clock.advance(1)
        live.tick()


@attrs.define
class Halts(Operator):
    """Calls back at its third record."""

    input = InputPort[int]()
    output = OutputPort[int]()
    back: Any = None

    @input.process
    def each(self, number: int) -> None:
        self.output.emit(number)
        if number == 3:
            self.back()


def test_figures_within_a_chunk() -> None:
    """A slow handler gets thousands of records at once. What it has not taken yet has not come in."""
    figures: list[OperatorFigures] = []
    halts = Halts(back=lambda: figures.append(flow.nodes["o0"].so_far()))
    flow = flow_of(["record", "record"], halts, Works())
    with flow, flow.window(0):
        flow.deliver("o0", "input", [1, 2, 3, 4, 5])
    assert [(own.records_in, own.records_out) for own in figures] == [(3, 3)]


class Place:
    """A word count of which window 3 is open, on a clock that only the test moves."""

    def __init__(self, folder: Path) -> None:
        def populate_dag(dag: DAG, conf: Any) -> None:
            files = dag.add_operator("files", FileSplitterInput(files=[str(folder)]))
            lines = dag.add_operator("lines", BlockReader())
            words = dag.add_operator("words", Map[Any, str](lambda line: line.record))
            count = dag.add_operator("count", Count[str, str]())
            writer = dag.add_operator("writer", JsonLinesWriter[Any](str(folder / "out")))
            dag.add_stream("a", files.blocks_metadata_output, lines.blocks_metadata_input)
            dag.add_stream("b", lines.messages, words.input)
            dag.add_stream("c", words.output, count.input)
            dag.add_stream("d", count.output, writer.input)

        self.clock = FakeClock()
        self.log = WindowLog.open(str(folder), False)
        self.plan = build(populate_dag).plan()
        self.decided: dict[str, OperatorFigures] = {}
        self.sent: list[Event] = []
        self.watch = LiveWatch(self.plan, self.log, lambda: self.decided, lambda: 2, self.clock, ends=True)
        self.folder = folder

    def open(self, window: int = 3) -> None:
        plan = WindowPlan(
            window=window,
            items={"lines": [["blocks_metadata_input", n] for n in range(4)]},
            partitions={"lines": 2, "count": 2},
            places={},
            states={},
            weights={"lines": [500, 500]},
            driver=TaskReport("driver", 0, operators={"files": OperatorFigures(records_out=4)}),
        )
        self.watch.planned(plan)

    def start(self, window: int = 3, epoch: str = "r") -> None:
        specs = [spec(n, window, stage.name, epoch) for stage in self.plan.stages for n in (0, 1)]
        self.watch.started(window, epoch, specs)

    def write(self, task: TaskSpec, attempt: str = "1", *, doing: str = "lines", ended: bool = False, **read: int) -> None:
        operators = {"lines": OperatorFigures(records_in=read["items"], records_out=10, counters={"bytes": read["bytes"]})}
        record = LiveRecord(
            epoch=task.epoch,
            task=task.name,
            stage=task.stage,
            at=self.clock.now(),
            has_ended=ended,
            doing=doing,
            operators=operators if task.stage == "s0" else {"count": OperatorFigures(records_in=1)},
        )
        fields = {"window": task.window, "epoch": task.epoch, "stage": task.stage, "partition": task.partition}
        path = self.folder / LIVE.name(**fields, attempt=attempt)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(record.to_bytes())

    def look(self, seconds: float = 1.0) -> OperatorProgress:
        self.clock.advance(seconds)
        self.watch.look(self.sent.append)
        event = self.sent[-1]
        assert isinstance(event, OperatorProgress)
        return event


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_driver_sends_the_sums(place: Place) -> None:
    place.decided = {"lines": OperatorFigures(records_in=8, records_out=100, counters={"bytes": 2000}, seconds=1.5)}
    place.open()
    place.start()
    place.write(spec(0), items=1, bytes=100)
    place.write(spec(1), items=2, bytes=200, ended=True)
    place.write(spec(1, epoch="earlier"), items=2, bytes=200)
    place.clock.advance(0.5)
    place.watch.look(place.sent.append)
    assert place.sent == []
    place.watch.known = Backlog(10, 700)
    event = place.look(0.5)
    assert event.operators["lines"] == {
        "records_in": 11,
        "records_out": 120,
        "bytes": 2300,
        "errors": 0,
        "seconds": 1.5,
        "partitions": 1,
    }
    assert event.operators["files"]["records_out"] == 4
    assert "bytes" not in event.operators["files"], "it counts none"
    assert list(event.operators) == list(place.plan.dag.nodes), "those that wait for others are there too"
    assert event.operators["count"]["records_in"] == 0
    assert (event.running, event.pending, event.backlog, event.backlog_bytes) == (1, 4, 11, 1400)
    assert event.remaining is None  # one look shows no speed
    place.write(spec(0), items=1, bytes=300)
    assert place.look().remaining == 6.0  # 200 bytes in a second, and 1,200 are left


def test_a_torn_record_is_the_one_before(place: Place) -> None:
    place.open()
    place.start()
    place.write(spec(0), items=1, bytes=100)
    assert place.look().operators["lines"]["records_in"] == 1
    (path,) = place.folder.glob("reports/*")
    path.write_bytes(path.read_bytes()[:40])
    assert place.look().operators["lines"]["records_in"] == 1
    place.watch.decided(3)
    assert place.look(5).running == 0  # what was decided shows once more
    before = len(place.sent)
    place.clock.advance(5)
    place.watch.look(place.sent.append)  # no window is open
    assert len(place.sent) == before
    place.watch.close(place.sent.append)
    assert place.look(0).running == 0


def test_why_operators_wait(place: Place) -> None:
    place.open()
    assert place.look(9).waiting == {"": "window 3 waits until the window before it is decided"}
    place.start()
    assert place.look(1).waiting == {}
    assert place.look(1).waiting == {"": "no task has begun: the runner has no free slot, or starts its workers"}
    place.write(spec(0), items=1, bytes=100)
    place.write(spec(1), items=1, bytes=100, doing=WAITS)
    assert place.look(1).waiting == {
        "lines": "1 of 2 readers have nothing left, and look for work to steal",
        "count": "for the records of lines",
        "writer.current": "for the records of count",
    }
    place.write(spec(0, stage="s1"), items=0, bytes=0, doing="count")
    place.write(spec(1), items=1, bytes=100, ended=True)
    assert place.look(1).waiting == {"count": "1 of 2 tasks, for a free slot", "writer.current": "for the records of count"}


def test_a_retried_window_counts_only_its_new_attempt(place: Place) -> None:
    place.open()
    place.start()
    place.write(spec(0), items=4, bytes=900)
    assert place.look().backlog_bytes == 100
    place.start(epoch="r.2")
    assert place.look().backlog_bytes == 1000
    place.write(spec(0, epoch="r.2"), items=1, bytes=10)
    place.clock.advance(1)
    place.write(spec(0, epoch="r.2"), "2", items=1, bytes=20)  # Spark has begun the task again
    assert place.look().backlog_bytes == 980


def test_a_run_that_fails_leaves_the_figures_of_its_tasks(place: Place) -> None:
    place.watch.close(place.sent.append, failed=True)
    assert place.sent == [], "no window was open"
    place.open()
    place.start()
    place.write(spec(0), items=1, bytes=100)
    place.watch.close(place.sent.append)
    assert place.sent == [], "a run that was too short for figures"
    place.watch.close(place.sent.append, failed=True)
    (event,) = place.sent
    assert isinstance(event, OperatorProgress)
    lines = event.operators["lines"]
    assert (lines["records_in"], lines["bytes"], lines["partitions"]) == (1, 100, 0)
    assert (event.running, event.pending, event.waiting, event.backlog_bytes) == (0, 0, {}, 900)
