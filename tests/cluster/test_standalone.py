"""A real cluster: a standalone master and two workers of one core, each with a working folder of its own."""

from __future__ import annotations

import json
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.places import APPLICATION, Place
from tests.cluster.servers import free_port, standalone

pytestmark = [pytest.mark.cluster, pytest.mark.spark]
SMALL = {"spark.executor.memory": "512m"}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.mark.nightly
def test_an_application_of_several_files_runs_with_relative_paths(master: str, place: Place) -> None:
    ran = place.launch(master=master, **SMALL)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert place.found() == place.expected()
    [started] = place.events("run_started")
    assert started["slots"] == 2
    assert place.left_over() == []


@pytest.mark.full
def test_an_executor_killed_in_the_middle_of_a_window_changes_nothing(master: str, place: Place, tmp_path: Path) -> None:
    place.fill("before the end", "kill", "after that")
    ran = place.launch(master=master, kill=str(tmp_path), **SMALL)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "killed").exists()
    assert place.found() == place.expected()
    assert place.events("window_retried") == [], "Spark tries a task again by itself"
    assert place.left_over() == []


@pytest.mark.nightly
def test_a_script_runs(master: str, place: Place) -> None:
    ran = place.run(sys.executable, str(APPLICATION / "main.py"), json.dumps({"master": master}))
    assert (ran.returncode, ran.stderr, json.loads(ran.stdout)) == (0, "", {"windows": 1})
    assert place.found() == {f"{line.removesuffix('!')} {len(line) - 1}": 1 for line in place.expected()}


@pytest.mark.nightly
def test_a_worker_killed_in_the_middle_of_a_window_changes_nothing(master: str, place: Place, tmp_path: Path) -> None:
    place.fill("before the end", "kill", "after that")
    ran = place.launch(master=master, kill=str(tmp_path), victim="worker", **SMALL)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert place.found() == place.expected()
    assert place.events("window_retried") == []


@pytest.mark.nightly
def test_a_run_folder_that_tasks_do_not_see_is_found_before_the_first_window(master: str, place: Place) -> None:
    ran = place.launch(master=master, run_folder="memory://runs/one", **SMALL)
    assert ran.returncode == 3
    assert "run folder memory://runs/one: it is not there  (" in ran.stderr
    assert place.found() == {}


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python of the driver's version, with nothing installed."""
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    return tmp_path / "bare" / "bin" / "python"


@pytest.mark.nightly
def test_a_python_that_lacks_dagflow_is_told_before_the_first_window(master: str, place: Place, bare: Path) -> None:
    ran = place.launch(master=master, **SMALL, **{"spark.pyspark.python": str(bare)})
    assert ran.returncode == 3
    assert "cannot run the tasks of this application" in ran.stderr
    assert f"dagflow is not installed for {bare}" in ran.stderr
    assert f"help: {bare} -m pip install 'dagflow==" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert place.events("window_planned") == []


@pytest.mark.nightly
def test_doctor_looks_at_each_executor(master: str, place: Place, bare: Path) -> None:
    doctor = [sys.executable, "-m", "dagflow", "doctor", "--master", master, "--json"]
    doctor += ["-D", "spark.executor.memory=512m", "-D", f"spark.pyspark.python={bare}"]
    ran = place.run(*doctor)
    assert ran.returncode == 3, ran.stderr
    problems = [check for check in json.loads(ran.stdout)["checks"] if check["status"] == "problem"]
    assert [check["text"].partition(" (")[0] for check in problems] == [f"dagflow is not installed for {bare}"] * len(problems)
    assert {check["remedy"].partition("==")[0] for check in problems} == {f"{bare} -m pip install 'dagflow"}


def test_a_master_that_nobody_listens_at_is_told_at_once(place: Place) -> None:
    ran = place.launch(master=f"spark://127.0.0.1:{(port := free_port())}")
    assert ran.returncode == 3
    assert f"Spark at spark://127.0.0.1:{port} does not answer" in ran.stderr
    assert f"127.0.0.1, port {port}: Connection refused" in ran.stderr


@pytest.mark.full
def test_local_paths_are_refused_for_a_master_elsewhere(place: Place) -> None:
    ran = place.launch(master="spark://boss.example:7077")
    assert ran.returncode == 2
    assert "/in, a path of this machine, but spark://boss.example:7077 runs on others" in ran.stderr
    assert not place.output.exists()
