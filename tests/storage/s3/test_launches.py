"""Whole launches on S3: input, output, run folder and ledger, while requests fail in all ways."""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow.errors import DagflowError, StoreRefused
from dagflow.testing import run_dag
from tests.conformance.apps import line_filter, vectorised
from tests.storage.s3 import oracle
from tests.storage.s3.conftest import Bucket
from tests.storage.s3.proxy import Fault, Request
from tests.tiers import examples

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
