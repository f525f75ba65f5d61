"""AbstractFSBlockReader: blocks of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic

import attrs

from dagflow import FileBlockMetadata, OperatorContext
from dagflow.storage import BinaryReader, explained, read_fully
from operators.contexts import Entity, FileShortened
from operators.readers.abstract_block_reader import AbstractBlockReader, R
from operators.readers.file_blocks import FileBlocks


@attrs.define
class AbstractFSBlockReader(FileBlocks, AbstractBlockReader[R, FileBlockMetadata, BinaryReader], Generic[R]):
    """Reads blocks of files. A file must have the length and time of modification that were planned.

    Args:
        allow_growth: a file that has become longer since it was planned is read up to its planned length.

    Blocks of a splitter with `idempotent=False` are read as the file is by then, up to its planned length; counters
    `blocks_beyond_end` and `blocks_cut_short` tell of what was no longer there.

    Raises FileGone, FileChanged, and what the context raises.
    """

    def ends_records(self, end: str, quote: str | None) -> bool:
        """Ask the context."""
        return quote is None and self.reader_context.ends_records(end.encode())

    def why_no_parts(self) -> str:
        """Name the context."""
        return f"records of {type(self.reader_context).__name__} do not end there"

    def agree(self, items: Sequence[Any], before: Any, context: OperatorContext) -> Any:
        """Raises PartsNotReadable for parts of files that the context cannot read."""
        self.check_parts(items, context.name)
        return super().agree(items, before, context)

    def bytes_of(self, stream: BinaryReader, entity: Entity) -> bytes:
        """The bytes that a record uses in its file, with its terminator."""
        stream.seek(entity.position)
        return read_fully(stream, entity.used_bytes)

    def _found(self, block: FileBlockMetadata, is_consecutive: bool) -> Iterator[Any]:
        with explained(block.file_path, "reading"):  # the context's errors; those of operators behind do not come through here
            if block.as_planned:
                yield from super()._found(block, is_consecutive)
            else:
                yield from self._found_by_now(block)

    def _found_by_now(self, block: FileBlockMetadata) -> Iterator[Any]:
        """Yield what the context finds in a block of a file that may have changed: as much as is there of what was planned."""
        count = self._task.context.count
        try:
            length = self.get_file_system().status(block.file_path).length
        except FileNotFoundError:
            length = 0
        if block.start >= length:
            count("blocks_beyond_end")
            return
        block = attrs.evolve(block, stop=min(block.stop, length), file_length=min(block.file_length, length))
        try:
            yield from super()._found(block, is_consecutive=False)  # what was read ahead may be of another version
        except FileShortened:
            count("blocks_cut_short")
