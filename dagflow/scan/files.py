"""Scans of files: what a reader of a block of a file is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from dagflow.ranges import OffsetRangeTracker
from dagflow.scan.bad_rows import BadRow, OnBadRow
from dagflow.scan.lifecycle import ManagedBatchReader
from dagflow.scan.loader import BatchLimits, Origin, ResultSetLoader
from dagflow.scan.machine import Scan
from dagflow.scan.managed import SchemaNegotiator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dagflow.model.context import OperatorContext
    from dagflow.model.records import FileBlockMetadata
    from dagflow.scan.format import Format
    from dagflow.storage import BinaryReader


@attrs.frozen(eq=False)
class FileSplit:
    """The part of a file that a reader reads: the half-open byte range `[start, stop)` of a file of `file_length` bytes.

    `tracker`: its range tracker; readers claim through `negotiator.claim`.
    """

    path: str
    start: int
    stop: int
    file_length: int
    block: FileBlockMetadata
    tracker: OffsetRangeTracker


@attrs.define(eq=False, kw_only=True)
class FileSchemaNegotiator(SchemaNegotiator):
    """What a reader of files is given beside: its part of the file, the opened stream, and its format with the options.

    Attributes:
        split: what to read.
        stream: the opened file: `seek(position)`, `read(size)`. The framework closes it.
        options: the format.
    """

    split: FileSplit
    stream: BinaryReader
    options: Format
    _is_whole: bool = attrs.field(init=False, default=False)
    _is_tracked: bool = attrs.field(init=False, default=False)
    _state_at: Callable[[int], Any] = attrs.field(default=lambda position: None)

    @property
    def source(self) -> str:
        """The file's path."""
        return self.split.path

    def claim(self, positions: Sequence[int] | NDArray[np.int64]) -> int:
        """Claims rows that come next, by the positions at which they start (sorted; only the first and last are looked at).

        How many of them are this reader's: all, or fewer at the end of its range; then only so many may be loaded, and `next`
        returns False. To be called before rows are loaded, once for each piece: what is not claimed may be given to others.
        """
        if not len(positions):
            return 0
        context = self.context
        if context.is_shared and not self._is_tracked and not self._is_whole and self.options.cuts == "any":
            self._is_tracked = True
            context.track(self.split.tracker)
        context.flush()
        return self.split.tracker.try_return_batch_at(positions)  # type: ignore[arg-type]  # it looks at two of them

    def keep_whole(self) -> None:
        """Says, before anything is claimed, that this block cannot be given away in parts: the content decides it."""
        self._is_whole = True

    def state_at(self, position: int) -> Any:
        """The state that the bytes of the file before a position lead to, for formats that say `summarises`."""
        return self._state_at(position)


@attrs.define(eq=False, kw_only=True)
class FileScan:
    """The framework for files: makes a reader of each block that is offered, and out of what they load what the scan gives.

    operators.ScanReader offers it the blocks of a task.
    """

    format: Format
    context: OperatorContext
    open_stream: Callable[[FileBlockMetadata], BinaryReader]
    columns: tuple[str, ...] | None = None
    schema: pa.Schema | None = None
    on_bad_row: OnBadRow = "fail"
    route: Callable[[BadRow], None] = attrs.field(default=lambda row: None)
    limits: BatchLimits = attrs.field(factory=BatchLimits)
    _block: FileBlockMetadata | None = attrs.field(init=False, default=None)
    _stream: BinaryReader | None = attrs.field(init=False, default=None)
    _scan: Scan[pa.RecordBatch] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._scan = Scan(self._next_reader)

    def read(self, block: FileBlockMetadata) -> Iterator[pa.RecordBatch]:
        """The batches of a block."""
        self._block = block
        yield from self._scan.batches()

    @property
    def known_schema(self) -> pa.Schema | None:
        """The schema of what this scan gives, as far as it is known by now."""
        return next((batch.schema for batch in self._scan.finish()), None)

    def close(self) -> None:
        """Closes what is open."""
        try:
            self._scan.close()
        finally:
            self._close_stream()

    def _next_reader(self) -> ManagedBatchReader | None:
        self._close_stream()
        block, self._block = self._block, None
        if block is None:
            return None
        start, stop = block.start, block.stop
        if self.format.cuts == "none":
            if start > 0:
                self.context.count("blocks_unsplittable")
                return None
            stop = block.file_length
        self._stream = self.open_stream(block)
        tracker = OffsetRangeTracker(start, stop)
        negotiator = FileSchemaNegotiator(
            context=self.context,
            columns=self.columns,
            provided_schema=self.schema,
            build=self._build,
            report=self._report,
            split=FileSplit(block.file_path, start, stop, block.file_length, block, tracker),
            stream=self._stream,
            options=self.format,
            state_at=self._state_at,
        )
        return ManagedBatchReader(self.format.make_reader(), negotiator, self._output)

    def _state_at(self, position: int) -> Any:
        assert self._stream is not None
        return self.format.combine([self.format.summarise(self._stream, 0, position)] if position else [])

    def _build(self, negotiator: SchemaNegotiator) -> ResultSetLoader:
        return ResultSetLoader(columns=self.columns, limits=self.limits, schema=negotiator.table_schema)

    def _report(self, row: BadRow) -> None:
        if self.on_bad_row == "fail":
            raise ValueError(str(row))
        self.context.count("bad_rows")
        if self.on_bad_row == "route":
            self.route(row)

    def _output(self, batch: pa.RecordBatch, origin: Origin | None) -> pa.RecordBatch:
        if self.columns is None or not self.columns:
            return batch
        return batch.select(list(self.columns))

    def _close_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
