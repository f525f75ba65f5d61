"""KafkaScanReader, and KafkaScanInput: messages of Kafka as typed columns."""

from __future__ import annotations

from typing import Any, ClassVar, Generic

import attrs
from typing_extensions import TypeVar

from operators.logs.columns.scan_reader import AbstractLogScanReader
from operators.logs.kafka.operators import KafkaSplitterInput, KafkaTopics, ReadsKafka
from operators.logs.log_input import AbstractLogScanInput

T = TypeVar("T", default=Any)


@attrs.define
class KafkaScanReader(ReadsKafka, AbstractLogScanReader[T], Generic[T]):
    """Reads ranges of offsets of Kafka topics as typed columns of their values (`pip install 'dagflow[kafka]'`).

    Args:
        bootstrap_servers, config, timeout: as KafkaSplitterInput has them.

    The other properties, counters and errors are those of AbstractLogScanReader.
    """


@attrs.define(slots=False)
class KafkaScanInput(KafkaTopics, AbstractLogScanInput[T], Generic[T]):
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

    splitter_class: ClassVar[Any] = KafkaSplitterInput
    reader_class: ClassVar[Any] = KafkaScanReader
