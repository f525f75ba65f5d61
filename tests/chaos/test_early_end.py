"""A launch that ends while its processes start: the JVM, the daemon of Spark's workers, the fork server. None outlives it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.cases import Place, line_filter, processes, spark
from tests.chaos.kills import ROOT
from tests.chaos.processes import Process, ended, is_java, is_python_worker, those_below
from tests.cluster.waiting import SLOW

pytestmark = [pytest.mark.chaos, pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")]
MARK = "_DAGFLOW_TEST_MARK"
Kind = Callable[[Process], bool]


def is_process(process: Process) -> bool:
    """Return True: a process of any kind."""
    return True


PLACES = [
    pytest.param(spark, (is_process, is_java, is_python_worker), id="spark", marks=pytest.mark.spark),
    pytest.param(processes, (is_process,), id="processes"),
]


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Return a folder for temporary files, with a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def begin(place: Place, folder: Path, temporary: Path) -> subprocess.Popen[str]:
    """Start a launch whose processes have a mark in their environment."""
    application = line_filter(folder, files=2)
    given = [part for key, value in application.settings_for("out").items() for part in ("-D", f"{key}={value}")]
    command = [sys.executable, "-m", "dagflow", "launch", str(application.path), "--progress", "none", *place.options, *given]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), MARK: str(temporary)}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def marked(temporary: Path) -> list[Process]:
    """Return the processes with the mark, whichever process is their parent by now."""
    mark, found = f"{MARK}={temporary}".encode(), []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            is_marked = mark in (each / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if is_marked and (process := Process.of(int(each.name))) is not None:
            found.append(process)
    return found


def at_moment(launch: subprocess.Popen[str], kind: Kind, seconds: float) -> None:
    """Wait until a launch has a process of a kind, and then a while longer, or until it has ended."""
    deadline = time.monotonic() + SLOW
    while launch.poll() is None and not those_below(launch.pid, kind) and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(seconds)


def end(place: Place, folder: Path, temporary: Path, number: signal.Signals, kind: Kind, seconds: float) -> None:
    """End a launch at a moment, and check what it leaves."""
    with begin(place, folder, temporary) as launch:
        at_moment(launch, kind, seconds)
        launch.send_signal(number)
        assert launch.stderr is not None
        said = launch.stderr.read()  # to its end: no process keeps it open
        status = launch.wait(SLOW)
    moment = f"{number.name} {seconds:.2f} s after the first {kind.__name__}: {said}"
    assert status in {0, 130, -number}, moment  # 0: it had ended; -number: Python was not ready for signals
    assert "Traceback" not in said or status == -number, moment
    assert "stopping" not in said or "stopped by" in said, f"it did not end by itself: {moment}"
    left = ended(marked(temporary), 60)
    for process in left:
        process.send(signal.SIGKILL)
    assert not left, moment
    assert not [path for path in temporary.rglob("*") if path.is_socket()], moment


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize(("place", "kinds"), PLACES)
def test_a_launch_that_ends_while_it_starts_leaves_no_process_and_no_socket(
    place: Callable[[], Place], kinds: tuple[Kind, ...], number: signal.Signals, tmp_path: Path, temporary: Path
) -> None:
    for kind in kinds:
        end(place(), tmp_path, temporary, number, kind, 0.1)


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize(("place", "kinds"), PLACES)
def test_a_launch_that_ends_at_any_early_moment_leaves_nothing(
    place: Callable[[], Place], kinds: tuple[Kind, ...], number: signal.Signals, tmp_path: Path, temporary: Path
) -> None:
    for _ in range(20):
        end(place(), tmp_path, temporary, number, random.choice(kinds), random.uniform(0, 3))
