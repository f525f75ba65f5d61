"""NatsSplitterInput, NatsBlockReader, and NatsInput, which is both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Generic

import attrs
from typing_extensions import TypeVar

from dagflow.config import Seconds, Secret, seconds_of
from dagflow.errors import PackageMissing
from operators.logs.access import ReadsLog
from operators.logs.block_reader import AbstractLogReader
from operators.logs.log_input import AbstractLogInput
from operators.logs.nats.connection import NatsServer
from operators.logs.nats.streams import NatsLog
from operators.logs.protocol import Topics
from operators.logs.splitter_input import AbstractLogSplitterInput
from operators.names import one_or_more
from operators.problems import all_problems

R = TypeVar("R", default=bytes)


def load_client(operator: str) -> None:
    """Raise PackageMissing if nats-py is not installed."""
    try:
        import nats  # noqa: F401
    except ImportError as error:
        raise PackageMissing(needed_by=operator, package="nats-py", install="'dagflow[nats]'") from error


@attrs.define(slots=False)
class NatsProperties:
    """The properties by which operators reach a NATS server.

    Args:
        servers: URLs, separated by commas: `nats://host:4222`. A user, a password or a token may stand before the
            host. They are shown nowhere.
        credentials: the path of a file with the credentials of a user (`.creds`), on the driver and on all executors.
        domain: the domain of JetStream, where the servers are leaf nodes.
        timeout: how long the servers may be away before the step fails, and is tried again.
    """

    servers: Secret = attrs.field(repr=False, validator=attrs.validators.instance_of(str))
    credentials: str | None = attrs.field(default=None, kw_only=True)
    domain: str | None = attrs.field(default=None, kw_only=True)
    timeout: Seconds = attrs.field(default=10.0, kw_only=True, converter=seconds_of, validator=attrs.validators.gt(0))

    @property
    def nats_server(self) -> NatsServer:
        """The servers."""
        return NatsServer(self.servers, self.credentials, self.domain, self.timeout)


@attrs.define(slots=False)
class UsesNats(NatsProperties):
    """An operator that reaches servers."""

    def check(self) -> None:
        """Raise ValueError where properties contradict each other, and PackageMissing."""
        load_client(type(self).__name__)
        with all_problems(super().check) as problems:  # type: ignore[misc]  # this class stands before an operator
            problems.extend(self.nats_server.problems())


@attrs.define(slots=False)
class NatsMessages(NatsProperties):
    """The messages that are read.

    Args:
        subjects: filters, with `*` and `>`; none: all messages of the streams.
    """

    subjects: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=one_or_more)


def stream_problems(topics: Sequence[Any]) -> list[str]:
    """Return what is wrong with names of streams.

    >>> [len(stream_problems((each,))) for each in ("ORDERS", "^ORDERS.*", "orders.>", "a b")]
    [0, 0, 1, 1]
    """
    wrong = [
        each for each in Topics(tuple(each for each in topics if isinstance(each, str))).names if re.search(r"[\s.*>/\\]", each)
    ]
    return [
        f"topics has {each!r}: a stream has a name without blanks and any of . * > / \\; filters of subjects go into subjects"
        for each in wrong
    ]


def is_subject(text: str) -> bool:
    """Return True for a subject, or a filter of subjects.

    >>> [is_subject(each) for each in ("orders.*.new", "orders.>", "orders..new", "orders.>.new", "a b")]
    [True, True, False, False, False]
    """
    words = text.split(".")
    return all(words) and ">" not in words[:-1] and not any(character.isspace() for character in text)


def subject_problems(subjects: Sequence[str]) -> list[str]:
    """Return what is wrong with filters of subjects."""
    wrong = [each for each in subjects if not is_subject(each)]
    return [f"subjects has {each!r}: a subject is words with dots, where * is any word, and > the rest" for each in wrong]


@attrs.define(slots=False)
class NatsSplitterInput(NatsMessages, UsesNats, AbstractLogSplitterInput):
    """Plans the new messages of JetStream's streams, as ranges of their sequences.

    `topics` are streams, each with one partition. A stream must have the retention policy `limits`. Messages that were deleted
    one by one, and those of other subjects, are gaps. Where the limits of a stream have deleted messages that were not read, some
    of them may have had other subjects: all count as lost.

    Args:
        servers, credentials, domain, timeout: see NatsProperties.
        subjects: see NatsMessages.
        topics, start, block_records, block_bytes, window_blocks, scan_interval_millis, on_lost, wait, event_time,
            value_format, out_of_orderness, idle_timeout: see AbstractLogSplitterInput.
    """

    def check(self) -> None:
        """Raise ValueError for properties that no server can have, and PackageMissing."""
        with all_problems(super().check) as problems:
            problems.extend(subject_problems(self.subjects))
            problems.extend(stream_problems(self.topics))

    def state_properties(self) -> tuple[str, ...]:
        """Return the properties that give positions their meaning."""
        return (*super().state_properties(), "subjects", "domain")

    @property
    def log(self) -> NatsLog:
        """The streams of the servers."""
        return NatsLog(self.nats_server, self.subjects)


@attrs.define(slots=False)
class ReadsNats(NatsMessages, UsesNats, ReadsLog):
    """Reads ranges of sequences of streams: the half of a reader that is the same for records and for columns."""

    servers: Secret = attrs.field(kw_only=True, repr=False, validator=attrs.validators.instance_of(str))

    def check(self) -> None:
        """Raise ValueError where properties contradict each other, and PackageMissing."""
        with all_problems(super().check) as problems:
            problems.extend(subject_problems(self.subjects))

    @property
    def log(self) -> NatsLog:
        """The streams of the servers."""
        return NatsLog(self.nats_server, self.subjects, self.batch_bytes)


@attrs.define
class NatsBlockReader(ReadsNats, AbstractLogReader[R], Generic[R]):
    """Reads ranges of sequences of JetStream's streams, each message once.

    The key of a message is its subject, its offset the sequence. Of headers that have the same name, the last one is read: the
    client has no others. Each reader has a connection, and an ephemeral consumer that acknowledges nothing.

    Args:
        servers, subjects, credentials, domain, timeout: as NatsSplitterInput has them.
        convert_to_record, on_lost, batch_bytes, min_readers, max_readers, collect_stats, interval_millis, policy, sequential: see
            AbstractLogReader.
    """


@attrs.define(slots=False)
class NatsInput(NatsMessages, AbstractLogInput[R], Generic[R]):
    """Reads the new messages of JetStream's streams, each once: a NatsSplitterInput and a NatsBlockReader.

    NatsScanInput reads the values of messages as typed columns. The port `errors` has bad messages, and ranges that were lost
    after they were planned; `splitter_errors` has those that were lost before.

    The operators inside are called `splitter` and `reader`. What they can do and this module does not name is set there:
    `operator.NAME.splitter.window_blocks = 4`, `operator.NAME.reader.batch_bytes = "4MiB"`. docs/how-to/nats.md has an
    example and the guarantees.

    Args:
        servers, credentials, domain, timeout: see NatsProperties.
        subjects: see NatsMessages.
        topics: streams, by names and by patterns, which begin with `^`.
        convert_to_record: a function of a message's value for `messages`; None: the bytes. A field for `event_time` is read by
            it, too; without it, values are JSON.
        on_bad_message: `on_error` of the reader, for messages that it cannot convert: `fail`, `skip` or `route` (to
            the port `errors`).
        start, on_lost, wait, event_time, out_of_orderness, idle_timeout, min_readers, max_readers: see LogInputProperties.

    >>> from dagflow import plan
    >>> from operators import Console
    >>> def populate_dag(dag, conf):
    ...     orders = dag.add_module("orders", NatsInput("nats://ada:secret@localhost", topics="ORDERS"))
    ...     dag.add_stream("messages", orders.batches, dag.add_operator("shown", Console()).input)
    >>> "secret" in str(plan(populate_dag, {}))
    False
    """

    splitter_class: ClassVar[Any] = NatsSplitterInput
    reader_class: ClassVar[Any] = NatsBlockReader

    topics: tuple[str, ...] = attrs.field(kw_only=True, converter=one_or_more)
