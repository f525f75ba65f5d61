"""An executor that sees another folder in the place of the run folder: as on a machine where the share is not mounted."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.places import Begin, Place
from tests.cluster.servers import registered, standalone, worker
from tests.cluster.waiting import held_by, until

pytestmark = [pytest.mark.cluster, pytest.mark.spark]
SMALL = {"spark.executor.memory": "512m"}
READERS = {"operator.lines.min_readers": "2", "operator.lines.max_readers": "2"}


def may_mount() -> bool:
    """Return True if this process may have mounts of its own."""
    try:
        command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]
        return sys.platform == "linux" and subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


needs_mounts = pytest.mark.skipif(not may_mount(), reason="may not mount")


@needs_mounts
@pytest.mark.full
def test_every_executor_is_asked_before_the_first_window(place: Place, tmp_path: Path) -> None:
    place.output.mkdir()
    cluster = standalone(tmp_path / "cluster", workers=1)
    with cluster as master, worker(tmp_path / "blind", master, hidden=place.output) as log:
        registered(log)
        ran = place.launch(master=master, **{"spark.scheduler.minRegisteredResourcesRatio": "1.0"}, **SMALL)
    assert ran.returncode == 3, ran.stderr
    assert f"run folder {place.output}/_dagflow: it is not there  (" in ran.stderr
    assert f", in {tmp_path}/blind/app-" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert place.found() == {}
    assert place.left_over() == []


@needs_mounts
@pytest.mark.nightly
def test_an_executor_that_joins_late_is_named(place: Place, begin: Begin, tmp_path: Path) -> None:
    """Two tasks for one slot, of which the first waits: the executor that joins gets the second one."""
    place.output.mkdir()
    for file in (place.folder / "in").iterdir():
        file.write_text("hold\n")
    hold = tmp_path / "held"
    hold.touch()
    with standalone(tmp_path / "cluster", workers=1) as master:
        running = begin(*place.command(master=master, hold=str(hold), rebalance="off", **SMALL, **READERS))
        until(lambda: held_by(hold), running)
        with worker(tmp_path / "blind", master, hidden=place.output) as log:
            registered(log)
            _, err = running.communicate(timeout=200)
    assert running.returncode == 3, err
    assert f"run folder {place.output}/_dagflow: it is not there  (" in err
    named = re.search(rf", in {re.escape(str(tmp_path))}/blind/app-[\d-]+/(\d+)\)", err)
    assert named is not None, err
    assert named[1] == "1", "Spark's number of the executor"
    assert "Traceback" not in err
    assert place.found() == {}
