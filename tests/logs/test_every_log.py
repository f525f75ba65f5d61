"""The laws of the protocol of logs, on each of them: in memory, NATS JetStream, Kafka."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from dagflow import DAG, launch
from dagflow.errors import DagflowError
from dagflow.testing import Collector, OperatorTask, assert_reader_is_splittable
from dagflow.testing.readers import reader_of
from operators.logs.blocks import OffsetBlock
from operators.logs.errors import OffsetsLost, TopicMissing, TopicReplaced
from operators.logs.protocol import LogClient, LogPartition, OffsetsGone, Topics
from tests.logs.any_log import AnyLog, InKafka, InMemory, InNats


@pytest.fixture(params=["memory", pytest.param("nats", marks=pytest.mark.full), pytest.param("kafka", marks=pytest.mark.full)])
def any_log(request: pytest.FixtureRequest, name: str) -> AnyLog:
    """A topic without messages."""
    if request.param == "memory":
        return InMemory(name)
    if request.param == "kafka":
        return InKafka(name, request.getfixturevalue("mock_cluster"))
    pytest.importorskip("nats", reason="nats-py is not installed: pip install 'dagflow[nats]'")
    return InNats(name, request.getfixturevalue("shared_nats").url)


@pytest.fixture
def client(any_log: AnyLog) -> Iterator[LogClient]:
    connected = any_log.log.connect()
    yield connected
    connected.close()


def partition_of(any_log: AnyLog, client: LogClient) -> LogPartition:
    [partition] = client.partitions(Topics((any_log.topic,)))
    assert (partition.topic, partition.partition) == (any_log.topic, 0)
    return partition


def fill(any_log: AnyLog, client: LogClient, count: int) -> LogPartition:
    """Append messages whose values are their numbers from 0."""
    any_log.append(*(b"%d" % number for number in range(count)))
    return partition_of(any_log, client)


def read(any_log: AnyLog, client: LogClient, start: int, stop: int) -> list[tuple[int, bytes]]:
    """Read a range of offsets by a new stream."""
    stream = client.open(any_log.topic, 0, start, None)
    messages: list[tuple[int, bytes]] = []
    while (batch := stream.read(stop)) is not None:
        assert batch.num_rows > 0
        assert batch.column("offset")[-1].as_py() < stream.position <= stop
        messages += zip(batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True)
    assert stream.position >= stop
    stream.close()
    return messages


def test_partitions_grow(any_log: AnyLog, client: LogClient) -> None:
    empty = partition_of(any_log, client)
    assert empty.first == empty.end
    full = fill(any_log, client, 10)
    assert (full.first, full.end, full.identity) == (empty.first, empty.end + 10, empty.identity)
    assert client.partitions(Topics((f"^{any_log.topic[:-1]}.",))) == [full]
    assert client.partitions(Topics(("no-such-topic",))) == []
    assert client.partitions(Topics(("^no-such-topic.*",))) == []


def test_all_messages_come_once_and_in_order(any_log: AnyLog, client: LogClient) -> None:
    full = fill(any_log, client, 30)
    everything = [(full.first + number, b"%d" % number) for number in range(30)]
    assert read(any_log, client, full.first, full.end) == everything
    for cut in (full.first, full.first + 1, full.first + 17, full.end):
        assert read(any_log, client, full.first, cut) + read(any_log, client, cut, full.end) == everything


def test_a_stop_that_moves_and_a_position_that_is_sought(any_log: AnyLog, client: LogClient) -> None:
    full = fill(any_log, client, 30)
    first = full.first
    stream = client.open(any_log.topic, 0, first, full.identity)

    def offsets(stop: int) -> list[int]:
        batch = stream.read(first + stop)
        return [] if batch is None else [offset - first for offset in batch.column("offset").to_pylist()]

    def all_offsets(stop: int) -> list[int]:
        found: list[int] = []
        while more := offsets(stop):
            found += more
        return found

    assert all_offsets(3) == [0, 1, 2]
    assert offsets(3) == []
    assert all_offsets(9) == list(range(3, 9))
    stream.seek(first + 5)
    assert all_offsets(8) == [5, 6, 7]
    stream.seek(first + 20)
    assert stream.position == first + 20
    assert all_offsets(22) == [20, 21]
    stream.seek(first + 25)
    stream.seek(first + 23)
    assert all_offsets(30) == list(range(23, 30))
    stream.close()


@pytest.mark.parametrize("gone", [{3}, {0}, {9}, {3, 4, 5}, {7, 8, 9}, set(range(1, 10)), {2, 4, 6, 8}], ids=str)
def test_gaps(any_log: AnyLog, client: LogClient, gone: Collection[int]) -> None:
    if not any_log.has_gaps:
        pytest.skip("the test double has no gaps")
    full = fill(any_log, client, 11)
    any_log.remove([full.first + number for number in gone])
    left = [(full.first + number, b"%d" % number) for number in range(11) if number not in gone]
    start = partition_of(any_log, client).first
    assert read(any_log, client, start, full.end) == left
    for cut in range(start, full.end + 1):
        assert read(any_log, client, start, cut) + read(any_log, client, cut, full.end) == left


def test_a_range_in_which_all_messages_were_removed(any_log: AnyLog, client: LogClient) -> None:
    if not any_log.has_gaps:
        pytest.skip("the test double has no gaps")
    full = fill(any_log, client, 10)
    any_log.remove(range(full.first + 4, full.first + 8))
    assert read(any_log, client, full.first + 4, full.first + 8) == []
    assert read(any_log, client, full.first + 5, full.first + 9) == [(full.first + 8, b"8")]


def test_messages_that_retention_has_deleted(any_log: AnyLog, client: LogClient) -> None:
    full = fill(any_log, client, 10)
    any_log.delete_before(full.first + 4)
    assert partition_of(any_log, client).first == full.first + 4
    stream = client.open(any_log.topic, 0, full.first, full.identity)
    with pytest.raises(OffsetsGone) as gone:
        stream.read(full.first + 6)
    assert gone.value.first == full.first + 4
    stream.seek(gone.value.first)
    batch = stream.read(full.first + 6)
    assert batch is not None
    assert batch.column("value").to_pylist() == [b"4", b"5"]
    any_log.delete_before(full.end)
    assert (partition_of(any_log, client).first, partition_of(any_log, client).end) == (full.end, full.end)
    stream.close()


def test_retention_deletes_before_a_stream_that_is_open(any_log: AnyLog, client: LogClient) -> None:
    full = fill(any_log, client, 10)
    stream = client.open(any_log.topic, 0, full.first, full.identity)
    any_log.delete_before(full.first + 4)
    offsets: list[int] = []
    is_gone = False
    try:
        while batch := stream.read(full.end):
            offsets += batch.column("offset").to_pylist()
    except OffsetsGone:
        is_gone = True
    stream.close()
    # A client may have fetched messages before. What it has not fetched is gone, and is never skipped without a word.
    assert offsets == list(range(full.first, stream.position))
    assert is_gone or stream.position == full.end


def test_a_topic_that_is_created_again_is_another_one(any_log: AnyLog, client: LogClient) -> None:
    if not any_log.has_identity:
        pytest.skip("the log has no mark of that kind")
    before = fill(any_log, client, 3)
    any_log.recreate()
    after = fill(any_log, client, 5)
    assert before.identity is not None
    assert after.identity not in (None, before.identity)


def test_the_first_offset_from_a_time_on(any_log: AnyLog, client: LogClient) -> None:
    if not any_log.has_times:
        pytest.skip("the test double ignores times")
    any_log.append(b"0", b"1", b"2")
    time.sleep(0.01)
    now = time.time_ns() // 1000
    time.sleep(0.01)
    any_log.append(b"3", b"4")
    full = partition_of(any_log, client)
    assert client.offsets_at([full, full], now) == [full.first + 3] * 2
    assert client.offsets_at([full], 0) == [full.first]
    assert client.offsets_at([full], now + 10**12) == [full.end]


def test_a_reader_may_be_cut_and_robbed_anywhere(any_log: AnyLog, client: LogClient) -> None:
    full = fill(any_log, client, 25)
    gone = {4, 5, 6, 13, 24} if any_log.has_gaps else set()
    any_log.remove([full.first + number for number in gone])

    def block_of(path: str, start: int, stop: int) -> OffsetBlock:
        return OffsetBlock(0, any_log.topic, 0, start, stop, identity=full.identity)

    values = [b"%d" % number for number in range(25) if number not in gone]
    make_reader = reader_of(any_log.reader(), block_of=block_of)
    assert_reader_is_splittable(make_reader, any_log.topic, values, bounds=(full.first, full.end), effort=0.05)


# ---------------------------------------------------------------------------------------------------------------- operators


def run(any_log: AnyLog, folder: Any, messages: Collector[Any], **properties: Any) -> None:
    """Launch an application once: all new messages of the topic, two blocks a window."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        splitter = dag.add_operator("splitter", any_log.splitter(block_records=4, window_blocks=2, **properties))
        reader = dag.add_operator("reader", any_log.reader(min_readers=2))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("messages", reader.messages, dag.add_operator("seen", messages).input)

    launch(populate_dag, runner="local", run_folder=str(folder), durability="process")


def values(messages: Collector[Any]) -> list[int]:
    return sorted(int(each.record) for each in messages.records)


def test_launches_read_each_message_once(any_log: AnyLog, client: LogClient, tmp_path: Any) -> None:
    fill(any_log, client, 21)
    first: Collector[Any] = Collector()
    run(any_log, tmp_path / "run", first)
    assert values(first) == list(range(21))
    any_log.append(b"21", b"22")
    second: Collector[Any] = Collector()
    run(any_log, tmp_path / "run", second)
    assert values(second) == [21, 22]


def test_what_was_lost_between_launches_is_an_error(any_log: AnyLog, client: LogClient, tmp_path: Any) -> None:
    full = fill(any_log, client, 5)
    run(any_log, tmp_path / "run", Collector())
    fill(any_log, client, 5)
    any_log.delete_before(full.end + 2)
    with pytest.raises(OffsetsLost) as lost:
        run(any_log, tmp_path / "run", Collector())
    assert (lost.value.start, lost.value.stop) == (full.end, full.end + 2)
    rest: Collector[Any] = Collector()
    run(any_log, tmp_path / "run", rest, on_lost="skip")
    assert values(rest) == [2, 3, 4]


def test_a_topic_that_was_created_again_is_an_error(any_log: AnyLog, client: LogClient, tmp_path: Any) -> None:
    fill(any_log, client, 5)
    run(any_log, tmp_path / "run", Collector())
    any_log.recreate()
    fill(any_log, client, 5 if any_log.has_identity else 3)
    with pytest.raises(TopicReplaced):
        run(any_log, tmp_path / "run", Collector())


def test_a_topic_that_is_not_there(any_log: AnyLog, tmp_path: Any) -> None:
    any_log.topic = "no-such-topic"
    with pytest.raises(DagflowError) as raised:
        run(any_log, tmp_path / "run", Collector())
    assert isinstance(raised.value, TopicMissing)


def test_a_message_is_found_again_by_its_offset(any_log: AnyLog, client: LogClient) -> None:
    full = fill(any_log, client, 12)
    reader = any_log.reader()
    with OperatorTask(reader):
        block = OffsetBlock(0, any_log.topic, 0, full.first, full.end, identity=full.identity)
        assert reader.record_at(block, full.first + 7) == b"7"
        assert reader.record_at(block, full.end - 1) == b"11"
