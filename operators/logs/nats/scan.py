"""NatsScanReader, and NatsScanInput: messages of JetStream's streams as typed columns."""

from __future__ import annotations

from typing import Any, Generic

import attrs
from typing_extensions import TypeVar

from dagflow.config import Seconds, Secret, seconds_of
from operators.logs.columns.scan_reader import AbstractLogScanReader
from operators.logs.log_input import AbstractLogScanInput
from operators.logs.nats.operators import SERVER_PROPERTIES, NatsProperties, NatsSplitterInput
from operators.logs.nats.streams import NatsLog
from operators.names import one_or_more
from operators.problems import all_problems

T = TypeVar("T", default=Any)


@attrs.define
class NatsScanReader(NatsProperties, AbstractLogScanReader[T], Generic[T]):
    """Reads ranges of sequences of JetStream's streams as typed columns of the messages' values.

    Args:
        servers, subjects, credentials, domain, timeout: as NatsSplitterInput has them.

    The other properties, counters and errors are those of AbstractLogScanReader.
    """

    def check(self) -> None:
        """Raise ValueError where properties contradict each other, and PackageMissing."""
        with all_problems(super().check) as problems:
            problems.extend(self.nats_problems())

    @property
    def log(self) -> NatsLog:
        """The streams of the servers."""
        return NatsLog(self.nats_server, self.subjects, self.batch_bytes)


@attrs.define(slots=False)
class NatsScanInput(AbstractLogScanInput[T], Generic[T]):
    """Reads JetStream's streams, each message once, as batches of typed columns: a NatsSplitterInput and a NatsScanReader.

    Args:
        servers, subjects, credentials, domain, timeout: see NatsProperties.
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

    servers: Secret = attrs.field(repr=False, validator=attrs.validators.instance_of(str))
    topics: tuple[str, ...] = attrs.field(kw_only=True, converter=one_or_more)
    subjects: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=one_or_more)
    credentials: str | None = attrs.field(default=None, kw_only=True)
    domain: str | None = attrs.field(default=None, kw_only=True)
    timeout: Seconds = attrs.field(default=10.0, kw_only=True, converter=seconds_of, validator=attrs.validators.gt(0))

    def make_splitter(self, **properties: Any) -> NatsSplitterInput:
        """Return the splitter."""
        return NatsSplitterInput(topics=self.topics, **properties)

    def reader_class(self) -> type[NatsScanReader[T]]:
        """Return the class of the reader."""
        return NatsScanReader

    def log_properties(self) -> dict[str, Any]:
        """Return the properties of the servers."""
        return {name: getattr(self, name) for name in SERVER_PROPERTIES}
