"""Launches where listings are old: what was written is not listed yet, and what was removed still is."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow.errors import DagflowError
from dagflow.ledger import Ledger
from dagflow.runtime.run_folder.verify import verify_run_folder
from dagflow.testing import run_dag
from tests.conformance.apps import line_filter, vectorised
from tests.storage.s3 import oracle
from tests.storage.s3.conftest import Bucket
from tests.storage.s3.proxy import Fault, Request
from tests.tiers import examples, mostly_nightly

pytestmark = pytest.mark.full


def lagging(bucket: Bucket, writes: int, *, within: str = "/_dagflow/", seed: int | None = None) -> None:
    """Let the listings of some folders be so many writes old; with a seed, each a number of its own up to that."""
    rng = random.Random(seed)

    def lag(request: Request) -> int:
        prefix = f"/{request.query.get('prefix', '')}/"
        if within not in prefix or "/probe/" in prefix:  # the trial waits for its records, and nothing is written meanwhile
            return 0
        return writes if seed is None else rng.randrange(writes + 1)

    bucket.proxy.lag = lag


class Case:
    """Launches that read what is put into a folder, two files a window, and keep the records of three windows."""

    def __init__(self, bucket: Bucket, name: str = "case") -> None:
        self.bucket = bucket
        self.name = name
        self.output = bucket.url(f"{name}/out")
        self.expected: Counter[bytes] = Counter()
        self.count = 0

    def put(self, files: int) -> None:
        for _ in range(files):
            name, self.count = f"f{self.count:03d}", self.count + 1
            oracle.put(self.bucket.url(f"{self.name}/in/{name}.txt"), f"{name}-0\n.\n{name}-1\n".encode())
            self.expected.update([f"{name}-0".encode(), f"{name}-1".encode()])

    def launch(self, **options: Any) -> None:
        source: Any = self.bucket.url(f"{self.name}/in")
        application = line_filter(source, self.output, vectorised(), blocks_threshold=2)  # type: ignore[arg-type]
        run_dag(application, retry_delay=0.01, retain_windows=3, **options)

    def wrong(self) -> list[str]:
        """Return what `dagflow verify` finds in old listings, and all that is wrong once listings are up to date."""
        found = [f"verify of old listings: {problem}" for problem in Ledger.open(self.output).verify().problems]
        found += [f"verify of old listings: {problem}" for problem in verify_run_folder(f"{self.output}/_dagflow").problems]
        lag, self.bucket.proxy.lag = self.bucket.proxy.lag, None
        found += oracle.wrong(self.output, self.expected)
        found += [str(problem) for problem in verify_run_folder(f"{self.output}/_dagflow").problems]
        self.bucket.proxy.lag = lag
        return found


@pytest.fixture
def case(bucket: Bucket) -> Case:
    return Case(bucket)


@pytest.mark.parametrize("lag", mostly_nightly((1, 2, 3, 5, 8, 13, 30, 100)))
def test_launches_write_each_row_once(bucket: Bucket, case: Case, lag: int) -> None:
    lagging(bucket, lag)
    for files in (7, 1, 0, 4):
        case.put(files)
        case.launch()
    lagging(bucket, 0)
    case.launch()
    assert case.wrong() == []


@pytest.mark.parametrize("lag", mostly_nightly((1, 5, 13, 10_000)))
def test_starting_over_leaves_nothing_that_is_not_listed(bucket: Bucket, case: Case, lag: int) -> None:
    case.put(4)
    case.launch()
    lagging(bucket, lag)
    case.put(1)
    case.launch()
    case.launch(fresh=True)
    assert case.wrong() == []
    case.put(1)
    case.launch()
    assert case.wrong() == []


def _denied(first: int, request: Request) -> Fault | None:
    """Refuse all from a request on, but let the launch release its lock: this process goes on, which holds it."""
    return Fault.DENIED if request.number >= first and "/_lock/" not in request.path else None


STEPS = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 5)),
    st.tuples(st.just("launch"), st.just(0)),
    st.tuples(st.just("fails"), st.integers(20, 160)),
    st.tuples(st.just("fresh"), st.just(0)),
)


def some_launches(bucket: Bucket, steps: list[tuple[str, int]], lag: int, seed: int) -> int:
    """Check that all rows are there once, and return how many launches failed.

    Each listing is as old as chance will have it. Some launches can do nothing any more from some request on.
    """
    case = Case(bucket, uuid.uuid4().hex)
    lagging(bucket, lag, seed=seed)
    case.put(3)
    failed = 0
    for step, number in steps:
        if step == "put":
            case.put(number)
        elif step == "fails":
            first = len(bucket.proxy.requests) + number
            bucket.proxy.schedule = partial(_denied, first)
            try:
                case.launch()
            except DagflowError:
                failed += 1
            bucket.proxy.schedule = lambda request: None
        else:
            case.launch(fresh=step == "fresh")
    case.launch()
    assert case.wrong() == []
    return failed


@pytest.mark.parametrize("lag", mostly_nightly([10, 40], 10))
def test_some_launches_with_listings_of_any_age(bucket: Bucket, lag: int) -> None:
    steps = [("fails", 60), ("put", 2), ("launch", 0), ("put", 4), ("fails", 100), ("fresh", 0), ("put", 1)]
    assert some_launches(bucket, steps, lag, seed=1) == 2


@pytest.mark.nightly
@settings(max_examples=examples(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=2, max_size=6), lag=st.sampled_from([3, 10, 40, 200]), seed=st.integers(0, 1 << 16))
def test_any_launches_with_listings_of_any_age(bucket: Bucket, steps: list[tuple[str, int]], lag: int, seed: int) -> None:
    some_launches(bucket, steps, lag, seed)
