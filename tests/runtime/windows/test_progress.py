"""The progress of a window's readers reaches events and the progress line."""

from __future__ import annotations

import io
from pathlib import Path

import attrs
import pytest

from dagflow.cli.progress import LiveProgress, PlainProgress
from dagflow.runtime.events import WindowPlanned, WindowProgress
from dagflow.runtime.rebalancing.peers import gauge_of
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.runtime.stage.program import TaskSpec, Work
from dagflow.runtime.windows import rebalance as watching
from dagflow.runtime.windows.rebalance import ProgressWatch
from tests.runtime.rebalancing.skewed import run


def test_events_tell_how_much_of_a_window_is_consumed(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "EVERY", 0.02)
    _, events = run(source, tmp_path / "out")
    fractions = [event.fraction_consumed for event in events if isinstance(event, WindowProgress)]
    assert fractions
    assert fractions == sorted(set(fractions))
    assert 0.0 < fractions[0] <= fractions[-1] <= 1.0


def test_the_gauges_of_all_readers_are_added_up(tmp_path: Path) -> None:
    log = WindowLog.open(str(tmp_path), False)
    plan = WindowPlan(
        window=3,
        items={},
        partitions={"reader": 2},
        places={},
        states={},
        weights={"reader": [600, 400]},
        driver=TaskReport("driver", 0),
    )
    tasks = [
        TaskSpec(window=3, epoch="r", stage="s0", head="reader", partition=n, partitions=2, work=Work(form="steal"))
        for n in (0, 1)
    ]
    sent: list[WindowProgress] = []
    watch = ProgressWatch(sent.append)  # type: ignore[arg-type]
    (tmp_path / "claims").mkdir(exist_ok=True)
    gauges = [gauge_of(str(tmp_path), task.claims_area, task.partition) for task in tasks]
    watch.look(log, plan, tasks, 0.0)
    gauges[0].write(b'{"done": 100}')
    watch.look(log, plan, tasks, 0.5)  # too soon
    assert sent == []
    gauges[1].write(b'{"done": 150, "by')  # torn
    watch.look(log, plan, tasks, 1.0)
    gauges[1].write(b'{"done": 150}')
    watch.look(log, plan, tasks, 2.0)
    watch.look(log, plan, tasks, 3.0)  # nothing new
    watch.look(log, plan, [attrs.evolve(task, work=Work()) for task in tasks], 9.0)
    assert [event.fraction_consumed for event in sent] == [0.1, 0.25]


def test_progress_shows_it() -> None:
    planned = WindowPlanned(at=0.0, window=3, items=2, bytes=10, tasks=2)
    consumed = [WindowProgress(at=at, window=3, fraction_consumed=at / 40) for at in (5.0, 11.0, 15.0, 22.0)]
    text = io.StringIO()
    plain, live = PlainProgress(text), LiveProgress(io.StringIO(), clock=lambda: 1.0)
    for event in (planned, *consumed):
        plain(event)
        live(event)
    assert text.getvalue().splitlines()[1:] == ["window 3: 27 % read", "window 3: 55 % read"]
    assert "window 3 (2 tasks, 55 % read)" in str(live.line())
