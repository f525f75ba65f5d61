"""AbstractScanReader: blocks of rows and columns of any source, as batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, get_args

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, OperatorContext, OutputPort
from dagflow.config import one_of
from dagflow.errors import ScanError
from dagflow.ranges import ByteKeyRangeTracker, OffsetRangeTracker
from dagflow.scan import (
    AgreedSchema,
    BadRow,
    BatchLimits,
    BlockScan,
    Drift,
    ManagedReader,
    OnBadRow,
    RowOrigin,
    ScanSettings,
    SourceScan,
    SourceSchemaNegotiator,
    TableSchema,
    agree_on_blocks,
    column_names,
    described,
    extend_schema,
    is_agreed,
    needs_columns,
    record_class,
    to_type,
)
from operators.contexts.errors import ReadError
from operators.problems import all_problems
from operators.readers.reading.reader_time import ReaderTime
from operators.readers.scaled_reader import ScaledReader

T = TypeVar("T", default=Any)
B = TypeVar("B", default=Any)
S = TypeVar("S", default=Any)


def to_columns(value: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the requested columns as a tuple; None: all."""
    if isinstance(value, str):
        raise TypeError(f"columns is the text {value!r}, but must be a list of names: [{value!r}]")
    return None if value is None else tuple(value)


def to_schema(value: Any) -> TableSchema | None:
    """Return the schema in the form that readers use."""
    return None if value is None else TableSchema.of(value)


def to_drift(value: Any) -> Drift:
    """Return the drift policy, which may be a mapping."""
    return Drift(**value) if isinstance(value, Mapping) else value


@attrs.define
class ReadsColumns(ScaledReader, Generic[T]):
    """The half of a reader of scans that is the same for files and other sources: its columns.

    Args:
        columns, schema, drift, on_bad_row, limits, null_type: see ScanReader.
        min_readers, max_readers, collect_stats, interval_millis, policy, sequential: see ScaledReader.
    """

    columns: tuple[str, ...] | None = attrs.field(default=None, kw_only=True, converter=to_columns)
    schema: TableSchema | str | None = attrs.field(default=None, kw_only=True, converter=to_schema)
    drift: Drift = attrs.field(factory=Drift, kw_only=True, converter=to_drift, validator=attrs.validators.instance_of(Drift))
    on_bad_row: OnBadRow = attrs.field(default="fail", kw_only=True, validator=one_of(get_args(OnBadRow)))
    limits: BatchLimits = attrs.field(factory=BatchLimits, kw_only=True, validator=attrs.validators.instance_of(BatchLimits))
    null_type: str = attrs.field(default="string", kw_only=True)

    batches = OutputPort[T]()
    errors = OutputPort[BadRow]()  # type: ignore[assignment]  # rows that cannot be read, with more than other operators know

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check, lambda: self.scan_settings.projection, lambda: to_type(self.null_type)) as problems:
            if self._record_class is not None and self.columns is not None:
                problems.append(f"columns are the fields of {self._record_class.__name__}: leave them out, or the class")
            if self._record_class is None and isinstance(self.schema, TableSchema):
                untyped = [name for name, column in self.schema.columns.items() if column.type is None]
                problems.extend(f"column {name!r} of schema has no type: Column('date32', …)" for name in untyped)
            if not problems:  # the schema can be made
                problems.extend(self.number_problems())
            if self.on_error == "route":
                problems.append('on_error is "route", but the port errors carries bad rows: set on_bad_row = "route"')

    def number_problems(self) -> list[str]:
        """Return the problems of columns with a spelling of numbers: `decimal`, `thousands`. Here numbers are not text."""
        schema = self.scan_settings.schema
        names = () if schema is None else [name for name, column in schema.columns.items() if column.spells_numbers]
        return [f"column {name!r} has decimal or thousands, but numbers of {type(self).__name__} are not text" for name in names]

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches, whatever handler takes them."""
        return frozenset({"batch"}) if port == "batches" else super().emitted_forms(port, handled)

    def column_names(self, port: str) -> list[str] | None:
        """Return the columns that are asked for by name, and those of a strict schema. Only files name those of `*`."""
        settings = self.scan_settings
        return column_names(settings.projection, settings.schema, settings.drift) if port == "batches" else None

    def declared_columns(self, port: str) -> list[tuple[str, str]] | None:
        """Return the columns of the schema, and parts of them that are asked for."""
        schema, paths = self.scan_settings.schema, self.scan_settings.projection.paths or ()
        if schema is None or any(not path.is_star and path.root not in schema.columns for path in paths):
            return None
        return self.emitted_columns(port, AgreedSchema().to_plain())

    # Reading

    def begin(self, context: OperatorContext, scan: BlockScan) -> None:
        """Prepare to read by a scan."""
        self._context, self._time = context, ReaderTime(context)
        self._scan = scan

    def finish(self) -> pa.Schema | None:
        """Return the schema of the batches, after the last block of a task; None if no schema is known."""
        return self._scan.finish()

    def origin_of(self, row: int) -> RowOrigin:
        """Return the place of a row of the current batch, for `dagflow trace`."""
        return self._scan.origin(row)

    def teardown(self) -> None:
        """Close what is open."""
        if hasattr(self, "_scan"):
            self._scan.close()

    @property
    def scan_settings(self) -> ScanSettings:
        """The settings of the scan, from the properties and the class of its records."""
        properties = {field.name: getattr(self, field.name) for field in attrs.fields(ScanSettings) if hasattr(self, field.name)}
        if self._record_class is not None:
            own = TableSchema.of(self._record_class, strict=True)
            properties["schema"] = own if self.schema is None else own.with_formats(TableSchema.of(self.schema))
        return ScanSettings(**properties)

    @property
    def _record_class(self) -> type | None:
        """The class in the brackets, whose fields are the columns."""
        kind = next(iter(get_args(self.__dict__.get("__orig_class__"))), None)
        return None if record_class(kind) is None else kind

    def _route(self, row: BadRow) -> None:
        self.errors.emit(row)


@attrs.define
class AbstractScanReader(ReadsColumns[T], Generic[T, B, S]):
    """Reads blocks of rows and columns of any source, and emits batches: the base of readers of other things than files.

    T, B and S are the types of rows, of blocks and of the streams that are opened for them. The columns and their types are
    settled before the first window, from the first rows of some blocks, and then stay the same: see docs/explanation/scans.md. A
    subclass overrides `setup_stream`, and `make_reader`, whose readers have three methods (`dagflow.scan.ManagedReader`): they
    open, load rows or batches, and close. docs/how-to/write_a_source.md has an example.

    Args:
        columns, schema, drift, on_bad_row, limits, null_type: as ScanReader has them. Columns of paths, such as `filename`, are
            those of files only.
        sample_blocks: how many blocks are looked at before the first window, at most.
        min_readers, max_readers, collect_stats, interval_millis, policy, sequential: see ScaledReader.

    Counters: `blocks`, `records`, `batches`, `bad_rows`, `values_nulled`, `values_rescued`, `streams_opened`, `time_ms`.
    """

    sample_blocks: int = attrs.field(
        default=16, kw_only=True, validator=[attrs.validators.instance_of(int), attrs.validators.ge(1)]
    )

    blocks_metadata_input = InputPort[B]()

    # A reader of your own overrides these

    def setup_stream(self, block: B) -> S:
        """Open the stream that a block is read from."""
        raise NotImplementedError(f"{type(self).__name__} does not say how a block is opened: override setup_stream(block)")

    def close_stream(self, stream: S) -> None:
        """Close a stream."""
        stream.close()  # type: ignore[attr-defined]  # a reader whose streams have no close() overrides this

    def make_reader(self) -> ManagedReader[SourceSchemaNegotiator[B, S]]:
        """Return a fresh reader for one block."""
        raise NotImplementedError(f"{type(self).__name__} does not say how a block is read: override make_reader()")

    def can_split(self, item: B) -> bool:
        """Return True if parts of a block may be read by different readers. Then readers claim what they load."""
        return False

    def tracker_of(self, item: B) -> Any:
        """Return a new tracker of the range of a block, or of a part of one (`dagflow.ranges`).

        By default of integers or bytes.
        """
        bounds: Any = item.start, item.stop  # type: ignore[attr-defined]
        return (ByteKeyRangeTracker if isinstance(bounds[0], bytes) else OffsetRangeTracker)(*bounds)

    def place_of(self, block: B) -> str:
        """Return the name of the source of a block, for messages and lineage."""
        return type(block).__name__

    # For the planner

    def agree(self, items: Sequence[B], before: Any, context: OperatorContext) -> Any:
        """On the driver, before a window's plan is published: the columns that all its readers know, as plain data."""
        known = None if before is None else AgreedSchema.of(before)
        if known is not None and is_agreed(self.scan_settings, known):
            return before
        try:
            agreed = agree_on_blocks(self, self.scan_settings, items, self.sample_blocks, warn=context.warn, before=known)
            if known is not None:
                agreed = extend_schema(known, agreed, self.drift)
            self._made(agreed, context).close()  # what is asked for, and not there, is told before anything runs
        except (ReadError, ScanError) as error:
            error.reader = context.name
            raise
        return agreed.to_plain()

    def emitted_columns(self, port: str, agreed: Any) -> list[tuple[str, str]] | None:
        """Return the columns that were agreed on."""
        if port != "batches" or agreed is None:
            return None
        return [(field.name, str(field.type)) for field in self._made(AgreedSchema.of(agreed), OperatorContext()).schema]

    def describe_columns(self, port: str) -> str | None:
        """Name the source of the columns, for `dagflow plan`."""
        settings = self.scan_settings
        sample = f"{self.sample_blocks} blocks" if needs_columns(settings) else None
        return described(settings, sample) if port == "batches" else None

    # Reading

    def setup(self, context: OperatorContext) -> None:
        """Prepare the scan."""
        self.begin(context, self._made(AgreedSchema() if context.agreed is None else AgreedSchema.of(context.agreed), context))

    @blocks_metadata_input.process
    def read_block(self, block: B) -> None:
        """Read one block."""
        context = self._context
        position = getattr(block, "start", None)
        context.at(self.place_of(block), position if isinstance(position, int) else None)
        context.count("streams_opened")
        self._time.begin_block()
        try:
            for batch in self._scan.read(block):
                context.count("records", batch.num_rows)
                context.count("batches")
                with self._time.excluded:
                    self.batches.emit_batch(batch)
        except (ReadError, ScanError) as error:
            error.reader = context.name
            raise
        part = context.part
        context.count("blocks", int(part is None or part.start is None))
        self._time.end_block()

    def _made(self, agreed: AgreedSchema, context: OperatorContext) -> SourceScan:
        return SourceScan(settings=self.scan_settings, agreed=agreed, context=context, source=self, route=self._route)
