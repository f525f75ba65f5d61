"""Scans of files: the negotiator of a reader of a block of a file, and the framework that makes such readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from dagflow.ranges import OffsetRangeTracker
from dagflow.scan.errors import ReaderMisbehaves
from dagflow.scan.framework import BlockScan, BlockSchemaNegotiator
from dagflow.scan.readers.lifecycle import ManagedBatchReader
from dagflow.scan.readers.machine import close_after
from dagflow.scan.schema.implicit import FileFacts
from dagflow.scan.schema.numbers import INFERRED
from dagflow.scan.schema.shape import COLUMNS, Shape, check_tested, make_shape

if TYPE_CHECKING:
    from dagflow.model.types.records import FileBlockMetadata
    from dagflow.ranges import RangeTracker
    from dagflow.scan.format import Format
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
class FileSchemaNegotiator(BlockSchemaNegotiator):
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

    @property
    def source(self) -> str:
        """The file's path."""
        return self.split.path


@attrs.define(eq=False, kw_only=True)
class FileScan(BlockScan):
    """The framework for files.

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
    open_stream: Callable[[FileBlockMetadata], BinaryReader]
    tracker_of: Callable[[int, int], RangeTracker[int]] = OffsetRangeTracker
    _is_array: bool = attrs.field(init=False)
    _left_behind: tuple[tuple[str, int] | None, dict[str, Any]] = attrs.field(init=False, default=(None, {}))

    def _make_shape(self) -> Shape:
        settings = self.settings
        self._is_array = self._reads_array()
        shape = make_shape(
            settings.projection,
            self.agreed,
            settings.schema,
            settings.drift,
            null_type=settings.null_arrow_type,
            is_array=self._is_array,
            is_by_position=not self.format.has_header,
            named_as=self.format.column_name,
            numbers=self.format.numbers or INFERRED,
        )
        check_tested(self.format.tested_columns, self.agreed, shape)
        return shape

    def _reads_array(self) -> bool:
        """Return whether rows are read as the array `columns`."""
        return False

    @property
    def _source_kind(self) -> str:
        return type(self.format).__name__

    @property
    def _is_cut(self) -> bool:
        return self.format.cuts == "any"

    @property
    def _has_encoding(self) -> bool:  # type: ignore[override]  # a constant elsewhere
        return self.format.has_encoding

    def _compares(self, schema: pa.Schema) -> bool:
        return not self._is_array

    def consumed(self, block: FileBlockMetadata) -> int:
        """Return how many bytes of a block were read: all, or those before the part that was stolen."""
        return (block.stop if self._tracker is None else min(block.stop, self._tracker.stop_position)) - block.start

    def _reader_of(self, block: FileBlockMetadata) -> ManagedBatchReader | None:
        start, stop = block.start, block.stop
        if self.format.cuts == "none":
            if start > 0:
                self.context.count("blocks_unsplittable")
                return None
            stop = block.file_length
        self._facts = FileFacts.of(block.file_path, self.agreed.root, empty_is_null=block.empty_is_null)
        file = block.file_path, block.file_length
        if self._left_behind[0] != file:
            self._left_behind = file, {}
        stream = self.open_stream(block)
        tracker = self._tracker = self.tracker_of(start, stop)
        negotiator = FileSchemaNegotiator(
            **self._asking(),
            tracker=tracker,
            is_splittable=self._is_cut,
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
        return self._managed(reader, negotiator, stream.close)

    def _refused(self) -> tuple[str, ReaderMisbehaves] | None:
        """Return the array `columns` and an error if columns have names: a reader that loads it would leave nulls in these."""
        if not self.format.offers_array or self._is_array or COLUMNS in self._output.shape.known:
            return None
        names = ", ".join(self._output.shape.known) or "those of the header"
        reason = f"it loads the array `{COLUMNS}`, but the columns of a row have names ({names}): load these"
        return COLUMNS, ReaderMisbehaves(format=type(self.format).__name__, reason=f"{reason} where negotiator.is_array is False")
