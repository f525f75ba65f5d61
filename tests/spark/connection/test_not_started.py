"""Sessions that cannot be made: which error, with which cause and remedy. No Spark is started."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dagflow.errors import ClusterUnreachable, NoFreeSlots, SparkNotStarted
from dagflow.spark import runner as room
from dagflow.spark.connection.not_started import not_started
from dagflow.spark.connection.reach import check_answers
from dagflow.spark.runner import SparkRunner

EXITED = RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)


def test_a_java_that_does_not_start_with_the_memory_says_so() -> None:
    told = not_started("local[2]", EXITED, {"spark.driver.memory": "lots"})
    assert str(told).startswith(
        "Spark could not be started at local[2]: Invalid maximum heap size: -Xmxlots\n  help: check the Java in /"
    )
    assert told.exit_code == 3


def test_a_java_that_dies_at_its_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'Could not reserve enough space' >&2\nexit 1\n")
    program.chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.1"\nMODULES="java.base jdk.incubator.vector"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    told = str(not_started("local[2]", EXITED, {}))
    assert told.splitlines() == [
        "Spark could not be started at local[2]: Could not reserve enough space",
        f"  help: check the Java in {tmp_path}, and spark.driver.memory",
    ]


@pytest.mark.parametrize(
    ("variable", "error", "told"),
    [
        ("SPARK_HOME", FileNotFoundError(2, "No such file or directory", "/x/spark-submit"), "check SPARK_HOME, or unset it"),
        ("PYSPARK_SUBMIT_ARGS", EXITED, "check PYSPARK_SUBMIT_ARGS: it ends with the word pyspark-shell"),
        ("PYSPARK_SUBMIT_ARGS", ValueError("No closing quotation"), "No closing quotation\n  help: check PYSPARK_SUBMIT_ARGS"),
        ("NOTHING", EXITED, "its JVM has ended at once"),
        ("NOTHING", RuntimeError("a setting is wrong"), "a setting is wrong\n  help: check the master and the settings spark.*"),
    ],
)
def test_the_remedy_names_what_is_set(monkeypatch: pytest.MonkeyPatch, variable: str, error: Exception, told: str) -> None:
    monkeypatch.setenv(variable, "set")
    found = not_started("local[2]", error, {})
    assert isinstance(found, SparkNotStarted)
    assert told in str(found)


def test_a_cluster_that_does_not_answer_is_another_matter() -> None:
    assert isinstance(not_started("spark://a:1", RuntimeError("All masters are unresponsive"), {}), ClusterUnreachable)


def test_a_server_that_does_not_speak_the_protocol_is_told_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"sc://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ClusterUnreachable, match="it does not speak gRPC, or not within"):
            check_answers(address, seconds=0.3)


class Full:
    """A link to a cluster that never has a free slot; waits until it is cancelled."""

    spark = None
    address = "spark://full:7077"
    in_one_process = False
    ui = None

    def __init__(self) -> None:
        self.is_cancelled = room.threading.Event()

    def labelled(self, group: str, name: str) -> Any:
        return room.contextlib.nullcontext()

    def slots(self) -> int:
        self.is_cancelled.wait(60)
        raise RuntimeError("cancelled")

    def cancel(self, group: str) -> None:
        self.is_cancelled.set()

    def is_lost(self) -> bool:
        return False

    def stop(self) -> None: ...


def test_a_cluster_without_free_slots_is_told_in_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(room, "connect", lambda *_, **__: (Full(), True))
    runner = SparkRunner(slots_timeout=0.05)
    with ThreadPoolExecutor(1) as pool, pytest.raises(NoFreeSlots) as caught:
        pool.submit(runner.open, "test", str(tmp_path)).result(30)
    runner.close()
    assert str(caught.value).startswith("Spark at spark://full:7077 had no free slot for 0.05 s\n  help: ")
    assert caught.value.exit_code == 3
