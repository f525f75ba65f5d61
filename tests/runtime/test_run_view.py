"""The one fold of a launch's events: which attempts count, what is kept, and how the report follows."""

from __future__ import annotations

import attrs

from dagflow.runtime.events import (
    Event,
    ExpectationChecked,
    OperatorProgress,
    ReadersChanged,
    RunEnded,
    StepRetried,
    TaskEnded,
    TaskRetried,
    Warned,
    WindowDecided,
    WindowDone,
    WindowPlanned,
    WindowRetried,
    WindowStarted,
)
from dagflow.runtime.run_view import DETAILED, MAX_POINTS, RunView
from dagflow.runtime.stage.outcome import TimesByPurpose

FIGURES = {"records_in": 4.0, "records_out": 3.0, "errors": 1.0, "seconds": 0.5}
PLANNED = WindowPlanned(at=10.0, window=0, items=2, bytes=100, tasks=2)
BEGUN = WindowStarted(at=11.0, window=0, round="r", tasks=2)
TASK = TaskEnded(
    at=13.0, window=0, task="s0-0000", attempt="0", stage="s0", started=11.5, ended=12.5, records=4, read=0.75, wait=0.25,
    operators={"keep": FIGURES},
)  # fmt: skip
DECIDED = WindowDecided(at=15.0, window=0, files=1, bytes=50, records=3, operators={"keep": FIGURES})


def seen(*heard: Event, **options: bool) -> RunView:
    view = RunView(**options)  # type: ignore[arg-type]
    for event in heard:
        view(event)
    return view


def test_only_the_last_attempt_of_a_window_counts() -> None:
    again = WindowRetried(at=14.0, window=0, attempt=2, reason="a worker died")
    other = attrs.evolve(TASK, task="s0-0001", ended=14.5)
    view = seen(PLANNED, BEGUN, TASK, again, attrs.evolve(BEGUN, at=14.0), TASK, other)
    assert view.figures()["keep"]["records_in"] == 8
    view(DECIDED)
    assert (view.report.tasks, view.report.times) == (2, TimesByPurpose(read=1.5, wait=0.5))
    assert (view.task_seconds, view.task_records, view.discarded) == (4.0, 8, 3.0)
    assert view.operators == view.figures() == {"keep": FIGURES}
    assert view.report.skew is not None
    assert (view.report.skew.task, view.report.skew.seconds, view.report.skew.median) == ("s0-0001", 3.0, 2.0)


def test_a_plan_that_is_found_again_is_counted_once_and_its_attempt_begins_anew() -> None:
    view = seen(PLANNED, BEGUN, TASK, attrs.evolve(PLANNED, at=20.0, replayed=True))
    assert (view.planned, view.items, view.bytes, view.discarded) == (1, 2, 100, 9.0)
    assert (view.tasks, view.figures()) == ({}, {})
    assert view.open[0].planned == 10.0


def test_what_a_failed_window_did_stays_until_the_launch_has_ended() -> None:
    view = seen(PLANNED, BEGUN, TASK, RunEnded(at=21.0, status="failed", windows=0, seconds=11.0, error="lost"))
    assert (view.discarded, view.report.status, view.report.error) == (10.0, "failed", "lost")
    view.show_uncommitted()
    assert view.report.operators["keep"].records_in == 4
    assert view.report.warnings[0].startswith("no window is committed")


def test_figures_of_tasks_count_where_live_figures_are_older() -> None:
    view = seen(PLANNED, BEGUN, OperatorProgress(operators={"keep": {"records_in": 1, "partitions": 1}, "files": {}}), TASK)
    assert view.figures() == {"keep": {**FIGURES, "partitions": 1}, "files": {}}


def test_windows_that_are_done_are_forgotten_unless_they_are_to_be_kept() -> None:
    heard = (PLANNED, BEGUN, TASK, DECIDED, WindowDone(at=16.0, window=0), WindowDone(at=17.0, window=99))
    for view, kept in ((seen(*heard), []), (seen(*heard, keeps_windows=True), [0])):
        assert ([*view.windows], [*view.tasks]) == (kept, kept)
        assert (view.decided, view.done, view.roll_forward, view.read) == (1, 2, 1.0, 100)
        assert view.last_decided is not None
        assert view.last_decided.seconds == 5.0


def test_tasks_are_kept_of_some_windows_only() -> None:
    view = RunView(keeps_windows=True)
    for number in range(2000):
        slow = 500.0 if number == 7 else 0.0
        for event in (PLANNED, BEGUN, TASK, DECIDED):
            at = float(number) + (slow if event is DECIDED else 0.0)
            view(attrs.evolve(event, window=number, at=at))  # type: ignore[call-arg]
    assert len(view.windows) == 2000
    assert view.windows[1000].times.read == 0.75
    assert len(view.tasks) <= 4 * DETAILED + 1
    assert {7, 1999} <= view.detailed()


def test_progress_of_a_long_run_stays_small() -> None:
    view = RunView()
    for second in range(100_000):
        view(OperatorProgress(at=float(second), operators={}, backlog=second))
    assert 100 < len(view.curve) <= MAX_POINTS
    assert view.progress is not None
    assert view.progress.backlog == 99_999


def test_retries_warnings_and_verdicts_are_in_the_report() -> None:
    checked = ExpectationChecked(
        window=0, operator="keep", name="max_rejects", records=4, rejected=1, max_share=0.5, max_count=None, status="ok"
    )
    view = seen(
        StepRetried(window=0, doing="deciding it", attempt=2, reason="busy", delay=1.0),
        TaskRetried(window=0, task="s0-0000", attempt="1"),
        Warned(text="look"),
        checked,
        attrs.evolve(checked, window=1, status="failed"),
    )
    assert [text.partition(",")[0] for text in view.report.retries] == [
        "window 0: deciding it is retried",
        "window 0: task s0-0000 was retried",
    ]
    assert view.report.warnings == ["look"]
    figures = view.report.expectations["keep: max_rejects"]
    assert (figures.records, figures.rejected, figures.windows) == (8, 2, {"ok": 1, "failed": 1})
    assert view.limits["keep: max_rejects"].window == 1


def test_numbers_of_readers() -> None:
    change = ReadersChanged(window=1, operator="lines", before=2, readers=5, backlog=9, backlog_bytes=90)
    view = seen(change, attrs.evolve(change, before=5, readers=1, counters={"tasks": 7}))
    own = view.readers["lines"]
    assert (own.lowest, own.now, own.highest, own.changes, own.counters) == (1, 1, 5, 2, {"tasks": 7})
