"""A standalone cluster as others use it, too: several launches at once, hosts that are left out, a thousand partitions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.cluster.places import Begin, Place
from tests.cluster.servers import standalone
from tests.cluster.waiting import held_by, until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.nightly]
SMALL = {"spark.executor.memory": "512m"}
STRICT = {
    "spark.excludeOnFailure.enabled": "true",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor": "1",
    "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": "1",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "1",
    "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "1",
    "spark.scheduler.excludeOnFailure.unschedulableTaskSetTimeout": "1s",
}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if sys.platform != "linux":
        pytest.skip("needs a second loopback address")
    with standalone(tmp_path_factory.mktemp("cluster"), hosts=("127.0.0.2", "127.0.0.3")) as address:
        yield address


def test_two_launches_share_a_cluster(master: str, place: Place, begin: Begin) -> None:
    """Each has a slot, both at the same time."""
    others = [attrs.evolve(place, folder=place.folder / name) for name in ("one", "two")]
    for each in others:
        each.folder.mkdir()
        each.fill()
    share = {"master": master, "spark.cores.max": "1", **SMALL}
    running = [begin(*each.command(**share), cwd=each.folder) for each in others]
    assert [process.wait(300) for process in running] == [0, 0]
    assert [each.found() for each in others] == [each.expected() for each in others]
    spans = [(each.events("run_started")[0]["at"], each.events("run_ended")[0]["at"]) for each in others]
    assert max(start for start, _ in spans) < min(end for _, end in spans)


def test_a_launch_waits_for_a_cluster_that_is_taken(master: str, place: Place, begin: Begin, tmp_path: Path) -> None:
    """The second launch has no slot until the first one has ended, and says so if that takes too long."""
    hold = tmp_path / "hold"
    hold.touch()
    place.fill("hold")
    ran = begin(*place.command(master=master, hold=str(hold), **SMALL))
    until(lambda: held_by(hold), ran)
    other = attrs.evolve(place, folder=place.folder / "other")
    other.folder.mkdir()
    other.fill()
    refused = other.run(*other.command(master=master, slots_timeout="5", **SMALL))
    assert refused.returncode == 3
    hold.unlink()
    assert ran.wait(300) == 0
    again = other.launch(master=master, **SMALL)
    assert (again.returncode, other.found()) == (0, other.expected())


def excluded(folder: Path) -> list[str]:
    """The kinds of Spark's events that leave an executor or a host out."""
    lines = [line for file in folder.rglob("*") if file.is_file() for line in file.read_text(errors="replace").splitlines()]
    names = [json.loads(line)["Event"] for line in lines if line.startswith('{"Event"')]
    return [name for name in names if "Excluded" in name]


def test_a_host_that_is_left_out_after_a_failure_changes_nothing(master: str, place: Place, tmp_path: Path) -> None:
    place.fill("before the end", "kill", "after that")
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(tmp_path / "events"), "spark.eventLog.compress": "false"}
    (tmp_path / "events").mkdir()
    ran = place.launch(master=master, kill=str(tmp_path), victim="worker", **SMALL, **STRICT, **log)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "killed").exists()
    assert place.found() == place.expected()
    assert excluded(tmp_path / "events")


def test_where_all_hosts_are_left_out_the_window_is_tried_again(place: Place, tmp_path: Path) -> None:
    place.fill("before the end", "kill", "after that")
    with standalone(tmp_path / "cluster", workers=1) as master:
        ran = place.launch(master=master, kill=str(tmp_path), victim="worker", **SMALL, **STRICT)
    assert ran.returncode == 0, ran.stderr
    assert place.found() == place.expected()
    assert place.events("window_retried")


def test_a_thousand_partitions(master: str, place: Place) -> None:
    (place.folder / "in" / "many.txt").write_text("".join(f"line {number}\n" for number in range(30_000)))
    many = {"operator.lines.min_readers": "1000", "operator.lines.max_readers": "1000"}
    ran = place.launch(master=master, **SMALL, **many)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert place.found() == place.expected()
    assert len([file for file in place.output.iterdir() if file.name.startswith("part-")]) == 1000
    assert place.left_over() == []
