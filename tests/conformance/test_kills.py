"""Kill anything, anywhere: the output of the launch that gets through is the reference output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dagflow import ReaderRecord
from dagflow.errors.run import WindowFailed
from dagflow.runtime.events import Event, WindowRetried
from dagflow.runtime.launch import launch
from dagflow.testing import run_dag
from operators import Filter
from tests.conformance.apps import left_over, line_filter, lines_in, vectorised, written

ROOT = Path(__file__).parents[2]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text("".join(f"{name}{n}\n.{n}\n" for n in range(3)))
    return folder


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.slow), 8])
def test_a_killed_launch_is_continued_from_any_touch_of_a_file(source: Path, tmp_path: Path, stride: int) -> None:
    command = [sys.executable, "-m", "tests.conformance.crash", str(source), str(tmp_path), str(stride)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout.splitlines()[-1])
    assert result["wrong"] == [], ran.stderr
    assert result["lines"] == 9
    assert result["cases"]["continued"] > 100 // stride
    assert result["cases"]["fresh"] > 150 // stride


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


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
class TestWorkersOfSpark:
    def test_a_killed_worker_changes_nothing(self, source: Path, tmp_path: Path) -> None:
        expected, output = tmp_path / "expected", tmp_path / "out"
        run_dag(line_filter(source, expected, vectorised(), blocks_threshold=2))
        events: list[Event] = []
        application = line_filter(source, output, killing(tmp_path / "kills", 1), blocks_threshold=2)
        launch(application, runner="spark", durability="process", subscribers=[events.append])
        assert len(list((tmp_path / "kills").iterdir())) == 1
        assert not [event for event in events if isinstance(event, WindowRetried)], "Spark tries a task again by itself"
        assert lines_in(output) == lines_in(expected)
        assert left_over(output) == []

    def test_a_window_that_spark_gives_up_is_run_again(self, source: Path, tmp_path: Path) -> None:
        expected, output = tmp_path / "expected", tmp_path / "out"
        run_dag(line_filter(source, expected, vectorised(), blocks_threshold=2))
        events: list[Event] = []
        application = line_filter(source, output, killing(tmp_path / "kills", 4), blocks_threshold=2)
        launch(application, runner="spark", durability="process", subscribers=[events.append])
        assert [event.attempt for event in events if isinstance(event, WindowRetried)] == [2]
        assert lines_in(output) == lines_in(expected)
        assert left_over(output) == []

    def test_a_window_that_never_gets_through_fails_the_run_and_the_next_launch_goes_on(
        self, source: Path, tmp_path: Path
    ) -> None:
        output = tmp_path / "out"
        with pytest.raises(WindowFailed) as caught:
            run_dag(line_filter(source, output, killing(tmp_path / "kills", 4)), runner="spark", window_attempts=1)
        assert (caught.value.window, caught.value.attempts) == (0, 1)
        assert written(output) == []
        run_dag(line_filter(source, output, vectorised()), runner="spark")
        assert sum(lines_in(output).values()) == 9
        assert left_over(output) == []
