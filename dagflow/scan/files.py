"""Scans of files: what a reader of a block of a file is given, and the framework that makes such readers."""

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
from dagflow.scan.schema.shape import COLUMNS, Agreed, check_tested, make_shape

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
    """The part of a file that a reader reads: the half-open byte range `[start, stop)` of a file of `file_length` bytes.

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
        is_array: for text: a row's fields are wanted as one list of texts, in the column `columns`; a header is left out.
        left_behind: what readers of the same file have left in it, earlier in this task, for those that come after them. What
            a reader finds there may spare it work; what it loads does not depend on it.
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

        How many of them are this reader's: all, or fewer at the end of its range; then only so many may be loaded, and `next`
        returns False. To be called before rows are loaded, once for each piece: what is not claimed may be given to others.
        """
        if not len(positions):
            return 0
        context = self.context
        if context.is_rebalanced and not self._is_tracked and not self._is_whole and self.options.cuts == "any":
            self._is_tracked = True
            context.track(self.split.tracker)
        context.flush()
        return self.split.tracker.try_return_batch_at(positions)  # type: ignore[arg-type]  # it looks at two of them

    def keep_whole(self) -> None:
        """Say, before anything is claimed, that this block cannot be given away in parts: the content decides it."""
        self._is_whole = True


@attrs.define(eq=False, kw_only=True)
class FileScan:
    """The framework for files: makes a reader of each block that it is given, and out of what they load what the scan gives.

    Args:
        format, settings: what the user says.
        agreed: what all readers know (see `agree`).
        context: of the operator.
        open_stream: opens a block's file.
        route: takes bad rows, where `on_bad_row` is "route".
        tracker_of: the range tracker of a block.

    Raises ColumnUnknown, ColumnNoSuchPart, ProjectionError when it is made.
    """

    format: Format
    settings: ScanSettings
    agreed: Agreed
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
        """Return the batches of a block."""
        if self._scan.state == "failed":  # the block before could not be read, and was skipped
            self._scan = Scan(self._next_reader)
        self._block, self._tracker = block, None
        for batch in self._scan.batches():
            yield batch
            self._output.let_go()

    def consumed(self, block: FileBlockMetadata) -> int:
        """Return how many bytes of a block that was read are read now: all, or up to where the rest was given away."""
        return (block.stop if self._tracker is None else min(block.stop, self._tracker.stop_position)) - block.start

    def origin(self, row: int) -> RowOrigin:
        """Return the origin of a row of the batch that `read` has just returned. Empty where the format does not tell it."""
        return self._output.origin(row)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches, as it is known now."""
        return self._output.schema

    def finish(self) -> pa.Schema | None:
        """End the scan: the schema of its batches, also where there was none; None where none is known ("fast NONE")."""
        if not self._scan.delivered and not len(self._output.schema):
            empty = next(self._scan.finish(), None)
            return None if empty is None else empty.schema
        return self._output.schema

    def close(self) -> None:
        """Close what is open."""
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
            columns=self._output.shape.wanted(self.settings.drift),
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
            output=self._made,
            empty_of=self._empty,
            at_end=lambda: self._at_end(negotiator),
            done=stream.close,
        )

    def _build(self, negotiator: SchemaNegotiator) -> ResultSetLoader:
        said = negotiator.table_schema
        is_late = not negotiator.is_schema_complete and self.format.cuts == "any"  # its rows are told to several readers
        if self.settings.drift.missing == "error" and is_late and self._output.shape.roots:
            raise MissingUntold(path=negotiator.source, format=type(self.format).__name__)
        if said is not None and not self._is_array:
            self._compare(said, negotiator.is_schema_complete, negotiator.source)
        self._output.found = None if said is None or not negotiator.is_schema_complete else frozenset(said.names)
        limits = self._limits
        if negotiator.batch_size is not None:
            limits = attrs.evolve(limits, rows=max(1, min(negotiator.batch_size, limits.rows)))
        types = {f.name: f.type for f in (*(negotiator.provided_schema or ()), *(said or ()))}
        wanted = negotiator.columns
        return ResultSetLoader(
            columns=None if wanted is None else frozenset(wanted),
            limits=limits,
            types=types,
            path=negotiator.source,
            refused=self._refused(),
        )

    def _refused(self) -> tuple[str, ReaderMisbehaves] | None:
        """Return the array, where rows have names: a reader that loads it all the same would make nulls of the named columns."""
        if not self.format.offers_array or self._is_array or COLUMNS in self._output.shape.known:
            return None
        names = ", ".join(self._output.shape.known) or "those of the header"
        reason = f"it loads the array `{COLUMNS}`, but the columns of a row have names ({names}): load these"
        return COLUMNS, ReaderMisbehaves(format=type(self.format).__name__, reason=f"{reason} where negotiator.is_array is False")

    def _compare(self, said: pa.Schema, is_complete: bool, path: str) -> None:
        """Hold what a file says of its columns against what is known of all."""
        drift, shape = self.settings.drift, self._output.shape
        if is_complete and drift.missing == "error":
            self._refuse_missing(said.names, path)
        if shape.is_open and drift.extra == "error":
            extra = tuple(name for name in said.names if name not in shape.known)
            if extra:
                raise ColumnExtra(path=path, extra=extra, known=tuple(shape.known))

    def _refuse_missing(self, names: Sequence[str], path: str) -> None:
        """Raise ColumnMissing where neither a file of these columns nor its folders have one that is wanted."""
        assert self._facts is not None
        had = {*names, *self._facts.keys}
        lacking = tuple(root for root in self._output.shape.roots if root not in had)
        if lacking:
            raise ColumnMissing(path=path, missing=lacking, found=tuple(names))

    def _at_end(self, negotiator: SchemaNegotiator) -> None:
        """At the end of a whole file whose rows have told which columns it has; a file without rows has told nothing."""
        loaded = None if negotiator.loader is None else negotiator.loader.schema
        if self.settings.drift.missing == "error" and loaded is not None and not negotiator.is_schema_complete:
            said = negotiator.table_schema
            self._refuse_missing([*(said.names if said is not None else ()), *loaded.names], negotiator.source)

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

    def _made(self, harvest: Harvest) -> pa.RecordBatch:
        assert self._facts is not None
        if self.settings.schema is not None and self._is_empty_handed(harvest.batch, self._facts):
            self.context.count("rows_without_values", harvest.batch.num_rows)
        return self._output.make(harvest, self._facts)

    def _is_empty_handed(self, batch: pa.RecordBatch, facts: FileFacts) -> bool:
        """Return whether a batch has no value in any column that is asked for: the schema may be that of other files."""
        roots, names = self._output.shape.roots, batch.schema.names
        has_values = (r in facts.keys or (r in names and batch.column(r).null_count < batch.num_rows) for r in roots)
        return bool(roots) and not any(has_values)

    def _empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=self._output.schema)
