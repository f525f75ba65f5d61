"""The time of a launch by phase: parts of the whole, also of a launch that ended early."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagflow import launch
from dagflow.runtime.events import Event, RunEnded, RunStarted, TaskEnded, WindowDecided, WindowDone
from dagflow.runtime.run_view import RunView
from operators import BlockReader, FileSplitterInput


def started(at: float) -> RunStarted:
    return RunStarted(at=at, application="a", runner="spark", run_folder="", launch="", slots=2, first_window=0)


def ended(at: float) -> RunEnded:
    return RunEnded(at=at, status="done", windows=0, seconds=0.0)


def task(began: float) -> TaskEnded:
    return TaskEnded(at=began + 5, window=0, task="t", attempt="0", started=began, ended=began + 1, records=1)


def timings(began: float, *heard: Event) -> dict[str, float]:
    view = RunView(began=began)
    for event in heard:
        view(event)
    return view.report.timings


def test_a_launch_that_did_not_get_a_session() -> None:
    assert timings(1.0, ended(3.5)) == {"session": 2.5, "first_task": 0.0, "windows": 0.0, "roll_forward": 0.0}


def test_a_launch_without_new_input() -> None:
    assert timings(1.0, started(2.0), ended(3.0)) == {"session": 1.0, "first_task": 1.0, "windows": 0.0, "roll_forward": 0.0}


def test_the_earliest_task_counts_and_clocks_of_other_machines_do_not_lead_astray() -> None:
    seconds = timings(1.0, started(2.0), task(5.0), task(4.0), ended(9.0))
    assert (seconds["first_task"], seconds["windows"]) == (2.0, 5.0)
    for began in (0.0, 99.0):
        seconds = timings(1.0, started(2.0), task(began), ended(9.0))
        assert sum(seconds.values()) == 8.0
        assert min(seconds.values()) >= 0


def test_roll_forward_is_the_sum_of_all_windows() -> None:
    events: list[Event] = [started(1.0), task(1.0)]
    for window in range(2):
        events.append(WindowDecided(at=2.0 + window, window=window, files=0, bytes=0, records=0))
        events.append(WindowDone(at=2.5 + window, window=window))
    seconds = timings(0.0, *events, ended(4.0))
    assert (seconds["windows"], seconds["roll_forward"]) == (2.0, 1.0)


def test_the_report_has_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")

    def populate_dag(dag, conf):  # type: ignore[no-untyped-def]
        files = dag.add_operator("files", FileSplitterInput(files=str(tmp_path)))
        lines = dag.add_operator("lines", BlockReader())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)

    report = launch(populate_dag, runner="local").report
    assert list(report.timings) == ["session", "first_task", "windows", "roll_forward"]
    assert sum(report.timings.values()) == pytest.approx(report.seconds, abs=0.1)
