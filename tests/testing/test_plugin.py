from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dagflow import DAG
from dagflow.testing import Collector, run_dag
from operators import BlockReader, FileSplitterInput


def test_one_test_runs_on_both_runners(runner: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    seen: Collector = Collector()

    def populate_dag(dag: DAG, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(tmp_path)], block_size=3))
        lines = dag.add_operator("lines", BlockReader())
        dag.add_operator("seen", seen)
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("text", lines.messages, seen.input)

    report = run_dag(populate_dag, runner=runner)
    assert (report.runner, report.status, report.windows, report.jobs) == (runner, "done", 1, 1)
    assert [line.record for line in seen.records] == ["one", "two"]


COUNTING = """
import pytest
import dagflow.spark.connection.session

jobs = 0

@pytest.fixture(scope="session")
def spark_session():
    return object()

@pytest.fixture(autouse=True)
def count(monkeypatch):
    monkeypatch.setattr(dagflow.spark.connection.session, "jobs_run", lambda session: jobs)
"""
TESTS = """
import conftest

def test_idle(runner):
    pass

def test_busy(runner):
    conftest.jobs += runner == "spark"

def test_wrong(runner):
    assert runner == "local"
"""


@pytest.mark.full
def test_a_spark_half_that_passes_without_a_job_fails(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(COUNTING)
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 5 passed, 1 error" in ran.stdout
    assert "ERROR test_it.py::test_idle[spark]" in ran.stdout
    assert "the Spark half of this test ran no Spark job: launch with runner=runner" in ran.stdout
    assert "FAILED test_it.py::test_wrong[spark]" in ran.stdout


def test_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import dagflow.testing.plugin, sys; print([m for m in ('pyarrow', 'pyspark', 'networkx', 'fsspec') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
