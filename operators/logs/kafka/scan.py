"""KafkaScanReader, and KafkaScanInput: messages of Kafka as typed columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic

import attrs
from typing_extensions import TypeVar

from dagflow.config import Seconds, Secret, seconds_of
from operators.logs.columns.scan_reader import AbstractLogScanReader
from operators.logs.kafka.client import KafkaLog
from operators.logs.kafka.operators import KafkaSplitterInput, server_problems
from operators.logs.kafka.settings import load_kafka
from operators.logs.log_input import AbstractLogScanInput
from operators.names import one_or_more
from operators.problems import all_problems

T = TypeVar("T", default=Any)


@attrs.define
class KafkaScanReader(AbstractLogScanReader[T], Generic[T]):
    """Reads ranges of offsets of Kafka topics as typed columns of their values (`pip install 'dagflow[kafka]'`).

    Args:
        bootstrap_servers, config, timeout: as KafkaSplitterInput has them.

    The other properties, counters and errors are those of AbstractLogScanReader.
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
class KafkaScanInput(AbstractLogScanInput[T], Generic[T]):
    """Reads Kafka topics, each message once, as batches of typed columns: a KafkaSplitterInput and a KafkaScanReader.

    A message is a JSON object, or what `value_format` decodes. Its members are columns; topic, partition and offset stand beside
    them. docs/how-to/kafka.md has an example.

    Args:
        bootstrap_servers, topics, config, timeout, commit_group: as KafkaSplitterInput has them.
        value_format, schema, columns, message_columns, drift, on_bad_row: see AbstractLogScanInput.
        start, on_lost, wait, event_time, out_of_orderness, idle_timeout, min_readers, max_readers: see LogInputProperties.

    >>> from dagflow import plan
    >>> from operators import Console
    >>> def populate_dag(dag, conf):
    ...     clicks = dag.add_module("clicks", KafkaScanInput("localhost:9092", "clicks", schema="page: string, at: timestamp"))
    ...     dag.add_stream("rows", clicks.batches, dag.add_operator("shown", Console()).input)
    >>> "clicks.reader" in str(plan(populate_dag, {}))
    True
    """

    bootstrap_servers: str = attrs.field(validator=attrs.validators.instance_of(str))
    topics: tuple[str, ...] = attrs.field(converter=one_or_more)
    config: Mapping[str, Secret] = attrs.field(factory=dict, kw_only=True, repr=False)
    timeout: Seconds = attrs.field(default=30.0, kw_only=True, converter=seconds_of, validator=attrs.validators.gt(0))
    commit_group: str | None = attrs.field(default=None, kw_only=True)

    def make_splitter(self, **properties: Any) -> KafkaSplitterInput:
        """Return the splitter."""
        return KafkaSplitterInput(topics=self.topics, commit_group=self.commit_group, **properties)

    def reader_class(self) -> type[KafkaScanReader[T]]:
        """Return the class of the reader."""
        return KafkaScanReader

    def log_properties(self) -> dict[str, Any]:
        """Return the properties of the cluster."""
        return {"bootstrap_servers": self.bootstrap_servers, "config": self.config, "timeout": self.timeout}
