"""A topic of Kafka, by confluent-kafka.

The producer is idempotent, and never sends a message behind one that failed (`enable.gapless.guarantee`). Transactions are not
used.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from operators.logs.errors import LogRefused, LogUnavailable
from operators.logs.kafka.settings import LOGIN_NEEDS, UNSUPPORTED, identity_of, load_kafka
from operators.sinks.logs.client import LogBounds, MessageMark, Outgoing
from operators.sinks.logs.errors import LogNotWritable, MessageRefused

APPLICATION, SINK, WINDOW, SEQUENCE = "dagflow-application", "dagflow-output", "dagflow-window", "dagflow-sequence"
"""The headers of each message."""

OWN_SETTINGS = frozenset(
    {
        "acks",
        "bootstrap.servers",
        "delivery.report.only.error",
        "enable.auto.commit",
        "enable.gapless.guarantee",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "isolation.level",
        "max.in.flight",
        "max.in.flight.requests.per.connection",
        "message.max.bytes",
        "message.send.max.retries",
        "message.timeout.ms",
        "partitioner",
        "request.required.acks",
        "retries",
        "transactional.id",
    }
)
"""Settings of librdkafka that the promises rest on."""

_OVERHEAD = 2_000
"""The bytes of a batch beside those of a message."""
_QUEUED_KILOBYTES = 64 << 10
_POLL, _REPORTS = 0.1, 2.0

_AWAY = ("_TRANSPORT", "_TIMED_OUT", "_MSG_TIMED_OUT", "_RESOLVE", "_ALL_BROKERS_DOWN", "_WAIT_COORD", "_FATAL")
_NEEDS = "WRITE, READ and DESCRIBE on the topic (before Kafka 3.0 also IDEMPOTENT_WRITE on the cluster)"
_ACCESS = {"AUTHORIZATION": _NEEDS, **LOGIN_NEEDS}
"""The needs of a client that the server refuses, by a part of the name of the error."""
_NO_TOPIC = "create the topic, or correct its name"
_TOO_LARGE = ("MSG_SIZE_TOO_LARGE", "INVALID_MSG_SIZE", "INVALID_RECORD", "INVALID_TIMESTAMP", "RECORD_LIST_TOO_LARGE")
_CONSEQUENCES = ("_PURGE_QUEUE", "_PURGE_INFLIGHT", "_FATAL", "_GAPLESS_GUARANTEE")
_DESCRIBE_TIMEOUT, _DESCRIBE_AGAIN = 5.0, 30.0
_QUIET = logging.getLogger("dagflow.librdkafka")  # what it would log by itself is raised, or noticed by `error_cb`
_QUIET.disabled = True


@attrs.frozen
class KafkaTopic:
    """A topic. `timeout`: seconds without any progress before an operation fails; `config`: further settings of librdkafka."""

    servers: str
    topic: str
    config: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    timeout: float = 30.0
    max_message_bytes: int = 1_000_000

    @property
    def place(self) -> str:
        """The topic and its servers."""
        return f"topic {self.topic!r} of {self.servers}"

    @contextlib.contextmanager
    def connected(self, doing: str) -> Iterator[OpenTopic]:
        """See `LogTarget.connected`. Clients are kept for the next time."""
        kafka = load_kafka("KafkaWriter")
        opened = OpenTopic(self, _clients(self), doing)
        opened.clients.forget()
        try:
            yield opened
        except kafka.KafkaException as error:
            raise opened.error(error.args[0]) from error

    def check(self, open_log: OpenTopic) -> None:
        """See `LogTarget.check`."""
        open_log.check()

    def place_problem(self, partition: int | None, subject: str | None) -> str | None:
        """See `LogTarget.place_problem`. The topic is asked once in a process, and again where it may have grown."""
        if partition is None:
            return None
        clients = _clients(self)
        if partition >= clients.partitions:
            try:
                with self.connected("looking for its partitions") as log:
                    clients.partitions = log.partitions()
            except (LogUnavailable, LogRefused, LogNotWritable):  # only the driver may reach the servers
                return None
        if partition < clients.partitions:
            return None
        return f"the topic has {clients.partitions} partitions, numbered from 0"

    def check_keyless(self) -> None:
        """See `LogTarget.check_keyless`. The topic is asked once in a process."""
        clients = _clients(self)
        if clients.is_compacted is None:
            with self.connected("looking for its cleanup.policy") as log:
                clients.is_compacted = log.is_compacted()
        if clients.is_compacted:
            reason = "its cleanup.policy is compact: it takes no messages without a key"
            help_ = "give the writer a key, and leave rows without one out with Filter(…)"
            raise LogNotWritable(log=self.place, doing="looking at a window", reason=reason, help=help_)

    def settings(self, **own: Any) -> dict[str, Any]:
        """Return the settings of a client."""
        return {"bootstrap.servers": self.servers, "client.id": "dagflow", "logger": _QUIET, **self.config, **own}


@attrs.define
class _Clients:
    """The clients of one topic's servers in this process, and the last errors that they have noticed by themselves."""

    topic: KafkaTopic
    noticed: list[Any] = attrs.field(factory=list)
    partitions: int = 0  # as they were counted last
    is_compacted: bool | None = None  # not known yet
    describes_from: float = 0.0  # the time from which on servers are asked for descriptions, by the monotonic clock
    _admin: Any = None
    _producer: Any = None

    def admin(self) -> Any:
        """Return the client for questions."""
        if self._admin is None:
            admin = load_kafka("KafkaWriter").admin
            self._admin = admin.AdminClient(self.topic.settings(error_cb=self.notice))
        self._admin.poll(0)
        return self._admin

    def producer(self) -> Any:
        """Return the producer."""
        if self._producer is None:
            self._producer = load_kafka("KafkaWriter").Producer(
                self.topic.settings(
                    **{
                        "acks": "all",
                        "delivery.report.only.error": True,
                        "enable.gapless.guarantee": True,
                        "enable.idempotence": True,
                        "error_cb": self.notice,
                        "message.max.bytes": self.topic.max_message_bytes + _OVERHEAD,
                        "message.timeout.ms": 0,  # the deadline is ours: see `OpenTopic.send`
                        "queue.buffering.max.kbytes": max(_QUEUED_KILOBYTES, self.topic.max_message_bytes >> 9),
                    }
                )
            )
        return self._producer

    def consumer(self) -> Any:
        """Return a new consumer, outside of any group."""
        own = {
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "group.id": "dagflow",
            "isolation.level": "read_uncommitted",
            "auto.offset.reset": "earliest",
            "error_cb": self.notice,
        }
        return load_kafka("KafkaWriter").Consumer(self.topic.settings(**own))

    def abandon(self) -> None:
        """Forget the producer and what it has not sent: nothing of it may be sent later."""
        producer, self._producer = self._producer, None
        if producer is not None:
            refused = load_kafka("KafkaWriter").KafkaException
            producer.purge()
            deadline = time.monotonic() + _REPORTS
            while len(producer) and time.monotonic() < deadline:  # the messages say why they failed
                try:
                    producer.poll(_POLL)
                except refused as error:  # one that has failed for good may say so at any poll
                    self.notice(error.args[0])
                    time.sleep(_POLL)

    def forget(self) -> None:
        """Forget the errors that clients have noticed before a new purpose: they are not its cause."""
        for client in (self._admin, self._producer):
            if client is not None:
                client.poll(0)
        self.noticed.clear()

    def notice(self, error: Any) -> None:
        """Keep an error that a client has noticed by itself."""
        self.noticed.append(error)
        del self.noticed[:-8]


_KEPT: dict[Any, _Clients] = {}


def _clients(topic: KafkaTopic) -> _Clients:
    """Return the clients of this process. They do not survive a fork."""
    key = (os.getpid(), topic.servers, topic.topic, topic.max_message_bytes, tuple(sorted(topic.config.items())))
    if key not in _KEPT:
        _KEPT[key] = _Clients(topic)
    return _KEPT[key]


@attrs.define
class OpenTopic:
    """See `OpenLog`. `doing`: the purpose, for messages."""

    topic: KafkaTopic
    clients: _Clients
    doing: str

    # -------------------------------------------------------------------------------------------------------------- looking

    def state(self) -> LogBounds:
        """See `OpenLog.state`."""
        kafka = load_kafka("KafkaWriter")
        admin, spec = self.clients.admin(), kafka.admin.OffsetSpec
        count = self.partitions()
        parts = [kafka.TopicPartition(self.topic.topic, partition) for partition in range(count)]
        asked = [
            admin.list_offsets(dict.fromkeys(parts, each), request_timeout=self.topic.timeout)
            for each in (spec.earliest(), spec.latest())
        ]
        begins, ends = (
            {part.partition: future.result(self.topic.timeout).offset for part, future in futures.items()} for futures in asked
        )
        return LogBounds(
            identity_of(self._description()),
            tuple(begins[partition] for partition in range(count)),
            tuple(ends[p] for p in range(count)),
        )

    def partitions(self) -> int:
        """Return the number of partitions."""
        # All topics: a request that names one creates it, where the brokers create topics by themselves.
        described = self.clients.admin().list_topics(timeout=self.topic.timeout).topics.get(self.topic.topic)
        if described is None:
            raise self._not_writable("there is no such topic", _NO_TOPIC)
        if described.error is not None:
            raise self.error(described.error)
        return len(described.partitions)

    def _description(self, **options: Any) -> Any:
        """Return the description of the topic; None from servers that cannot describe it, which are not asked again.

        Also None where there is no answer. Those servers are asked again later.
        """
        kafka = load_kafka("KafkaWriter")
        if time.monotonic() < self.clients.describes_from:
            return None
        seconds = min(self.topic.timeout, _DESCRIBE_TIMEOUT)
        asked = kafka.TopicCollection([self.topic.topic])
        try:
            futures = self.clients.admin().describe_topics(asked, request_timeout=seconds, **options)
            return futures[self.topic.topic].result(2 * seconds)
        except (kafka.KafkaException, TimeoutError) as error:
            is_lacking = isinstance(error, kafka.KafkaException) and error.args[0].name() in UNSUPPORTED
            self.clients.describes_from = math.inf if is_lacking else time.monotonic() + _DESCRIBE_AGAIN
            return None

    def check(self) -> None:
        """Raise LogRefused where the user may not write or read, or the topic takes no messages as large as ours may be."""
        kafka = load_kafka("KafkaWriter")
        described = self._description(include_authorized_operations=True)
        allowed = None if described is None else getattr(described, "authorized_operations", None)
        if allowed:
            operation = kafka.admin.AclOperation
            wanted = (operation.WRITE, operation.READ)
            if missing := [each.name for each in wanted if each not in allowed and operation.ALL not in allowed]:
                reason = f"the user lacks {' and '.join(missing)} on it"
                raise LogRefused(log=self.topic.place, doing=self.doing, reason=reason, needs=_NEEDS)
        entry = self._config().get("max.message.bytes")
        if entry is not None and entry.value and int(entry.value) < self.topic.max_message_bytes:
            reason = f"its max.message.bytes is {int(entry.value):,}, and max_message_bytes is {self.topic.max_message_bytes:,}"
            raise self._not_writable(reason, "lower max_message_bytes, or raise the limit of the topic")

    def is_compacted(self) -> bool:
        """Return whether the topic keeps the newest message of each key. False without the permission to see that."""
        entry = self._config().get("cleanup.policy")
        return entry is not None and "compact" in (entry.value or "")

    def _config(self) -> Mapping[str, Any]:
        """Return the settings of the topic; none without the permission to see them."""
        kafka = load_kafka("KafkaWriter")
        if time.monotonic() < self.clients.describes_from:
            return {}
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResource.Type.TOPIC, self.topic.topic)
        try:
            futures = self.clients.admin().describe_configs([resource], request_timeout=_DESCRIBE_TIMEOUT)
            settings: Mapping[str, Any] = futures[resource].result(2 * _DESCRIBE_TIMEOUT)
        except (kafka.KafkaException, TimeoutError):
            return {}
        return settings

    def marks(self, starts: Mapping[int, int], stops: Mapping[int, int]) -> Iterator[tuple[int, int, MessageMark | None]]:
        """See `OpenLog.marks`."""
        kafka = load_kafka("KafkaWriter")
        open_ = {partition for partition, start in starts.items() if start < stops.get(partition, start + 1)}
        if not open_:
            return
        consumer = self.clients.consumer()
        try:
            consumer.assign([kafka.TopicPartition(self.topic.topic, partition, starts[partition]) for partition in open_])
            deadline = time.monotonic() + self.topic.timeout
            while open_:
                messages = consumer.consume(1_000, timeout=_POLL)
                if messages:
                    deadline = time.monotonic() + self.topic.timeout
                elif time.monotonic() > deadline:
                    raise self._unavailable("no answer")
                for message in messages:
                    partition = message.partition()
                    if (error := message.error()) is not None:
                        if error.code() != kafka.KafkaError._PARTITION_EOF:
                            raise self.error(error)
                        open_.discard(partition)
                    elif partition in open_:
                        offset, stop = message.offset(), stops.get(partition)
                        if stop is not None and offset >= stop - 1:
                            open_.discard(partition)
                        if stop is None or offset < stop:
                            yield partition, offset, mark_of(message.headers())
        finally:
            consumer.close()

    # -------------------------------------------------------------------------------------------------------------- sending

    def send(self, owner: str, window: int, starts: Sequence[int], messages: Iterable[Outgoing]) -> None:
        """See `OpenLog.send`."""
        kafka = load_kafka("KafkaWriter")
        producer, failures = self.clients.producer(), list[Any]()

        def failed(error: Any, _: Any) -> None:
            failures.append(error)

        application, _, sink = owner.rpartition("/")
        own = [(APPLICATION, application.encode()), (SINK, sink.encode()), (WINDOW, b"%d" % window)]
        topic, produce = self.topic.topic, producer.produce
        try:
            for some in messages:
                for place, number, key, value, headers, at in zip(
                    some.partitions, some.sequences, some.keys, some.values, some.headers, some.times, strict=True
                ):
                    marked = [*own, (SEQUENCE, b"%d" % number), *(headers or ())]
                    while True:
                        try:
                            produce(topic, value, key, place, failed, timestamp=at or 0, headers=marked)
                            break
                        except BufferError:
                            self._drain(producer, failures, len(producer) * 3 // 4)
                producer.poll(0)
                if failures:
                    break
            self._drain(producer, failures, 0)
        except BaseException as error:
            self.clients.abandon()
            if isinstance(
                error, kafka.KafkaException
            ):  # a message that is refused at once, or what follows from the first failure
                raise self._of_sending([*failures, error.args[0]], window) from error
            raise
        if failures:
            self.clients.abandon()
            raise self._of_sending(failures, window)

    def _drain(self, producer: Any, failures: list[Any], left: int) -> None:
        """Wait until at most `left` messages are not answered. Raises LogUnavailable when none is answered for a while."""
        before, deadline = len(producer), time.monotonic() + self.topic.timeout
        while len(producer) > left and not failures:
            producer.poll(_POLL)
            if (now := len(producer)) < before:
                before, deadline = now, time.monotonic() + self.topic.timeout
            elif time.monotonic() > deadline:
                raise self._unavailable(f"no answer for {self.topic.timeout:g} s")

    # --------------------------------------------------------------------------------------------------------------- errors

    def error(self, error: Any) -> LogUnavailable | LogRefused | LogNotWritable:
        """Return the error that stands for one of the client."""
        name = error.name()
        if "UNKNOWN_TOPIC" in name or name == "_UNKNOWN_PARTITION":
            return self._not_writable(error.str(), _NO_TOPIC)
        if name == "_INVALID_ARG":
            return self._not_writable(error.str(), "correct the settings in config")
        if name not in _AWAY and (refused := self._refused(error)) is not None:
            return refused
        return self._unavailable(error.str())

    def _of_sending(self, errors: Sequence[Any], window: int) -> Exception:
        """Return the error for the reports of messages that failed: the first one that is not a consequence of others."""
        error = next((each for each in errors if each.name() not in _CONSEQUENCES), errors[0])
        if error.name() in _TOO_LARGE:
            return MessageRefused(log=self.topic.place, window=window, reason=error.str())
        return self.error(error)

    def _refused(self, error: Any) -> LogRefused | None:
        for part, needs in _ACCESS.items():
            if part in error.name():
                return LogRefused(log=self.topic.place, doing=self.doing, reason=error.str(), needs=needs)
        return None

    def _not_writable(self, reason: str, remedy: str) -> LogNotWritable:
        return LogNotWritable(log=self.topic.place, doing=self.doing, reason=reason, help=remedy)

    def _unavailable(self, reason: str) -> LogUnavailable | LogRefused:
        """Return the error of a question that is not answered; its reason may be what the clients noticed by themselves."""
        for error in reversed(self.clients.noticed):  # of a refused login, the question itself only times out
            if (refused := self._refused(error)) is not None:
                return refused
        if self.clients.noticed:
            reason = f"{reason}; {self.clients.noticed[-1].str()}"
        return LogUnavailable(log=self.topic.place, doing=self.doing, reason=reason)


def mark_of(headers: Any) -> MessageMark | None:
    """Return the mark of a message by its headers; None for a message of another producer.

    >>> mark_of([(APPLICATION, b"shop-1f"), (SINK, b"sales"), (WINDOW, b"3"), (SEQUENCE, b"17"), ("trace", b"x")])
    MessageMark(owner='shop-1f/sales', window=3, sequence=17)
    """
    if not headers:
        return None
    known = dict(headers)
    try:
        return MessageMark(f"{known[APPLICATION].decode()}/{known[SINK].decode()}", int(known[WINDOW]), int(known[SEQUENCE]))
    except (KeyError, ValueError, AttributeError):
        return None
