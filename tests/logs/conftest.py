"""Message brokers for the tests of logs. Each test has topics, subjects and streams of its own: see `name`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests import servers
from tests.logs import brokers
from tests.logs.brokers import NatsServer
from tests.logs.mock_cluster import MockCluster
from tests.logs.relay import Relay, relay


@pytest.fixture
def name() -> str:
    """A name for a topic or a stream that no other test uses."""
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def mock_cluster() -> Iterator[MockCluster]:
    """A Kafka cluster of three brokers, with faults to order."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: pip install 'dagflow[test]'")
    cluster = MockCluster()
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def tansu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Kafka broker that all tests share."""
    with brokers.tansu(tmp_path_factory.mktemp("tansu")) as address:
        yield address


@pytest.fixture
def relayed_tansu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    """A relay before a Kafka broker of the test's own."""
    port = servers.free_port()
    with relay(port) as made, brokers.tansu(tmp_path_factory.mktemp("tansu"), port, made.port):
        yield made


@pytest.fixture(scope="session")
def shared_nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A NATS server that all tests share: none of them may stop it."""
    with brokers.nats(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A NATS server of the test's own, to kill and to start again."""
    with brokers.nats(tmp_path_factory.mktemp("nats"), durable=True) as server:
        yield server
