"""The protocol of a message log: partitions with offsets, and streams of messages from an offset on.

A log is anything that appends messages to numbered partitions and keeps them for a while: Kafka, NATS JetStream, Redis streams.
An adapter has three classes, one for each protocol here. All else (planning, stealing, retention, lineage) is shared.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Protocol

import attrs
import pyarrow as pa

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


@attrs.frozen
class LogPartition:
    """A partition as the log knows it now.

    Attributes:
        first: the offset of the oldest message that is kept, or a smaller one that is not below any lost message.
        end: the offset behind the newest message that can be read.
        identity: a mark that a topic created again under the same name does not have; None if the log has no such mark.
    """

    topic: str
    partition: int
    first: int
    end: int
    identity: str | None = None

    @property
    def name(self) -> str:
        """The topic with the number of the partition.

        >>> LogPartition("events", 3, first=0, end=10).name
        'events[3]'
        """
        return partition_name(self.topic, self.partition)


def partition_name(topic: str, partition: int) -> str:
    """Return the name of a partition, as messages, ledgers and traces have it."""
    return f"{topic}[{partition}]"


def time_of(start: str) -> int:
    """Return a time as microseconds since the epoch. Without a zone it is in UTC.

    >>> time_of("1970-01-01T00:00:01Z"), time_of("1970-01-02")
    (1000000, 86400000000)
    """
    time = datetime.datetime.fromisoformat(start)
    return ((time if time.tzinfo is not None else time.replace(tzinfo=datetime.UTC)) - _EPOCH) // _MICROSECOND


@attrs.frozen
class Topics:
    """A choice of topics: names, and patterns, which begin with `^`. Topics that begin with `__` match no pattern.

    >>> topics = Topics(("events", "^log-.*"))
    >>> [name for name in ("events", "events2", "log-a", "__offsets") if topics.has(name)]
    ['events', 'log-a']
    """

    wanted: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The topics that are given by name."""
        return tuple(each for each in self.wanted if not each.startswith("^"))

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns."""
        return tuple(each for each in self.wanted if each.startswith("^"))

    def has(self, topic: str) -> bool:
        """Return True if a topic is chosen."""
        if topic in self.names:
            return True
        return not topic.startswith("__") and any(re.fullmatch(each[1:], topic) for each in self.patterns)


class OffsetsGone(Exception):
    """Raised by a stream whose position is before the oldest message of its partition. `first`: the offset of that message."""

    def __init__(self, first: int) -> None:
        super().__init__(f"messages before offset {first} are gone")
        self.first = first


class LogStream(Protocol):
    """The messages of a partition from a position on."""

    @property
    def position(self) -> int:
        """The offset from which on the next message is read."""
        ...

    def seek(self, position: int) -> None:
        """Continue at another offset."""
        ...

    def read(self, stop: int) -> pa.RecordBatch | None:
        """Return the next messages (`operators.logs.messages.SCHEMA`), in order; None if there are none before the offset `stop`.

        All offsets are below `stop`. The position is behind them then, or at `stop` if there are none. Offsets may have gaps,
        also right before `stop`. Waits for messages that the log has, and never for new ones: `stop` is not beyond the end
        that `partitions` told. Raises OffsetsGone, LogUnavailable, LogRefused.
        """
        ...

    def close(self) -> None:
        """Release what the stream holds."""
        ...


class LogClient(Protocol):
    """A connection to a log. One is used by one thread."""

    def partitions(self, topics: Topics) -> list[LogPartition]:
        """Return the partitions of all chosen topics that are there. Raises LogUnavailable, LogRefused."""
        ...

    def offsets_at(self, partitions: Sequence[LogPartition], time: int) -> list[int]:
        """Return for each partition the offset of its first message from a time on, or its end. Microseconds since the epoch."""
        ...

    def open(self, topic: str, partition: int, start: int, identity: str | None) -> LogStream:
        """Open the messages of a partition from an offset on.

        `identity`: of the topic when it was planned, to be checked where that costs nothing.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class MessageLog(Protocol):
    """A log as an operator's properties describe it."""

    @property
    def place(self) -> str:
        """The address, for messages. It has no secrets."""
        ...

    def connect(self) -> LogClient:
        """Connect, or prepare to. Raises LogUnavailable, LogRefused."""
        ...
