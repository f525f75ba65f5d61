"""AbstractFSBlockReader: blocks of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

import attrs

from dagflow import FileBlockMetadata, OperatorContext
from dagflow.storage import BinaryReader
from operators.readers.abstract_block_reader import AbstractBlockReader, R
from operators.readers.planned_files import ReadsPlannedFiles
from operators.readers.reading.record_finder import FileRecordFinder, RecordFinder


@attrs.define
class AbstractFSBlockReader(ReadsPlannedFiles, AbstractBlockReader[R, FileBlockMetadata, BinaryReader], Generic[R]):
    """Reads blocks of files. A file must have the length and time of modification that were planned.

    Args:
        allow_growth: a file that has become longer since it was planned is read up to its planned length.

    Blocks of a splitter with `idempotent=False` are read as the file is by then, up to its planned length; counters
    `blocks_beyond_end` and `blocks_cut_short` count blocks that were no longer there, or only in part.

    Raises FileGone, FileChanged, and what the context raises.
    """

    def ends_records(self, end: str, quote: str | None) -> bool:
        """Ask the context."""
        return quote is None and self.reader_context.ends_records(end.encode())

    def why_no_parts(self) -> str:
        """Name the context."""
        return f"records of {type(self.reader_context).__name__} do not end there"

    def agree(self, items: Sequence[Any], before: Any, context: OperatorContext) -> Any:
        """Raise PartsNotReadable for parts of files that the context cannot read."""
        self.check_parts(items, context.name)
        return super().agree(items, before, context)

    def make_finder(self, context: OperatorContext) -> RecordFinder:
        """Return the object that finds the records in files."""
        return FileRecordFinder(self.reader_context, context, self.length_by_now)
