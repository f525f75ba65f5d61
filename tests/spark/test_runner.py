"""The runner on a real session: labels, cancelling, failures, and what stays of a user's session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from dagflow import ReaderRecord
from dagflow.errors import DagflowError, OperatorFailed
from dagflow.launching.launch import launch
from dagflow.runtime.runner import TasksDied
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job, RunOptions, TaskSpec
from dagflow.spark.runner import SparkRunner
from dagflow.testing import run_dag
from operators import Filter
from tests.cluster.waiting import until
from tests.conformance.apps import line_filter, lines_in, vectorised

pytestmark = pytest.mark.spark


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abcd":
        (folder / f"{name}.txt").write_text(f"{name}1\n.{name}\n{name}2\n")
    return folder


@pytest.fixture
def runner(spark_session: Any, tmp_path: Path) -> Iterator[SparkRunner]:
    made = SparkRunner()
    made.open("test", str(tmp_path / "run"))
    yield made
    made.close()


def descriptions(spark_session: Any) -> list[str]:
    """The jobs that Spark's UI would show; from its own store, since the UI itself is off."""
    jobs = spark_session.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(n).description() for n in range(jobs.size())]
    return [description.get() for description in found if description.isDefined()]


@pytest.mark.full
def test_jobs_are_named_after_application_window_and_operators(spark_session: Any, source: Path, tmp_path: Path) -> None:
    def evening_news(dag: Any, conf: Any) -> None:
        line_filter(source, tmp_path / "out", vectorised(), blocks_threshold=2)(dag, conf)

    run_dag(evening_news, runner="spark")
    found = descriptions(spark_session)
    for window in (0, 1):
        assert f"evening_news: window {window}: lines → m0 → sink" in found


@pytest.mark.full
def test_a_run_in_the_background_uses_a_session_and_leaves_it(spark_session: Any, source: Path, tmp_path: Path) -> None:
    run = launch(
        line_filter(source, tmp_path / "out", vectorised()), runner="spark", once=False, max_windows=1, durability="process"
    )
    assert run.wait(120).status == "done"
    assert sum(lines_in(tmp_path / "out").values()) == 8
    assert spark_session.range(3).count() == 3


@pytest.mark.full
def test_a_stopped_run_ends_soon_and_the_next_one_goes_on(spark_session: Any, source: Path, tmp_path: Path) -> None:
    output, hold, seen = tmp_path / "out", tmp_path / "hold", tmp_path / "seen"
    hold.touch()

    def keep(line: ReaderRecord[str], hold: str = str(hold), seen: str = str(seen)) -> bool:
        if line.record == "b1":
            Path(seen).touch()
            while Path(hold).exists():
                time.sleep(0.02)
        return not line.record.startswith(".")

    application = line_filter(source, output, Filter(keep), blocks_threshold=2)
    run = launch(application, runner="spark", once=False, max_windows=2, durability="process")
    until(seen.exists)
    asked = time.monotonic()
    run.stop()
    assert run.wait(60).status == "interrupted"
    assert time.monotonic() - asked < 10
    assert not output.exists() or lines_in(output).total() == 0
    until(lambda: not list(spark_session.sparkContext.statusTracker().getActiveJobsIds()), seconds=10)
    hold.unlink()
    assert run_dag(application, runner="spark").windows == 2
    assert sorted(lines_in(output)) == sorted(f"{name}{n}".encode() for name in "abcd" for n in (1, 2))


def test_errors_of_user_code_come_without_spark(spark_session: Any, source: Path, tmp_path: Path) -> None:
    def keep(line: ReaderRecord[str]) -> bool:
        return int(line.record) > 0

    with pytest.raises(OperatorFailed) as caught:
        run_dag(line_filter(source, tmp_path / "out", Filter(keep)), runner="spark")
    told = str(caught.value)
    assert "ValueError: invalid literal for int() with base 10: 'a1'" in told or "base 10: '" in told
    assert "org.apache" not in told
    assert "in keep: return int(line.record) > 0" in told


def test_errors_of_the_users_own_kind_come_as_they_are(spark_session: Any, source: Path, tmp_path: Path) -> None:
    class TooEarly(DagflowError):
        def message(self) -> str:
            return "too early"

    def keep(line: ReaderRecord[str]) -> bool:
        raise TooEarly

    with pytest.raises(DagflowError, match="too early"):
        run_dag(line_filter(source, tmp_path / "out", Filter(keep)), runner="spark")


def job(folder: Path, program: bytes = b"") -> Job:
    spec = TaskSpec(window=0, epoch="r", stage="s0", partition=0, partitions=1, options=RunOptions(durable=False))
    name = "app: window 0: nothing"
    return Job(window=0, epoch="r", name=name, tasks=(spec,), programs={"s0": program}, run_folder=str(folder), durable=False)


@pytest.mark.full
def test_what_is_cancelled_before_it_has_begun_does_not_run(runner: SparkRunner, tmp_path: Path) -> None:
    futures: list[Future[list[TaskOutcome]]] = [runner.start(job(tmp_path)) for _ in range(3)]
    runner.cancel()
    assert all(future.done() for future in futures)
    for future in futures:
        error = future.exception()
        assert error is None or isinstance(error, TasksDied)
    assert isinstance(runner.start(job(tmp_path)).result(60)[0].error, OperatorFailed), "later jobs run"
