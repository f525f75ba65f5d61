"""The window loop with a runner that fails to order."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow.errors import Interrupted, WindowFailed
from dagflow.launching.launch import launch
from dagflow.local.runner import LocalRunner
from dagflow.runtime.events import Event, RunStarted, TaskRetried, WindowPlanned, WindowRetried
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job
from dagflow.testing import FakeClock
from operators import RecordWriter
from tests.conformance.apps import chain, left_over, lines_in


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(f"{name}\n")
    return folder


class Late(Future[list[TaskOutcome]]):
    """A future that does not end until a thread waits for it."""

    def done(self) -> bool:
        return False


class Troubled(LocalRunner):
    """Asks `trouble(job, n)` before the n-th job: what it returns becomes of the job instead."""

    def __init__(self, trouble: Callable[[Job, int], BaseException | list[TaskOutcome] | None]) -> None:
        super().__init__()
        self._trouble = trouble
        self.jobs: list[tuple[int, str]] = []
        self.cancelled = 0
        self.closed = False

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        self.jobs.append((job.window, job.epoch))
        trouble = self._trouble(job, len(self.jobs))
        future = Late()
        if trouble is None:
            future.set_result(super().start(job).result())
        elif isinstance(trouble, BaseException):
            future.set_exception(trouble)
        else:
            future.set_result(trouble)
        return future

    def cancel(self) -> None:
        self.cancelled += 1

    def close(self) -> None:
        self.closed = True


def run(runner: Troubled, source: Path, output: Path, **options: Any) -> tuple[Any, list[Event]]:
    events: list[Event] = []
    application = chain(source, sink=RecordWriter(str(output)), blocks_threshold=1)
    ran = launch(application, runner=runner, subscribers=[events.append], durability="process", clock=FakeClock(), **options)
    return ran.report, events


def test_a_window_that_dies_is_run_again_and_later_ones_with_it(source: Path, tmp_path: Path) -> None:
    runner = Troubled(lambda job, n: RuntimeError("executor lost\nlong trace") if n == 1 else None)
    report, events = run(runner, source, tmp_path / "out")
    assert sorted(lines_in(tmp_path / "out")) == [b"a", b"b", b"c"]
    assert [window for window, _ in runner.jobs] == [0, 1, 0, 1, 2]
    first, again = dict(runner.jobs[:2]), dict(runner.jobs[2:4])
    assert all(first[window] != again[window] for window in (0, 1)), "what the first round left is nobody's"
    retried = [event for event in events if isinstance(event, WindowRetried)]
    assert [(event.window, event.attempt) for event in retried] == [(0, 2)]
    assert retried[0].reason.startswith("RuntimeError: executor lost")
    assert report.retries == ["window 0 is retried, attempt 2: RuntimeError: executor lost\nlong trace"]
    assert (report.windows, report.jobs, runner.cancelled, runner.closed) == (3, 5, 1, True)
    assert left_over(tmp_path / "out") == []


def test_tasks_that_end_without_a_report_make_the_window_run_again(source: Path, tmp_path: Path) -> None:
    runner = Troubled(lambda job, n: [] if n == 2 else None)
    _, events = run(runner, source, tmp_path / "out")
    assert sorted(lines_in(tmp_path / "out")) == [b"a", b"b", b"c"]
    assert [event.reason for event in events if isinstance(event, WindowRetried)] == ["window 1: no report from s0-0000, s0-0001"]


def test_a_window_is_tried_so_often_and_no_more(source: Path, tmp_path: Path) -> None:
    runner = Troubled(lambda job, n: RuntimeError("lost") if job.window == 1 else None)
    with pytest.raises(WindowFailed) as caught:
        run(runner, source, tmp_path / "out", window_attempts=2)
    assert str(caught.value) == (
        "window 1 failed 2 times; the last time: RuntimeError: lost\n  help: launch again to resume from this window"
    )
    assert sorted(lines_in(tmp_path / "out")) == [b"a"]
    assert runner.closed
    healthy = Troubled(lambda job, n: None)
    report, _ = run(healthy, source, tmp_path / "out")
    assert (report.first_window, [window for window, _ in healthy.jobs]) == (1, [1, 2])
    assert sorted(lines_in(tmp_path / "out")) == [b"a", b"b", b"c"]


def test_a_launch_says_which_window_it_begins_with(source: Path, tmp_path: Path) -> None:
    """One that an earlier launch has planned and not decided, too."""
    with pytest.raises(WindowFailed):
        run(Troubled(lambda job, n: RuntimeError("lost") if job.window == 1 else None), source, tmp_path / "out")
    _, events = run(Troubled(lambda job, n: None), source, tmp_path / "out")
    assert [event.first_window for event in events if isinstance(event, RunStarted)] == [1]
    assert [event.window for event in events if isinstance(event, WindowPlanned) and event.replayed][:1] == [1]


def test_a_task_that_its_runner_has_run_again_is_told(source: Path, tmp_path: Path) -> None:
    class Retrying(Troubled):
        def start(self, job: Any) -> Any:
            future: Future[Any] = Future()
            future.set_result([attrs.evolve(each, is_retry=n == 0) for n, each in enumerate(super().start(job).result())])
            return future

    report, events = run(Retrying(lambda job, n: None), source, tmp_path / "out", max_windows=1)
    assert [(event.window, event.task) for event in events if isinstance(event, TaskRetried)] == [(0, "s0-0000")]
    assert report.retries == ["window 0: task s0-0000 was retried, since an earlier attempt died before it reported"]


def test_at_most_so_many_windows_are_in_flight(source: Path, tmp_path: Path) -> None:
    open_windows: list[int] = []
    most = 0

    def watch(job: Job, n: int) -> None:
        nonlocal most
        open_windows.append(job.window)
        most = max(most, len(open_windows))

    events: list[Event] = []

    def hear(event: Event) -> None:
        events.append(event)
        if event.kind == "window_done":
            open_windows.remove(event.window)  # type: ignore[attr-defined]

    application = chain(source, sink=RecordWriter(str(tmp_path / "out")), blocks_threshold=1)
    launch(application, runner=Troubled(watch), subscribers=[hear], windows_in_flight=2)
    assert most == 2
    assert [event.window for event in events if event.kind == "window_decided"] == [0, 1, 2]  # type: ignore[attr-defined]


def test_a_run_that_is_stopped_cancels_and_the_next_goes_on(source: Path, tmp_path: Path) -> None:
    hold: Future[list[TaskOutcome]] = Future()

    class Hanging(Troubled):
        def start(self, job: Job) -> Future[list[TaskOutcome]]:
            return hold if job.window == 1 else super().start(job)

    runner = Hanging(lambda job, n: None)
    application = chain(source, sink=RecordWriter(str(tmp_path / "out")), blocks_threshold=1)
    running = launch(application, runner=runner, once=False, durability="process")
    import time

    until = time.monotonic() + 20
    while running.report.windows < 1 and time.monotonic() < until:
        time.sleep(0.01)
    running.stop("SIGTERM")
    with pytest.raises(Interrupted, match="stopped by SIGTERM; launch again to resume from here"):
        running.wait(20)
    assert running.report.status == "interrupted"
    assert (runner.cancelled, runner.closed) == (1, True)
    run(Troubled(lambda job, n: None), source, tmp_path / "out")
    assert sorted(lines_in(tmp_path / "out")) == [b"a", b"b", b"c"]


def test_stop_by_the_caller_is_no_error(source: Path, tmp_path: Path) -> None:
    application = chain(source, sink=RecordWriter(str(tmp_path / "out")))
    running = launch(application, runner="local", once=False, durability="process")
    with pytest.raises(TimeoutError):
        running.wait(0.01)
    running.stop()
    assert running.wait(20).status == "interrupted"
    assert running.ended
    with pytest.raises(KeyError):
        running.operator("nobody")
