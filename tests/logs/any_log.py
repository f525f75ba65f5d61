"""A topic of any log, as the tests of the protocol see it: written and damaged past the operators."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine
from typing import Any, ClassVar, TypeVar

import attrs

from operators.logs.memory import MemoryLog, MemoryLogInput, MemoryLogReader, MemoryServer
from operators.logs.protocol import MessageLog
from tests.logs.mock_cluster import MockCluster

T = TypeVar("T")


class AnyLog(ABC):
    """A topic with one partition.

    `has_gaps`: messages can be removed from within. `has_identity`: a topic that is created again is another one. `has_times`: it
    finds the offset of a time.
    """

    topic: str
    has_gaps: ClassVar[bool] = True
    has_identity: ClassVar[bool] = True
    has_times: ClassVar[bool] = True

    @property
    @abstractmethod
    def log(self) -> MessageLog:
        """The log."""

    @abstractmethod
    def append(self, *values: bytes) -> None:
        """Append messages."""

    @abstractmethod
    def remove(self, offsets: Collection[int]) -> None:
        """Remove messages from within."""

    @abstractmethod
    def delete_before(self, offset: int) -> None:
        """Delete the messages before an offset, as retention does."""

    @abstractmethod
    def recreate(self) -> None:
        """Delete the topic, and create it again."""

    @abstractmethod
    def splitter(self, **properties: Any) -> Any:
        """Return an input operator of the topic."""

    @abstractmethod
    def reader(self, **properties: Any) -> Any:
        """Return a reader."""


@attrs.define
class InMemory(AnyLog):
    """A MemoryLog."""

    topic: str
    memory: MemoryLog = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.memory = MemoryLog(self.topic, batch_messages=7)
        self.memory.create(self.topic)

    @property
    def log(self) -> MessageLog:
        return MemoryServer(self.memory.name)

    def append(self, *values: bytes) -> None:
        for value in values:
            self.memory.append(self.topic, value, time=time.time_ns() // 1000)

    def remove(self, offsets: Collection[int]) -> None:
        self.memory.compact(self.topic, 0, set(offsets))

    def delete_before(self, offset: int) -> None:
        self.memory.delete_before(self.topic, 0, offset)

    def recreate(self) -> None:
        self.memory.recreate(self.topic)

    def splitter(self, **properties: Any) -> Any:
        return MemoryLogInput(self.memory.name, self.topic, **properties)

    def reader(self, **properties: Any) -> Any:
        return MemoryLogReader(log_name=self.memory.name, **properties)


def with_jetstream(url: str, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on a client of JetStream, and close it."""
    import nats

    async def run() -> T:
        client = await nats.connect(url)
        try:
            return await work(client.jetstream())
        finally:
            await client.close()

    return asyncio.run(run())


@attrs.define
class InNats(AnyLog):
    """A stream of JetStream, with the subjects `TOPIC.*`."""

    topic: str
    url: str
    subjects: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        with_jetstream(self.url, self._create)

    async def _create(self, stream: Any) -> None:
        await stream.add_stream(name=self.topic, subjects=[f"{self.topic}.*"])

    @property
    def log(self) -> MessageLog:
        log: MessageLog = self.reader().log
        return log

    def append(self, *values: bytes, subject: str = "a", headers: dict[str, str] | None = None) -> None:
        async def publish(stream: Any) -> None:
            for value in values:
                await stream.publish(f"{self.topic}.{subject}", value, headers=headers)

        with_jetstream(self.url, publish)

    def remove(self, offsets: Collection[int]) -> None:
        async def delete(stream: Any) -> None:
            for offset in offsets:
                await stream.delete_msg(self.topic, offset)

        with_jetstream(self.url, delete)

    def delete_before(self, offset: int) -> None:
        with_jetstream(self.url, lambda stream: stream.purge_stream(self.topic, seq=offset))

    def recreate(self) -> None:
        with_jetstream(self.url, lambda stream: stream.delete_stream(self.topic))
        with_jetstream(self.url, self._create)

    def splitter(self, **properties: Any) -> Any:
        from operators import NatsSplitterInput

        return NatsSplitterInput(servers=self.url, topics=self.topic, subjects=self.subjects, **properties)

    def reader(self, **properties: Any) -> Any:
        from operators import NatsBlockReader

        return NatsBlockReader(servers=self.url, subjects=self.subjects, **properties)


@attrs.define
class InKafka(AnyLog):
    """A topic of librdkafka's mock cluster, which neither compacts topics, nor tells their ids, nor finds offsets by time."""

    has_gaps: ClassVar[bool] = False
    has_identity: ClassVar[bool] = False
    has_times: ClassVar[bool] = False

    topic: str
    cluster: MockCluster

    def __attrs_post_init__(self) -> None:
        self.cluster.create(self.topic)

    @property
    def log(self) -> MessageLog:
        log: MessageLog = self.reader().log
        return log

    def append(self, *values: bytes) -> None:
        import confluent_kafka

        producer = confluent_kafka.Producer({"bootstrap.servers": self.cluster.bootstrap})
        for value in values:
            producer.produce(self.topic, value, partition=0)
        assert producer.flush(30) == 0

    def remove(self, offsets: Collection[int]) -> None:
        assert not offsets

    def delete_before(self, offset: int) -> None:
        self.cluster.delete_records(self.topic, 0, offset)

    def recreate(self) -> None:
        self.cluster.delete(self.topic)
        self.cluster.create(self.topic)

    def splitter(self, **properties: Any) -> Any:
        from operators import KafkaSplitterInput

        return KafkaSplitterInput(self.cluster.bootstrap, self.topic, **properties)

    def reader(self, **properties: Any) -> Any:
        from operators import KafkaBlockReader

        return KafkaBlockReader(bootstrap_servers=self.cluster.bootstrap, **properties)
