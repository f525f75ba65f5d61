"""Yielding: when claims would be too slow and a slot is idle, a task stops, and a further job reads the rest."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG, ReaderRecord
from dagflow.launching.launch import launch
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator
from dagflow.planning.steps import make_plan
from dagflow.runtime.events import Stolen, WindowRetried
from dagflow.runtime.rebalancing import yielding
from dagflow.runtime.rebalancing.forms import collect
from dagflow.runtime.rebalancing.items import PendingItem
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.runtime.runner import TasksDied
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.parts import Part, part_of, uncovered
from dagflow.runtime.stage.program import Job, TaskSpec, Work
from dagflow.runtime.windows import rebalance as driver
from dagflow.runtime.windows.rebalance import LITTLE_LEFT, further, why_no_yield
from dagflow.storage import MemoryStore
from operators import BlockReader, Count, FileSplitterInput
from tests.conformance.apps import left_over, lines_in
from tests.runtime.rebalancing.skewed import MOVED, expected, run, skewed, very_slow_until
from tests.runtime.rebalancing.threads import Killed, ThreadRunner

pytestmark = pytest.mark.full  # real threads and real time


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks often, and yields little."""
    monkeypatch.setattr(yielding, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(yielding, "YIELD_COST", 0.02)


def stolen_of(events: list[Any]) -> list[Stolen]:
    return [event for event in events if isinstance(event, Stolen)]


def test_what_a_straggler_has_left_is_read_by_a_further_job(source: Path, tmp_path: Path) -> None:
    report, events = run(source, tmp_path / "out", rebalance="yield")
    stolen = stolen_of(events)
    assert {event.source for event in stolen} == {"s0-0000"}
    assert "s0-0002" in {event.to for event in stolen}
    assert report.jobs > report.windows == 1
    assert report.rebalanced == len(stolen)
    assert report.operators["lines"].counters["blocks"] == 2
    assert report.operators["lines"].counters["bytes"] == (source / "a.txt").stat().st_size
    assert lines_in(tmp_path / "out") == expected(source)
    assert left_over(tmp_path / "out") == []


def test_so_it_is_where_the_run_folder_is_on_no_disk(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "is_local", lambda folder: False)
    report, events = run(source, tmp_path / "out", rebalance="auto")
    assert stolen_of(events)
    assert report.jobs > 1
    assert lines_in(tmp_path / "out") == expected(source)


def test_a_replay_reads_what_further_jobs_have_read(source: Path, tmp_path: Path) -> None:
    conf = {"input": str(source), "output": str(tmp_path / "out")}
    with very_slow_until(*MOVED):
        report = launch(skewed, conf, runner=ThreadRunner(), durability="process", rebalance="yield").report
    assert report.rebalanced
    found = replay(str(tmp_path / "out"), locator=ApplicationLocator(trust=True))
    assert (found.windows, found.rows, found.problems, found.left_out) == (1, 800, (), ())


def test_even_work_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yielding, "YIELD_COST", 5.0)
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("".join(f"slow line {n:04d}\n" for n in range(80)))
    report, events = run(folder, tmp_path / "out", rebalance="yield", until=())
    assert not stolen_of(events)
    assert report.jobs == 1
    assert report.rebalancing == LITTLE_LEFT
    assert lines_in(tmp_path / "out") == expected(folder)


@pytest.mark.parametrize("is_reported", [False, True])
def test_a_task_that_dies_when_it_has_yielded_is_begun_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_reported: bool
) -> None:
    """An earlier report of the task counts, whatever its next attempt reads."""
    publish, once = WindowLog.report, threading.Lock()

    def dies(log: WindowLog, name: str, report: TaskReport) -> TaskReport:
        if name.endswith("s0-0000") and once.acquire(blocking=False):
            if is_reported:
                publish(log, name, report)
            raise Killed
        return publish(log, name, report)

    monkeypatch.setattr(WindowLog, "report", dies)
    runner = ThreadRunner()
    report, events = run(source, tmp_path / "out", runner, rebalance="yield")
    assert runner.deaths == 1
    assert (stolen_of(events) != []) or not is_reported  # the next attempt stops at once, or has little left
    assert lines_in(tmp_path / "out") == expected(source)
    assert report.operators["lines"].counters["blocks"] == 2


class DyingRunner(ThreadRunner):
    """Its second job dies, once."""

    jobs = 0

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        self.jobs += 1
        if self.jobs != 2:
            return super().start(job)
        future: Future[list[TaskOutcome]] = Future()
        future.set_exception(TasksDied("a machine is lost", (job.tasks[0].name,)))
        return future


def test_a_window_whose_further_job_dies_runs_again_from_its_plan(source: Path, tmp_path: Path) -> None:
    report, events = run(source, tmp_path / "out", DyingRunner(), rebalance="yield")
    retried = [event for event in events if isinstance(event, WindowRetried)]
    assert [event.reason for event in retried] == ["a machine is lost"]
    assert lines_in(tmp_path / "out") == expected(source)
    assert left_over(tmp_path / "out") == []
    assert report.operators["lines"].counters["blocks"] == 2


def test_where_a_reader_tells_of_blocks_nothing_is_yielded(source: Path, tmp_path: Path) -> None:
    report, events = run(source, tmp_path / "out", rebalance="yield", told=tmp_path / "told", until=())
    told = "lines tells on blocks_metadata_output which blocks have been read"
    assert report.rebalancing == f"the store of the run folder is too slow for stealing, and {told}"
    assert not stolen_of(events)
    assert lines_in(tmp_path / "out") == expected(source)


def test_what_is_sent_over_an_exchange_is_not_yielded() -> None:
    dag = DAG()
    files = dag.add_operator("files", FileSplitterInput(files=["in"]))
    lines, count = dag.add_operator("lines", BlockReader[str]()), dag.add_operator("count", Count[ReaderRecord[str]]())
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, count.input)
    assert why_no_yield(make_plan(dag)).endswith("what readers send over exchanges comes from one job")


def test_records_are_slow_one_by_one_to_the_end(source: Path, tmp_path: Path) -> None:
    """Each further job may yield again; each has read something."""
    (source / "a.txt").write_text("".join(f"slow line {n:04d}\n" for n in range(300)))
    began = time.monotonic()
    report, _ = run(source, tmp_path / "out", ThreadRunner(4), blocks=2, rebalance="yield", until=())
    assert report.jobs < 30
    assert time.monotonic() - began < 30
    assert lines_in(tmp_path / "out") == expected(source)


# What is left


@attrs.define
class Reader:
    """A made-up task that has read some of its parts, the last one up to somewhere."""

    spec: TaskSpec

    def reads(self, log: WindowLog, whole: int, fraction: float) -> TaskOutcome:
        mine = list(yielding.planned_parts(self.spec))
        read = mine[: min(whole, len(mine))]
        if len(read) < len(mine):
            part = mine[len(read)]
            item = self.spec.work.items[len(read)][2]
            start = item["start"] if part.start is None else part.start
            stop = item["stop"] if part.stop is None else part.stop
            cut = start + int((stop - start) * fraction)
            if start < cut < stop:
                read = [*read, part._replace(stop=cut)]
        told = [part.to_list() for part in read]
        log.report(self.spec.report_name, TaskReport(self.spec.name, len(self.spec.work.items), parts=told))
        left = told != [part.to_list() for part in mine]
        return TaskOutcome(task=self.spec.name, attempt="1", started=0.0, ended=1.0, has_left=left)


@attrs.frozen
class Range:
    start: int
    stop: int


class Splitting:
    def can_split(self, item: Range) -> bool:
        return True


def hold(head: str, item: Any, part: Part) -> PendingItem:
    return PendingItem.of(part, (head, *item), Range(**item[1]), Splitting())


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    readers=st.integers(2, 4),
    room=st.integers(1, 5),
    read=st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=1, max_size=12),
)
def test_jobs_follow_until_each_byte_has_been_read_once(
    sizes: list[int], readers: int, room: int, read: list[tuple[int, float]]
) -> None:
    log = WindowLog(MemoryStore())
    bounds = [0, *itertools.accumulate(sizes)]
    items: list[list[Any]] = [["input", {"start": start, "stop": stop}] for start, stop in itertools.pairwise(bounds)]
    plan = WindowPlan(
        window=0, items={"reader": items}, partitions={"reader": readers}, places={}, states={}, driver=TaskReport("driver", 0)
    )
    tasks: tuple[TaskSpec, ...] = tuple(
        TaskSpec(
            window=0,
            epoch="r",
            stage="s0",
            head="reader",
            partition=n,
            partitions=readers,
            work=Work(
                items=tuple(("reader", *item) for item in items[n::readers]),
                numbers=tuple(range(n, len(items), readers)),
                form="yield",
                room=room,
            ),
        )
        for n in range(readers)
    )
    job, behaviours = tasks, itertools.chain(read, itertools.repeat((1 << 30, 1.0)))
    while job:
        outcomes = [Reader(task).reads(log, *next(behaviours)) for task in job]
        job = further(log, plan, tasks, outcomes, hold)
        assert len(job) <= room
        tasks += job
    assert len({task.name for task in tasks}) == len(tasks)
    reports = [log.read_report(task.report_name) for task in tasks]
    parts = [part_of(part) for report in reports if report is not None for part in report.parts]
    assert uncovered(parts, len(items)) == []
    later = [part for task in tasks[readers:] for part in task.work.parts]
    assert sum(steal.parts for steal in collect(log, tasks)[1]) == len(later)
    assert {steal.victim for steal in collect(log, tasks)[1]} <= {task.name for task in tasks[:readers]}
