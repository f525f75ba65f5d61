"""The program of pods on Kubernetes, as an executor of a driver that has no other: Spark's own protocol, without pods."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cluster.places import Begin, Place
from tests.cluster.servers import free_port, standalone
from tests.servers import listening, process

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.nightly]
OPENED = ("java.nio", "java.lang", "java.lang.invoke", "java.util", "java.net", "sun.nio.ch", "java.util.concurrent")


def test_a_python_with_dagflow_is_an_executor(place: Place, begin: Begin, tmp_path: Path) -> None:
    port = free_port()
    options = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED]
    variables = {
        "SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@127.0.0.1:{port}",
        "SPARK_EXECUTOR_ID": "1",
        "SPARK_EXECUTOR_CORES": "1",
        "SPARK_EXECUTOR_MEMORY": "512m",
        "SPARK_APPLICATION_ID": "app",
        "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
        "SPARK_EXECUTOR_POD_NAME": "pod",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_LOCAL_IP": "127.0.0.1",
        **{f"SPARK_JAVA_OPT_{number}": option for number, option in enumerate(options)},
    }
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with standalone(tmp_path / "cluster", workers=0) as master:
        driver = {"spark.driver.port": str(port), "spark.driver.host": "127.0.0.1"}
        ran = begin(*place.command(master=master, slots_timeout="100", **driver))
        listening(port, ran, tmp_path / "cluster" / "master.log")
        program = [sys.executable, "-m", "dagflow.spark.jvm.executor_pod", "executor"]
        with process(tmp_path / "executor.log", *program, env={**kept, **variables}):
            assert ran.wait(200) == 0, ((tmp_path / "executor.log").read_text()[-3000:], ran.communicate())
    assert place.found() == place.expected()
