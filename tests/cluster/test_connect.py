"""A Spark Connect server, whose working folder is none of ours."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.places import APPLICATION, Begin, Place
from tests.cluster.servers import Server, connect_server, free_port
from tests.cluster.waiting import held_by, until
from tests.local.processes import lives

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with connect_server(tmp_path_factory.mktemp("connect")) as server:
        yield server


@pytest.mark.full
def test_an_application_of_several_files_runs_with_relative_paths(server: Server, place: Place) -> None:
    ran = place.launch(remote=server.address)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert place.found() == place.expected()
    [started] = place.events("run_started")
    assert started["slots"] == 2
    assert place.left_over() == []
    labels = [label for job in server.jobs() for label in job["jobTags"]]
    assert any("application: window 0: lines → keep → shout → writer" in label for label in labels), labels


@pytest.mark.nightly
class TestServer:
    def test_a_script_runs(self, server: Server, place: Place) -> None:
        ran = place.run(sys.executable, str(APPLICATION / "main.py"), json.dumps({"remote": server.address}))
        assert (ran.returncode, ran.stderr, json.loads(ran.stdout)) == (0, "", {"windows": 1})
        assert place.found() == {f"{line.removesuffix('!')} {len(line) - 1}": 1 for line in place.expected()}

    def test_a_killed_worker_changes_nothing(self, server: Server, place: Place, tmp_path: Path) -> None:
        place.fill("before the end", "kill", "after that")
        ran = place.launch(remote=server.address, kill=str(tmp_path), victim="worker")
        assert (ran.returncode, ran.stderr) == (0, "")
        assert (tmp_path / "killed").exists()
        assert place.found() == place.expected()
        assert place.events("window_retried") == []

    def test_a_stopped_run_cancels_its_jobs_and_the_next_one_goes_on(
        self, server: Server, place: Place, begin: Begin, tmp_path: Path
    ) -> None:
        place.fill("before the end", "hold", "after that")
        hold = tmp_path / "held"
        hold.touch()
        process = begin(*place.command(remote=server.address, hold=str(hold)))
        until(lambda: held_by(hold), process)
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert time.monotonic() - asked < 10
        assert place.found() == {}
        until(lambda: not any(job["status"] == "RUNNING" for job in server.jobs()))
        until(lambda: not any(map(lives, held_by(hold))), seconds=30)
        hold.unlink()
        ran = place.launch(remote=server.address, hold=str(hold))
        assert ran.returncode == 0, ran.stderr
        assert [planned["replayed"] for planned in place.events("window_planned")] == [False, True]
        assert place.found() == place.expected()
        assert place.left_over() == []

    def test_settings_that_a_server_does_not_take_are_refused(self, server: Server, place: Place) -> None:
        ran = place.launch(remote=server.address, **{"spark.executor.memory": "2g"})
        assert ran.returncode == 2
        assert f"spark.executor.memory cannot become '2g': the session at {server.address} has started already" in ran.stderr

    def test_settings_say_how_many_slots_there_are(self, server: Server, place: Place) -> None:
        ran = place.launch(remote=server.address, **{"spark.sql.leafNodeDefaultParallelism": "3"})
        assert ran.returncode == 0, ran.stderr
        assert [started["slots"] for started in place.events("run_started")] == [3]

    def test_a_run_folder_that_tasks_do_not_see_is_found_before_the_first_window(self, server: Server, place: Place) -> None:
        ran = place.launch(remote=server.address, run_folder="memory://runs/two")
        assert ran.returncode == 3
        assert "run folder memory://runs/two: it is not there  (" in ran.stderr

    def test_a_session_that_is_active_is_used_and_goes_on(self, server: Server, place: Place) -> None:
        script = place.folder / "script.py"
        script.write_text(
            "import sys\nfrom pyspark.sql import SparkSession\n"
            f"spark = SparkSession.builder.remote({server.address!r}).getOrCreate()\n"
            "from dagflow import launch\n"
            f"run = launch({str(APPLICATION)!r}, {{'input': 'in', 'output': 'out'}}, once=False, max_windows=1)\n"
            "run.wait(120)\nprint(spark.range(3).count())\n"
        )
        ran = place.run(sys.executable, str(script))
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "3\n", "")
        assert place.found() == place.expected()


@pytest.mark.nightly
def test_a_server_that_is_killed_ends_the_run(place: Place, begin: Begin, tmp_path: Path) -> None:
    place.fill("before the end", "hold", "after that")
    hold = tmp_path / "held"
    hold.touch()
    with connect_server(tmp_path / "connect") as server:
        process = begin(*place.command(remote=server.address, hold=str(hold)))
        until(lambda: held_by(hold), process)
        killed = time.monotonic()
        os.kill(server.pid, signal.SIGKILL)
        _, err = process.communicate(timeout=200)
    assert time.monotonic() - killed < 100
    assert process.returncode == 3, err
    assert "has ended while it worked on 'application: window 0: lines → keep → shout → writer'" in err
    assert "Traceback" not in err
    until(lambda: not any(map(lives, held_by(hold))), seconds=30)
    hold.unlink()
    with connect_server(tmp_path / "connect") as server:
        ran = place.launch(remote=server.address, hold=str(hold))
    assert ran.returncode == 0, ran.stderr
    assert place.found() == place.expected()
    assert place.left_over() == []


@pytest.mark.nightly
def test_a_server_of_this_process_runs(place: Place) -> None:
    ran = place.launch(remote="local[2,4]")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert place.found() == place.expected()


@pytest.mark.full
def test_an_address_that_nobody_listens_at_is_told_at_once(place: Place) -> None:
    ran = place.launch(remote=f"sc://127.0.0.1:{(port := free_port())}")
    assert ran.returncode == 3
    assert f"127.0.0.1, port {port}: Connection refused" in ran.stderr
