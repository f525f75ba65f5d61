"""KafkaWriter: publishes messages to a topic."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic

import attrs
from typing_extensions import TypeVar

from operators.logs.kafka.settings import UsesKafka
from operators.problems import all_problems
from operators.sinks.logs.client import LogTarget
from operators.sinks.logs.kafka import OWN_SETTINGS, KafkaTopic
from operators.sinks.logs.messages import Part
from operators.sinks.logs.writer import LogWriter

T = TypeVar("T", default=Any)
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@attrs.define
class KafkaWriter(UsesKafka, LogWriter[T], Generic[T]):
    """Publish each row as a message of a Kafka topic (`pip install 'dagflow[kafka]'`). `LogWriter` explains parts and staging.

    A window is published once it is decided, in order, and each of its messages is in its partition exactly once, also after a
    crash. docs/explanation/logs.md says what readers of the topic are promised.

    Args:
        bootstrap_servers: `host:9092`, or several, separated by commas.
        topic: the name of the topic, which must exist.
        key: the key of a message: a column, or a function of a record. Text, bytes, numbers and dates can be keys.
        partition: a column of integers, or a function of a record: the partition of a message. Without it, messages with equal
            keys go to one partition, the same as with Kafka's own clients; those without a key are dealt round.
        time: a column, or a function of a record: the timestamp of a message, after 1970. Without it, the time when it is sent.
        config: further settings of librdkafka, for security and compression for example. They are shown nowhere.
        timeout: the time without any answer before the step fails, and is retried.

    Raises MessageTooLarge, TypeNotWritable, ValueNotWritable, NotText, PackageMissing, and what `LogWriter.publish` raises.

    >>> KafkaWriter("localhost:9092", "sales", key="item").destination()
    "topic 'sales' of localhost:9092"
    """

    own_settings: ClassVar[frozenset[str]] = OWN_SETTINGS
    own_reason: ClassVar[str] = "set by the writer, since its promises rest on it"

    topic: str = attrs.field(validator=attrs.validators.instance_of(str))
    key: str | Callable[[T], Any] | None = attrs.field(default=None, kw_only=True)
    partition: str | Callable[[T], int] | None = attrs.field(default=None, kw_only=True)
    time: str | Callable[[T], Any] | None = attrs.field(default=None, kw_only=True)

    def log(self) -> LogTarget:
        """Return the topic."""
        return KafkaTopic(self.bootstrap_servers, self.topic, self.config, self.timeout, self.max_message_bytes)

    def parts(self) -> Mapping[str, Part]:
        """Return key, partition and timestamp."""
        return {"key": self.key, "partition": self.partition, "time": self.time}

    def check(self) -> None:
        """Raise ValueError where properties contradict each other, and PackageMissing."""
        config: Mapping[str, Any] = self.config  # what users write, of any type
        with all_problems(super().check) as problems:
            if not _TOPIC.fullmatch(self.topic) or self.topic in (".", ".."):
                reason = "a topic has a name of at most 249 letters, digits, and any of ._-"
                problems.append(f"topic is {self.topic!r}: {reason}" if self.topic else "topic is empty: name the topic")
            problems += [
                f"config[{name!r}] is a {type(value).__name__}, and must be text, a number or a function"
                for name, value in config.items()
                if not isinstance(value, str | int | float) and not callable(value)
            ]
