"""An application that spark-submit starts: it runs on the master that was submitted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.places import Place
from tests.cluster.servers import SPARK_HOME, standalone

pytestmark = [pytest.mark.cluster, pytest.mark.spark]
CLI = "import sys\nfrom dagflow.cli.main import main\nsys.exit(main())\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("cluster")
    with standalone(folder, workers=1) as address:
        yield address, folder / "master.log"


@pytest.mark.parametrize(
    "by",
    [
        pytest.param("spark-submit", marks=pytest.mark.full),
        pytest.param("env PYSPARK_SUBMIT_ARGS", marks=pytest.mark.nightly),
        pytest.param("spark-defaults.conf:1", marks=pytest.mark.nightly),
    ],
)
def test_the_submitted_master_is_used(cluster: tuple[str, Path], place: Place, by: str) -> None:
    master, log = cluster
    before = log.read_text().count("Registered app")
    (place.folder / "main.py").write_text(CLI)
    (place.folder / "spark-defaults.conf").write_text(f"spark.master {master}\n")
    launch = place.command(**{"spark.executor.memory": "512m"})[3:]
    command = ["plain" if part == "none" else part for part in launch]  # of --progress
    submit = ["--master", master] if by == "spark-submit" else []
    environment = {
        "spark-submit": [f"PYSPARK_PYTHON={sys.executable}"],
        "env PYSPARK_SUBMIT_ARGS": [f"PYSPARK_SUBMIT_ARGS=--master {master} pyspark-shell"],
        "spark-defaults.conf:1": [f"SPARK_CONF_DIR={place.folder}"],
    }[by]
    program = [str(SPARK_HOME / "bin" / "spark-submit")] if submit else [sys.executable]
    ran = place.run("env", *environment, *program, *submit, "main.py", *command)
    assert ran.returncode == 0, ran.stderr
    told = ran.stdout + ran.stderr  # spark-submit puts both into one
    assert any(f"on Spark at {master} (" in line and f"{by})" in line for line in told.splitlines()), told
    assert place.found() == place.expected()
    assert log.read_text().count("Registered app") == before + 1
