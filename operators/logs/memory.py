"""A log in memory, for tests and examples: MemoryLog, MemoryLogInput and its readers."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Generic

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from operators.logs.block_reader import AbstractLogReader
from operators.logs.columns.scan_reader import AbstractLogScanReader
from operators.logs.messages import message_batch
from operators.logs.protocol import LogPartition, OffsetsGone, Topics
from operators.logs.splitter_input import AbstractLogSplitterInput
from operators.names import one_or_more

R = TypeVar("R", default=bytes)
T = TypeVar("T", default=Any)

Headers = Sequence[tuple[str, bytes | None]]


@attrs.frozen
class StoredMessage:
    """A message of a MemoryLog. `time`: microseconds since the epoch."""

    offset: int
    value: bytes | None
    key: bytes | None = None
    time: int | None = None
    headers: Headers = ()


@attrs.define(eq=False)
class MemoryPartition:
    """A partition of a MemoryLog: its messages in the order of their offsets, and the offsets of its first and next one."""

    messages: list[StoredMessage] = attrs.field(factory=list)
    first: int = 0
    end: int = 0


_LOGS: dict[str, MemoryLog] = {}


@attrs.define(eq=False)
class MemoryLog:
    """A log in the memory of this process, found by its name: operators of the local runner read it.

    It does what real logs do to readers: offsets with gaps (`skip`, as compaction and transactions leave them), messages that are
    deleted (`delete_before`), topics that are created again (`recreate`).

    >>> log = MemoryLog("example")
    >>> log.append("events", b"one"), log.append("events", b"two", partition=1)
    (0, 0)
    """

    name: str
    batch_messages: int = 1000
    topics: dict[str, dict[int, MemoryPartition]] = attrs.field(init=False, factory=dict)
    identities: dict[str, str] = attrs.field(init=False, factory=dict)
    connections: int = attrs.field(init=False, default=0)
    _ids: Any = attrs.field(init=False, repr=False, factory=itertools.count)

    def __attrs_post_init__(self) -> None:
        _LOGS[self.name] = self

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic, or more partitions of one."""
        if topic not in self.topics:
            self.topics[topic], self.identities[topic] = {}, f"id-{next(self._ids)}"
        for number in range(partitions):
            self.topics[topic].setdefault(number, MemoryPartition())

    def recreate(self, topic: str, partitions: int = 1) -> None:
        """Delete a topic, and create it again without messages."""
        del self.topics[topic]
        self.create(topic, partitions)

    def append(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int = 0,
        time: int | None = None,
        headers: Headers = (),
    ) -> int:
        """Append a message, to a new topic or partition if need be. Return its offset."""
        self.create(topic, partition + 1)
        there = self.topics[topic][partition]
        there.messages.append(StoredMessage(there.end, value, key, time, headers))
        there.end += 1
        return there.end - 1

    def skip(self, topic: str, partition: int = 0, count: int = 1) -> None:
        """Leave out offsets."""
        self.create(topic, partition + 1)
        self.topics[topic][partition].end += count

    def compact(self, topic: str, partition: int, offsets: set[int]) -> None:
        """Remove some messages. The offsets of others stay."""
        there = self.topics[topic][partition]
        there.messages = [each for each in there.messages if each.offset not in offsets]

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """Delete the messages before an offset, as the end of their retention does."""
        there = self.topics[topic][partition]
        there.messages = [each for each in there.messages if each.offset >= offset]
        there.first = offset


@attrs.frozen
class MemoryServer:
    """The MemoryLog of a name, as a MessageLog."""

    name: str

    @property
    def place(self) -> str:
        """The name, as an address."""
        return f"memory://{self.name}"

    def connect(self) -> MemoryClient:
        """Find the log."""
        log = _LOGS[self.name]
        log.connections += 1
        return MemoryClient(log)


@attrs.frozen
class MemoryClient:
    """See LogClient."""

    log: MemoryLog

    def partitions(self, topics: Topics) -> list[LogPartition]:
        """See LogClient."""
        return [
            LogPartition(topic, number, there.first, there.end, self.log.identities[topic])
            for topic, numbered in self.log.topics.items()
            if topics.has(topic)
            for number, there in sorted(numbered.items())
        ]

    def offsets_at(self, partitions: Sequence[LogPartition], time: int) -> list[int]:
        """See LogClient."""
        starts = []
        for each in partitions:
            messages = self.log.topics[each.topic][each.partition].messages
            offsets = (message.offset for message in messages if message.time is not None and message.time >= time)
            starts.append(next(offsets, each.end))
        return starts

    def open(self, topic: str, partition: int, start: int, identity: str | None) -> MemoryStream:
        """See LogClient."""
        return MemoryStream(self.log, topic, partition, start)

    def close(self) -> None:
        """See LogClient."""


@attrs.define
class MemoryStream:
    """See LogStream."""

    log: MemoryLog
    topic: str
    partition: int
    position: int

    def seek(self, position: int) -> None:
        """See LogStream."""
        self.position = position

    def read(self, stop: int) -> pa.RecordBatch | None:
        """See LogStream."""
        there = self.log.topics[self.topic][self.partition]
        if self.position < there.first:
            raise OffsetsGone(there.first)
        at = bisect_left(there.messages, self.position, key=lambda message: message.offset)
        messages = [each for each in there.messages[at : at + self.log.batch_messages] if each.offset < stop]
        if not messages:
            self.position = stop
            return None
        self.position = messages[-1].offset + 1
        return message_batch(
            self.topic,
            self.partition,
            [each.offset for each in messages],
            [each.value for each in messages],
            keys=[each.key for each in messages],
            times=[each.time for each in messages],
            headers=[each.headers for each in messages],
        )

    def close(self) -> None:
        """See LogStream."""


@attrs.define(slots=False)
class MemoryLogInput(AbstractLogSplitterInput):
    """Plans the messages of a MemoryLog.

    Args:
        log_name: its name. The other properties are those of AbstractLogSplitterInput.
    """

    log_name: str
    topics: tuple[str, ...] = attrs.field(converter=one_or_more)

    @property
    def log(self) -> MemoryServer:
        """The log of that name."""
        return MemoryServer(self.log_name)


@attrs.define
class MemoryLogReader(AbstractLogReader[R], Generic[R]):
    """Reads ranges of offsets of a MemoryLog.

    Args:
        log_name: its name. The other properties are those of AbstractLogReader.
    """

    log_name: str = attrs.field(kw_only=True)

    @property
    def log(self) -> MemoryServer:
        """The log of that name."""
        return MemoryServer(self.log_name)


@attrs.define
class MemoryLogScanReader(AbstractLogScanReader[T], Generic[T]):
    """Reads ranges of offsets of a MemoryLog as columns of their values.

    Args:
        log_name: its name. The other properties are those of AbstractLogScanReader.
    """

    log_name: str = attrs.field(kw_only=True)

    @property
    def log(self) -> MemoryServer:
        """The log of that name."""
        return MemoryServer(self.log_name)
