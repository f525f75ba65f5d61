"""Scans of files: the negotiator of a reader of a block of a file, and the framework that makes such readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from dagflow.ranges import OffsetRangeTracker
from dagflow.scan.bad_rows import BadRow, RowOrigin
from dagflow.scan.errors import BadRowFound, ColumnExtra, ColumnMissing, MissingUntold, ReaderMisbehaves
from dagflow.scan.output import Output
from dagflow.scan.readers.lifecycle import ManagedBatchReader
from dagflow.scan.readers.loader import BatchLimits, Harvest, ResultSetLoader
from dagflow.scan.readers.machine import Scan, close_after
from dagflow.scan.readers.managed import SchemaNegotiator
from dagflow.scan.schema.implicit import FileFacts
from dagflow.scan.schema.shape import COLUMNS, AgreedSchema, check_tested, make_shape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dagflow.model.operator.context import OperatorContext
    from dagflow.model.types.records import FileBlockMetadata
    from dagflow.ranges import RangeTracker
    from dagflow.scan.format import Format
    from dagflow.scan.settings import ScanSettings
    from dagflow.storage import BinaryReader


@attrs.frozen(eq=False)
class FileSplit:
    """The part of a file that a reader reads: the byte range `[start, stop)` of a file of `file_length` bytes.

    `tracker`: its range tracker; readers claim through `negotiator.claim`.
    """

    file_path: str
    start: int
    stop: int
    file_length: int
    block: FileBlockMetadata
    tracker: RangeTracker[int]

    @property
    def path(self) -> str:
        """The file."""
        return self.file_path


@attrs.define(eq=False, kw_only=True)
class FileSchemaNegotiator(SchemaNegotiator):
    """The negotiator of a reader of files: it also has the part of the file, the opened stream, and the format's options.

    Attributes:
        split: what to read.
        stream: the opened file: `seek(position)`, `read(size)`. The framework closes it.
        options: the format.
        is_array: for text: the fields of a row are read as one list of texts, in the column `columns`; a header is left out.
        left_behind: a dictionary that readers of the same file share, one after the other, in this task. Its content may spare
            a reader work, but must not change the rows that it loads.
    """

    split: FileSplit
    stream: BinaryReader
    options: Format
    is_array: bool = False
    left_behind: dict[str, Any] = attrs.field(factory=dict)
    _is_whole: bool = attrs.field(init=False, default=False)
    _is_tracked: bool = attrs.field(init=False, default=False)

    @property
    def source(self) -> str:
        """The file's path."""
        return self.split.path

    @property
    def extent(self) -> tuple[int, int]:
        """The range, for messages."""
        return self.split.start, self.split.stop

    def claim(self, positions: Sequence[int] | NDArray[np.int64]) -> int:
        """Claim rows that come next, by the positions at which they start (sorted; only the first and last are looked at).

        Returns how many of them belong to this reader: all, or fewer at the end of its range; then only so many may be loaded,
        and `next` returns False. Call it before rows are loaded, once for each piece: rows that are not claimed may be stolen.
        """
        if not len(positions):
            return 0
        context = self.context
        if context.is_rebalanced and not self._is_tracked and not self._is_whole and self.options.cuts == "any":
            self._is_tracked = True
            context.track(self.split.tracker)
        context.flush()
        return self.split.tracker.try_return_batch_at(positions)  # type: ignore[arg-type]  # it looks at the first and the last

    def keep_whole(self) -> None:
        """Declare, before anything is claimed, that this block cannot be split, because of its content."""
        self._is_whole = True


@attrs.define(eq=False, kw_only=True)
class FileScan:
    """The framework for files: makes a reader for each block, and converts the batches that it loads.

    Args:
        format, settings: from the user.
        agreed: the schema that all readers agree on (see `agree`).
        context: the context of the operator.
        open_stream: opens a block's file.
        route: takes bad rows, if `on_bad_row` is "route".
        tracker_of: the range tracker of a block.

    Making one raises ColumnUnknown, ColumnNoSuchPart, ProjectionError.
    """

    format: Format
    settings: ScanSettings
    agreed: AgreedSchema
    context: OperatorContext
    open_stream: Callable[[FileBlockMetadata], BinaryReader]
    route: Callable[[BadRow], None] = attrs.field(default=lambda row: None)
    tracker_of: Callable[[int, int], RangeTracker[int]] = OffsetRangeTracker
    _limits: BatchLimits = attrs.field(init=False)
    _is_array: bool = attrs.field(init=False)
    _output: Output = attrs.field(init=False)
    _scan: Scan[pa.RecordBatch] = attrs.field(init=False)
    _block: FileBlockMetadata | None = attrs.field(init=False, default=None)
    _facts: FileFacts | None = attrs.field(init=False, default=None)
    _stream: BinaryReader | None = attrs.field(init=False, default=None)
    _tracker: RangeTracker[int] | None = attrs.field(init=False, default=None)
    _left_behind: tuple[tuple[str, int] | None, dict[str, Any]] = attrs.field(init=False, default=(None, {}))

    def __attrs_post_init__(self) -> None:
        settings = self.settings
        self._is_array = self._reads_array()
        self._limits = settings.limits or BatchLimits()
        shape = make_shape(
            settings.projection,
            self.agreed,
            settings.schema,
            settings.drift,
            null_type=settings.null_arrow_type,
            is_array=self._is_array,
            is_by_position=not self.format.has_header,
            named_as=self.format.column_name,
        )
        check_tested(self.format.tested_columns, self.agreed, shape)
        self._output = Output(shape=shape, drift=settings.drift, report=self._report, count=self.context.count)
        self._scan = Scan(self._next_reader)

    def _reads_array(self) -> bool:
        """Return whether rows are read as the array `columns`."""
        return False

    def read(self, block: FileBlockMetadata) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a block."""
        if self._scan.state == "failed":  # the block before failed, and was skipped
            self._scan = Scan(self._next_reader)
        self._block, self._tracker = block, None
        for batch in self._scan.batches():
            yield batch
            self._output.release()

    def consumed(self, block: FileBlockMetadata) -> int:
        """Return how many bytes of a block were read: all, or those before the part that was stolen."""
        return (block.stop if self._tracker is None else min(block.stop, self._tracker.stop_position)) - block.start

    def origin(self, row: int) -> RowOrigin:
        """Return the origin of a row of the last batch of `read`. Empty if the format does not know it."""
        return self._output.origin(row)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches, as far as it is known."""
        return self._output.schema

    def finish(self) -> pa.Schema | None:
        """End the scan, and return the schema of its batches, also if there were none; None if it is not known ("fast NONE")."""
        if not self._scan.delivered and not len(self._output.schema):
            empty = next(self._scan.finish(), None)
            return None if empty is None else empty.schema
        return self._output.schema

    def close(self) -> None:
        """Close the current reader, if there is one."""
        self._scan.close()

    def _next_reader(self) -> ManagedBatchReader | None:
        block, self._block = self._block, None
        if block is None:
            return None
        start, stop = block.start, block.stop
        if self.format.cuts == "none":
            if start > 0:
                self.context.count("blocks_unsplittable")
                return None
            stop = block.file_length
        self._facts = FileFacts.of(block.file_path, self.agreed.root)
        file = block.file_path, block.file_length
        if self._left_behind[0] != file:
            self._left_behind = file, {}
        stream = self._stream = self.open_stream(block)
        tracker = self._tracker = self.tracker_of(start, stop)
        negotiator = FileSchemaNegotiator(
            context=self.context,
            limits=self._limits,
            columns=self._output.shape.columns_to_read(self.settings.drift),
            provided_schema=self._output.shape.source_schema,
            parsed=frozenset() if self.settings.schema is None else self.settings.schema.parsed,
            build=self._build,
            report=self._report,
            split=FileSplit(block.file_path, start, stop, block.file_length, block, tracker),
            stream=stream,
            options=self.format,
            is_array=self._is_array,
            left_behind=self._left_behind[1],
        )
        try:
            reader = self.format.make_reader()
        except BaseException as error:
            close_after(error, stream.close)
            raise
        return ManagedBatchReader(
            reader=reader,
            negotiator=negotiator,
            output=self._output_of,
            empty_of=self._empty,
            at_end=lambda: self._at_end(negotiator),
            done=stream.close,
        )

    def _build(self, negotiator: SchemaNegotiator) -> ResultSetLoader:
        table_schema = negotiator.table_schema
        is_late = not negotiator.is_schema_complete and self.format.cuts == "any"  # several readers share its rows
        if self.settings.drift.missing == "error" and is_late and self._output.shape.roots:
            raise MissingUntold(path=negotiator.source, format=type(self.format).__name__)
        if table_schema is not None and not self._is_array:
            self._compare(table_schema, negotiator.is_schema_complete, negotiator.source)
        self._output.file_columns = (
            None if table_schema is None or not negotiator.is_schema_complete else frozenset(table_schema.names)
        )
        limits = self._limits
        if negotiator.batch_size is not None:
            limits = attrs.evolve(limits, rows=max(1, min(negotiator.batch_size, limits.rows)))
        types = {f.name: f.type for f in (*(negotiator.provided_schema or ()), *(table_schema or ()))}
        columns = negotiator.columns
        return ResultSetLoader(
            columns=None if columns is None else frozenset(columns),
            limits=limits,
            types=types,
            path=negotiator.source,
            refused=self._refused(),
        )

    def _refused(self) -> tuple[str, ReaderMisbehaves] | None:
        """Return the array `columns` and an error if columns have names: a reader that loads it would leave nulls in these."""
        if not self.format.offers_array or self._is_array or COLUMNS in self._output.shape.known:
            return None
        names = ", ".join(self._output.shape.known) or "those of the header"
        reason = f"it loads the array `{COLUMNS}`, but the columns of a row have names ({names}): load these"
        return COLUMNS, ReaderMisbehaves(format=type(self.format).__name__, reason=f"{reason} where negotiator.is_array is False")

    def _compare(self, schema: pa.Schema, is_complete: bool, path: str) -> None:
        """Compare the columns of a file with the known ones. Raises ColumnMissing, ColumnExtra."""
        drift, shape = self.settings.drift, self._output.shape
        if is_complete and drift.missing == "error":
            self._refuse_missing(schema.names, path)
        if shape.is_open and drift.extra == "error":
            extra = tuple(name for name in schema.names if name not in shape.known)
            if extra:
                raise ColumnExtra(path=path, extra=extra, known=tuple(shape.known))

    def _refuse_missing(self, names: Sequence[str], path: str) -> None:
        """Raise ColumnMissing if neither the columns of a file nor its folders have a column that is needed."""
        assert self._facts is not None
        present = {*names, *self._facts.keys}
        lacking = tuple(root for root in self._output.shape.roots if root not in present)
        if lacking:
            raise ColumnMissing(path=path, missing=lacking, found=tuple(names))

    def _at_end(self, negotiator: SchemaNegotiator) -> None:
        """Check for missing columns at the end of a file that declares them only by its rows, if it has any."""
        loaded = None if negotiator.loader is None else negotiator.loader.schema
        if self.settings.drift.missing == "error" and loaded is not None and not negotiator.is_schema_complete:
            table_schema = negotiator.table_schema
            self._refuse_missing([*(table_schema.names if table_schema is not None else ()), *loaded.names], negotiator.source)

    def _report(self, row: BadRow) -> None:
        if self.settings.on_bad_row == "fail":
            raise BadRowFound(
                path=row.file_path,
                position=row.position,
                line=row.line,
                column=row.column,
                reason=row.reason,
                raw=row.raw,
                reader=self.context.name,
            )
        self.context.count("bad_rows")
        if self.settings.on_bad_row == "route":
            self.route(row)

    def _output_of(self, harvest: Harvest) -> pa.RecordBatch:
        assert self._facts is not None
        if self.settings.schema is not None and self._has_no_values(harvest.batch, self._facts):
            self.context.count("rows_without_values", harvest.batch.num_rows)
        return self._output.make(harvest, self._facts)

    def _has_no_values(self, batch: pa.RecordBatch, facts: FileFacts) -> bool:
        """Return whether a batch has no value in any selected column: the schema may be that of other files."""
        roots, names = self._output.shape.roots, batch.schema.names
        has_values = (r in facts.keys or (r in names and batch.column(r).null_count < batch.num_rows) for r in roots)
        return bool(roots) and not any(has_values)

    def _empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=self._output.schema)
