"""Executors that come and go with the readers: Spark's dynamic allocation on a standalone cluster of three workers."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.places import Place
from tests.cluster.servers import Server, free_port, standalone
from tests.cluster.waiting import held_by, until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(1800)]
PATIENCE = 400.0  # seconds: three executors start one after the other, each with a JVM of its own


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster"), workers=3) as address:
        yield address


def executors(server: Server) -> int:
    """The number of executors that an application has now."""
    return len(server.executors()) - 1  # the driver is told with them


def moved_in(place: Place, name: str, *texts: str) -> None:
    """Files that appear all at once, of one block each; in each of them a line that waits."""
    staged = place.folder / name
    staged.mkdir()
    for number, text in enumerate(texts):
        (staged / f"{number}.txt").write_text(f"{text}\n{text} hold\n")
    staged.rename(place.folder / "in" / name)


def test_executors_follow_the_readers(master: str, place: Place, begin: Any, tmp_path: Path) -> None:
    for file in (place.folder / "in").iterdir():
        file.unlink()
    moved_in(place, "burst", *(f"file {n}" for n in range(5)))
    port, hold = free_port(), tmp_path / "hold"
    hold.touch()
    settings = {
        "spark.dynamicAllocation.enabled": "True",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.executorIdleTimeout": "2s",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
    }
    running = begin(*place.command(master=master, continuous="true", hold=str(hold), **settings))
    server = Server(master, running.pid, f"http://127.0.0.1:{port}")
    until(lambda: len(held_by(hold)) == 3, running, PATIENCE)
    assert executors(server) == 3, "5 blocks are worth 3 readers, and Spark is asked for an executor for each"
    hold.unlink()
    until(lambda: len(place.events("window_done")) == 1, running)
    until(lambda: executors(server) == 1, running, PATIENCE)
    for note in tmp_path.glob("hold.*"):
        note.unlink()
    hold.touch()
    moved_in(place, "single", "one more")
    until(lambda: held_by(hold), running, PATIENCE)
    time.sleep(1)  # others would have been asked for by now
    assert executors(server) == 1, "one block is worth one reader"
    hold.unlink()
    until(lambda: len(place.events("window_done")) == 2, running)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    lines = [line for file in (place.folder / "in").rglob("*.txt") for line in file.read_text().splitlines()]
    assert place.found() == Counter(f"{line.upper()}!" for line in lines)
    [change] = place.events("readers_changed")
    assert (change["before"], change["readers"], change["backlog"], change["counters"]["blocks"]) == (3, 1, 1, 5)
    assert [event["tasks"] for event in place.events("window_planned")] == [3, 1]
