"""Whole launches on S3: input, output, run folder and ledger, while requests fail in all ways."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow import ReaderRecord
from dagflow.errors import DagflowError, StoreRefused
from dagflow.launching.launch import launch as run
from dagflow.page.run.data import RunReader
from dagflow.page.run.report import run_report
from dagflow.runtime.events import Event, OperatorProgress
from dagflow.testing import run_dag
from operators import Filter
from tests.conformance.apps import line_filter, vectorised
from tests.storage.s3 import oracle
from tests.storage.s3.conftest import Bucket
from tests.storage.s3.proxy import Fault, Request
from tests.tiers import examples, mostly_nightly

pytestmark = pytest.mark.full
EXPECTED = Counter(b"%c%d" % (name, number) for name in b"abc" for number in range(3))


@pytest.fixture
def source(bucket: Bucket) -> str:
    for name in "abc":
        oracle.put(bucket.url(f"in/{name}.txt"), "".join(f"{name}{n}\n.{n}\n" for n in range(3)).encode())
    return bucket.url("in")


def launch(source: str, output: str, **options: Any) -> None:
    """Run to the end: two files a window."""
    run_dag(line_filter(source, output, vectorised(), blocks_threshold=2), retry_delay=0.01, **options)  # type: ignore[arg-type]


def test_everything_on_s3(bucket: Bucket, source: str) -> None:
    output = bucket.url("out")
    launch(source, output)
    assert oracle.wrong(output, EXPECTED) == []
    oracle.put(f"{source}/d.txt", b"d0\n")
    launch(source, output)
    assert oracle.wrong(output, EXPECTED + Counter([b"d0"])) == []


def slow(line: ReaderRecord[str]) -> bool:
    time.sleep(0.25)
    return not line.record.startswith(".")


@pytest.mark.parametrize("slots", mostly_nightly(("1", "2"), "2"))
def test_its_tasks_are_seen_at_work_and_its_page_has_their_times(
    bucket: Bucket, source: str, slots: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DAGFLOW_SLOTS", slots)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    output = bucket.url("out")
    application = line_filter(source, output, Filter(slow), blocks_threshold=3)  # type: ignore[arg-type]
    events: list[Event] = []
    ran = run(application, runner="local", subscribers=[events.append]).report
    at_work = [event for event in events if isinstance(event, OperatorProgress) and event.running]
    assert any(event.operators["lines"]["records_out"] > 0 for event in at_work)
    assert list(tmp_path.glob("dagflow-live-*")) == []
    report = run_report(output)
    assert (report.status, report.windows, report.tasks, report.skew) == ("done", 1, ran.tasks, ran.skew)
    assert len(RunReader(output).data()["tasks"]["rows"]) == ran.tasks


def test_a_run_that_failed_on_s3_says_why_on_its_page(bucket: Bucket, source: str) -> None:
    def keep(line: ReaderRecord[str]) -> bool:
        raise ValueError(f"no {line.record}")

    with pytest.raises(DagflowError):
        run_dag(line_filter(source, bucket.url("out"), Filter(keep)))  # type: ignore[arg-type]
    assert "ValueError: no a0" in str(run_report(bucket.url("out")).error)


def test_a_launch_on_a_store_that_ignores_conditions_is_refused(bucket: Bucket, source: str) -> None:
    bucket.proxy.schedule = lambda request: Fault.UNCONDITIONAL
    with pytest.raises(StoreRefused, match="a second record of one name was not refused"):
        launch(source, bucket.url("out"))


FAULTS = [Fault.UNSENT, Fault.LOST, Fault.SLOW_DOWN, Fault.CONFLICT, Fault.SLOW]


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    faults=st.lists(st.tuples(st.sampled_from(FAULTS), st.integers(3, 60), st.integers(0, 59)), min_size=1, max_size=4),
    disturbed=st.integers(1, 2),
)
def test_any_schedule_of_faults_gives_the_reference_output(
    bucket: Bucket, source: str, faults: list[tuple[Fault, int, int]], disturbed: int
) -> None:
    """Each fault strikes every n-th request. Launches may fail of that; the one that gets through has to be right."""

    def schedule(request: Request) -> Fault | None:
        return next((fault for fault, every, first in faults if request.number % every == first % every), None)

    output = bucket.url(f"out-{uuid.uuid4().hex}")
    bucket.proxy.forget()
    bucket.proxy.schedule = schedule
    for _ in range(disturbed):
        with contextlib.suppress(DagflowError):
            launch(source, output)
    bucket.proxy.schedule = lambda request: None
    launch(source, output)
    assert oracle.wrong(output, EXPECTED) == []
