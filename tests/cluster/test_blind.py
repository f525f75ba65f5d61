"""An executor that sees another folder in the place of the run folder: as on a machine where the share is not mounted."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
from deltalake import DeltaTable

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
@pytest.mark.nightly
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


TABLE = """
from dagflow import DAG
from operators import BlockReader, DeltaWriter, FileSplitterInput


def populate_dag(dag: DAG, conf: dict) -> None:
    files = dag.add_operator("files", FileSplitterInput(files=[conf["input"]]))
    lines = dag.add_operator("lines", BlockReader(min_readers=2, max_readers=2))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("rows", lines.messages, dag.add_operator("table", DeltaWriter(conf["output"])).input)
"""


@needs_mounts
@pytest.mark.nightly
def test_a_table_that_an_executor_does_not_see_is_found_before_the_first_window(place: Place, tmp_path: Path) -> None:
    application, table, run_folder = place.folder / "table.py", tmp_path / "table", tmp_path / "run"
    application.write_text(TABLE)
    table.mkdir()
    place = attrs.evolve(place, application=application)
    given = {"output": str(table), "run_folder": str(run_folder), "spark.scheduler.minRegisteredResourcesRatio": "1.0", **SMALL}
    cluster = standalone(tmp_path / "cluster", workers=1)
    with cluster as master, worker(tmp_path / "blind", master, hidden=table) as log:
        registered(log)
        ran = place.launch(master=master, **given)
    assert ran.returncode == 3, ran.stderr
    assert f"table {table}/: it is not there  (" in ran.stderr
    assert "put the table, and what its tasks stage, on storage that all machines share" in ran.stderr
    assert not (run_folder / "decision").exists()
    with standalone(tmp_path / "other", workers=2) as master:
        ran = place.launch(master=master, **given)
    assert ran.returncode == 0, ran.stderr
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == 120
    assert not (table / "_dagflow" / "probe").exists()
