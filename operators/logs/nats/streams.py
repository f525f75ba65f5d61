"""Streams of JetStream as a message log: a stream is a topic of one partition, and its sequences are the offsets."""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import attrs
import pyarrow as pa

from dagflow.config import MiB
from operators.logs.errors import LogRefused, LogUnavailable, TopicReplaced
from operators.logs.messages import message_batch
from operators.logs.nats.connection import JetStream, NatsServer, StreamMissing
from operators.logs.protocol import LogPartition, OffsetsGone, Topics, partition_name

MOST_MESSAGES = 10_000
INACTIVE_SECONDS = 300
_NANOSECONDS = 1_000_000_000


@attrs.frozen
class NatsLog:
    """Streams of a NATS server.

    `subjects`: filters, with `*` and `>`, of the messages that are read; none: all. `batch_bytes`: about how many are read at a
    time.
    """

    server: NatsServer
    subjects: tuple[str, ...] = ()
    batch_bytes: int = MiB

    @property
    def place(self) -> str:
        """The address."""
        return self.server.place

    def connect(self) -> NatsClient:
        """Prepare to connect."""
        return NatsClient(self, JetStream(self.server))


@attrs.define(eq=False)
class NatsClient:
    """See LogClient."""

    log: NatsLog
    jetstream: JetStream

    def partitions(self, topics: Topics) -> list[LogPartition]:
        """See LogClient."""
        infos = {name: info for name in topics.names if (info := self.info(name)) is not None}
        if topics.patterns:
            infos |= {name: info for name, info in self._all() if topics.has(name) and name not in infos}
        return [self._partition(name, info) for name, info in infos.items()]

    def offsets_at(self, partitions: Sequence[LogPartition], time: int) -> list[int]:
        """See LogClient. Times of a stream grow with its sequences."""
        return [self._sequence_at(each, time) for each in partitions]

    def open(self, topic: str, partition: int, start: int, identity: str | None) -> NatsStream:
        """See LogClient."""
        return NatsStream(self, topic, start, identity)

    def close(self) -> None:
        """See LogClient."""
        self.jetstream.close()

    def info(self, stream: str) -> dict[str, Any] | None:
        """Return the server's description of a stream; None if there is none of that name."""
        try:
            return self.jetstream.request(f"STREAM.INFO.{stream}", f"looking at stream {stream}")
        except StreamMissing:
            return None

    def next_message(self, stream: str, start: int, subject: str) -> dict[str, Any] | None:
        """Return the first message from a sequence on whose subject matches, as the leader of the stream has it."""
        body = {"seq": start, "next_by_subj": subject}
        return self.jetstream.request(f"STREAM.MSG.GET.{stream}", f"reading {stream}", **body).get("message")

    def _all(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield all streams of the account."""
        offset, total = 0, 1
        while offset < total:
            answer = self.jetstream.request("STREAM.LIST", "listing the streams", offset=offset)
            streams = answer.get("streams") or []
            yield from ((each["config"]["name"], each) for each in streams)
            offset, total = offset + len(streams), answer.get("total", 0) if streams else 0

    def _partition(self, name: str, info: dict[str, Any]) -> LogPartition:
        retention = info["config"].get("retention", "limits")
        if retention != "limits":
            raise LogRefused(
                log=self.log.place,
                doing=f"looking at stream {name}",
                reason=f"the stream has the retention policy {retention!r}, under which messages that were read are deleted",
                needs="a stream of the retention policy 'limits': a mirror of this one, for example",
            )
        state = info["state"]
        return LogPartition(name, 0, max(1, state["first_seq"]), state["last_seq"] + 1, info["created"])

    def _sequence_at(self, partition: LogPartition, time: int) -> int:
        low, high = partition.first, partition.end
        while low < high:
            middle = (low + high) // 2
            message = self.next_message(partition.topic, middle, ">")
            if message is None or message["seq"] >= high or _microseconds(message["time"]) >= time:
                high = middle
            else:
                low = message["seq"] + 1
        return low


class _Place(NamedTuple):
    """The sequence of a message in its stream and in its consumer, and its time in nanoseconds since the epoch."""

    sequence: int
    delivered: int
    time: int

    @classmethod
    def of(cls, reply: str) -> _Place:
        """Parse the reply subject of a message: `$JS.ACK.….<sequence>.<delivered>.<time>.<pending>`, and a random part."""
        parts = reply.split(".")
        # nine parts; or twelve, with domain and account before and a random one behind, which some servers leave out
        return cls(*map(int, parts[5:8] if len(parts) == 9 else parts[7:10]))


_Message = tuple[_Place, Any]


@attrs.define(eq=False)
class NatsStream:
    """See LogStream. Messages are pulled by an ephemeral consumer, which is made where the position is not behind its last one.

    The end of what is left is told by the leader of the stream: a consumer may be at a replica that lags behind.
    """

    client: NatsClient
    stream: str
    position: int
    identity: str | None
    _consumer: str | None = attrs.field(init=False, default=None)
    _delivered: int = attrs.field(init=False, default=0)
    _ahead: list[_Message] = attrs.field(init=False, factory=list)  # pulled, and behind the position

    def seek(self, position: int) -> None:
        """See LogStream."""
        if position < self.position:
            self._forget()
        self._ahead = self._ahead[bisect_left(self._ahead, position, key=lambda each: each[0].sequence) :]
        if position > self.position and not self._ahead:
            self._forget()
        self.position = position

    def read(self, stop: int) -> pa.RecordBatch | None:
        """See LogStream."""
        if self.position >= stop:
            return None
        if not self._ahead:
            self._ahead = self._pulled(stop)
        count = bisect_left(self._ahead, stop, key=lambda each: each[0].sequence)
        taken, self._ahead = self._ahead[:count], self._ahead[count:]
        self.position = taken[-1][0].sequence + 1 if taken else stop
        return self._batch(taken) if taken else None

    def close(self) -> None:
        """See LogStream."""
        self._forget()

    def _forget(self) -> None:
        """Delete the consumer. The server does so by itself after a while."""
        consumer, self._consumer, self._ahead = self._consumer, None, []
        if consumer is not None:
            with contextlib.suppress(LogUnavailable, LogRefused, StreamMissing):
                self.client.jetstream.request(f"CONSUMER.DELETE.{self.stream}.{consumer}", f"closing {self.stream}")

    def _batch(self, messages: list[_Message]) -> pa.RecordBatch:
        headers = [each.headers for _, each in messages]
        return message_batch(
            self.stream,
            0,
            [place.sequence for place, _ in messages],
            [each.data for _, each in messages],
            keys=[each.subject.encode() for _, each in messages],
            times=[place.time // 1000 for place, _ in messages],
            headers=[[(name, value.encode()) for name, value in (each or {}).items()] for each in headers],
        )

    # ------------------------------------------------------------------------------------------------------------ pulling

    def _pulled(self, stop: int) -> list[_Message]:
        """Return messages from the position on, in order; none if there are none before `stop`. Raises OffsetsGone."""
        size: int | None = self.client.log.batch_bytes
        while True:
            if self._consumer is None:
                self._create()
                assert self._consumer is not None
            count = min(MOST_MESSAGES, stop - self.position) if size is not None else 1
            pulled = self.client.jetstream.pull(self.stream, self._consumer, count, size, f"reading {self.stream}")
            if messages := self._in_order(pulled.messages):
                return self._without_lost(messages)
            if size is not None and "MaxBytes" in pulled.reason:
                size = None  # the next message is larger than a batch
                continue
            if self._is_at_end(stop):
                return []
            self._forget()  # the consumer is gone, or lags behind

    def _create(self) -> None:
        """Create a consumer at the position. Raises OffsetsGone."""
        doing, subjects = f"reading {self.stream}", self.client.log.subjects
        if (first := self._first()) > self.position:
            raise OffsetsGone(first)
        config = {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self.position,
            "ack_policy": "none",
            "replay_policy": "instant",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": INACTIVE_SECONDS * _NANOSECONDS,
        }
        if len(subjects) == 1:
            config["filter_subject"] = subjects[0]
        elif subjects:
            config["filter_subjects"] = list(subjects)
        body = {"stream_name": self.stream, "config": config}
        try:
            answer = self.client.jetstream.request(f"CONSUMER.CREATE.{self.stream}", doing, **body)
        except StreamMissing:
            raise self._replaced("it was deleted") from None
        self._consumer, self._delivered = answer["name"], 0

    def _first(self) -> int:
        """Return the first sequence of the stream, which must be the one that was planned."""
        info = self.client.info(self.stream)
        if info is None:
            raise self._replaced("it was deleted")
        if self.identity not in (None, info["created"]):
            raise self._replaced("it was deleted and created again")
        return max(1, int(info["state"]["first_seq"]))

    def _replaced(self, reason: str) -> TopicReplaced:
        return TopicReplaced(operator="", partition=partition_name(self.stream, 0), reason=f"{reason} since it was planned")

    def _in_order(self, messages: Sequence[Any]) -> list[_Message]:
        """Return the messages before the first one that is missing: with a connection they are lost, and not sent again."""
        ordered = []
        for message in messages:
            place = _Place.of(message.reply)
            if place.delivered != self._delivered + 1:
                self._forget()
                break
            self._delivered += 1
            ordered.append((place, message))
        return ordered

    def _without_lost(self, messages: list[_Message]) -> list[_Message]:
        """Return the messages before a gap that may come from the limits of the stream. Raises OffsetsGone if that is the first.

        Limits delete messages from the beginning on. Gaps behind the beginning come from messages that were deleted one by one,
        or have other subjects.
        """
        sequences = [self.position - 1, *(place.sequence for place, _ in messages)]
        gap = next((n for n, (one, two) in enumerate(pairwise(sequences)) if two != one + 1), None)
        if gap is None:
            return messages
        first = self._first()
        if first <= sequences[gap] + 1:
            return messages
        self._forget()
        if gap == 0:
            raise OffsetsGone(first)
        return messages[:gap]

    def _is_at_end(self, stop: int) -> bool:
        """Ask the leader of the stream whether no message is left before an offset. Raises OffsetsGone."""
        if (first := self._first()) > self.position:
            raise OffsetsGone(first)
        messages = [self.client.next_message(self.stream, self.position, each) for each in self.client.log.subjects or (">",)]
        return all(each is None or each["seq"] >= stop for each in messages)


def _microseconds(time: str) -> int:
    """Return a time of the server as microseconds since the epoch.

    >>> _microseconds("1970-01-01T00:00:01.5Z"), _microseconds("1970-01-01T00:00:00.123456789Z")
    (1500000, 123456)
    """
    seconds, _, fraction = time.rstrip("Z").partition(".")
    return int(datetime.fromisoformat(f"{seconds}+00:00").timestamp()) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
