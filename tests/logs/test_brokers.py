"""The brokers of the tests do what the tests of logs rest on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.logs.any_log import with_jetstream
from tests.logs.brokers import NatsServer
from tests.logs.mock_cluster import MockCluster

kafka = pytest.importorskip("confluent_kafka")


def produce(address: str, topic: str, count: int, first: int = 0) -> None:
    producer = kafka.Producer({"bootstrap.servers": address})
    for number in range(first, first + count):
        producer.produce(topic, str(number).encode(), partition=0)
    assert producer.flush(30) == 0


def consumed(address: str, topic: str, start: int, count: int, seconds: float = 30, **config: Any) -> list[tuple[int, bytes]]:
    """The offsets and values of the messages from an offset; fewer than `count` after so many seconds."""
    config = {"bootstrap.servers": address, "group.id": "tests", "enable.auto.commit": False, **config}
    consumer = kafka.Consumer({"auto.offset.reset": "error", **config})
    consumer.assign([kafka.TopicPartition(topic, 0, start)])
    messages: list[Any] = []
    deadline = time.monotonic() + seconds
    while len(messages) < count and time.monotonic() < deadline:
        messages += [message for message in consumer.consume(count - len(messages), 0.1) if message.error() is None]
    consumer.close()
    return [(message.offset(), message.value()) for message in messages]


def expected(start: int, stop: int) -> list[tuple[int, bytes]]:
    return [(number, str(number).encode()) for number in range(start, stop)]


@pytest.mark.full
def test_mock_cluster_delivers_through_errors_a_broker_down_and_a_new_leader(mock_cluster: MockCluster, name: str) -> None:
    mock_cluster.create(name, partitions=2)
    mock_cluster.move(name, 0, 1)
    produce(mock_cluster.bootstrap, name, 100)
    mock_cluster.fail("Fetch", kafka.KafkaError.NOT_LEADER_FOR_PARTITION, kafka.KafkaError.REQUEST_TIMED_OUT)
    mock_cluster.fail_partition(name, 0, "Fetch", kafka.KafkaError.KAFKA_STORAGE_ERROR)
    assert consumed(mock_cluster.bootstrap, name, 10, 90) == expected(10, 100)
    mock_cluster.down(1)
    assert consumed(mock_cluster.bootstrap, name, 0, 1, seconds=1) == []
    mock_cluster.move(name, 0, 2)
    assert consumed(mock_cluster.bootstrap, name, 90, 10) == expected(90, 100)
    mock_cluster.up(1)


def test_mock_cluster_loses_records_as_retention_does(mock_cluster: MockCluster, name: str) -> None:
    mock_cluster.create(name)
    produce(mock_cluster.bootstrap, name, 10)
    mock_cluster.delete_records(name, 0, before=4)
    consumer = kafka.Consumer({"bootstrap.servers": mock_cluster.bootstrap, "group.id": "tests"})
    assert consumer.get_watermark_offsets(kafka.TopicPartition(name, 0), timeout=10) == (4, 10)
    consumer.close()
    assert consumed(mock_cluster.bootstrap, name, 4, 6) == expected(4, 10)
    mock_cluster.delete(name)


@pytest.mark.full
def test_mock_cluster_answers_late(mock_cluster: MockCluster, name: str) -> None:
    mock_cluster.create(name)
    mock_cluster.move(name, 0, 1)
    mock_cluster.delay(1, 300)
    started = time.monotonic()
    produce(mock_cluster.bootstrap, name, 1)
    assert time.monotonic() - started >= 0.3


def test_mock_cluster_says_what_it_refuses(mock_cluster: MockCluster) -> None:
    with pytest.raises(AssertionError, match="refuses topic_delete"):
        mock_cluster.delete("no-such-topic")


@pytest.mark.full
def test_tansu_delivers_from_an_offset(tansu: str, name: str) -> None:
    produce(tansu, name, 50)
    assert consumed(tansu, name, 20, 30) == expected(20, 50)


@pytest.mark.full
def test_nats_keeps_its_streams_when_it_is_killed_and_drops_doubles(nats_server: NatsServer, name: str) -> None:
    pytest.importorskip("nats")

    async def publish(stream: Any) -> list[bool]:
        await stream.add_stream(name=name, subjects=[f"{name}.>"])
        answers = [await stream.publish(f"{name}.a", b"%d" % i, headers={"Nats-Msg-Id": str(i % 3)}) for i in range(5)]
        return [bool(answer.duplicate) for answer in answers]

    async def values(stream: Any) -> list[bytes]:
        return [(await stream.get_msg(name, sequence)).data for sequence in (1, 2, 3)]

    assert with_jetstream(nats_server.url, publish) == [False, False, False, True, True]
    nats_server.kill()
    nats_server.start()
    assert with_jetstream(nats_server.url, values) == [b"0", b"1", b"2"]


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends children of a parent that died, on Linux")
@pytest.mark.parametrize("broker", ["tansu", "nats"])
def test_a_broker_ends_with_the_tests_however_these_end(broker: str, tmp_path: Any) -> None:
    code = (
        "import pathlib, sys, time\nfrom tests.logs import brokers\n"
        f"with brokers.{broker}(pathlib.Path(sys.argv[1])) as it: print(getattr(it, 'url', it), flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        port = int(tests.stdout.readline().strip().rpartition(":")[2])
        assert is_open(port)
        os.kill(tests.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while is_open(port) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_open(port)


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
