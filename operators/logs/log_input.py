"""The properties that the modules of a log share: they plan ranges of offsets and read them."""

from __future__ import annotations

from typing import Any, Generic, Literal

import attrs
from typing_extensions import TypeVar, override

from dagflow import DAG, ErrorRecord, Module, ProxyOutputPort
from dagflow.config import Seconds, not_negative, one_of, seconds_of
from dagflow.scan import BadRow, Drift, OnBadRow, TableSchema
from operators.logs.access import OnLost
from operators.logs.event_times import ValueFormat
from operators.logs.splitter_input import AbstractLogSplitterInput, Start
from operators.names import one_or_more
from operators.readers.abstract_scan_reader import to_columns, to_drift

T = TypeVar("T", default=Any)

OnError = Literal["fail", "skip", "route"]


@attrs.define(slots=False)
class LogInputProperties:
    """The properties of a log's modules that are not of the log itself.

    The operators inside are called `splitter` and `reader`. What they can do and the module does not name is set there:
    `operator.NAME.splitter.window_blocks = 4`, `operator.NAME.reader.batch_bytes = "4MiB"`.

    Args:
        start, wait, event_time, out_of_orderness, idle_timeout: see AbstractLogSplitterInput.
        on_lost: the reaction to messages that the log has deleted before they were read: `fail`, or `skip`.
        min_readers, max_readers: how many readers a window has.
    """

    start: Start = attrs.field(default="earliest", kw_only=True)
    on_lost: OnLost = attrs.field(default="fail", kw_only=True, validator=one_of(("fail", "skip")))
    wait: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))
    event_time: str | None = attrs.field(default=None, kw_only=True)
    out_of_orderness: Seconds = attrs.field(default=0.0, kw_only=True, converter=seconds_of, validator=not_negative)
    idle_timeout: Seconds = attrs.field(default=30.0, kw_only=True, converter=seconds_of, validator=not_negative)
    min_readers: int = attrs.field(default=1, kw_only=True)
    max_readers: int = attrs.field(default=16, kw_only=True)

    def planning(self) -> dict[str, Any]:
        """Return the properties of the splitter."""
        names = ("start", "on_lost", "wait", "event_time", "out_of_orderness", "idle_timeout")
        return {name: getattr(self, name) for name in names}

    def reading(self) -> dict[str, Any]:
        """Return the properties of the reader."""
        return {name: getattr(self, name) for name in ("on_lost", "min_readers", "max_readers")}


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

    def make_splitter(self, **properties: Any) -> AbstractLogSplitterInput:
        """Return the splitter of the log."""
        raise NotImplementedError

    def reader_class(self) -> Any:
        """Return the class of the log's reader."""
        raise NotImplementedError

    def log_properties(self) -> dict[str, Any]:
        """Return the properties by which the log is reached."""
        raise NotImplementedError

    @override
    def reading(self) -> dict[str, Any]:
        names = ("value_format", "columns", "message_columns", "drift", "on_bad_row")
        return {**super().reading(), **{name: getattr(self, name) for name in names}}

    def populate_dag(self, dag: DAG) -> None:
        """Splitter, reader, and the blocks between them."""
        properties, kind, schema = self.log_properties(), self.reader_class(), self.schema
        if isinstance(schema, type) and attrs.has(schema):
            kind, schema = kind[schema], None
        elif schema is not None:
            schema = TableSchema.of(schema)
        splitter = dag.add_operator(
            "splitter", self.make_splitter(**properties, **self.planning(), value_format=self.value_format)
        )
        reader = dag.add_operator("reader", kind(**properties, **self.reading(), schema=schema))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        self.batches.set(reader.batches)
        self.errors.set(reader.errors)
        self.splitter_errors.set(splitter.errors)
