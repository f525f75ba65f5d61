"""A Kafka cluster as a MessageLog: its topics, partitions and offsets."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import attrs

from operators.logs.errors import LogUnavailable, TopicReplaced
from operators.logs.kafka.settings import UNSUPPORTED, ClientSettings, identity_of, is_missing, load_kafka
from operators.logs.kafka.stream import KafkaStream
from operators.logs.protocol import LogPartition, Topics, partition_name

T = TypeVar("T")

_IDENTITY_TIMEOUT = 2.0
_WITHOUT_IDENTITIES: set[str] = set()
"""Servers that have refused to describe topics, because they are too old."""
_PAUSE = 0.1
"""Seconds before a question that was not answered is asked again."""


@attrs.frozen
class KafkaLog:
    """The topics of a cluster. `batch_bytes`: of messages in a batch; the others: see ClientSettings."""

    servers: str
    config: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    timeout: float = 30.0
    batch_bytes: int = 1 << 20

    @property
    def place(self) -> str:
        """The address, for messages."""
        return f"kafka://{self.servers}"

    def connect(self) -> KafkaClient:
        """Prepare to connect."""
        return KafkaClient(ClientSettings(self.servers, self.config, self.timeout), self.batch_bytes)


class KafkaClient:
    """See LogClient. Connects when it is first used: as an admin on the driver, as a consumer in tasks."""

    def __init__(self, settings: ClientSettings, batch_bytes: int) -> None:
        self.settings = settings
        self._batch_bytes = batch_bytes
        self._kafka = load_kafka("KafkaClient")
        self._admin: Any = None
        self._consumer: Any = None
        self._committers: dict[str, Any] = {}
        self._identified: dict[str, str] = {}  # ids of topics that were opened
        self._seen: dict[tuple[str, int], tuple[LogPartition, float]] = {}  # partitions, and when they were there last

    def partitions(self, topics: Topics) -> list[LogPartition]:
        """See LogClient.

        Servers may leave a partition out for a moment. One that was seen before is returned as it was, until it has been missing
        for `timeout`. One that the cluster lists, and has no offsets for, is waited for as long.
        """
        began = time.monotonic()
        while True:
            listed, answered = self._answered(lambda: self._look(topics))
            now = time.monotonic()
            self._seen.update({place: (each, now) for place, each in answered.items()})
            if listed <= self._seen.keys() or now - began > self.settings.timeout:
                break
            time.sleep(_PAUSE)
        recent = {place: each for place, (each, at) in self._seen.items() if now - at <= self.settings.timeout}
        known = {**{place: each for place, each in recent.items() if topics.has(each.topic)}, **answered}
        return [known[place] for place in sorted(known)]

    def _look(self, topics: Topics) -> tuple[set[tuple[str, int]], dict[tuple[str, int], LogPartition]]:
        """Return the partitions that the cluster lists, and those of them that have offsets."""
        with self._asking("looking for topics"):
            cluster = self.admin.list_topics(timeout=self.settings.timeout)
        known = cluster.topics
        names = [name for name in known if topics.has(name)]
        for name in topics.names:
            if name in known and (problem := known[name].error) is not None and self.settings.is_refusal(problem):
                raise self.settings.error(problem, f"looking at topic {name!r}")
        places = [self._kafka.TopicPartition(name, number) for name in sorted(names) for number in sorted(known[name].partitions)]
        spec = self._kafka.admin.OffsetSpec
        asked = [self._ask_offsets(places, spec.earliest()), self._ask_offsets(places, spec.latest())]
        firsts, ends = (self._offsets(futures) for futures in asked)
        identities = self._identities(names) if cluster.controller_id in cluster.brokers else {}
        places_now = {
            (topic, number): LogPartition(topic, number, firsts[topic, number], ends[topic, number], identities.get(topic))
            for topic, number in firsts.keys() & ends.keys()
        }
        return {(each.topic, each.partition) for each in places}, places_now

    def offsets_at(self, partitions: Sequence[LogPartition], time: int) -> list[int]:
        """See LogClient."""
        places = [self._kafka.TopicPartition(each.topic, each.partition) for each in partitions]
        spec = self._kafka.admin.OffsetSpec.for_timestamp(-(-time // 1000))

        def ask() -> list[int]:
            offsets = self._offsets(self._ask_offsets(places, spec))
            if missing := [each.name for each in partitions if (each.topic, each.partition) not in offsets]:
                reason = f"{missing[0]} is not known now"  # to begin at its end would skip its messages
                raise LogUnavailable(log=self.settings.place, doing="asking for the offsets of a time", reason=reason)
            return [offsets[each.topic, each.partition] for each in partitions]

        offsets = self._answered(ask)
        return [each.end if offset < 0 else offset for each, offset in zip(partitions, offsets, strict=True)]

    def open(self, topic: str, partition: int, start: int, identity: str | None) -> KafkaStream:
        """See LogClient. One stream at a time is open. Raises TopicReplaced, which does not know the operator."""
        if identity is not None and self._identified.get(topic) != identity:
            self._check_identity(topic, partition, identity)
        return KafkaStream(self.consumer, self.settings, topic, partition, start, self._batch_bytes)

    def commit(self, group: str, offsets: Iterable[tuple[str, int, int]]) -> str | None:
        """Commit offsets (topic, partition, offset) to a consumer group, for those who watch it. Return the problem, if any."""
        places = [self._kafka.TopicPartition(*each) for each in offsets]
        try:
            if group not in self._committers:
                self._committers[group] = self._kafka.Consumer(self._consuming(**{"group.id": group}))
            places = self._committers[group].commit(offsets=places, asynchronous=False)
        except self._kafka.KafkaException as error:
            return str(error.args[0].str())
        return next((str(each.error.str()) for each in places if each.error is not None), None)

    def close(self) -> None:
        """See LogClient."""
        consumers = [*self._committers.values(), *([] if self._consumer is None else [self._consumer])]
        self._admin, self._consumer, self._committers = None, None, {}
        for consumer in consumers:
            consumer.close()

    @property
    def admin(self) -> Any:
        """The client for questions."""
        if self._admin is None:
            self._admin = self._kafka.admin.AdminClient(self.settings.all())
        self._admin.poll(0)
        return self._admin

    @property
    def consumer(self) -> Any:
        """The client for messages."""
        if self._consumer is None:
            with self._asking("connecting"):
                self._consumer = self._kafka.Consumer(self._consuming())
        return self._consumer

    def _consuming(self, **own: Any) -> dict[str, Any]:
        return self.settings.all(
            **{
                "auto.offset.reset": "error",  # else offsets that are gone would be skipped without a word
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                **own,
            }
        )

    # Questions

    @contextlib.contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        try:
            yield
        except self._kafka.KafkaException as error:
            if self._admin is not None:
                self._admin.poll(0)  # so that what it has noticed is known
            raise self.settings.error(error.args[0], doing) from None
        self.settings.noticed = None

    def _answered(self, ask: Callable[[], T]) -> T:
        """Ask again while servers say that they cannot answer now, for up to `timeout`. librdkafka does not for all questions."""
        began = time.monotonic()
        while True:
            try:
                return ask()
            except LogUnavailable:
                if time.monotonic() - began > self.settings.timeout:
                    raise
            time.sleep(_PAUSE)

    def _ask_offsets(self, places: Sequence[Any], spec: Any) -> Mapping[Any, Future[Any]]:
        if not places:
            return {}
        levels = self._kafka.IsolationLevel
        level = levels.READ_COMMITTED if self.settings.reads_committed else levels.READ_UNCOMMITTED
        asked: Mapping[Any, Future[Any]] = self.admin.list_offsets(
            dict.fromkeys(places, spec), isolation_level=level, request_timeout=self.settings.timeout
        )
        return asked

    def _offsets(self, futures: Mapping[Any, Future[Any]]) -> dict[tuple[str, int], int]:
        """Return the offsets that were asked for. A partition that is missing is left out."""
        offsets = {}
        for place, future in futures.items():
            try:
                offsets[place.topic, place.partition] = int(future.result().offset)
            except self._kafka.KafkaException as error:
                if not is_missing(error.args[0]):
                    doing = f"asking for the offsets of {place.topic}[{place.partition}]"
                    raise self.settings.error(error.args[0], doing) from None
        return offsets

    def _identities(self, topics: Sequence[str]) -> dict[str, str]:
        """Return the ids of topics, as far as the servers tell them now. The next look asks again for others."""
        if not topics or self.settings.servers in _WITHOUT_IDENTITIES:
            return {}
        identities = {}
        for name, future in self._describe(topics, _IDENTITY_TIMEOUT).items():
            try:
                identities[name] = identity_of(future.result())
            except self._kafka.KafkaException as error:
                if error.args[0].name() in UNSUPPORTED:
                    _WITHOUT_IDENTITIES.add(self.settings.servers)
                    return {}
        return {name: identity for name, identity in identities.items() if identity is not None}

    def _describe(self, topics: Sequence[str], timeout: float) -> Mapping[str, Future[Any]]:
        asked: Mapping[str, Future[Any]] = self.admin.describe_topics(
            self._kafka.TopicCollection(list(topics)), request_timeout=timeout
        )
        return asked

    def _check_identity(self, topic: str, partition: int, identity: str) -> None:
        """Raise TopicReplaced if a topic is not the one that was planned, or is missing for `timeout`."""
        name, began = partition_name(topic, partition), time.monotonic()
        with self._asking(f"opening {name}"):
            while True:
                try:
                    seen = identity_of(self._describe([topic], self.settings.timeout)[topic].result())
                    break
                except self._kafka.KafkaException as error:
                    if not is_missing(error.args[0]):
                        raise
                    if time.monotonic() - began > self.settings.timeout:
                        raise TopicReplaced(operator="", partition=name, reason="the log no longer has it") from None
                time.sleep(_PAUSE)
        if seen not in (identity, None):
            reason = "it was deleted and created again since the window was planned"
            raise TopicReplaced(operator="", partition=name, reason=reason)
        self._identified[topic] = identity
