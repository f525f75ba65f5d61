"""Kills launches that publish to a log around the steps of publishing, and lets others resume there. Judged by reading the log.

Everything that uses a client of the log runs in children of the test: clients have threads, which do not survive a fork.
"""

from __future__ import annotations

import json
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import attrs

from dagflow import DAG
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.testing import run_dag
from operators import BlockReader, FileSplitterInput, KafkaWriter, NatsWriter
from operators.sinks.logs.kafka import OpenTopic
from operators.sinks.logs.nats import OpenStream
from operators.sinks.logs.publishing import LogPublisher
from operators.sinks.logs.staging import BegunNotes, MessageStaging
from tests.chaos.dying import Step, after, before, die_at, in_child
from tests.logs.any_log import with_jetstream

LINES = [f"line {number}" for number in range(70)]

STEPS: dict[str, Step] = {
    "before staging": before("finish", MessageStaging),
    "after staging": after("finish", MessageStaging),
    "after the decision": after("decide", WindowLog),
    "before the note": before("write", BegunNotes),
    "after the note": after("write", BegunNotes),
    "before the messages": before("send", OpenTopic, OpenStream),
    "after the messages": after("send", OpenTopic, OpenStream),
    "before the mark": before("done", WindowLog),
    "after sweeping": after("sweep", LogPublisher),
}
"""The steps at which a launch is killed. `AFTER_MESSAGES` has more of them."""

AFTER_MESSAGES = (1, 2, 7)
"""The messages of a window after which a launch is killed while it sends."""


class Target(ABC):
    """A log to write to, with one partition."""

    @abstractmethod
    def create(self) -> None:
        """Create the topic or stream."""

    @abstractmethod
    def writer(self) -> Any:
        """Return a writer."""

    @abstractmethod
    def values(self) -> list[bytes]:
        """Return the values of all messages."""


@attrs.frozen
class Topic(Target):
    servers: str
    name: str

    def create(self) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.servers})
        [created] = admin.create_topics([NewTopic(self.name, 1, 1)]).values()
        created.result(30)

    def writer(self) -> KafkaWriter[Any]:
        return KafkaWriter(self.servers, self.name, settle=0.1)

    def values(self) -> list[bytes]:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "test", "enable.partition.eof": True})
        consumer.assign([TopicPartition(self.name, 0, 0)])
        found: list[bytes] = []
        while (message := consumer.poll(30)).error() is None:
            found.append(message.value())
        return found


@attrs.frozen
class Stream(Target):
    url: str
    name: str

    def create(self) -> None:
        async def add(jetstream: Any) -> None:
            await jetstream.add_stream(name=self.name, subjects=[self.name])

        with_jetstream(self.url, add)

    def writer(self) -> NatsWriter[Any]:
        return NatsWriter(self.url, self.name, self.name, settle=0.1)

    def values(self) -> list[bytes]:
        async def messages(jetstream: Any) -> list[bytes]:
            info = await jetstream.stream_info(self.name)
            subscription = await jetstream.subscribe(self.name, stream=self.name, ordered_consumer=True)
            return [(await subscription.next_msg(timeout=20)).data for _ in range(info.state.messages)]

        return with_jetstream(self.url, messages)


def populate(folder: Path, target: Target) -> Callable[[DAG, Any], None]:
    """All lines are published."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(folder / "in")], block_size=120, blocks_threshold=2))
        lines = dag.add_operator("lines", BlockReader())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, dag.add_operator("published", target.writer()).input)

    return populate_dag


def launched(folder: Path, target: Target, point: tuple[str | int, int] | None = None) -> int:
    """Launch in a child, which is killed at a point. Return its exit status."""

    def work() -> None:
        if point is not None:
            step, number = point
            if isinstance(step, int):
                _kill_while_sending(step, number)
            else:
                die_at(STEPS[step], number)
        run_dag(populate(folder, target), {"run_folder": str(folder / "run")}, windows_in_flight=2)

    return in_child(work)


def _kill_while_sending(messages: int, window: int) -> None:
    """Die after some messages of a window are in."""
    from tests.chaos.dying import kill

    for owner in (OpenTopic, OpenStream):

        def send(
            self: Any,
            whose: str,
            number: int,
            starts: Sequence[int],
            some: Iterator[Any],
            whole: Any = owner.send,  # type: ignore[attr-defined]
        ) -> None:
            if number != window:
                whole(self, whose, number, starts, some)
                return
            whole(self, whose, number, starts, (_cut(each, messages) for each in islice(some, 1)))
            kill()

        owner.send = send  # type: ignore[attr-defined]


def _cut(outgoing: Any, count: int) -> Any:
    names = [field.name for field in attrs.fields(type(outgoing))]
    return type(outgoing)(**{name: getattr(outgoing, name)[:count] for name in names})


def wrong(folder: Path, target: Target, *points: tuple[str | int, int]) -> Iterator[str]:
    """Launch, killed at these points one after the other, and then once more to the end. Yield what is wrong then."""
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    assert in_child(target.create) == 0
    for point in points:
        if (status := launched(folder, target, point)) != -signal.SIGKILL:
            yield f"the launch that should die at {point} ended with {status}"
    for _ in range(2):
        if (status := launched(folder, target)) != 0:
            yield f"the launch after {points} ended with {status}"
        if (found := _read(target, folder / "read.json")) != LINES:
            yield f"after {points}, the log has {found}"
    left = [path.name for path in (folder / "run" / "staged").iterdir()]
    if len(left) != 1 or not left[0].endswith(".published.begun"):
        yield f"after {points}, there is still {left}"


def _read(target: Target, result: Path) -> Any:
    def write() -> None:
        result.write_text(json.dumps([value.decode() for value in target.values()]))

    assert in_child(write) == 0
    return json.loads(result.read_text())
