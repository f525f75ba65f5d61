"""Attempts that die at any step of a claim or a steal, and attempts that live on when another one has begun: nothing is lost."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from dagflow.runtime.events import WindowRetried
from dagflow.runtime.rebalancing import failpoints
from dagflow.runtime.rebalancing import stealing as work
from tests.conformance.apps import left_over, lines_in
from tests.runtime.rebalancing.provoked import provoked
from tests.runtime.rebalancing.skewed import expected, run
from tests.runtime.rebalancing.threads import Killed, ThreadRunner, ZombieRunner

GIVER, TAKER = "s0-0000", "s0-0001"


pytestmark = pytest.mark.full  # real threads and real time


@pytest.fixture
def step(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A step that comes for certain: lines are very slow until then, or until there was a steal."""
    for name, value in provoked(request.param).items():
        monkeypatch.setattr(work, name, value)
    return str(request.param)


@pytest.mark.parametrize("step", failpoints.NAMES, indirect=True)
@pytest.mark.parametrize("times", [1, 2])
def test_a_kill_at_any_step_loses_nothing(source: Path, tmp_path: Path, step: str, times: int) -> None:
    left, lock = [times], threading.Lock()

    def kill(at: str) -> None:
        with lock:
            if at != step or not left[0]:
                return
            left[0] -= 1
        raise Killed

    failpoints.hook = kill
    runner = ThreadRunner()
    if step == "recovered":  # only who has died before gets there
        failpoints.hook = lambda at: kill(step) if at in ("asked", "recovered") else None
    _, events = run(source, tmp_path / "out", runner, blocks=4, told=tmp_path / "told", until=("stolen", step))
    assert lines_in(tmp_path / "out") == expected(source)
    assert lines_in(tmp_path / "told") == Counter([b"0", b"3000", b"6000", b"9000"])
    assert not [event for event in events if isinstance(event, WindowRetried)]
    assert runner.deaths
    assert left_over(tmp_path / "out") == []


@pytest.mark.parametrize(("task", "after"), [(GIVER, "after grant"), (TAKER, "stolen")])
def test_who_dies_with_its_report_ready_reads_again_just_what_is_its_own(
    source: Path, tmp_path: Path, task: str, after: str
) -> None:
    """Given parts stay given, taken parts stay the taker's: all but the report was done."""
    runner, passed = ThreadRunner(), set[str]()

    def kill(at: str) -> None:
        passed.add(at)
        if at == "before report" and after in passed and not runner.deaths and runner.at_work[threading.get_ident()] == task:
            raise Killed

    failpoints.hook = kill
    report, events = run(source, tmp_path / "out", runner, blocks=4)
    assert runner.deaths == 1
    assert "recovered" in passed
    assert report.rebalanced
    assert lines_in(tmp_path / "out") == expected(source)
    assert not [event for event in events if isinstance(event, WindowRetried)]
    assert left_over(tmp_path / "out") == []


@pytest.mark.parametrize("step", [step for step in failpoints.NAMES if step != "recovered"], indirect=True)
def test_an_attempt_that_lives_on_when_another_one_has_begun_counts_for_nothing(source: Path, tmp_path: Path, step: str) -> None:
    runner = ZombieRunner(step, giver=GIVER)
    failpoints.hook = runner.at
    _, events = run(source, tmp_path / "out", runner, blocks=4, told=tmp_path / "told", until=("stolen", step))
    assert lines_in(tmp_path / "out") == expected(source)
    assert lines_in(tmp_path / "told") == Counter([b"0", b"3000", b"6000", b"9000"])
    assert left_over(tmp_path / "out") == []
    assert runner.was_doubled
    assert runner.fenced or step == "after report"  # who comes after the report finds it, and agrees
    # no task has the part that a zombie was given at the last moment: then the window is run again
    assert len([event for event in events if isinstance(event, WindowRetried)]) <= 1
