"""Records on S3: exactly one writer of a name wins, whatever becomes of requests and answers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow.errors import StoreRefused
from dagflow.storage import open_store, probe
from tests.storage.s3.conftest import Bucket
from tests.storage.s3.proxy import Fault, Request
from tests.tiers import examples

pytestmark = pytest.mark.full


def first_of(kind: str, fault: Fault) -> Callable[[Request], Fault | None]:
    """A schedule: the first request of a kind meets a fault."""
    met: list[Request] = []

    def schedule(request: Request) -> Fault | None:
        if request.kind != kind or met:
            return None
        met.append(request)
        return fault

    return schedule


@pytest.mark.parametrize("fault", [Fault.UNSENT, Fault.LOST, Fault.SLOW_DOWN, Fault.CONFLICT, Fault.SLOW])
@pytest.mark.parametrize("attempts", ["1", "5"], ids=["s3fs asks again", "botocore asks again"])
def test_a_writer_knows_its_own_record_after_any_fault(
    bucket: Bucket, fault: Fault, attempts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", attempts)
    store = open_store(bucket.url("run"))
    bucket.proxy.schedule = first_of("create", fault)
    assert store.create("plan/0", b"mine")
    assert store.read("plan/0") == b"mine"
    assert not store.create("plan/0", b"another's")
    assert store.names("plan/") == ["plan/0"]


@pytest.mark.parametrize("fault", [Fault.UNSENT, Fault.LOST, Fault.SLOW_DOWN, Fault.CONFLICT])
def test_a_writer_that_lost_is_told_so_after_any_fault(bucket: Bucket, fault: Fault) -> None:
    store = open_store(bucket.url("run"))
    assert store.create("plan/0", b"another's")
    bucket.proxy.schedule = first_of("create", fault)
    assert not store.create("plan/0", b"mine")
    assert store.read("plan/0") == b"another's"


FAULTS = st.sampled_from([None, None, None, Fault.UNSENT, Fault.LOST, Fault.SLOW_DOWN, Fault.CONFLICT, Fault.SLOW])


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(faults=st.lists(FAULTS, min_size=1, max_size=20), name=st.uuids())
def test_of_writers_that_meet_faults_exactly_one_wins(bucket: Bucket, faults: list[Fault | None], name: object) -> None:
    bucket.proxy.forget()
    bucket.proxy.schedule = lambda request: faults[request.number] if request.number < len(faults) else None
    store = open_store(bucket.url("run"))
    with ThreadPoolExecutor(3) as pool:
        won = list(pool.map(lambda number: store.create(f"race/{name}", b"writer %d" % number), range(3)))
    assert won.count(True) == 1
    assert store.read(f"race/{name}") == b"writer %d" % won.index(True)


def test_names_are_listed_by_any_beginning_and_removed_together(bucket: Bucket) -> None:
    store = open_store(bucket.url("run"))
    names = [f"reports/{window:02d}.{task}" for window in range(4) for task in range(3)]
    for name in names:
        assert store.create(name, b"x")
    bucket.proxy.forget()
    assert store.names("reports/") == names
    assert store.names("reports/02") == [name for name in names if name.startswith("reports/02")]
    assert store.names("none/") == []
    assert dict(bucket.proxy.counts()) == {"list": 3}
    bucket.proxy.forget()
    store.discard_all([*names[:6], "reports/none"])
    assert dict(bucket.proxy.counts()) == {"delete many": 1}
    assert store.names() == names[6:]


def test_a_store_that_removes_one_object_at_a_time(bucket: Bucket) -> None:
    bucket.proxy.schedule = lambda request: Fault.NOT_IMPLEMENTED if request.kind == "delete many" else None
    store = open_store(bucket.url("run"))
    probe(store)
    for name in "abc":
        assert store.create(name, b"x")
    store.discard_all(["a", "b", "none"])
    assert store.names() == ["c"]


def test_a_record_is_read_by_one_request(bucket: Bucket) -> None:
    store = open_store(bucket.url("run"))
    assert store.create("empty", b"")
    assert store.create("full", b"x" * 1000)
    bucket.proxy.forget()
    assert [store.read(name) for name in ("empty", "full", "none")] == [b"", b"x" * 1000, None]
    assert dict(bucket.proxy.counts()) == {"get": 3}


@pytest.mark.parametrize("fault", [None, Fault.UNSENT, Fault.LOST, Fault.SLOW_DOWN, Fault.SLOW])
def test_each_range_of_a_record_is_read_by_one_request(bucket: Bucket, fault: Fault | None) -> None:
    store, data = open_store(bucket.url("run")), bytes(range(256))
    assert store.create("state/0 %C3%A4?", data)
    bucket.proxy.forget()
    bucket.proxy.schedule = (lambda request: None) if fault is None else first_of("get", fault)
    ranges = [(start, start + 20) for start in range(0, 256, 16)]
    assert store.read_ranges("state/0 %C3%A4?", ranges) == [data[start:stop] for start, stop in ranges]
    assert bucket.proxy.counts() == {"get": len(ranges) + (fault not in (None, Fault.SLOW))}
    assert sum("X-Amz-Signature" in request.query for request in bucket.proxy.requests) >= len(ranges), "all by one URL"
    assert store.read_ranges("state/1", ranges) is None


def test_a_store_that_keeps_its_promises_passes_its_trial(bucket: Bucket) -> None:
    store = open_store(bucket.url("run"))
    probe(store)
    assert store.names() == []


def test_a_store_that_ignores_conditions_is_refused_by_name(bucket: Bucket) -> None:
    bucket.proxy.schedule = lambda request: Fault.UNCONDITIONAL
    store = open_store(bucket.url("run"))
    with pytest.raises(StoreRefused, match=f"s3://{bucket.name}/run.*a second record of one name was not refused"):
        probe(store)
    assert store.names() == []
