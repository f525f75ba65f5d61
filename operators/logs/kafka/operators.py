"""KafkaSplitterInput, KafkaBlockReader, and KafkaInput, which is both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, get_args

import attrs
from typing_extensions import TypeVar

from dagflow import DAG, ErrorRecord, Module, OperatorContext, ProxyOutputPort, ReaderRecord
from dagflow.config import Seconds, Secret, one_of, seconds_of
from operators.logs.block_reader import AbstractLogReader
from operators.logs.blocks import PartitionPosition
from operators.logs.kafka.client import KafkaLog
from operators.logs.kafka.settings import OWN_SETTINGS, load_kafka
from operators.logs.log_input import LogInputProperties, OnError
from operators.logs.messages import LogMessage
from operators.logs.splitter_input import AbstractLogSplitterInput
from operators.names import one_or_more
from operators.problems import all_problems

R = TypeVar("R", default=bytes)


@attrs.define(slots=False)
class KafkaSplitterInput(AbstractLogSplitterInput):
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

    bootstrap_servers: str = attrs.field(validator=attrs.validators.instance_of(str))
    topics: tuple[str, ...] = attrs.field(converter=one_or_more)
    config: Mapping[str, Secret] = attrs.field(factory=dict, kw_only=True, repr=False)
    timeout: Seconds = attrs.field(default=30.0, kw_only=True, converter=seconds_of, validator=attrs.validators.gt(0))
    commit_group: str | None = attrs.field(default=None, kw_only=True)

    def check(self) -> None:
        """Raise ValueError for properties that no cluster can have, and PackageMissing."""
        load_kafka(type(self).__name__)
        with all_problems(super().check) as problems:
            problems.extend(server_problems(self.bootstrap_servers, self.config))

    @property
    def log(self) -> KafkaLog:
        """The cluster."""
        return KafkaLog(self.bootstrap_servers, self.config, self.timeout)

    def setup(self, context: OperatorContext) -> None:
        """Begin without a connection, and with nothing seen."""
        super().setup(context)
        self._planned: dict[int, dict[str, PartitionPosition]] = {}
        self._warned: set[str] = set()

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
            if problem is not None and not self._warned:
                self._warned.add(problem)
                self._context.warn(f"positions are not written to the consumer group {self.commit_group!r}: {problem}")


@attrs.define
class KafkaBlockReader(AbstractLogReader[R], Generic[R]):
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

    bootstrap_servers: str = attrs.field(kw_only=True, validator=attrs.validators.instance_of(str))
    config: Mapping[str, Secret] = attrs.field(factory=dict, kw_only=True, repr=False)
    timeout: Seconds = attrs.field(default=30.0, kw_only=True, converter=seconds_of, validator=attrs.validators.gt(0))

    def check(self) -> None:
        """Raise ValueError for properties that no cluster can have, and PackageMissing."""
        load_kafka(type(self).__name__)
        with all_problems(super().check) as problems:
            problems.extend(server_problems(self.bootstrap_servers, self.config))

    @property
    def log(self) -> KafkaLog:
        """The cluster."""
        return KafkaLog(self.bootstrap_servers, self.config, self.timeout, self.batch_bytes)


@attrs.define(slots=False)
class KafkaInput(LogInputProperties, Module, Generic[R]):
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

    bootstrap_servers: str = attrs.field(validator=attrs.validators.instance_of(str))
    topics: tuple[str, ...] = attrs.field(converter=one_or_more)
    convert_to_record: Callable[[bytes], R | None] | None = attrs.field(default=None, kw_only=True)
    on_bad_message: OnError = attrs.field(default="fail", kw_only=True, validator=one_of(get_args(OnError)))
    config: Mapping[str, Secret] = attrs.field(factory=dict, kw_only=True, repr=False)
    timeout: Seconds = attrs.field(default=30.0, kw_only=True, converter=seconds_of, validator=attrs.validators.gt(0))
    commit_group: str | None = attrs.field(default=None, kw_only=True)

    batches = ProxyOutputPort[LogMessage]()
    messages = ProxyOutputPort[ReaderRecord[R]]()
    errors = ProxyOutputPort[ErrorRecord]()
    splitter_errors = ProxyOutputPort[ErrorRecord]()

    def populate_dag(self, dag: DAG) -> None:
        """Splitter, reader, and the blocks between them."""
        cluster: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers,
            "config": self.config,
            "timeout": self.timeout,
        }
        splitter = dag.add_operator(
            "splitter",
            KafkaSplitterInput(
                topics=self.topics,
                commit_group=self.commit_group,
                value_format=self.convert_to_record or "json",
                **cluster,
                **self.planning(),
            ),
        )
        made: KafkaBlockReader[R] = KafkaBlockReader(  # no [R]: of bytes where nothing is converted, which may be batches then
            self.convert_to_record, on_error=self.on_bad_message, **cluster, **self.reading()
        )
        reader = dag.add_operator("reader", made)
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        self.batches.set(reader.batches)
        self.messages.set(reader.messages)
        self.errors.set(reader.errors)
        self.splitter_errors.set(splitter.errors)


def server_problems(servers: str, config: Mapping[str, Any]) -> list[str]:
    """Return the problems with the properties that operators of a cluster share."""
    problems = []
    if not servers:
        problems.append("bootstrap_servers is empty: write host:9092")
    if own := sorted(OWN_SETTINGS.intersection(config)):
        problems.append(f"config has {', '.join(own)}: set by dagflow, which reads each message once by it")
    return problems
