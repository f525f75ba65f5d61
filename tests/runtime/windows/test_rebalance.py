"""The driver's side: which slots the readers of a window have, and when others want them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow.launching.launch import launch
from dagflow.runtime.events import Event, WindowDecided, WindowRetried, WindowStarted
from dagflow.runtime.rebalancing.stealing import StealingWork
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job, RunOptions, TaskSpec, Work
from dagflow.runtime.windows.rebalance import Rebalancing, tell_slots_are_wanted
from dagflow.storage import MemoryStore
from operators import BlockReader, Map, RecordWriter
from tests.conformance.apps import chain, left_over, lines_in
from tests.runtime.rebalancing.skewed import expected, run, slowly
from tests.runtime.rebalancing.threads import ThreadRunner


def tasks(window: int, *stages: int, slots: int = 4, shared: bool = True) -> list[TaskSpec]:
    """So many tasks of each stage."""
    return [
        TaskSpec(
            window=window,
            epoch="r",
            stage=f"s{stage}",
            partition=n,
            partitions=count,
            options=RunOptions(slots=slots),
            work=Work(form="steal" if shared else "assigned"),
        )
        for stage, count in enumerate(stages)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("stages", "others", "room"),
    [((2,), 0, [4, 4]), ((2,), 1, [3, 3]), ((8,), 0, [4] * 8), ((2, 3), 0, [1, 1, 2, 2, 2]), ((2,), 9, [1, 1])],
)
def test_room_is_what_others_leave(stages: tuple[int, ...], others: int, room: list[int]) -> None:
    found = Rebalancing("", {}).with_forms(tasks(0, *stages), others)
    assert [task.work.room for task in found] == room
    assert all(task.work.form == "steal" for task in found)


@pytest.mark.parametrize(
    ("stages", "before", "told"),
    [
        ((2,), (2,), []),  # there are four slots
        ((3,), (2,), [0]),
        ((5,), (), []),  # they know of each other
        ((2, 3), (), [1]),  # those of two stages do not
        ((2, 3), (1,), [0, 1]),
        ((), (8,), []),
    ],
)
def test_who_is_told_that_slots_are_wanted(stages: tuple[int, ...], before: tuple[int, ...], told: list[int]) -> None:
    log = WindowLog(MemoryStore())
    tell_slots_are_wanted(log, tasks(1, *stages), tasks(0, *before))
    assert log.unsynced.names() == [f"claims/{window:010d}.r.wanted" for window in told]
    log.forget(told)
    assert log.unsynced.names() == []


def test_tasks_that_share_nothing_are_told_nothing() -> None:
    log = WindowLog(MemoryStore())
    tell_slots_are_wanted(log, tasks(1, 9), [attrs.evolve(task, work=Work()) for task in tasks(0, 2)])
    assert log.unsynced.names() == []


@pytest.mark.parametrize("sequential", [True, False])
def test_tasks_that_read_in_order_wait_for_the_window_before(tmp_path: Path, sequential: bool) -> None:
    """Else another task would begin with a file's later blocks while its earlier ones are being read."""
    (tmp_path / "a.txt").write_text("slow line\n" * 30)
    events: list[Event] = []
    reader: Any = BlockReader(sequential=sequential, min_readers=2, max_readers=2)
    sink = RecordWriter(str(tmp_path / "out"))
    application = chain(tmp_path / "a.txt", Map(slowly), sink=sink, reader=reader, block_size=100, blocks_threshold=1)
    launch(application, runner=ThreadRunner(), durability="process", subscribers=[events.append], windows_in_flight=2)
    told = [type(each) for each in events if isinstance(each, WindowStarted | WindowDecided)]
    assert (told == [WindowStarted, WindowDecided] * 3) == sequential


@pytest.mark.parametrize(
    ("options", "readers"),
    [
        ({}, 3),
        ({"sequential": True}, 6),
        ({"rebalance": "off"}, 6),
        ({"obstacle": "they may not"}, 6),
    ],
)
def test_who_takes_over_from_others_is_one_for_each_slot(tmp_path: Path, options: dict[str, Any], readers: int) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for n in range(20):  # files: those that are read in order have one reader each
        (source / f"{n}.txt").write_text("a line\n")
    reader: Any = BlockReader(sequential=options.get("sequential", False))
    application = chain(source, Map(str), sink=RecordWriter(str(tmp_path / "out")), reader=reader)
    runner = ThreadRunner(slots=3, rebalancing_obstacle=options.get("obstacle"))
    run = launch(application, runner=runner, durability="process", rebalance=options.get("rebalance", "auto"))
    assert run.report.readers["lines"].now == readers


class Growing(ThreadRunner):
    """Has one slot more before each window. Notes what each task is told."""

    def __init__(self) -> None:
        super().__init__(slots=8)
        self.slots = 2
        self.told: list[tuple[int, int]] = []

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        self.slots += 1
        self.told += {(spec.options.slots, spec.work.room) for spec in job.tasks}
        return super().start(job)


def test_tasks_are_told_how_many_slots_there_are_when_their_window_starts(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a line\n" * 30)
    reader: Any = BlockReader(min_readers=2, max_readers=2)
    sink = RecordWriter(str(tmp_path / "out"))
    application = chain(tmp_path / "in.txt", Map(str), sink=sink, reader=reader, block_size=70, blocks_threshold=1)
    runner = Growing()
    launch(application, runner=runner, durability="process", windows_in_flight=1)
    assert runner.told == [(2, 2), (3, 3), (4, 4)]


@pytest.mark.parametrize(
    ("tell", "wrong"),
    [(lambda parts: parts[:-1], "has not been read"), (lambda parts: [*parts, parts[-1]], "read twice")],
    ids=["a part is missing", "a part is there twice"],
)
def test_a_window_whose_reports_are_not_its_plan_runs_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tell: Callable[[list[Any]], list[Any]], wrong: str
) -> None:
    """Change the report of one task, once."""
    parts_of, once = StealingWork.parts, threading.Lock()

    def parts(work: StealingWork) -> list[list[Any]]:
        told = parts_of(work)
        return tell(told) if told and once.acquire(blocking=False) else told

    monkeypatch.setattr(StealingWork, "parts", parts)
    _, events = run(source, tmp_path / "out", blocks=4, told=tmp_path / "told")
    retried = [event for event in events if isinstance(event, WindowRetried)]
    assert len(retried) == 1
    assert "its work items were not each read exactly once: item " in retried[0].reason
    assert wrong in retried[0].reason
    assert lines_in(tmp_path / "out") == expected(source)
    assert lines_in(tmp_path / "told") == Counter([b"0", b"3000", b"6000", b"9000"])
    assert left_over(tmp_path / "out") == []
