"""Windows: how many, in which order, overlapping, continued by the next launch; on both runners."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from pathlib import Path

import pytest

from dagflow import ReaderRecord
from dagflow.launching.launch import launch
from dagflow.runtime.events import Event, TaskEnded, WindowDecided, WindowDone, WindowPlanned, WindowStarted
from dagflow.testing import run_dag
from operators import Filter
from tests.conformance.apps import left_over, line_filter, lines_in, vectorised, wait_for_file, written


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abcde":
        (folder / f"{name}.txt").write_text(f"{name}1\n.{name}2\n{name}3\n")
    return folder


EXPECTED = Counter(f"{name}{n}".encode() for name in "abcde" for n in (1, 3))


def test_a_launch_continues_where_the_last_one_ended(runner: str, source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"

    def again(**options: object) -> tuple[int, int | None, int, int]:
        report = run_dag(line_filter(source, output, vectorised(), blocks_threshold=2), runner=runner, **options)
        assert list(report.operators) == ["files", "lines", "m0", "sink"], "all of them, also where nothing is new"
        return report.windows, report.first_window, report.jobs, report.operators["sink"].records_in

    assert again() == (3, 0, 3, 10)
    before = {path: path.stat().st_mtime_ns for path in written(output)}
    assert again() == (0, None, 0, 0)
    (source / "f.txt").write_text("f1\n.f2\n")
    assert again() == (1, 3, 1, 1)
    assert {path: path.stat().st_mtime_ns for path in before} == before, "what is committed is never touched again"
    assert lines_in(output) == EXPECTED + Counter([b"f1"])
    assert again(fresh=True) == (3, 0, 3, 11)
    assert lines_in(output) == EXPECTED + Counter([b"f1"])
    assert left_over(output) == []


def test_max_windows_ends_a_run_that_the_next_goes_on_with(runner: str, source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    application = line_filter(source, output, vectorised(), block_size=3, blocks_threshold=4)
    assert run_dag(application, runner=runner, max_windows=1).windows == 1
    assert run_dag(application, runner=runner, max_windows=2).windows == 2
    assert 0 < sum(lines_in(output).values()) < 10
    run_dag(application, runner=runner)
    assert lines_in(output) == EXPECTED


def test_a_modified_file_is_read_again(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    run_dag(line_filter(source, output, vectorised()))
    (source / "a.txt").write_text("changed\n")
    report = run_dag(line_filter(source, output, vectorised()))
    assert (report.windows, report.operators["sink"].records_in) == (1, 1)
    assert lines_in(output) == EXPECTED + Counter([b"changed"])


def kinds(events: list[Event], *wanted: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, wanted)]


def run_slowly(source: Path, output: Path, runner: str, windows_in_flight: int) -> list[Event]:
    """The first file takes long: until the second window is at work, if it may be."""
    events: list[Event] = []
    at_work = str(output.with_name(f"{output.name} is at work"))

    def keep(line: ReaderRecord[str]) -> bool:
        if line.record.startswith("c"):
            Path(at_work).touch()
        elif line.record.startswith("a"):
            time.sleep(0.1)
            if windows_in_flight > 1:
                wait_for_file(at_work)
        return not line.record.startswith(".")

    application = line_filter(source, output, Filter(keep), blocks_threshold=2)
    options = {"durability": "process", "windows_in_flight": windows_in_flight}
    launch(application, runner=runner, subscribers=[events.append], **options)
    assert lines_in(output) == EXPECTED
    for kind in (WindowPlanned, WindowDecided, WindowDone):
        assert [event.window for event in kinds(events, kind)] == [0, 1, 2]  # type: ignore[attr-defined]
    return events


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
def test_the_next_window_fills_slots_that_the_last_spark_tasks_leave_idle(source: Path, tmp_path: Path) -> None:
    """The first file takes long; meanwhile tasks of the next window run on the other slot."""
    warm = tmp_path / "warm"
    run_dag(line_filter(source, warm, vectorised()), runner="spark")
    for in_flight, overlaps in ((2, True), (1, False)):
        events = run_slowly(source, tmp_path / f"out{in_flight}", "spark", in_flight)
        tasks = [event for event in events if isinstance(event, TaskEnded)]
        last_ends = max(task.ended for task in tasks if task.window == 0)
        next_starts = min(task.started for task in tasks if task.window == 1)
        assert (next_starts < last_ends) == overlaps


def test_events_tell_the_life_of_each_window(source: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    application = line_filter(source, tmp_path / "out", vectorised(), blocks_threshold=4)
    launch(application, runner="local", subscribers=[events.append], windows_in_flight=1)
    told = [f"{event.kind} {getattr(event, 'window', '')}".strip() for event in events]
    assert told == [
        "run_started",
        "window_planned 0",
        "window_started 0",
        "task_ended 0",
        "task_ended 0",
        "window_decided 0",
        "entry_appended 0",
        "window_done 0",
        "window_planned 1",
        "window_started 1",
        "task_ended 1",
        "task_ended 1",  # as many readers as before, one of them without a block
        "window_decided 1",
        "entry_appended 1",
        "window_done 1",
        "run_ended",
    ]
    assert [event.records for event in events if isinstance(event, TaskEnded)] == [6, 6, 3, 0]  # lines, not those that were kept
    assert all(a.at <= b.at for a, b in itertools.pairwise(events))
    assert [(e.items, e.tasks, e.bytes, e.replayed) for e in events if isinstance(e, WindowPlanned)] == [
        (4, 2, 40, False),
        (1, 2, 10, False),
    ]
    assert len({e.round for e in events if isinstance(e, WindowStarted)}) == 1
