"""NatsScanReader, and NatsScanInput: messages of JetStream's streams as typed columns."""

from __future__ import annotations

from typing import Any, ClassVar, Generic

import attrs
from typing_extensions import TypeVar

from operators.logs.columns.scan_reader import AbstractLogScanReader
from operators.logs.log_input import AbstractLogScanInput
from operators.logs.nats.operators import NatsMessages, NatsSplitterInput, ReadsNats
from operators.names import one_or_more

T = TypeVar("T", default=Any)


@attrs.define
class NatsScanReader(ReadsNats, AbstractLogScanReader[T], Generic[T]):
    """Reads ranges of sequences of JetStream's streams as typed columns of the messages' values.

    Args:
        servers, subjects, credentials, domain, timeout: as NatsSplitterInput has them.

    The other properties, counters and errors are those of AbstractLogScanReader.
    """


@attrs.define(slots=False)
class NatsScanInput(NatsMessages, AbstractLogScanInput[T], Generic[T]):
    """Reads JetStream's streams, each message once, as batches of typed columns: a NatsSplitterInput and a NatsScanReader.

    Args:
        servers, credentials, domain, timeout: see NatsProperties.
        subjects: see NatsMessages.
        topics: streams, by names and by patterns, which begin with `^`.
        value_format, schema, columns, message_columns, drift, on_bad_row: see AbstractLogScanInput.
        start, on_lost, wait, event_time, out_of_orderness, idle_timeout, min_readers, max_readers: see LogInputProperties.

    >>> from dagflow import plan
    >>> from operators import Console
    >>> def populate_dag(dag, conf):
    ...     orders = dag.add_module("orders", NatsScanInput("nats://ada:secret@localhost", topics="ORDERS"))
    ...     dag.add_stream("rows", orders.batches, dag.add_operator("shown", Console()).input)
    >>> "secret" in str(plan(populate_dag, {}))
    False
    """

    splitter_class: ClassVar[Any] = NatsSplitterInput
    reader_class: ClassVar[Any] = NatsScanReader

    topics: tuple[str, ...] = attrs.field(kw_only=True, converter=one_or_more)
