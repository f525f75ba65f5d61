"""`dagflow launch` of applications, killed at random moments and launched again until it gets through.

The short form has a fixed seed. The long form, which `make chaos` runs, draws one and prints it; CHAOS_SEED sets it for both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import cases, postgres, streams
from tests.chaos.cases import APPLICATIONS, Place
from tests.chaos.kills import SEED, kill_at_random
from tests.chaos.objects import RemoteSeries, in_bucket
from tests.chaos.postgres import FailingServer, failing
from tests.cluster.servers import standalone
from tests.logs.brokers import NatsServer
from tests.logs.mock_cluster import MockCluster
from tests.storage.s3.conftest import Bucket

pytestmark = [pytest.mark.chaos, pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")]
SPARK = [pytest.mark.spark]
CLUSTER = [pytest.mark.spark, pytest.mark.cluster]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if request.param == "cluster":
        with standalone(tmp_path_factory.mktemp("cluster")) as master:
            yield cases.cluster(master)
    else:
        yield {"local": cases.local, "processes": cases.processes, "spark": cases.spark}[request.param]()


SHORT = [
    pytest.param("local", "line_filter", ["driver", "pause", "driver", "driver"]),
    pytest.param("local", "orders", ["driver"] * 3),
    pytest.param("local", "joined", ["driver"] * 3),
    pytest.param("processes", "line_filter", ["python", "driver", "server"]),
    pytest.param("processes", "joined", ["python", "driver"]),
    pytest.param("spark", "word_count", ["python", "driver"], marks=SPARK),
]
"""In CI. The other applications and places are in the long form only."""
LONG = [
    *(pytest.param("local", name, 30) for name in APPLICATIONS),
    *(pytest.param("processes", name, 30) for name in APPLICATIONS),
    *(pytest.param("spark", name, 25, marks=SPARK) for name in APPLICATIONS),
    *(pytest.param("cluster", name, 15, marks=CLUSTER) for name in APPLICATIONS),
]


@pytest.fixture
def told(seed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Kills, and tells the figures at once: a long run may be stopped before its end."""

    def kill(place: Place, name: str, kinds: list[str] | int, **more: int) -> None:
        figures = kill_at_random(APPLICATIONS[name](tmp_path, **more), place, seed, kinds)
        with capsys.disabled():
            print(f"\n{SEED}={seed}, {name} on {place.name}: {figures}")

    return kill


FAULTS = ["down", "lost_commit", "cut", "disk_full", "serialization", "locked"]


@pytest.fixture
def failing_server(server: Any) -> Iterator[FailingServer]:
    with failing(server) as made:
        yield made


@pytest.fixture
def told_of_a_server(
    failing_server: FailingServer, seed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., None]:
    """Kills launches, and lets the server of `apps/orders` fail."""

    def kill(place: Place, kinds: list[str] | int, **more: int) -> None:
        figures = kill_at_random(postgres.orders(failing_server, tmp_path, **more), place, seed, kinds)
        with capsys.disabled():
            print(f"\n{SEED}={seed}, orders in PostgreSQL on {place.name}: {figures}")

    return kill


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", ["local"], indirect=True)
def test_some_failures_of_a_server(place: Place, told_of_a_server: Callable[..., None]) -> None:
    told_of_a_server(place, [*FAULTS, "driver", *FAULTS], files=4)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("place", "kinds"), [("local", 600), ("processes", 400)], indirect=["place"])
def test_a_thousand_kills_and_failures_of_a_server(place: Place, kinds: int, told_of_a_server: Callable[..., None]) -> None:
    told_of_a_server(place, kinds)


@pytest.fixture
def told_of_a_bucket(bucket: Bucket, seed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Kills launches whose input and output are in a bucket."""

    def kill(place: Place, name: str, kinds: list[str] | int, **more: int) -> None:
        application = in_bucket(APPLICATIONS[name](tmp_path, **more), bucket)
        figures = kill_at_random(application, place, seed, kinds, partial(RemoteSeries, bucket))
        with capsys.disabled():
            print(f"\n{SEED}={seed}, {name} on S3, {place.name}: {figures}")

    return kill


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", ["processes"], indirect=True)
def test_some_kills_on_an_object_store(place: Place, told_of_a_bucket: Callable[..., None]) -> None:
    told_of_a_bucket(place, "line_filter", ["driver", "python", "server"], files=4)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("place", "name", "kinds"),
    [
        pytest.param("processes", "line_filter", 100),
        pytest.param("processes", "access_log", 100),
        pytest.param("spark", "line_filter", 50, marks=SPARK),
    ],
    indirect=["place"],
)
def test_hundreds_of_kills_on_an_object_store(place: Place, name: str, kinds: int, told_of_a_bucket: Callable[..., None]) -> None:
    told_of_a_bucket(place, name, kinds)


@pytest.fixture
def told_of_a_broker(
    request: pytest.FixtureRequest, seed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., None]:
    """Kills launches that read a log, and lets its broker fail."""

    def kill(place: Place, log: str, kinds: list[str] | int, **more: int) -> None:
        if log == "nats":
            server: NatsServer = request.getfixturevalue("nats_server")
            application = streams.stream(server, tmp_path, **more)
        else:
            servers: MockCluster = request.getfixturevalue("mock_cluster")
            application = streams.topic(servers, request.getfixturevalue("relayed_tansu"), tmp_path, **more)
        figures = kill_at_random(application, place, seed, kinds)
        with capsys.disabled():
            print(f"\n{SEED}={seed}, {application.name} on {place.name}: {figures}")

    return kill


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("place", "log", "kinds"),
    [
        ("processes", "nats", ["broker", "python", "driver", "broker", "driver", "broker_pause"]),
        ("processes", "kafka", ["broker", "cut", "leaders", "driver", "requests"]),
    ],
    indirect=["place"],
)
def test_some_kills_of_launches_and_brokers(
    place: Place, log: str, kinds: list[str], told_of_a_broker: Callable[..., None]
) -> None:
    told_of_a_broker(place, log, kinds, count=320)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("log", ["nats", "kafka"])
@pytest.mark.parametrize(("place", "kinds"), [("local", 150), ("processes", 150)], indirect=["place"])
def test_hundreds_of_kills_of_launches_and_brokers(
    place: Place, log: str, kinds: int, told_of_a_broker: Callable[..., None]
) -> None:
    told_of_a_broker(place, log, kinds)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("place", "name", "kinds"), SHORT, indirect=["place"])
def test_some_kills(place: Place, name: str, kinds: list[str], told: Callable[..., None]) -> None:
    told(place, name, kinds, files=4)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("place", "name", "kinds"), LONG, indirect=["place"])
def test_two_hundred_kills(place: Place, name: str, kinds: int, told: Callable[..., None]) -> None:
    told(place, name, kinds)
