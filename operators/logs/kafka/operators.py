"""KafkaSplitterInput, KafkaBlockReader, and KafkaInput, which is both."""

from __future__ import annotations

from typing import Any, ClassVar, Generic

import attrs
from typing_extensions import TypeVar

from dagflow import OperatorContext
from operators.logs.access import ReadsLog
from operators.logs.block_reader import AbstractLogReader
from operators.logs.blocks import PartitionPosition
from operators.logs.kafka.client import KafkaLog
from operators.logs.kafka.settings import KafkaProperties, UsesKafka
from operators.logs.log_input import AbstractLogInput
from operators.logs.splitter_input import AbstractLogSplitterInput
from operators.names import one_or_more

R = TypeVar("R", default=bytes)


@attrs.define(slots=False)
class KafkaTopics(KafkaProperties):
    """The topics that are read: see KafkaSplitterInput."""

    topics: tuple[str, ...] = attrs.field(converter=one_or_more)
    commit_group: str | None = attrs.field(default=None, kw_only=True)


@attrs.define(slots=False)
class KafkaSplitterInput(KafkaTopics, UsesKafka, AbstractLogSplitterInput):
    """Plans the messages of Kafka topics that are new, as ranges of offsets (`pip install 'dagflow[kafka]'`).

    Positions are in the plans and ledgers of the run, not in a consumer group. `AbstractLogSplitterInput` explains planning,
    retention and watermarks; docs/how-to/kafka.md shows an application.

    Args:
        bootstrap_servers: `host:9092`, or several, separated by commas.
        topics: names, and patterns, which begin with `^`.
        config: further settings of librdkafka, for security for example. They are shown nowhere. `isolation.level` is
            `read_committed` unless it is set.
        timeout: the time without any answer before the step fails, and is retried.
        commit_group: a consumer group to which the positions of committed windows are written too, for tools that watch lags.
            Nothing reads them. Servers that refuse are warned of once, and do not stop the run.
        start, block_records, block_bytes, window_blocks, scan_interval_millis, on_lost, wait: see AbstractLogSplitterInput.
        event_time, value_format, out_of_orderness, idle_timeout: see AbstractLogSplitterInput.

    >>> from operators.logs.protocol import Topics
    >>> source = KafkaSplitterInput("localhost:9092", ["clicks", "^orders-.*"], config={"sasl.password": "secret"})
    >>> "secret" in repr(source), Topics(source.topics).has("orders-eu")
    (False, True)
    """

    @property
    def log(self) -> KafkaLog:
        """The cluster."""
        return KafkaLog(self.bootstrap_servers, self.config, self.timeout)

    def setup(self, context: OperatorContext) -> None:
        """Begin without a connection, and with nothing seen."""
        super().setup(context)
        self._planned: dict[int, dict[str, PartitionPosition]] = {}

    def end_window(self) -> None:
        """Keep the positions until the window is committed."""
        if self.commit_group is not None:
            self._planned[self._context.window] = self.positions

    def committed(self, window: int) -> None:
        """Write the positions to the consumer group, if one is named."""
        positions = self._planned.pop(window, None)
        if self.commit_group is not None and positions:
            offsets = [(each.topic, each.partition, each.offset) for each in positions.values()]
            client: Any = self._connected.client
            problem = client.commit(self.commit_group, offsets)
            if problem is not None:
                text = f"positions are not written to the consumer group {self.commit_group!r}: {problem}"
                self.warn_once("commit_group", text)


@attrs.define(slots=False)
class ReadsKafka(UsesKafka, ReadsLog):
    """Reads ranges of offsets of Kafka topics: the half of a reader that is the same for records and for columns."""

    bootstrap_servers: str = attrs.field(kw_only=True, validator=attrs.validators.instance_of(str))

    @property
    def log(self) -> KafkaLog:
        """The cluster."""
        return KafkaLog(self.bootstrap_servers, self.config, self.timeout, self.batch_bytes)


@attrs.define
class KafkaBlockReader(ReadsKafka, AbstractLogReader[R], Generic[R]):
    """Reads ranges of offsets of Kafka topics, each message once (`pip install 'dagflow[kafka]'`).

    `messages` has values, converted by `convert_to_record`, with their offsets as positions; `batches` has all columns of
    messages. `AbstractLogReader` explains both.

    Args:
        convert_to_record: a function of a message's value, None drops the message; or override the method of that name.
        bootstrap_servers, config, timeout: as KafkaSplitterInput has them.
        on_lost, batch_bytes: see AbstractLogReader.
        min_readers, max_readers, collect_stats, interval_millis, policy, sequential: see ScaledReader.

    Counters, errors: see AbstractLogReader.
    """


@attrs.define(slots=False)
class KafkaInput(KafkaTopics, AbstractLogInput[R], Generic[R]):
    """Reads Kafka topics, each message once: a KafkaSplitterInput and a KafkaBlockReader.

    KafkaScanInput reads the values of messages as typed columns. The port `errors` has bad messages, and ranges that were lost
    after they were planned; `splitter_errors` has those that were lost before.

    The operators inside are called `splitter` and `reader`. What they can do and this module does not name is set there:
    `operator.NAME.splitter.window_blocks = 4`, `operator.NAME.reader.batch_bytes = "4MiB"`.

    Args:
        bootstrap_servers, topics, config, timeout, commit_group: as KafkaSplitterInput has them.
        convert_to_record: a function of a message's value, for the port `messages`; None drops the message. A field for
            `event_time` is read by it, too; without it, values are JSON.
        on_bad_message: `on_error` of the reader, for messages that it cannot convert: `fail`, `skip` or `route` (to
            the port `errors`).
        start, on_lost, wait, event_time, out_of_orderness, idle_timeout, min_readers, max_readers: see LogInputProperties.

    >>> from dagflow import plan
    >>> from operators import Console
    >>> def populate_dag(dag, conf):
    ...     clicks = dag.add_module("clicks", KafkaInput("localhost:9092", "clicks", config={"sasl.password": "secret"}))
    ...     dag.add_stream("rows", clicks.batches, dag.add_operator("shown", Console()).input)
    >>> "secret" in str(plan(populate_dag, {}))
    False
    """

    splitter_class: ClassVar[Any] = KafkaSplitterInput
    reader_class: ClassVar[Any] = KafkaBlockReader
