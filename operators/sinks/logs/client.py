"""The protocol of a message log, as the publisher uses it: partitions with offsets, marks of messages, and sending in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import attrs


@attrs.frozen
class LogBounds:
    """The state of a log at one moment.

    Attributes:
        identity: another one after the log was dropped and created again; None where the servers do not tell it.
        begins, ends: by partition, the offset of the first message that is kept, and the one behind the last message. A log may
            be further than that.
    """

    identity: str | None
    begins: tuple[int, ...]
    ends: tuple[int, ...]


@attrs.frozen
class MessageMark:
    """The origin of a message, which it carries itself: `owner` is application and sink, `sequence` counts in the partition."""

    owner: str
    window: int
    sequence: int


def owner_of(application: str, sink: str) -> str:
    """Return the owner of messages."""
    return f"{application}/{sink}"


@attrs.frozen(kw_only=True)
class Outgoing:
    """Messages to send, in order: a list for each part of them."""

    partitions: Sequence[int]
    sequences: Sequence[int]
    subjects: Sequence[str | None]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Sequence[tuple[str, bytes | None]] | None]
    times: Sequence[int | None]


class OpenLog(Protocol):
    """A log that is connected. Its methods raise LogUnavailable for what is transient, and LogRefused."""

    def state(self) -> LogBounds:
        """Return the state of all partitions."""
        ...

    def marks(self, starts: Mapping[int, int], stops: Mapping[int, int]) -> Iterator[tuple[int, int, MessageMark | None]]:
        """Yield `(partition, offset, mark)` of the messages of each partition in `starts`, from there to its stop.

        A partition that is not in `stops` is read to its present end. None: a message of another producer.
        """
        ...

    def send(self, owner: str, window: int, starts: Sequence[int], messages: Iterable[Outgoing]) -> None:
        """Append messages to their partitions, and return when all of them are in.

        `starts`: by partition, the offset from which on the messages of the window are.
        After an error, the messages of each partition that are in are the first ones, without a gap: the log may take later
        messages of a partition only behind those before them. Raises MessageRefused.
        """
        ...


class LogTarget(Protocol):
    """A topic or stream."""

    @property
    def place(self) -> str:
        """Name and server, without secrets."""
        ...

    def connected(self, doing: str) -> AbstractContextManager[Any]:
        """Connect, and yield an `OpenLog`. `doing`: the purpose, for messages. Raises LogUnavailable, LogRefused."""
        ...

    def place_problem(self, partition: int | None, subject: str | None) -> str | None:
        """Return what is wrong with the place that a message names; None if the log has it, or cannot be asked now.

        Called in tasks: a message without a place cannot be published once its window is decided.
        """
        ...

    def check_keyless(self) -> None:
        """Raise LogNotWritable if the log takes no messages without a key. Called on the driver before a window is decided."""
        ...

    def check(self, open_log: Any) -> None:
        """Raise for what would fail later: limits of the server, permissions to write. Sends nothing."""
