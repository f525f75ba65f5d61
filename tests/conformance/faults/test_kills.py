"""Kill anything, anywhere: the output of the launch that gets through is the reference output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dagflow import Operator, ReaderRecord
from dagflow.errors import WindowFailed
from dagflow.launching.launch import launch
from dagflow.runtime.events import Event, WindowRetried
from dagflow.testing import run_dag
from operators import BlockReader, Filter, RecordWriter
from tests.conformance.apps import chain, left_over, line_filter, lines_in, vectorised, written
from tests.conformance.faults.crash import Told, unknown_states

ROOT = Path(__file__).parents[3]


CRASHED = [("filters", 9), ("states", 8), ("keyed", 9), ("word_count", 14), ("parquet", 36), ("packed", 36)]
"""Applications of `crash.py`, and how many lines (or rows and files) they write."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text("".join(f"{name}{n}\n.{n}\n" for n in range(3)))
    return folder


@pytest.mark.full
@pytest.mark.parametrize(
    ("application", "lines", "stride"),
    [
        *[(*each, stride) for each, stride in zip(CRASHED, (61, 61, 83, 251, 109, 109), strict=True)],
        *[pytest.param(*each, 1, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)]) for each in CRASHED],
    ],
)
def test_a_killed_launch_is_continued_from_any_touch_of_a_file(
    source: Path, tmp_path: Path, application: str, lines: int, stride: int
) -> None:
    command = [sys.executable, "-m", "tests.conformance.faults.crash", str(source), str(tmp_path), str(stride), application]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout.splitlines()[-1])
    assert result["wrong"] == [], ran.stderr
    assert result["lines"] == lines
    assert result["cases"]["continued"] > 100 // stride
    assert result["cases"]["fresh"] > 150 // stride


@pytest.mark.full
@pytest.mark.parametrize("stride", [37, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_file_that_grows_between_kills_is_read_once(tmp_path: Path, stride: int) -> None:
    command = [sys.executable, "-m", "tests.conformance.faults.crash_appended", str(tmp_path), str(stride)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout.splitlines()[-1])
    assert result["wrong"] == [], ran.stderr
    assert result["kills"] > 600 // stride


def killing(markers: Path, times: int) -> Filter[ReaderRecord[str]]:
    """Kills the process that it runs in, in the middle of a window, so many times in all."""
    markers.mkdir()
    folder, this = str(markers), os.getpid()

    def keep(line: ReaderRecord[str]) -> bool:
        if line.record == "b1":
            assert os.getpid() != this, "never kills the tests themselves"
            for n in range(times):
                try:
                    os.close(os.open(f"{folder}/{n}", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        return not line.record.startswith(".")

    return Filter(keep)


def killing_after_told(markers: Path, times: int) -> Filter[str]:
    """Kills the process that it runs in at the end of the second window, when the states are what they will be."""
    markers.mkdir()
    folder, this = str(markers), os.getpid()

    def keep(told: str) -> bool:
        if told.startswith("window 1, 1 "):
            assert os.getpid() != this, "never kills the tests themselves"
            for n in range(times):
                try:
                    os.close(os.open(f"{folder}/{n}", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        return True

    return Filter(keep)


class TestWorkers:
    def test_a_killed_worker_changes_nothing(self, worker_runner: str, source: Path, tmp_path: Path) -> None:
        expected, output = tmp_path / "expected", tmp_path / "out"
        run_dag(line_filter(source, expected, vectorised(), blocks_threshold=2))
        events: list[Event] = []
        application = line_filter(source, output, killing(tmp_path / "kills", 1), blocks_threshold=2)
        launch(application, runner=worker_runner, durability="process", subscribers=[events.append])
        assert len(list((tmp_path / "kills").iterdir())) == 1
        assert not [event for event in events if isinstance(event, WindowRetried)], "the runner tries a task again by itself"
        assert lines_in(output) == lines_in(expected)
        assert left_over(output) == []

    def test_a_window_that_the_runner_gives_up_is_run_again(self, worker_runner: str, source: Path, tmp_path: Path) -> None:
        expected, output = tmp_path / "expected", tmp_path / "out"
        run_dag(line_filter(source, expected, vectorised(), blocks_threshold=2))
        events: list[Event] = []
        application = line_filter(source, output, killing(tmp_path / "kills", 4), blocks_threshold=2)
        launch(application, runner=worker_runner, durability="process", subscribers=[events.append])
        assert [event.attempt for event in events if isinstance(event, WindowRetried)] == [2]
        assert lines_in(output) == lines_in(expected)
        assert left_over(output) == []

    @pytest.mark.parametrize("kills", [1, 4], ids=["tried again by the runner", "given up by the runner"])
    def test_states_are_those_of_the_last_decision_whatever_a_killed_worker_kept(
        self, worker_runner: str, source: Path, tmp_path: Path, kills: int
    ) -> None:
        expected, output = tmp_path / "expected", tmp_path / "out"

        def application(folder: Path, *middle: Operator) -> Any:
            reader = BlockReader[str](min_readers=2, max_readers=2)
            return chain(source, Told(), *middle, sink=RecordWriter(str(folder)), reader=reader, blocks_threshold=1)

        run_dag(application(expected))
        run_dag(application(output, killing_after_told(tmp_path / "kills", kills)), runner=worker_runner)
        assert len(list((tmp_path / "kills").iterdir())) == kills
        assert lines_in(output) == lines_in(expected)
        assert left_over(output) == []
        assert unknown_states(output) == []

    def test_the_record_that_kills_its_workers_is_named(self, worker_runner: str, source: Path, tmp_path: Path) -> None:
        this = os.getpid()

        def keep(line: ReaderRecord[str]) -> bool:
            if line.record == "b1":
                assert os.getpid() != this, "never ends the tests themselves"
                os._exit(3)
            return True

        with pytest.raises(WindowFailed) as caught:
            run_dag(line_filter(source, tmp_path / "out", Filter(keep)), runner=worker_runner, window_attempts=1)
        told = str(caught.value).splitlines()
        why = {
            "local": f"task {told[1].split()[1]} has died 4 times, the last time because its process ended with exit status 3",
            "spark": "Spark gave up after 4 attempts: Python worker exited unexpectedly (crashed)",
        }
        assert told[0] == f"window 0 failed once; the last time: {why[worker_runner]}"
        assert told[1].startswith("  task s0-000")
        assert told[1].endswith(f" died at {source}/b.txt, position 6")
        assert told[2].startswith(f"  help: `tail -c +7 {source}/b.txt | head -1` shows what is there;")

    def test_a_window_that_never_gets_through_fails_the_run_and_the_next_launch_goes_on(
        self, worker_runner: str, source: Path, tmp_path: Path
    ) -> None:
        output = tmp_path / "out"
        with pytest.raises(WindowFailed) as caught:
            run_dag(line_filter(source, output, killing(tmp_path / "kills", 4)), runner=worker_runner, window_attempts=1)
        assert (caught.value.window, caught.value.attempts) == (0, 1)
        assert written(output) == []
        run_dag(line_filter(source, output, vectorised()), runner=worker_runner)
        assert sum(lines_in(output).values()) == 9
        assert left_over(output) == []
