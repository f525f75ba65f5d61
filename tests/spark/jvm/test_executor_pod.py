"""The command line of an executor in a pod."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dagflow.spark.jvm.executor_pod import command

POD = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_EXECUTOR_POD_NAME": "orders-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    **{f"SPARK_JAVA_OPT_{number}": f"-Dn={number}" for number in (10, 2, 0)},
}


def test_the_variables_of_the_pod_become_arguments() -> None:
    line = command(POD, "/jdk/bin/java", "/spark")
    assert line[:8] == [
        "/jdk/bin/java",
        "-Dn=0",
        "-Dn=2",
        "-Dn=10",
        "-Xms1024m",
        "-Xmx1024m",
        "-cp",
        "/opt/spark/conf:/spark/jars/*",
    ]
    assert line[8].endswith(".KubernetesExecutorBackend")
    given = dict(zip(line[9::2], line[10::2], strict=True))
    assert given["--driver-url"] == POD["SPARK_DRIVER_URL"]
    assert (given["--executor-id"], given["--cores"], given["--podName"]) == ("3", "2", "orders-exec-3")


@pytest.mark.parametrize(
    ("arguments", "told"), [([], "with the argument `executor`"), (["executor"], "'SPARK_EXECUTOR_MEMORY' is not set")]
)
def test_without_a_pod_it_says_what_it_is_for(arguments: list[str], told: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "dagflow.spark.jvm.executor_pod", *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert told in ran.stderr
    assert "Traceback" not in ran.stderr
