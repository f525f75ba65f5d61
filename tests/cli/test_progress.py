from __future__ import annotations

import io
import json
from collections.abc import Callable

import attrs
import pytest

from dagflow.cli.progress import JsonProgress, LiveProgress, PlainProgress, Progress, make_progress, writer
from dagflow.runtime.events import (
    Event,
    LeaseAwaited,
    OperatorProgress,
    RunEnded,
    RunStarted,
    StepRetried,
    TaskRetried,
    WindowDecided,
    WindowPlanned,
    WindowRetried,
)

STARTED = RunStarted(
    at=0.0, application="a", runner="spark", run_folder="r", launch="l", slots=4, first_window=0, ui="http://x:4040"
)


def planned(window: int, at: float, replayed: bool = False) -> WindowPlanned:
    return WindowPlanned(at=at, window=window, items=10, bytes=1 << 20, tasks=2, replayed=replayed)


def decided(window: int, at: float) -> WindowDecided:
    return WindowDecided(at=at, window=window, files=2, bytes=1000, records=50)


def ended(at: float) -> RunEnded:
    return RunEnded(at=at, status="done", windows=1, seconds=at)


def lines_of(events: list[Event]) -> list[str]:
    stream = io.StringIO()
    progress = PlainProgress(stream, later=lambda delay, action: None)
    for event in events:
        progress(event)
    return stream.getvalue().splitlines()


def test_rows_of_sinks_without_files_are_told() -> None:
    figures = {"table": {"records_in": 1_002.0, "errors": 2.0}, "queue": {"records_in": 1.0}}
    window = WindowDecided(window=0, files=0, bytes=0, records=0, operators=figures, at=5.0)
    sinks = {"table": "the table 'sales' of shop.db", "queue": "a queue"}
    started = attrs.evolve(STARTED, sinks=sinks)
    lines = lines_of([started, planned(0, 1.0), window, ended(9.0)])
    assert lines[-1] == "window 0 decided: 1 MiB read in 4 s (256 KiB/s); 1,000 rows to table, 1 row to queue"


def test_plain_tells_each_change_of_slow_windows() -> None:
    assert lines_of([STARTED, planned(0, 1.0), decided(0, 5.0), planned(1, 7.0, replayed=True), decided(1, 9.0), ended(9.0)]) == [
        "running: 4 slots, starts with window 0, Spark UI http://x:4040",
        "window 0: 10 work items, 1 MiB, 2 tasks",
        "window 0 decided: 1 MiB read in 4 s (256 KiB/s); 50 records in 2 files written, 1000 B",
        "window 1: 10 work items, 1 MiB, 2 tasks; an earlier launch planned it, and ended before it was decided",
        "window 1 decided: 1 MiB read in 2 s (512 KiB/s); 50 records in 2 files written, 1000 B",
    ]


def test_plain_tells_fast_windows_together() -> None:
    events: list[Event] = []
    for window in range(100):
        events += [planned(window, window * 0.1), decided(window, window * 0.1 + 0.05)]
    lines = lines_of([*events, ended(10.0)])
    assert len(lines) <= 12
    assert lines[0] == "window 0: 10 work items, 1 MiB, 2 tasks"
    assert lines[1].startswith("windows 0 to 10 decided: 11 MiB read in 1.05 s ")
    assert sum(" decided: " in line for line in lines) == len(lines) - 1
    assert "to 99 decided" in lines[-1]


def test_plain_tells_the_last_window_when_no_event_follows() -> None:
    stream = io.StringIO()
    held_back: list[tuple[float, Callable[[], None]]] = []
    progress = PlainProgress(stream, later=lambda delay, action: held_back.append((delay, action)))
    for event in (STARTED, planned(0, 1.0), decided(0, 1.25), decided(1, 1.5)):
        progress(event)
    ((delay, tell),) = held_back
    assert delay == 0.75
    assert "decided" not in stream.getvalue()
    tell()
    assert "windows 0 to 1 decided" in stream.getvalue()
    tell()
    assert stream.getvalue().count("decided") == 1


def test_plain_always_tells_of_failures() -> None:
    assert lines_of([WindowRetried(at=0.1, window=3, attempt=2, reason="a worker died")]) == [
        "window 3 is retried, attempt 2: a worker died"
    ]
    assert lines_of([WindowRetried(at=0.1, window=3, attempt=3, reason="a worker died", delay=2.0)]) == [
        "window 3 is retried, attempt 3 in 2 s: a worker died"
    ]
    step = StepRetried(at=0.1, window=3, doing="publishing its plan", attempt=2, reason="it is busy", delay=1.0)
    assert lines_of([step]) == ["window 3: publishing its plan is retried, attempt 2 in 1 s: it is busy"]
    task = TaskRetried(at=0.1, window=3, task="s0-0001", attempt="7")
    assert lines_of([task]) == ["window 3: task s0-0001 was retried, since an earlier attempt died before it reported"]


def test_plain_and_live_tell_whom_a_launch_waits_for() -> None:
    waits = LeaseAwaited(at=0.1, run_folder="s3://b/out", pid=7, host="head", since="12:00", who="launch of a", seconds=60.0)
    (line,) = lines_of([waits])
    assert line == (
        "s3://b/out is held by process 7 on head since 12:00 (launch of a). "
        "This launch takes over unless that one renews within 60 s"
    )
    live = LiveProgress(io.StringIO(), lambda: 0.0)
    live(waits)
    assert live.parts()[0] == "waiting for the lease of the launch on head"
    live(STARTED)
    assert live.parts()[0] == "waiting for input"


def test_json_is_one_event_a_line() -> None:
    stream = io.StringIO()
    progress = JsonProgress(stream)
    progress(STARTED)
    progress(planned(0, 1.0))
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["run_started", "window_planned"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_auto_is_live_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(make_progress("auto", Terminal()), LiveProgress)
    assert isinstance(make_progress("auto", io.StringIO()), PlainProgress)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(make_progress("auto", Terminal()), PlainProgress)
    assert type(make_progress("none", Terminal())) is Progress
    assert isinstance(make_progress("json", Terminal()), JsonProgress)


def test_live_keeps_one_line_and_takes_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    clock = iter([0.0, *[2.0] * 1000])
    with LiveProgress(stream, lambda: next(clock)) as progress:
        progress.say("line [filter] here")
        progress(STARTED)
        assert str(progress.line()) == "waiting for input · 0 windows done · 2 s so far"
        progress(planned(0, 1.0))
        progress(planned(1, 1.5))
        assert str(progress.line()) == "window 0 (2 tasks), 1 (2 tasks) · 0 windows done · 2 s so far"
        progress(decided(0, 2.0))
        assert (
            str(progress.line())
            == "window 1 (2 tasks) · 1 window done · 1 MiB read (512 KiB/s) · 50 records written · 2 s so far"
        )
        progress(WindowRetried(at=0.1, window=1, attempt=2, reason="a worker died"))
    shown = stream.getvalue()
    assert "line [filter] here" in shown
    assert "a worker died" in shown
    progress(decided(1, 3.0))  # after the end: noted, not shown
    progress.say("too late")
    assert stream.getvalue() == shown


def test_progress_that_nobody_reads_ends_no_run() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    writer(Gone())("text")
    closed = io.StringIO()
    closed.close()
    writer(closed)("text")


def test_plain_says_every_ten_seconds_how_far_a_window_is() -> None:
    def at(seconds: float) -> OperatorProgress:
        figures = {"records_in": 4, "records_out": 70, "bytes": int(seconds) << 20, "errors": 0, "seconds": 3.0, "partitions": 2}
        return OperatorProgress(at=seconds, operators={"lines": figures}, running=2, backlog=3, remaining=40.0)

    assert lines_of([planned(0, 1.0), *(at(float(second)) for second in range(2, 24)), decided(0, 24.0)])[1:-1] == [
        "window 0: 2 tasks at work, 11 MiB read, 3 items left, about 40 s to go; lines takes 100 % of the time",
        "window 0: 2 tasks at work, 21 MiB read (1 MiB/s), 3 items left, about 40 s to go; lines takes 100 % of the time",
    ]
