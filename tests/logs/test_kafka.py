"""Reading Kafka: KafkaSplitterInput and KafkaBlockReader against librdkafka's mock cluster and Tansu."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dagflow import DAG, launch, plan
from dagflow.errors import DagflowError
from dagflow.ledger import read_dataset
from dagflow.testing import OperatorTask, assert_reader_is_splittable
from dagflow.testing.readers import reader_of
from operators import NatsInput, RecordWriter
from operators.logs.blocks import OffsetBlock
from operators.logs.errors import LogUnavailable, OffsetsLost, TopicMissing, TopicReplaced
from operators.logs.kafka.client import KafkaClient, KafkaLog
from operators.logs.kafka.operators import KafkaBlockReader, KafkaInput, KafkaSplitterInput
from operators.logs.protocol import LogPartition
from operators.sinks.parquet_writer import ParquetWriter
from tests.logs.mock_cluster import MockCluster

kafka = pytest.importorskip("confluent_kafka")


def produce(address: str, topic: str, values: Sequence[Any], partition: int = 0, time_ms: int = 0) -> None:
    """Produce values, the last one in a batch of its own: Tansu tells the right end then."""
    producer = kafka.Producer({"bootstrap.servers": address, "linger.ms": 5})
    for n, value in enumerate(values):
        if n == len(values) - 1:
            assert producer.flush(30) == 0
        text = value if isinstance(value, bytes) else str(value).encode()
        producer.produce(topic, text, key=b"key", partition=partition, timestamp=time_ms and time_ms + n)
    assert producer.flush(30) == 0


def create(address: str, topic: str, partitions: int = 1) -> None:
    from confluent_kafka import admin as kafka_admin

    made: Any = kafka_admin

    admin = made.AdminClient({"bootstrap.servers": address})
    admin.create_topics([made.NewTopic(topic, partitions, 1)])[topic].result(30)


def delete(address: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": address})
    admin.delete_topics([topic])[topic].result(30)


def planned(source: KafkaSplitterInput, states: Any = None) -> tuple[list[OffsetBlock], Any]:
    with OperatorTask(source, states=states) as task:
        task.emit_tuples()
        return task.emitted["blocks_metadata_output"], task.states()


def read(reader: KafkaBlockReader[Any], blocks: Sequence[OffsetBlock]) -> list[Any]:
    with OperatorTask(reader, in_batches=True) as task:
        task.give("blocks_metadata_input", list(blocks))
    return task.emitted["messages"]


def test_each_message_of_all_partitions(mock_cluster: MockCluster, name: str) -> None:
    mock_cluster.create(name, 3)
    for partition in range(3):
        produce(mock_cluster.bootstrap, name, range(partition * 100, partition * 100 + 100), partition)
    blocks, states = planned(KafkaSplitterInput(mock_cluster.bootstrap, name, block_records=30))
    assert len(blocks) == 12
    messages = read(KafkaBlockReader(int, bootstrap_servers=mock_cluster.bootstrap), blocks)
    assert sorted(message.record for message in messages) == list(range(300))
    produce(mock_cluster.bootstrap, name, [300], 1)
    later, _ = planned(KafkaSplitterInput(mock_cluster.bootstrap, name), states)
    assert [(block.partition, block.start, block.stop) for block in later] == [(1, 100, 101)]


@pytest.mark.full
def test_any_cut_and_any_steal(mock_cluster: MockCluster, name: str) -> None:
    mock_cluster.create(name)
    produce(mock_cluster.bootstrap, name, range(200))

    def block_of(path: str, start: int, stop: int) -> OffsetBlock:
        return OffsetBlock(0, name, 0, start, stop)

    assert_reader_is_splittable(
        reader_of(KafkaBlockReader(int, bootstrap_servers=mock_cluster.bootstrap), block_of=block_of),
        name,
        list(range(200)),
        bounds=(0, 200),
        effort=0.2,
    )


def test_servers_that_fail_and_leaders_that_move(mock_cluster: MockCluster, name: str) -> None:
    mock_cluster.create(name)
    mock_cluster.move(name, 0, 1)
    produce(mock_cluster.bootstrap, name, range(50))
    blocks, _ = planned(KafkaSplitterInput(mock_cluster.bootstrap, name))
    errors = kafka.KafkaError.NOT_LEADER_FOR_PARTITION, kafka.KafkaError.REQUEST_TIMED_OUT
    mock_cluster.fail("Fetch", *errors)

    def move() -> None:
        mock_cluster.down(1)
        mock_cluster.move(name, 0, 2)

    moving = threading.Timer(0.2, move)
    moving.start()
    messages = read(KafkaBlockReader(int, bootstrap_servers=mock_cluster.bootstrap), blocks)
    moving.join()
    assert [message.record for message in messages] == list(range(50))


@pytest.mark.full
def test_servers_that_stay_away(mock_cluster: MockCluster, name: str) -> None:
    mock_cluster.create(name)
    produce(mock_cluster.bootstrap, name, range(5))
    blocks, _ = planned(KafkaSplitterInput(mock_cluster.bootstrap, name))
    for broker in (1, 2, 3):
        mock_cluster.down(broker)
    with pytest.raises(LogUnavailable, match=rf"reading {name}\[0\] from offset 0 on") as raised:
        read(KafkaBlockReader(int, bootstrap_servers=mock_cluster.bootstrap, timeout=1.5), blocks)
    assert raised.value.is_transient


def test_no_server() -> None:
    source = KafkaSplitterInput("127.0.0.1:1", "events", timeout=0.5)
    with OperatorTask(source) as task, pytest.raises(LogUnavailable, match=r"127\.0\.0\.1:1.*looking for topics") as raised:
        source.check_inputs(task.context)
    assert "refused" in str(raised.value)


def test_no_topic(mock_cluster: MockCluster, name: str) -> None:
    mock_cluster.create(name)
    source = KafkaSplitterInput(mock_cluster.bootstrap, [name, "other"])
    with OperatorTask(source) as task, pytest.raises(TopicMissing, match="no topic 'other'"):
        source.check_inputs(task.context)


def test_retention(mock_cluster: MockCluster, name: str) -> None:
    mock_cluster.create(name)
    produce(mock_cluster.bootstrap, name, range(10))
    blocks, _ = planned(KafkaSplitterInput(mock_cluster.bootstrap, name))
    mock_cluster.delete_records(name, 0, before=4)
    with pytest.raises(OffsetsLost, match=rf"{name}\[0\] no longer has the offsets 0 to 3"):
        read(KafkaBlockReader(int, bootstrap_servers=mock_cluster.bootstrap), blocks)
    messages = read(KafkaBlockReader(int, bootstrap_servers=mock_cluster.bootstrap, on_lost="skip"), blocks)
    assert [message.record for message in messages] == [4, 5, 6, 7, 8, 9]


def test_a_topic_that_was_created_again(tansu: str, name: str) -> None:
    create(tansu, name)
    produce(tansu, name, [1])
    _, states = planned(KafkaSplitterInput(tansu, name))
    delete(tansu, name)
    create(tansu, name)
    produce(tansu, name, [1, 2, 3])
    with pytest.raises(TopicReplaced, match="deleted and created again"):
        planned(KafkaSplitterInput(tansu, name), states)


def test_a_pattern_and_a_time(mock_cluster: MockCluster, name: str) -> None:
    for suffix in "ab":
        mock_cluster.create(name + suffix)
        produce(mock_cluster.bootstrap, name + suffix, range(3), time_ms=1_700_000_000_000)
    blocks, _ = planned(KafkaSplitterInput(mock_cluster.bootstrap, f"^{name}.*"))
    assert [(block.topic, block.start, block.stop) for block in blocks] == [(f"{name}a", 0, 3), (f"{name}b", 0, 3)]
    with OperatorTask(KafkaSplitterInput(mock_cluster.bootstrap, f"{name}a", event_time="timestamp")) as task:
        task.emit_tuples()
        operator: Any = task.operator
        assert operator.watermark() == 1_700_000_000_002_000


def test_the_offsets_of_a_time_are_asked_for_in_milliseconds_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def answer(self: KafkaClient, places: Sequence[Any], spec: Any) -> dict[Any, Future[Any]]:
        asked.append(spec._value)
        futures: dict[Any, Future[Any]] = {place: Future() for place in places}
        for place, future in futures.items():
            future.set_result(SimpleNamespace(offset=7 if place.partition == 0 else -1))
        return futures

    monkeypatch.setattr(KafkaClient, "_ask_offsets", answer)
    client = KafkaLog("kafka:9092").connect()
    partitions = [LogPartition("events", number, first=0, end=20) for number in (0, 1)]
    assert client.offsets_at(partitions, 1_700_000_000_000_001) == [7, 20]
    assert asked == [1_700_000_000_001]


# Whole runs


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (KafkaInput("localhost:9092", "events"), "ReaderRecord[bytes] batches"),
        (NatsInput("nats://localhost", topics="events"), "ReaderRecord[bytes] batches"),
        (KafkaInput("localhost:9092", "events", convert_to_record=bytes.decode), "ReaderRecord[Any] records"),
    ],
)
def test_messages_that_are_not_converted_are_bytes_in_batches(source: Any, kind: str) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        messages = dag.add_module("source", source).messages
        dag.add_stream("read", messages, dag.add_operator("out", RecordWriter("out")).input)

    [stream] = [line for line in str(plan(populate_dag, {})).splitlines() if line.startswith("  read ")]
    assert kind in " ".join(stream.split())


def copying(address: str, topic: str, folder: Path, port: str = "batches", **properties: Any) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_module("source", KafkaInput(address, topic, **properties))
        out = dag.add_operator("out", ParquetWriter(str(folder / "out")))
        dag.add_stream("read", getattr(source, port), out.input)

    return populate_dag


def run(address: str, topic: str, folder: Path, **properties: Any) -> None:
    settings = {"run_folder": str(folder / "run"), "operator.source.splitter.block_records": 7}
    launch(copying(address, topic, folder, **properties), settings, runner="local").wait()


def test_each_message_once_over_launches(mock_cluster: MockCluster, name: str, tmp_path: Path) -> None:
    mock_cluster.create(name, 2)
    for first in (0, 20, 20):
        if first or not (tmp_path / "out").exists():
            produce(mock_cluster.bootstrap, name, range(first, first + 10), partition=first // 20)
        run(mock_cluster.bootstrap, name, tmp_path)
    rows = read_dataset(tmp_path / "out").to_table().to_pylist()
    found = sorted((row["partition"], row["offset"], int(row["value"])) for row in rows)
    assert found == [(0, n, n) for n in range(10)] + [(1, n, 20 + n % 10) for n in range(20)]
    entries = "".join(path.read_text() for path in (tmp_path / "out" / "_dagflow").rglob("*") if path.is_file())
    assert f"{name}[0] < 10, {name}[1] < 20" in entries


def test_a_problem_of_the_log_is_told_without_a_traceback(tmp_path: Path) -> None:
    started = time.monotonic()
    settings = {"run_folder": str(tmp_path / "run"), "operator.source.splitter.timeout": 0.5}
    with pytest.raises(DagflowError, match="not available"):
        launch(copying("127.0.0.1:1", "events", tmp_path), settings, runner="local").wait()
    assert time.monotonic() - started < 60


def test_positions_are_written_to_a_group_for_those_who_watch_it(mock_cluster: MockCluster, name: str, tmp_path: Path) -> None:
    mock_cluster.create(name)
    produce(mock_cluster.bootstrap, name, range(10))
    settings = {"run_folder": str(tmp_path / "run"), "operator.source.splitter.commit_group": "watched"}
    launch(copying(mock_cluster.bootstrap, name, tmp_path), settings, runner="local").wait()
    consumer = kafka.Consumer({"bootstrap.servers": mock_cluster.bootstrap, "group.id": "watched"})
    [committed] = consumer.committed([kafka.TopicPartition(name, 0)], timeout=10)
    consumer.close()
    assert committed.offset == 10


@pytest.mark.full
def test_on_spark(mock_cluster: MockCluster, name: str, tmp_path: Path) -> None:
    mock_cluster.create(name, 3)
    for partition in range(3):
        produce(mock_cluster.bootstrap, name, range(partition * 100, partition * 100 + 100), partition)
    settings = {"run_folder": str(tmp_path / "run"), "operator.source.splitter.block_records": 20}
    launch(copying(mock_cluster.bootstrap, name, tmp_path), settings, runner="spark").wait()
    rows = read_dataset(tmp_path / "out").to_table().to_pylist()
    assert sorted(int(row["value"]) for row in rows) == list(range(300))
