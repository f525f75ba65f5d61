"""KafkaWriter on librdkafka's mock cluster, with faults, and on a broker of its own process. Judged by reading the topic."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: pip install 'dagflow[test]'")

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from dagflow import SinkLaunch, StagedWindow
from dagflow.errors import LogNotWritable, LogRefused, LogUnavailable, MessageRefused
from operators import KafkaWriter
from operators.sinks.logs import kafka, publishing
from operators.sinks.logs.client import Outgoing
from operators.sinks.logs.kafka import KafkaTopic, mark_of
from tests.logs.mock_cluster import MockCluster
from tests.operators.sinks.logs.test_publishing import stage

pytestmark = pytest.mark.full

Read = dict[int, list[tuple[int, int, bytes | None]]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The mock cluster does not answer questions for the description of a topic."""
    monkeypatch.setattr(kafka, "_DESCRIBE_TIMEOUT", 0.2)
    yield
    kafka._KEPT.clear()


@pytest.fixture
def topic(mock_cluster: MockCluster, name: str) -> str:
    mock_cluster.create(name, 3)
    return name


def writer(servers: str, topic: str, **properties: Any) -> KafkaWriter[Any]:
    return KafkaWriter(servers, topic, **{"timeout": 20.0, "settle": 0.2, **properties})


def read(servers: str, topic: str, partitions: int = 3) -> Read:
    """Window, sequence and value of all messages that a plain consumer gets."""
    settings = {"bootstrap.servers": servers, "group.id": "test", "enable.partition.eof": True, "log_level": 0}
    consumer, found = Consumer(settings), {partition: [] for partition in range(partitions)}  # type: Any
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    left, deadline = set(range(partitions)), time.monotonic() + 60
    while left:
        assert time.monotonic() < deadline
        for message in consumer.consume(500, timeout=0.2):
            if message.error() is None:
                mark = mark_of(message.headers())
                found[message.partition()].append((mark.window, mark.sequence, message.value()) if mark else None)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
    consumer.close()
    return found


def assert_once_in_order(found: Read, *windows: int, messages: int) -> None:
    for partition in found.values():
        numbers = [(window, sequence) for window, sequence, _ in partition]
        assert numbers == sorted(set(numbers))
        for window in windows:
            mine = [sequence for each, sequence in numbers if each == window]
            assert mine == list(range(len(mine)))
    assert sum(map(len, found.values())) == messages * len(windows)
    assert len({value for partition in found.values() for _, _, value in partition}) == messages * len(windows)


def values(window: int, count: int = 600) -> list[str]:
    return [f"{window}.{number}" for number in range(count)]


def test_windows_are_published_in_order(mock_cluster: MockCluster, topic: str, tmp_path: Path) -> None:
    kept = writer(mock_cluster.bootstrap, topic, key="value")
    assert kept.check_store(SinkLaunch(name="shop", sink="sink")) == []
    for number in range(3):
        window = stage(tmp_path, number, values(number, 300), values(number + 10, 300), writer=kept)
        assert not kept.is_published(window)
        kept.publish(window)
        assert kept.is_published(window)
        kept.publish(window)
        kept.sweep(window)
    assert_once_in_order(read(mock_cluster.bootstrap, topic), 0, 1, 2, messages=600)
    [warning] = kept.check_store(SinkLaunch(name="shop", sink="sink"))
    assert "earlier run" in warning


def test_a_topic_that_is_missing_is_not_created(mock_cluster: MockCluster, name: str) -> None:
    with pytest.raises(LogNotWritable, match="there is no such topic"):
        writer(mock_cluster.bootstrap, name).check_store(SinkLaunch(name="shop", sink="sink"))
    assert name not in Consumer({"bootstrap.servers": mock_cluster.bootstrap, "group.id": "a"}).list_topics(timeout=30).topics


def test_keys_go_where_kafkas_own_clients_send_them(mock_cluster: MockCluster, topic: str, tmp_path: Path) -> None:
    keys = [f"key {number}" * (number % 3 + 1) for number in range(50)]
    kept = writer(mock_cluster.bootstrap, topic, key="value")
    kept.publish(stage(tmp_path, 0, keys, writer=kept))
    ours = {value: partition for partition, found in read(mock_cluster.bootstrap, topic).items() for _, _, value in found}
    theirs: dict[bytes, int] = {}

    def delivered(error: Any, message: Any) -> None:
        assert error is None
        theirs[message.key()] = message.partition()

    producer = Producer({"bootstrap.servers": mock_cluster.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(topic, b"", key, callback=delivered)
    assert producer.flush(30) == 0
    assert ours == theirs


# ----------------------------------------------------------------------------------------------------------------- faults

PASSING = [
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.LEADER_NOT_AVAILABLE,
]


@pytest.mark.parametrize("code", PASSING)
def test_errors_that_pass_lose_and_double_nothing(code: int, mock_cluster: MockCluster, topic: str, tmp_path: Path) -> None:
    kept = writer(mock_cluster.bootstrap, topic)
    mock_cluster.fail("Produce", code, 0, code, code)
    kept.publish(stage(tmp_path, 0, values(0)))
    assert_once_in_order(read(mock_cluster.bootstrap, topic), 0, messages=600)


@attrs.define
class Failed:
    """A producer that has failed for good: its first polls raise that, whatever they are for."""

    left: int = 3

    def purge(self) -> None: ...

    def __len__(self) -> int:
        return self.left

    def poll(self, timeout: float) -> None:
        self.left -= 1
        raise KafkaException(KafkaError(KafkaError._FATAL, "unable to satisfy the guarantee", fatal=True))


def test_a_producer_that_has_failed_for_good_is_forgotten_without_another_error() -> None:
    """The first failure is the one to be told."""
    failed = Failed()
    clients = kafka._Clients(KafkaTopic("127.0.0.1:1", "none"), producer=failed)
    clients.abandon()
    assert (failed.left, clients._producer) == (0, None)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, MessageRefused),
        pytest.param(KafkaError.TOPIC_AUTHORIZATION_FAILED, LogRefused, marks=pytest.mark.nightly),
        pytest.param(KafkaError.INVALID_REQUIRED_ACKS, LogUnavailable, marks=pytest.mark.nightly),
    ],
)
def test_a_refused_batch_leaves_no_gap(
    code: int, error: type[Exception], mock_cluster: MockCluster, topic: str, tmp_path: Path
) -> None:
    kept, window = writer(mock_cluster.bootstrap, topic, config={"batch.num.messages": 10}), stage(tmp_path, 0, values(0, 3_000))
    for partition in range(3):
        mock_cluster.fail_partition(topic, partition, "Produce", 0, 0, code)
    with pytest.raises(error):
        kept.publish(window)
    time.sleep(0.5)
    found = read(mock_cluster.bootstrap, topic)
    assert 0 < sum(map(len, found.values())) < 3_000
    for own in found.values():
        assert [sequence for _, sequence, _ in own] == list(range(len(own)))
    assert not kept.is_published(window)
    for _ in range(3):  # errors that were ordered for other partitions
        with contextlib.suppress(error):
            kept.publish(window)
            break
    assert kept.is_published(window)
    assert_once_in_order(read(mock_cluster.bootstrap, topic), 0, messages=3_000)


def test_a_cluster_that_is_down_is_waited_for(mock_cluster: MockCluster, topic: str, tmp_path: Path) -> None:
    kept, window = writer(mock_cluster.bootstrap, topic, timeout=2.0), stage(tmp_path, 0, values(0))
    kept.publish(window)
    second = stage(tmp_path, 1, values(1))
    for broker in (1, 2, 3):
        mock_cluster.down(broker)
    with pytest.raises(LogUnavailable, match=rf"topic '{topic}' of .* is not available .* while publishing window 1"):
        kept.publish(second)
    for broker in (1, 2, 3):
        mock_cluster.up(broker)
    retried(kept, second)
    assert_once_in_order(read(mock_cluster.bootstrap, topic), 0, 1, messages=600)


def test_a_cluster_that_goes_down_while_messages_are_sent(mock_cluster: MockCluster, topic: str, tmp_path: Path) -> None:
    kept, window = writer(mock_cluster.bootstrap, topic, timeout=2.0), stage(tmp_path, 0, values(0, 20_000))
    opened = KafkaTopic(mock_cluster.bootstrap, topic, timeout=2.0)
    with opened.connected("testing") as log:
        log.state()
        kept._publisher().publish(attrs.evolve(window, staged=()))

        def batches() -> Iterator[Outgoing]:
            for number, each in enumerate(kept._publisher()._rest(window, publishing._staged(window), _begun(), {})):
                if number == 2:
                    for broker in (1, 2, 3):
                        mock_cluster.down(broker)
                yield each

        with pytest.raises(LogUnavailable):
            log.send("shop-1f/sink", 0, (0, 0, 0), batches())
    publishing.BegunNotes(str(tmp_path), "sink").write(0, _begun())
    for broker in (1, 2, 3):
        mock_cluster.up(broker)
    retried(kept, window)
    assert_once_in_order(read(mock_cluster.bootstrap, topic), 0, messages=20_000)


def _begun() -> Any:
    return publishing.Begun(identity=None, starts=(0, 0, 0))


def retried(kept: KafkaWriter[Any], window: StagedWindow) -> None:
    """Publish as the driver does."""
    for _ in range(20):
        try:
            if not kept.is_published(window):
                kept.publish(window)
            return
        except LogUnavailable:
            time.sleep(0.2)
    raise AssertionError("it is still down")


def test_no_server_is_named(tmp_path: Path) -> None:
    kept = writer("127.0.0.1:1", "sales", timeout=1.0)
    with pytest.raises(LogUnavailable, match=r"topic 'sales' of 127.0.0.1:1: the message log is not available .*, while looking"):
        kept.check_store(SinkLaunch(name="shop", sink="sink"))


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (KafkaError.UNKNOWN_TOPIC_OR_PART, LogNotWritable, "create the topic, or correct its name"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, LogRefused, "needs WRITE, READ and DESCRIBE"),
        (KafkaError._AUTHENTICATION, LogRefused, "another user, password"),
        (KafkaError._SSL, LogRefused, "other certificates"),
        (KafkaError._TRANSPORT, LogUnavailable, "not available"),
    ],
)
def test_each_error_has_a_remedy(code: int, error: type[Exception], words: str) -> None:
    topic = KafkaTopic("localhost:9092", "sales")
    opened = kafka.OpenTopic(topic, kafka._Clients(topic), "publishing window 3")
    made = opened.error(KafkaError(code))
    assert type(made) is error
    assert words in str(made)
    opened.clients.notice(KafkaError(code))
    if error is LogRefused:  # a refused login is told by a client on its own: the question only times out
        assert type(opened.error(KafkaError(KafkaError._TIMED_OUT))) is LogRefused


def test_passwords_are_shown_nowhere() -> None:
    kept = writer("localhost:9092", "sales", config={"sasl.password": "secret"})
    kept.check()
    assert "secret" not in repr(kept) + repr(kept.log()) + kept.destination()


def test_settings_that_the_promises_rest_on_are_refused() -> None:
    with pytest.raises(ValueError, match=r"config has acks, transactional\.id: set by the writer"):
        writer("localhost:9092", "sales", config={"acks": "0", "transactional.id": "x", "linger.ms": "5"}).check()


# ----------------------------------------------------------------------------------------------- a broker of its own process


def test_on_a_broker_whose_ends_are_told_too_early(tansu: str, name: str, tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": tansu})
    [created] = admin.create_topics([NewTopic(name, 3, 1)]).values()
    created.result(30)
    kept = writer(tansu, name)
    assert kept.check_store(SinkLaunch(name="shop", sink="sink")) == []
    for number in range(2):
        window = stage(tmp_path, number, values(number))
        kept.publish(window)
        assert kept.is_published(window)
        kept.publish(window)
    assert_once_in_order(read(tansu, name), 0, 1, messages=600)
