"""A run on Spark that is stopped, or killed, in the middle of a window. Real processes, on local[2,4]."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cluster.places import Begin, Place
from tests.cluster.waiting import held_by, until
from tests.local.processes import lives, processes_below

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.nightly]
LOCAL = {"master": "local[2,4]"}


class Held:
    """A launch that stands still in the middle of a line, with the processes below it."""

    def __init__(self, place: Place, begin: Begin, hold: Path) -> None:
        place.fill("before the end", "hold", "after that")
        hold.touch()
        self.place, self.hold = place, hold
        self.process: subprocess.Popen[str] = begin(*place.command(**LOCAL, hold=str(hold)))
        until(lambda: held_by(hold), self.process)
        self.below = processes_below(self.process.pid)
        self.java = next(p for p in self.below if "java" in Path(f"/proc/{p}/cmdline").read_bytes().split(b"\0")[0].decode())
        self.began = time.monotonic()

    def ended(self) -> tuple[int, str]:
        """Exit code and what stood on standard error, after a time with a bound; nothing is left behind, nothing visible."""
        _, err = self.process.communicate(timeout=60)
        until(lambda: not any(map(lives, self.below)), seconds=20)
        assert self.place.found() == {}
        assert "Traceback" not in err
        return self.process.returncode, err

    def goes_on(self) -> None:
        """The next launch does it all, once."""
        self.hold.unlink()
        ran = self.place.launch(**LOCAL, hold=str(self.hold))
        assert ran.returncode == 0, ran.stderr
        assert [planned["replayed"] for planned in self.place.events("window_planned")] == [False, True]
        assert self.place.found() == self.place.expected()
        assert self.place.left_over() == []


@pytest.fixture
def held(place: Place, begin: Begin, tmp_path: Path) -> Held:
    return Held(place, begin, tmp_path / "held")


def test_a_stopped_spark_run_leaves_no_process_and_the_next_one_resumes(held: Held) -> None:
    held.process.send_signal(signal.SIGTERM)
    code, err = held.ended()
    assert code == 130, err
    assert time.monotonic() - held.began < 20
    assert "stopped by SIGTERM" in err
    held.goes_on()


def test_another_jvm_takes_the_place_of_a_killed_one_in_a_spark_run(held: Held) -> None:
    os.kill(held.java, signal.SIGKILL)
    until(lambda: not any(map(lives, held.below)), held.process)
    held.hold.unlink()
    _, err = held.process.communicate(timeout=120)
    assert held.process.returncode == 0, err
    [retried] = held.place.events("window_retried")
    assert "Spark at local[2,4] has ended" in retried["reason"]
    assert "a new session takes its place" in retried["reason"]
    assert held.place.found() == held.place.expected()
    assert held.place.left_over() == []


def test_a_killed_spark_launch_leaves_no_process_and_the_next_one_resumes(held: Held) -> None:
    held.process.kill()
    assert held.ended()[0] == -signal.SIGKILL
    held.goes_on()
