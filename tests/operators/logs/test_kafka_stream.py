"""KafkaStream on a consumer that plays librdkafka: gaps, ends of partitions, errors, and what was read ahead."""

from __future__ import annotations

import itertools
from itertools import pairwise
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

kafka = pytest.importorskip("confluent_kafka")

from operators.logs.errors import LogRefused, LogUnavailable  # noqa: E402
from operators.logs.kafka.settings import ClientSettings  # noqa: E402
from operators.logs.kafka.stream import KafkaStream  # noqa: E402
from operators.logs.protocol import OffsetsGone  # noqa: E402


@attrs.frozen
class Message:
    """A message of confluent-kafka, or an error in its place."""

    at: int
    problem: Any = None
    text: bytes | None = b""
    time: int = 1000

    def error(self) -> Any:
        return self.problem

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes | None:
        return self.text

    def key(self) -> bytes:
        return b"k"

    def timestamp(self) -> tuple[int, int]:
        return (1 if self.time >= 0 else 0), self.time

    def headers(self) -> list[tuple[str, bytes]] | None:
        return [("h", b"1")] if self.at % 2 else None


def error(name: str) -> Any:
    return kafka.KafkaError(getattr(kafka.KafkaError, name))


@attrs.define(slots=False)
class Consumer:
    """A consumer of one partition. `first`: the offset of the first message that is left; `end`: that of the next one."""

    offsets: list[int]
    end: int
    first: int = 0
    portion: int = 1000
    errors: list[Any] = attrs.field(factory=list)
    assigned: list[int] = attrs.field(factory=list)
    at: int = 0
    tells_end: bool = False

    def assign(self, places: list[Any]) -> None:
        [place] = places
        self.assigned.append(place.offset)
        self.at, self.tells_end = place.offset, True

    def unassign(self) -> None:
        pass

    def consume(self, count: int, timeout: float) -> list[Message]:
        if self.errors:
            return [Message(self.at, self.errors.pop(0))]
        if self.at < self.first:
            return [Message(self.at, error("_AUTO_OFFSET_RESET"))]
        found = [offset for offset in self.offsets if offset >= self.at][: min(count, self.portion)]
        if found:
            self.at = found[-1] + 1
            return [Message(offset, text=b"%d" % offset) for offset in found]
        if self.tells_end:
            self.tells_end = False
            return [Message(self.end, error("_PARTITION_EOF"))]
        return []

    def get_watermark_offsets(self, place: Any, timeout: float) -> tuple[int, int]:
        return self.first, self.end


def opened(consumer: Consumer, start: int = 0, batch_bytes: int = 1 << 20, timeout: float = 30.0) -> KafkaStream:
    return KafkaStream(consumer, ClientSettings("kafka:9092", timeout=timeout), "events", 3, start, batch_bytes)


def read(stream: KafkaStream, stop: int) -> list[int]:
    found: list[int] = []
    while (batch := stream.read(stop)) is not None:
        found += batch.column("offset").to_pylist()
        assert batch.column("value").to_pylist() == [b"%d" % offset for offset in batch.column("offset").to_pylist()]
    assert stream.position == stop
    return found


@given(st.sets(st.integers(0, 60)), st.lists(st.integers(0, 61), max_size=5), st.integers(1, 20), st.integers(1, 60))
def test_whatever_gaps_there_are_a_range_is_read_to_its_stop(
    offsets: set[int], cuts: list[int], portion: int, batch_bytes: int
) -> None:
    consumer = Consumer(sorted(offsets), end=61, portion=portion)
    stream = opened(consumer, batch_bytes=batch_bytes)
    bounds = [0, *sorted(cuts), 61]
    for start, stop in pairwise(bounds):
        if stream.position != start:
            stream.seek(start)
        assert read(stream, stop) == [offset for offset in sorted(offsets) if start <= offset < stop]
    assert consumer.assigned == [0]  # ranges that follow each other are read without a new fetch


@given(st.sets(st.integers(0, 40)), st.lists(st.tuples(st.integers(0, 41), st.integers(0, 41)), max_size=6))
def test_ranges_in_any_order(offsets: set[int], bounds: list[tuple[int, int]]) -> None:
    stream = opened(Consumer(sorted(offsets), end=41))
    for start, stop in map(sorted, bounds):
        if stream.position != start:
            stream.seek(start)
        assert read(stream, stop) == [offset for offset in sorted(offsets) if start <= offset < stop]


def test_fields_of_messages() -> None:
    batch = opened(Consumer([0, 1], end=2)).read(2)
    assert batch is not None
    first, second = batch.to_pylist()
    assert (first["topic"], first["partition"], first["key"], first["headers"]) == ("events", 3, b"k", [])
    assert second["headers"] == [{"name": "h", "value": b"1"}]
    assert second["timestamp"].isoformat() == "1970-01-01T00:00:01"


def test_offsets_that_retention_has_deleted() -> None:
    stream = opened(Consumer([7, 8], end=9, first=7), start=2)
    with pytest.raises(OffsetsGone) as raised:
        stream.read(9)
    assert raised.value.first == 7
    stream.seek(7)
    assert read(stream, 9) == [7, 8]


def test_errors_that_pass() -> None:
    consumer = Consumer([0], end=1, errors=[error("_TRANSPORT"), error("_ALL_BROKERS_DOWN"), error("NOT_LEADER_FOR_PARTITION")])
    assert read(opened(consumer), 1) == [0]


def test_a_topic_that_servers_do_not_know_for_a_moment() -> None:
    assert read(opened(Consumer([0], end=1, errors=[error("UNKNOWN_TOPIC_OR_PART")])), 1) == [0]


@pytest.mark.parametrize("method", ["assign", "consume"])
def test_errors_that_the_client_raises(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise kafka.KafkaException(error("_FATAL"))

    monkeypatch.setattr(Consumer, method, fail)
    with pytest.raises(LogRefused, match=r"reading events\[3\] from offset 0 on"):
        opened(Consumer([0], end=1)).read(1)


def test_errors_that_do_not_pass() -> None:
    with pytest.raises(LogRefused, match=r"reading events\[3\] from offset 0 on(.|\n)*needs Read and Describe"):
        opened(Consumer([0], end=1, errors=[error("TOPIC_AUTHORIZATION_FAILED")])).read(1)


def test_servers_that_stay_away_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr("operators.logs.kafka.stream.time.monotonic", lambda: float(next(ticks)))
    consumer = Consumer([], end=0, errors=[error("_TRANSPORT")])
    with pytest.raises(LogUnavailable, match=r"kafka:9092: the message log is not available.*reading events"):
        opened(consumer).read(5)


@pytest.mark.parametrize("portion", [1, 1000])
@pytest.mark.parametrize("name", ["_AUTO_OFFSET_RESET", "TOPIC_AUTHORIZATION_FAILED", "_TRANSPORT"])
def test_messages_before_an_error_are_not_lost(name: str, portion: int) -> None:
    consumer = Consumer([], end=9, first=5)
    queue = [Message(0, text=b"0"), Message(1, text=b"1"), Message(-1001, error(name)), Message(7, text=b"7")]

    def consume(count: int, timeout: float) -> list[Message]:
        taken = queue[:portion]
        del queue[:portion]
        return taken or [Message(9, error("_PARTITION_EOF"))]

    consumer.consume = consume  # type: ignore[method-assign]
    stream = opened(consumer)
    batch = stream.read(9)
    assert batch is not None
    assert batch.column("offset").to_pylist() == [0, 1]
    if name == "_TRANSPORT":
        assert read(stream, 9) == [7]
    elif name == "_AUTO_OFFSET_RESET":
        with pytest.raises(OffsetsGone) as gone:
            stream.read(9)
        assert (stream.position, gone.value.first) == (2, 5)
    else:
        with pytest.raises(LogRefused):
            stream.read(9)


def test_what_comes_behind_an_error_is_read_after_a_stop_before_it() -> None:
    queue = [Message(4, text=b"4"), Message(6, text=b"6"), Message(-1001, error("_TRANSPORT")), Message(8, text=b"8")]
    consumer = Consumer([], end=9)

    def consume(count: int, timeout: float) -> list[Message]:
        taken = list(queue)
        queue.clear()
        return taken or [Message(9, error("_PARTITION_EOF"))]

    consumer.consume = consume  # type: ignore[method-assign]
    stream = opened(consumer)
    assert [*read(stream, 6), *read(stream, 9)] == [4, 6, 8]


@attrs.frozen
class Unplaced(Message):
    """An error that has no offset."""

    def offset(self) -> Any:
        return None


def test_seeking_where_an_error_waits() -> None:
    consumer = Consumer([0, 1, 7], end=9)
    stream = opened(consumer)
    queue: list[Message] = [Message(0, text=b"0"), Unplaced(-1, error("_TRANSPORT"))]
    consumer.consume = lambda count, timeout: queue  # type: ignore[method-assign]
    assert stream.read(5) is not None
    del consumer.consume
    stream.seek(7)
    assert read(stream, 9) == [7]


def test_a_batch_ends_by_the_bytes_of_keys_and_headers_too() -> None:
    class Wide(Message):
        def key(self) -> bytes:
            return b"k" * 60

        def headers(self) -> list[tuple[str, bytes]] | None:
            return [("h", b"1" * 59)] if self.at % 2 else None

    consumer = Consumer([], end=9)
    queue: list[Message] = [Wide(offset) for offset in range(9)]
    consumer.consume = lambda count, timeout: [queue.pop(0)]  # type: ignore[method-assign]
    batch = opened(consumer, batch_bytes=180).read(9)
    assert batch is not None
    assert batch.num_rows == 2
