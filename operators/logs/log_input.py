"""The modules of a log: they plan ranges of offsets and read them, as messages or as typed columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Literal, get_args

import attrs
from typing_extensions import TypeVar

from dagflow import DAG, ErrorRecord, Module, ProxyOutputPort, ReaderRecord
from dagflow.config import one_of
from dagflow.scan import BadRow, Drift, OnBadRow, TableSchema
from operators.logs.event_times import ValueFormat
from operators.logs.messages import LogMessage
from operators.logs.splitter_input import LogPlanning
from operators.names import one_or_more
from operators.readers.abstract_scan_reader import to_columns, to_drift

R = TypeVar("R", default=bytes)
T = TypeVar("T", default=Any)

OnError = Literal["fail", "skip", "route"]


@attrs.define(slots=False)
class LogInputProperties(LogPlanning):
    """The properties of a log's modules that are not of the log itself.

    The operators inside are called `splitter` and `reader`. What they can do and the module does not name is set there:
    `operator.NAME.splitter.window_blocks = 4`, `operator.NAME.reader.batch_bytes = "4MiB"`.

    Args:
        start, wait, event_time, out_of_orderness, idle_timeout: see AbstractLogSplitterInput.
        on_lost: the reaction to messages that the log has deleted before they were read: `fail`, or `skip`.
        min_readers, max_readers: how many readers a window has.
    """

    splitter_class: ClassVar[Any]
    reader_class: ClassVar[Any]

    min_readers: int = attrs.field(default=1, kw_only=True)
    max_readers: int = attrs.field(default=16, kw_only=True)


@attrs.define(slots=False)
class AbstractLogInput(LogInputProperties, Module, Generic[R]):
    """Reads the messages of a log, each once: a splitter and an AbstractLogReader.

    Args:
        convert_to_record: a function of a message's value, for the port `messages`; None: the bytes. A field for `event_time` is
            read by it, too; without it, values are JSON.
        on_bad_message: `on_error` of the reader, for messages that it cannot convert: `fail`, `skip` or `route` (to
            the port `errors`).
    """

    convert_to_record: Callable[[bytes], R | None] | None = attrs.field(default=None, kw_only=True)
    on_bad_message: OnError = attrs.field(default="fail", kw_only=True, validator=one_of(get_args(OnError)))

    batches = ProxyOutputPort[LogMessage]()
    messages = ProxyOutputPort[ReaderRecord[R]]()
    errors = ProxyOutputPort[ErrorRecord]()
    splitter_errors = ProxyOutputPort[ErrorRecord]()

    def populate_dag(self, dag: DAG) -> None:
        """Splitter, reader, and the blocks between them."""
        plans = self.make(self.splitter_class, value_format=self.convert_to_record or "json")
        reads = self.make(self.reader_class, on_error=self.on_bad_message)  # no [R]: what is not converted may be batches
        splitter, reader = dag.add_operator("splitter", plans), dag.add_operator("reader", reads)
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        self.batches.set(reader.batches)
        self.messages.set(reader.messages)
        self.errors.set(reader.errors)
        self.splitter_errors.set(splitter.errors)


@attrs.define(slots=False)
class AbstractLogScanInput(LogInputProperties, Module, Generic[T]):
    """Reads the messages of a log, each once, as batches of typed columns: a splitter and an AbstractLogScanReader.

    Args:
        value_format, message_columns: see AbstractLogScanReader.
        schema: columns with their types, before others of the first messages; or a class, whose fields are all columns.
        columns: the columns to read; None: all.
        drift: what happens to values and columns that the schema does not have: see ScanReader.
        on_bad_row: the reaction to a message that cannot be read: `fail`, `drop` or `route` (to the port `errors`).

    Ports: `batches`; `errors`: bad messages, with partition and offset; `splitter_errors`: ranges of messages that were lost
    before they were planned.
    """

    value_format: ValueFormat = attrs.field(default="json", kw_only=True)
    schema: Any = attrs.field(default=None, kw_only=True)
    columns: tuple[str, ...] | None = attrs.field(default=None, kw_only=True, converter=to_columns)
    message_columns: tuple[str, ...] = attrs.field(default=("topic", "partition", "offset"), kw_only=True, converter=one_or_more)
    drift: Drift = attrs.field(factory=Drift, kw_only=True, converter=to_drift, validator=attrs.validators.instance_of(Drift))
    on_bad_row: OnBadRow = attrs.field(default="fail", kw_only=True, validator=one_of(("fail", "drop", "route")))

    batches = ProxyOutputPort[T]()
    errors = ProxyOutputPort[BadRow]()
    splitter_errors = ProxyOutputPort[ErrorRecord]()

    def populate_dag(self, dag: DAG) -> None:
        """Splitter, reader, and the blocks between them."""
        kind, schema = self.reader_class, self.schema
        if isinstance(schema, type) and attrs.has(schema):
            kind, schema = kind[schema], None
        elif schema is not None:
            schema = TableSchema.of(schema)
        splitter = dag.add_operator("splitter", self.make(self.splitter_class))
        reader = dag.add_operator("reader", self.make(kind, schema=schema))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        self.batches.set(reader.batches)
        self.errors.set(reader.errors)
        self.splitter_errors.set(splitter.errors)
