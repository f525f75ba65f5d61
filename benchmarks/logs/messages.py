"""Topics with messages of 100 bytes, one in ten of which begins with a dot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

SIZE = 100


def text_of(number: int) -> bytes:
    """Return a message."""
    text = b"%s%d " % (b"." if number % 10 == 0 else b"m", number)
    return text.ljust(SIZE, b"x")


def write_lines(path: Path, count: int) -> None:
    """Write the messages as lines of a file."""
    with path.open("wb") as file:
        for number in range(count):
            file.write(text_of(number) + b"\n")


def is_wanted(value: bytes) -> bool:
    """The filter, in plain Python."""
    return not value.startswith(b".")


@attrs.frozen
class Topic:
    """A topic of a broker. `count`: of its messages at first."""

    servers: str
    name: str
    partitions: int
    count: int = 0

    def fill(self) -> None:
        """Produce the messages. The last one of each partition is a batch of its own: Tansu's end offsets are right then only."""
        producer = self._producer()
        for number in range(self.count):
            while True:
                try:
                    producer.produce(self.name, text_of(number), partition=number % self.partitions)
                    break
                except BufferError:
                    producer.poll(0.1)
            if number + self.partitions + 1 == self.count:
                producer.flush()
        producer.flush()

    def content(self) -> tuple[int, int]:
        """Read the topic: its messages and their bytes."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "content", "enable.partition.eof": True})
        consumer.assign([TopicPartition(self.name, number, OFFSET_BEGINNING) for number in range(self.partitions)])
        ended = messages = size = 0
        message: Any  # its type allows for messages without a value
        while ended < self.partitions:
            for message in consumer.consume(10_000, 1):
                if message.error() is not None:
                    ended += 1
                else:
                    messages, size = messages + 1, size + len(message.value())
        consumer.close()
        return messages, size

    def append(self, value: bytes) -> None:
        """Produce one message, and wait until it is acknowledged."""
        producer = self._producer()
        producer.produce(self.name, value, partition=0)
        producer.flush()

    def _producer(self) -> Any:
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.servers, "linger.ms": 20, "log_level": 0})
