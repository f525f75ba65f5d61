"""Figures of tasks: those in events sum to those of decisions, and time goes to the operator that takes it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from dagflow import launch
from dagflow.launching.build import build
from dagflow.launching.launch import start
from dagflow.runtime.events import OperatorProgress, TaskEnded
from operators import RecordWriter
from tests.conformance.apps import by_function, chain

SLOW = 0.03


class SlowWriter(RecordWriter[Any]):
    def get_bytes_for_tuple(self, record: Any) -> bytes:
        time.sleep(SLOW)
        return b"x"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("a b\n.c\nd\n")
    return folder


def test_figures_of_tasks(runner: str, source: Path, tmp_path: Path) -> None:
    ended: list[TaskEnded] = []

    def listen(event: Any) -> None:
        if isinstance(event, TaskEnded):
            ended.append(event)

    application = chain(source, by_function(), sink=SlowWriter(str(tmp_path / "out")))
    report = launch(application, runner=runner, subscribers=[listen], progress="none").report
    assert len(ended) == report.tasks > 0
    assert {event.task for event in ended} == {f"{event.stage}-{event.partition:04d}" for event in ended}
    for name in ("lines", "m0", "sink"):
        figures = [event.operators[name] for event in ended]
        own = report.operators[name]
        assert sum(each["records_in"] for each in figures) == own.records_in
        assert sum(each["records_out"] for each in figures) == own.records_out
        assert sum(each["seconds"] for each in figures) == pytest.approx(own.seconds, abs=0.001)
    assert report.operators["sink"].seconds >= 4 * SLOW
    assert report.slowest_first()[0][0] == "sink"
    assert report.times.write >= 4 * SLOW
    assert min(event.read + event.compute for event in ended) > 0


@pytest.mark.full  # it takes longer than two seconds
def test_figures_show_while_a_task_runs(runner: str, source: Path, tmp_path: Path) -> None:
    (source / "a.txt").write_text("a\n" * 80)
    events: list[OperatorProgress] = []

    def listen(event: Any) -> None:
        if isinstance(event, OperatorProgress):
            events.append(event)

    application = build(
        chain(source, by_function(), sink=SlowWriter(str(tmp_path / "out"))), run={"runner": runner, "rebalance": "off"}
    )
    run = start(application, watchers=[listen])
    run.run_here()
    counts = [event.operators.get("sink", {}).get("records_in", 0) for event in events]
    assert counts[-1] == run.report.operators["sink"].records_in == 82
    assert any(0 < count < 80 for count in counts), counts  # within a chunk
    assert any(event.running for event in events)
    assert counts == sorted(counts)
