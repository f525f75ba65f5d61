"""Topics with messages of 100 bytes, one in ten of which begins with a dot."""

from __future__ import annotations

from typing import Any

import attrs

SIZE = 100


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
            text = b"%s%d " % (b"." if number % 10 == 0 else b"m", number)
            while True:
                try:
                    producer.produce(self.name, text.ljust(SIZE, b"x"), partition=number % self.partitions)
                    break
                except BufferError:
                    producer.poll(0.1)
            if number + self.partitions + 1 == self.count:
                producer.flush()
        producer.flush()

    def append(self, value: bytes) -> None:
        """Produce one message, and wait until it is acknowledged."""
        producer = self._producer()
        producer.produce(self.name, value, partition=0)
        producer.flush()

    def _producer(self) -> Any:
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.servers, "linger.ms": 20, "log_level": 0})
