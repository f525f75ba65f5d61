"""A message log in memory, which can break at each step: before or after a message is in, or when it answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from operators.logs.errors import LogUnavailable
from operators.sinks.logs.client import LogBounds, MessageMark, Outgoing
from operators.sinks.logs.writer import LogWriter


class Died(BaseException):
    """The process of the launch is gone: nothing catches it."""


@attrs.define
class Stored:
    """A message in a partition. `mark`: None of another producer."""

    value: bytes | None
    mark: MessageMark | None = None
    key: bytes | None = None
    headers: Any = None
    subject: str | None = None
    time: int | None = None


@attrs.define
class MemoryLog:
    """A log with partitions. `breaks`: at which call of which step what is raised; `calls` counts the calls."""

    partitions: list[list[Stored]] = attrs.field(factory=lambda: [[] for _ in range(3)])
    begins: list[int] = attrs.field(factory=lambda: [0] * 3)
    identity: str | None = "first"
    breaks: dict[tuple[str, int], BaseException] = attrs.field(factory=dict)
    calls: dict[str, int] = attrs.field(factory=dict)
    late: list[tuple[int, Stored]] = attrs.field(factory=list)
    marks_read: int = 0
    lags: int = 0

    place = "the log of the test"

    def step(self, name: str) -> None:
        number = self.calls[name] = self.calls.get(name, -1) + 1
        if (error := self.breaks.pop((name, number), None)) is not None:
            raise error

    @contextmanager
    def connected(self, doing: str) -> Iterator[MemoryLog]:
        self.step("connect")
        yield self

    def place_problem(self, partition: int | None, subject: str | None) -> str | None:
        return None

    def check_keyless(self) -> None:
        pass

    def check(self, open_log: Any) -> None:
        self.step("check")

    def state(self) -> LogBounds:
        self.step("state")
        ends = [begin + len(each) - min(self.lags, len(each)) for begin, each in zip(self.begins, self.partitions, strict=True)]
        return LogBounds(self.identity, tuple(self.begins), tuple(ends))

    def marks(self, starts: Mapping[int, int], stops: Mapping[int, int]) -> Iterator[tuple[int, int, MessageMark | None]]:
        self.step("marks")
        for partition, start in starts.items():
            begin = self.begins[partition]
            for offset in range(max(start, begin), stops.get(partition, begin + len(self.partitions[partition]))):
                self.marks_read += 1
                yield partition, offset, self.partitions[partition][offset - begin].mark

    def send(self, owner: str, window: int, starts: Sequence[int], messages: Iterable[Outgoing]) -> None:
        for some in messages:
            self.step("batch")
            for place, number, key, value, headers, subject, at in zip(
                some.partitions, some.sequences, some.keys, some.values, some.headers, some.subjects, some.times, strict=True
            ):
                self.step("before a message")
                self.partitions[place].append(Stored(value, MessageMark(owner, window, number), key, headers, subject, at))
                self.step("after a message")
        self.step("answer")

    def other(self, partition: int, count: int = 1) -> None:
        """Messages of another producer."""
        self.partitions[partition].extend(Stored(b"other") for _ in range(count))

    def forget(self, partition: int, before: int) -> None:
        """Retention removes messages."""
        del self.partitions[partition][: before - self.begins[partition]]
        self.begins[partition] = before

    def own(self, partition: int) -> list[tuple[int, int]]:
        """Window and sequence of the messages of a partition, in order."""
        return [(each.mark.window, each.mark.sequence) for each in self.partitions[partition] if each.mark is not None]

    def values(self, partition: int) -> list[bytes | None]:
        return [each.value for each in self.partitions[partition] if each.mark is not None]


LOGS: dict[str, MemoryLog] = {}


@attrs.define
class MemoryWriter(LogWriter[Any]):
    """Writes to a log of `LOGS`, which the driver's copies of a writer share."""

    name: str = ""
    key: Any = attrs.field(default=None, kw_only=True)
    partition: Any = attrs.field(default=None, kw_only=True)
    time: Any = attrs.field(default=None, kw_only=True)
    settle: float = attrs.field(default=0.0, kw_only=True)

    def log(self) -> Any:
        return LOGS.setdefault(self.name, MemoryLog())

    def parts(self) -> dict[str, Any]:
        return {"key": self.key, "partition": self.partition, "time": self.time}


def unavailable() -> LogUnavailable:
    return LogUnavailable(log="the log of the test", doing="publishing", reason="it is down")
