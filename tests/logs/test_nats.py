"""Streams of JetStream: what is not as in other logs, servers that are away or refuse, and the threads of clients."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dagflow.testing import OperatorTask
from operators import NatsBlockReader, NatsSplitterInput
from operators.logs.blocks import OffsetBlock
from operators.logs.errors import LogRefused, LogUnavailable, TopicReplaced
from operators.logs.nats.connection import JetStream
from operators.logs.nats.connection import NatsServer as Server
from operators.logs.nats.streams import NatsClient, NatsLog
from operators.logs.protocol import Topics
from tests.logs import brokers
from tests.logs.any_log import InNats, with_jetstream
from tests.logs.brokers import NatsServer

pytest.importorskip("nats", reason="nats-py is not installed: pip install 'dagflow[nats]'")
pytestmark = pytest.mark.full


@pytest.fixture
def stream(shared_nats: NatsServer, name: str) -> InNats:
    """A stream without messages."""
    return InNats(name, shared_nats.url)


Connect = Callable[..., NatsClient]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Make clients of a server, which are closed at the end."""
    clients: list[NatsClient] = []

    def connected(url: str, *subjects: str, timeout: float = 2.0, batch_bytes: int = 1 << 20) -> NatsClient:
        clients.append(NatsLog(Server(url, timeout=timeout), subjects, batch_bytes).connect())
        return clients[-1]

    yield connected
    for client in clients:
        client.close()


def read(client: NatsClient, topic: str, start: int = 1, stop: int | None = None) -> list[dict[str, Any]]:
    [partition] = client.partitions(Topics((topic,)))
    opened = client.open(topic, 0, start, partition.identity)
    messages = []
    while (batch := opened.read(partition.end if stop is None else stop)) is not None:
        messages += batch.to_pylist()
    opened.close()
    return messages


# ----------------------------------------------------------------------------------------------------------------- messages


def test_subjects_are_keys_and_headers_and_times_come_along(stream: InNats, connect: Connect) -> None:
    before = time.time()
    stream.append(b"one", subject="new", headers={"Trace": "7", "User": "ada"})
    stream.append(b"")
    one, empty = read(connect(stream.url), stream.topic)
    assert (one["key"], one["value"], one["topic"], one["partition"], one["offset"]) == (
        f"{stream.topic}.new".encode(),
        b"one",
        stream.topic,
        0,
        1,
    )
    assert one["headers"] == [{"name": "Trace", "value": b"7"}, {"name": "User", "value": b"ada"}]
    assert before - 1 < one["timestamp"].replace(tzinfo=datetime.UTC).timestamp() < time.time() + 1
    assert (empty["value"], empty["headers"]) == (b"", [])


@pytest.mark.parametrize(("filters", "kept"), [((), "abcab"), (("a",), "aa"), (("a", "c"), "aca"), (("x",), "")])
def test_filters_of_subjects_leave_gaps(stream: InNats, connect: Connect, filters: tuple[str, ...], kept: str) -> None:
    for subject in "abcab":
        stream.append(subject.encode(), subject=subject)
    client = connect(stream.url, *(f"{stream.topic}.{each}" for each in filters))
    assert b"".join(each["value"] for each in read(client, stream.topic)).decode() == kept
    assert [each["value"] for each in read(client, stream.topic, 3, 5)] == [b for b in (b"c", b"a") if b.decode() in kept]


def test_messages_larger_than_a_batch(stream: InNats, connect: Connect) -> None:
    values = [b"a" * 10, b"b" * 5000, b"c" * 10, b"d" * 9000, b"e" * 9000, b"f"]
    stream.append(*values)
    assert [each["value"] for each in read(connect(stream.url, batch_bytes=1000), stream.topic)] == values


def test_more_messages_than_a_request_takes(stream: InNats, connect: Connect) -> None:
    async def publish(jetstream: Any) -> None:
        for number in range(25_000):
            await jetstream._nc.publish(f"{stream.topic}.a", b"%d" % number)
        await jetstream._nc.flush()

    with_jetstream(stream.url, publish)
    client = connect(stream.url)
    deadline = time.monotonic() + 30
    while client.partitions(Topics((stream.topic,)))[0].end <= 25_000 and time.monotonic() < deadline:
        time.sleep(0.02)
    messages = read(client, stream.topic)
    assert [each["offset"] for each in messages] == list(range(1, 25_001))
    assert messages[-1]["value"] == b"24999"


def test_limits_that_overtake_a_reader_are_noticed(stream: InNats, connect: Connect) -> None:
    """The messages behind the gap may have been pulled before; none of them is returned as if the gap were one of subjects."""
    from operators.logs.protocol import OffsetsGone

    stream.append(*(b"x" * 100 for _ in range(50)))
    client = connect(stream.url, batch_bytes=2000)
    opened = client.open(stream.topic, 0, 1, None)
    first = opened.read(51)
    assert first is not None
    assert first.num_rows < 30
    stream.delete_before(41)
    with pytest.raises(OffsetsGone) as gone:
        list(iter(lambda: opened.read(51), None))
    assert gone.value.first == 41
    assert opened.position == first.num_rows + 1
    opened.close()


def test_a_stream_whose_messages_are_deleted_when_read_is_refused(shared_nats: NatsServer, name: str, connect: Connect) -> None:
    async def create(jetstream: Any) -> None:
        await jetstream.add_stream(name=name, subjects=[f"{name}.*"], retention="workqueue")

    with_jetstream(shared_nats.url, create)
    with pytest.raises(LogRefused, match="retention policy 'workqueue'"):
        connect(shared_nats.url).partitions(Topics((name,)))


def test_a_stream_that_is_created_again_while_it_is_read(stream: InNats, connect: Connect) -> None:
    stream.append(b"1", b"2")
    client = connect(stream.url)
    [partition] = client.partitions(Topics((stream.topic,)))
    stream.recreate()
    stream.append(b"other", b"other")
    with pytest.raises(TopicReplaced, match="deleted and created again"):
        client.open(stream.topic, 0, 1, partition.identity).read(3)
    with_jetstream(stream.url, lambda jetstream: jetstream.delete_stream(stream.topic))
    with pytest.raises(TopicReplaced, match="it was deleted"):
        client.open(stream.topic, 0, 1, partition.identity).read(3)


def test_a_consumer_that_the_server_has_deleted_is_made_again(stream: InNats, connect: Connect) -> None:
    stream.append(*(b"x" * 500 for _ in range(10)))
    client = connect(stream.url, batch_bytes=1500)
    opened = client.open(stream.topic, 0, 1, None)
    offsets: list[int] = []

    async def delete_all(jetstream: Any) -> None:
        for each in await jetstream.consumers_info(stream.topic):
            await jetstream.delete_consumer(stream.topic, each.name)

    while (batch := opened.read(11)) is not None:
        offsets += batch.column("offset").to_pylist()
        with_jetstream(stream.url, delete_all)
    assert offsets == list(range(1, 11))
    opened.close()


def test_no_consumer_is_left_behind(stream: InNats, connect: Connect) -> None:
    stream.append(b"1", b"2", b"3")
    read(connect(stream.url), stream.topic)
    assert with_jetstream(stream.url, lambda jetstream: jetstream.consumers_info(stream.topic)) == []


# ------------------------------------------------------------------------------------------------------------------ servers


def test_a_server_that_is_killed_and_comes_back(nats_server: NatsServer, name: str, connect: Connect) -> None:
    stream = InNats(name, nats_server.url)
    stream.append(*(b"x" * 500 for _ in range(40)))
    client = connect(stream.url, batch_bytes=1500, timeout=30)
    opened = client.open(name, 0, 1, None)
    offsets: list[int] = []
    for _ in range(3):
        batch = opened.read(41)
        assert batch is not None
        offsets += batch.column("offset").to_pylist()
        nats_server.kill()
        with ThreadPoolExecutor(1) as other:
            waiting = other.submit(opened.read, 41)
            time.sleep(0.3)
            nats_server.start()
            batch = waiting.result()
        assert batch is not None
        offsets += batch.column("offset").to_pylist()
    while (batch := opened.read(41)) is not None:
        offsets += batch.column("offset").to_pylist()
    assert offsets == list(range(1, 41))
    opened.close()


def test_a_server_that_is_away(nats_server: NatsServer, connect: Connect) -> None:
    nats_server.stop()
    client = connect(nats_server.url, timeout=0.3)
    with pytest.raises(
        LogUnavailable, match=r"nats://127\.0\.0\.1:\d+: the message log is not available \(.*Connect call failed"
    ):
        client.partitions(Topics(("events",)))


def test_a_server_without_jetstream(tmp_path: Path, connect: Connect) -> None:
    with (
        brokers.nats(tmp_path, jetstream=False) as server,
        pytest.raises(LogUnavailable, match="start the server with --jetstream"),
    ):
        connect(server.url, timeout=0.5).partitions(Topics(("events",)))


USERS = """
authorization {
  users = [
    {user: ada, password: secret}
    {user: bob, password: secret, permissions: {publish: "other.>", subscribe: "_INBOX.>"}}
  ]
}
"""


def test_users_and_permissions(tmp_path: Path, connect: Connect, name: str) -> None:
    with brokers.nats(tmp_path, USERS) as server:
        address = server.url.removeprefix("nats://")
        stream = InNats(name, f"nats://ada:secret@{address}")
        stream.append(b"1")
        assert len(read(connect(stream.url), name)) == 1
        with pytest.raises(LogRefused, match=r"(?i)authorization") as refused:
            connect(f"nats://ada:wrong@{address}").partitions(Topics((name,)))
        assert "wrong" not in str(refused.value)
        with pytest.raises(LogRefused, match=r"(?i)permissions violation .*\$JS\.API\.STREAM\.INFO") as refused:
            connect(f"nats://bob:secret@{address}").partitions(Topics((name,)))
        assert "needs permission to publish" in str(refused.value)
        assert "secret" not in str(refused.value)


# ------------------------------------------------------------------------------------------------------------------ threads


def test_no_thread_is_left_behind(stream: InNats, connect: Connect) -> None:
    before = set(threading.enumerate())
    client = connect(stream.url)
    client.partitions(Topics((stream.topic,)))
    made = [each for each in threading.enumerate() if each.name == "dagflow-nats" and each not in before]
    assert made
    client.close()
    assert not [each for each in made if each.is_alive()]
    assert client.partitions(Topics((stream.topic,)))  # it connects again
    del client


def test_a_forked_process_has_a_connection_of_its_own(stream: InNats) -> None:
    stream.append(b"1")
    jetstream = JetStream(Server(stream.url))
    request = f"STREAM.INFO.{stream.topic}"
    jetstream.request(request, "asking")

    def ask() -> None:
        jetstream.request(request, "asking")
        jetstream.close()
        os._exit(7)

    process = multiprocessing.get_context("fork").Process(target=ask)
    process.start()
    process.join(20)
    assert process.exitcode == 7
    assert jetstream.request(request, "asking")["state"]["messages"] == 1  # the child has not touched it
    jetstream.close()


# ---------------------------------------------------------------------------------------------------------------- operators


def test_passwords_are_shown_nowhere() -> None:
    url = "nats://ada:secret@localhost"
    for operator in (NatsSplitterInput(servers=url, topics="events"), NatsBlockReader(servers=url)):
        assert "secret" not in f"{operator!r} {operator.log!r} {operator.log.place}"
        assert "localhost" in operator.log.place


@pytest.mark.parametrize(
    ("properties", "problem"),
    [({"servers": " "}, "servers is empty"), ({"subjects": "a..b"}, "subjects has 'a..b'"), ({"topics": ()}, "topics is empty")],
)
def test_properties_that_no_server_can_have(properties: dict[str, Any], problem: str) -> None:
    operator = NatsSplitterInput(**{"servers": "nats://localhost", "topics": "events", **properties})
    with pytest.raises(ValueError, match=problem):
        operator.check()


def test_poisoned_messages_are_routed_with_stream_and_sequence(stream: InNats) -> None:
    stream.append(b"1", b"no number", b"3")
    reader: NatsBlockReader[int] = NatsBlockReader(int, servers=stream.url, on_error="route")
    with OperatorTask(reader) as task:
        task.give("blocks_metadata_input", [OffsetBlock(0, stream.topic, 0, 1, 4)])
    assert [each.record for each in task.emitted["messages"]] == [1, 3]
    [error] = task.emitted["errors"]
    assert (error.file_path, error.position) == (f"{stream.topic}[0]", 2)
