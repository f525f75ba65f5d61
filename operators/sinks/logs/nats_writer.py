"""NatsWriter: publishes messages to a stream of JetStream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic

import attrs
from typing_extensions import TypeVar

from operators.logs.nats.operators import UsesNats, is_subject
from operators.problems import all_problems
from operators.sinks.logs.client import LogTarget
from operators.sinks.logs.messages import MessageEncoder, Part
from operators.sinks.logs.nats import NatsTarget
from operators.sinks.logs.subjects import SubjectEncoder, placeholders
from operators.sinks.logs.writer import LogWriter

T = TypeVar("T", default=Any)


@attrs.define
class NatsWriter(UsesNats, LogWriter[T], Generic[T]):
    """Publish each row as a message of a JetStream stream (`pip install 'dagflow[nats]'`). `LogWriter` explains the rest.

    A window is published once it is decided, in order, and each of its messages is in the stream exactly once, also after a
    crash. This does not depend on how long the server looks for duplicates. docs/explanation/logs.md says what readers are
    promised.

    Args:
        servers: URLs, separated by commas: `nats://host:4222`. A user, a password or a token may stand before the host. They are
            shown nowhere.
        stream: the name of the stream, which must exist.
        subject: the subject of all messages, with columns in braces: `orders.{country}`. Or a function of a record.
        credentials: the path of a file with the credentials of a user (`.creds`), on the driver.
        domain: the domain of JetStream, where the servers are leaf nodes.
        timeout: the time without any answer before the step fails, and is retried.

    Raises MessageTooLarge, TypeNotWritable, ValueNotWritable, NotText, PackageMissing, and what `LogWriter.publish` raises.

    >>> NatsWriter("nats://ada:secret@localhost:4222", "ORDERS", "orders.{country}").destination()
    "stream 'ORDERS' of nats://localhost:4222"
    """

    stream: str = attrs.field(validator=attrs.validators.instance_of(str))
    subject: str | Callable[[T], str] = attrs.field()

    def log(self) -> LogTarget:
        """Return the stream."""
        return NatsTarget(self.nats_server, self.stream, self.max_message_bytes)

    def parts(self) -> Mapping[str, Part]:
        """Return the subject."""
        return {"subject": self.subject}

    def encoder(self) -> MessageEncoder:
        """Return the encoder of rows."""
        return SubjectEncoder(**attrs.asdict(super().encoder(), recurse=False))

    def check(self) -> None:
        """Raise ValueError where properties contradict each other, and PackageMissing."""
        with all_problems(super().check) as problems:
            if not self.stream or any(character in self.stream for character in " .*>/\\"):
                problems.append(f"stream is {self.stream!r}: a stream has a name without blanks and any of .*>/\\")
            if isinstance(self.subject, str):
                try:
                    sample = self.subject.format_map(dict.fromkeys(placeholders(self.subject), "x"))
                except (ValueError, KeyError, IndexError):
                    problems.append(f"subject is {self.subject!r}: write columns in braces: orders.{{country}}")
                else:
                    if not is_subject(sample) or "*" in sample or ">" in sample:
                        problems.append(f"subject is {self.subject!r}: a subject is words with dots, without * and >")
