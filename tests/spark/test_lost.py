"""The JVM dies under a living driver: a session of ours is replaced, another one is told to be lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from pyspark.errors import PySparkException

from dagflow.errors import OperatorFailed, SparkLost
from dagflow.runtime.runner import TasksDied
from dagflow.runtime.stage.program import Job, RunOptions, TaskSpec
from dagflow.spark import runner as room
from dagflow.spark.connection.links import ClassicLink
from dagflow.spark.runner import SparkRunner
from tests.conformance.apps import lines_in

ROOT = Path(__file__).parents[2]


class Frame:
    """An RDD: no answers from a living JVM, an exception from a dead one."""

    def __init__(self, is_dead: bool) -> None:
        self.is_dead = is_dead

    def map_partitions(self, function: Any) -> Frame:
        return self

    def collect(self) -> list[Any]:
        if self.is_dead:
            raise ConnectionRefusedError(111, "Connection refused")
        return []

    mapPartitions = map_partitions  # noqa: N815  # Spark's name


class FakeContext:
    """A SparkContext, as far as the link asks it."""

    master = "local[2]"

    def __init__(self) -> None:
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        if name == "defaultParallelism":
            if self.is_dead:
                raise ConnectionRefusedError(111, "Connection refused")
            return 2
        if name == "parallelize":
            return lambda *_: Frame(self.is_dead)
        return {"uiWebUrl": None}.get(name, lambda *arguments, **options: None)


class Sessions:
    """Stands in for `connect`: gives one session after the other."""

    def __init__(self, ours: bool) -> None:
        self.made: list[FakeContext] = []
        self.forgotten: list[Any] = []
        self._ours = ours

    def connect(self, application: str, **wanted: Any) -> tuple[ClassicLink, bool]:
        context = FakeContext()
        self.made.append(context)
        conf = SimpleNamespace(get=lambda _, default=None: default)
        return ClassicLink(context, SimpleNamespace(conf=conf, stop=lambda: None)), self._ours


def job(window: int, folder: Path) -> Job:
    spec = TaskSpec(window=window, epoch="r", stage="s0", partition=0, partitions=1, options=RunOptions(durable=False))
    return Job(window=window, epoch="r", name=f"w{window}", tasks=(spec,), programs={}, run_folder=str(folder), durable=False)


def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ours: bool) -> tuple[SparkRunner, Sessions]:
    sessions = Sessions(ours)
    monkeypatch.setattr(room, "connect", sessions.connect)
    monkeypatch.setattr(room, "forget", sessions.forgotten.append)
    runner = SparkRunner()
    runner.open("app", str(tmp_path))
    return runner, sessions


def test_a_session_of_ours_is_replaced_for_the_next_attempt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runner, sessions = opened(monkeypatch, tmp_path, ours=True)
    assert runner.start(job(0, tmp_path)).result(10) == []
    sessions.made[0].is_dead = True
    both = [runner.start(job(window, tmp_path)) for window in (1, 2)]
    with pytest.raises(
        TasksDied, match=r"Spark at local\[2\] has ended \(.*Connection refused.*\); a new session takes its place"
    ):
        both[0].result(10)
    runner.cancel()
    assert isinstance(both[1].exception(10), TasksDied)
    for window in (1, 2):
        assert runner.start(job(window, tmp_path)).result(10) == []
    assert len(sessions.made) == 2
    assert len(sessions.forgotten) == 1
    runner.close()


def test_a_session_of_somebody_else_is_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runner, sessions = opened(monkeypatch, tmp_path, ours=False)
    sessions.made[0].is_dead = True
    with pytest.raises(SparkLost, match="has ended while it worked on 'w0'"):
        runner.start(job(0, tmp_path)).result(10)
    assert len(sessions.made) == 1
    runner.close()


class Refused(PySparkException):
    def getCondition(self) -> str:  # noqa: N802  # Spark's name
        return "SPARK_JOB_CANCELLED"


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_body_is_not_blamed_for_a_session_that_is_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_dead: bool) -> None:
    """A job in a session that ends fails with a condition of Spark's too."""

    def chained(spark: Any, job: Job, mark: object) -> Any:
        raise Refused("[SPARK_JOB_CANCELLED] SparkContext was shut down")

    runner, sessions = opened(monkeypatch, tmp_path, ours=False)
    monkeypatch.setattr(room, "chained", chained)
    monkeypatch.setattr(room, "outcomes", lambda *_: [])
    monkeypatch.setattr(room.PinnedSettings, "pin", lambda *_: None)
    sessions.made[0].is_dead = is_dead
    body: Any = SimpleNamespace(operator="body", window=0)
    told = runner.start(attrs.evolve(job(0, tmp_path), levels=2, transforms={"s0": body})).exception(10)
    assert type(told) is (SparkLost if is_dead else OperatorFailed)
    runner.close()


PROGRAM = """
import json, os, signal, sys
from dagflow.launching.launch import launch
from operators import RecordWriter
from tests.conformance.apps import chain

heard = []

def hear(event):
    if event.kind in ("window_retried", "window_decided"):
        heard.append((event.kind, event.window))
    if event.kind == "window_decided" and event.window == 0:
        from pyspark import SparkContext
        os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)

source, output = sys.argv[1:]
ran = launch(chain(source, sink=RecordWriter(output), blocks_threshold=1), master="local[2]", subscribers=[hear], retry_delay=0.1)
print(json.dumps([ran.report.status, heard]))
"""


@pytest.mark.nightly
@pytest.mark.spark
def test_the_jvm_is_killed_in_the_middle_of_a_run(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for name in "abcd":
        (source / f"{name}.txt").write_text(f"{name}\n")
    command = [sys.executable, "-c", PROGRAM, str(source), str(tmp_path / "out")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)
    assert ran.returncode == 0, ran.stderr
    status, heard = json.loads(ran.stdout.splitlines()[-1])
    assert status == "done"
    assert [window for kind, window in heard if kind == "window_decided"] == [0, 1, 2, 3]
    assert "window_retried" in [kind for kind, _ in heard]
    assert lines_in(tmp_path / "out") == {b"a": 1, b"b": 1, b"c": 1, b"d": 1}


@pytest.mark.parametrize("name", ["ui", "grows", "rebalancing_obstacle"])
def test_a_session_that_ends_between_two_calls_is_told_to_be_lost(name: str) -> None:
    def refuse(*arguments: Any) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")

    class Context:
        master = "local[2]"
        uiWebUrl = defaultParallelism = property(refuse)  # noqa: N815  # Spark's name

    runner = SparkRunner()
    runner._link = ClassicLink(Context(), SimpleNamespace(conf=SimpleNamespace(get=refuse)))
    with pytest.raises(SparkLost, match="Connection refused"):
        getattr(runner, name)
