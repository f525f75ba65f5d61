"""The messages of a partition: from librdkafka's queue into batches of Arrow."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from operators.logs.kafka.settings import ClientSettings, is_missing, load_kafka
from operators.logs.messages import message_batch
from operators.logs.protocol import OffsetsGone, partition_name

CHUNK = 1_000
"""Messages that are taken from the queue at once: more of them leave the processor's cache before they are looked at."""
FIRST_WAIT, NEXT_WAIT = 0.1, 0.005
"""Seconds that a chunk is waited for: the first of a batch, and those that would fill it."""
_TIME = itemgetter(1)


class KafkaStream:
    """See LogStream.

    Offsets have gaps where a topic was compacted, and where transactions ended. The stop of a range is reached by a message at or
    behind it, or by the end of the partition, which librdkafka tells when it gets there.
    """

    def __init__(self, consumer: Any, settings: ClientSettings, topic: str, partition: int, start: int, batch_bytes: int) -> None:
        self._kafka = load_kafka("KafkaStream")
        self._consumer = consumer
        self._settings = settings
        self._topic = topic
        self._partition = partition
        self._batch_bytes = batch_bytes
        self.position = start
        self._ahead: list[Any] = []  # messages behind the stop of the range that was read last
        self._end = -1  # all messages before this offset have come, since the consumer was told where to begin
        self._assign(start)

    def seek(self, position: int) -> None:
        """See LogStream. What was read ahead is kept, where the position is in it."""
        ahead = self._ahead[0] if self._ahead else None  # an error may have no offset
        if self.position <= position and ahead is not None and ahead.error() is None and ahead.offset() >= position:
            self.position = position
        elif position != self.position:
            self._assign(position)

    def read(self, stop: int) -> pa.RecordBatch | None:
        """See LogStream. Waits for servers that are away until `timeout` has passed without a message."""
        taken = Taken()
        waited = time.monotonic()
        while self.position < stop and taken.size < self._batch_bytes:
            if self._ahead:
                messages, self._ahead = self._ahead, []
            elif self._end >= stop:
                self.position = stop
                break
            else:
                wait = NEXT_WAIT if taken.offsets else FIRST_WAIT
                messages = self._consume(min(CHUNK, stop - self.position), wait)
            if messages and any(map(type(messages[0]).error, messages)):
                messages = self._without_errors(messages, is_first=not taken.offsets)
            if not messages:
                if taken.offsets:
                    break
                if self._end < stop and time.monotonic() - waited > self._settings.timeout:
                    raise self._settings.error(self._settings.noticed, self._doing)
                continue
            offsets = list(map(type(messages[0]).offset, messages))
            if offsets[-1] >= stop:
                count = sum(offset < stop for offset in offsets)
                self._ahead = messages[count:] + self._ahead  # behind them an error may wait
                del messages[count:], offsets[count:]
                self.position = stop
            else:
                self.position = offsets[-1] + 1
            if messages:
                taken.add(messages, offsets)
        if not taken.offsets:
            return None
        self._settings.noticed = None
        return taken.batch(self._topic, self._partition)

    def close(self) -> None:
        """See LogStream. The consumer stays, for the next stream."""
        self._ahead = []
        with contextlib.suppress(self._kafka.KafkaException):
            self._consumer.unassign()

    @property
    def _doing(self) -> str:
        return f"reading {partition_name(self._topic, self._partition)} from offset {self.position} on"

    def _place(self, offset: int) -> Any:
        return self._kafka.TopicPartition(self._topic, self._partition, offset)

    def _assign(self, position: int) -> None:
        self.position, self._ahead, self._end = position, [], -1
        try:
            self._consumer.assign([self._place(position)])
        except self._kafka.KafkaException as error:
            raise self._settings.error(error.args[0], self._doing) from None

    def _consume(self, count: int, wait: float) -> list[Any]:
        try:
            messages: list[Any] = self._consumer.consume(count, wait)
        except self._kafka.KafkaException as error:
            raise self._settings.error(error.args[0], self._doing) from None
        return messages

    def _without_errors(self, messages: Sequence[Any], is_first: bool) -> list[Any]:
        """Return the messages that are none. An error behind messages waits until these are read.

        `is_first`: no messages were taken before these. Raises OffsetsGone, LogRefused.
        """
        kept: list[Any] = []
        for number, message in enumerate(messages):
            problem = message.error()
            if problem is None:
                kept.append(message)
            elif problem.name() == "_PARTITION_EOF":
                self._end = max(self._end, message.offset())
            elif kept or not is_first:
                self._ahead = list(messages[number:])
                break
            elif problem.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
                self._out_of_range(problem)
            elif self._settings.is_refusal(problem) and not is_missing(problem):
                raise self._settings.error(problem, self._doing)
            else:
                self._settings.noticed = problem
        return kept

    def _out_of_range(self, problem: Any) -> None:
        try:
            first, _ = self._consumer.get_watermark_offsets(self._place(self.position), timeout=self._settings.timeout)
        except self._kafka.KafkaException as error:
            raise self._settings.error(error.args[0], self._doing) from None
        if first > self.position:
            raise OffsetsGone(first)
        raise self._settings.error(problem, self._doing)


class Taken:
    """The fields of messages that become a batch.

    Lists, each filled in one pass over a chunk of messages: a message costs under a microsecond so.
    """

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] = []
        self.times: list[int] = []
        self.headers: list[Any] = []
        self.size = 0

    def add(self, messages: Sequence[Any], offsets: list[int]) -> None:
        """Add messages, whose offsets are known."""
        kind = type(messages[0])  # whose functions take half the time of methods that are looked up for each message
        values = list(map(kind.value, messages))
        self.offsets += offsets
        self.values += values
        keys, headers = list(map(kind.key, messages)), list(map(kind.headers, messages))
        self.keys += keys
        self.times += map(_TIME, map(kind.timestamp, messages))
        self.headers += headers
        self.size += _length(values) + _length(keys)
        if any(headers):
            self.size += sum(len(name) + len(value or b"") for each in headers if each for name, value in each)

    def batch(self, topic: str, partition: int) -> pa.RecordBatch:
        """Return the messages as a batch. Kafka's times are in milliseconds."""
        times: Any = np.fromiter(self.times, np.int64, len(self.times)) * 1000
        if (times < 0).any():
            times = [None if time < 0 else time * 1000 for time in self.times]
        return message_batch(topic, partition, self.offsets, self.values, keys=self.keys, times=times, headers=self.headers)


def _length(values: Sequence[bytes | None]) -> int:
    return sum(map(len, filter(None, values)))
