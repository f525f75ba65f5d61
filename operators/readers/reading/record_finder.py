"""The search for the records of a block, by a reader context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from dagflow import FileBlockMetadata, OperatorContext
from dagflow.storage import BinaryReader, explained, read_fully
from operators.compression import DecompressingContext
from operators.contexts import Entity, FileShortened, Piece, ReaderContext


@attrs.frozen
class RecordFinder:
    """Finds the records of blocks with `reader_context`, and counts the bytes that they use."""

    reader_context: ReaderContext
    context: OperatorContext

    @property
    def has_pieces(self) -> bool:
        """True if it finds pieces of many records, False if entities, one at a time."""
        return bool(getattr(self.reader_context, "supports_pieces", False))

    @property
    def unit(self) -> str:
        """The unit of positions in the current block: see `ReadError`."""
        return ""

    def find(self, stream: Any, block: Any, is_consecutive: bool) -> Iterator[Any]:
        """Yield the pieces or entities of a block."""
        self.reader_context.initialize(stream, block, is_consecutive)
        fetch: Callable[[], Piece | Entity | None] = (
            self.reader_context.next_piece if self.has_pieces else self.reader_context.next
        )
        while (record := fetch()) is not None:
            yield record

    def count_bytes(self, used: int) -> None:
        """Count the bytes that records use."""
        self.context.count("bytes", used)

    def reread(self, stream: Any, block: Any, position: int, is_narrowed: bool) -> bytes | None:
        """Return the bytes that the record at a position uses, read again; None if no record starts there.

        `is_narrowed`: cuts do not matter, so the block from the position on has this record, and no other has to be read.
        """
        parts = [attrs.evolve(block, start=position, stop=position + 1), block] if is_narrowed else [block]
        for part in parts:
            entity = self._entity_at(stream, part, position)
            if entity is not None:
                return self.bytes_of(stream, entity)
        return None

    def bytes_of(self, stream: Any, entity: Entity) -> bytes:
        """Return the bytes that a record uses in the source: here its own."""
        return bytes(entity.record)

    def _entity_at(self, stream: Any, block: Any, position: int) -> Entity | None:
        self.reader_context.initialize(stream, block, False)
        while (entity := self.reader_context.next()) is not None and entity.position != position:
            pass
        return entity


@attrs.frozen
class FileRecordFinder(RecordFinder):
    """Finds the records of blocks of files, which may be compressed (`reader_context` is a DecompressingContext then).

    `length_of`: returns the length that a file has now.
    """

    length_of: Callable[[str], int]

    @property
    def unit(self) -> str:
        """The unit of positions in the current block."""
        return self.reader_context.unit if isinstance(self.reader_context, DecompressingContext) else ""

    def find(self, stream: BinaryReader, block: FileBlockMetadata, is_consecutive: bool) -> Iterator[Any]:
        """Yield the pieces or entities of a block. Errors of the file are explained."""
        with explained(block.file_path, "reading"):
            if block.as_planned:
                yield from super().find(stream, block, is_consecutive)
            else:
                yield from self._find_by_now(stream, block)
        if isinstance(self.reader_context, DecompressingContext):
            for name, count in self.reader_context.counts_at_end().items():
                self.context.count(name, count)

    def _find_by_now(self, stream: BinaryReader, block: FileBlockMetadata) -> Iterator[Any]:
        """Yield the records of the planned block that a file, which may have changed, still has."""
        length = self.length_of(block.file_path)
        if block.start >= length:
            self.context.count("blocks_beyond_end")
            return
        try:
            yield from super().find(stream, clipped(block, length), False)  # bytes read ahead may be of another version
        except FileShortened:
            self.context.count("blocks_cut_short")

    def count_bytes(self, used: int) -> None:
        """Count the bytes of the file as `bytes`, those of a compressed file's content as `bytes_unpacked`."""
        if isinstance(self.reader_context, DecompressingContext) and self.reader_context.unit:
            self.context.count("bytes_unpacked", used)
            used = self.reader_context.newly_consumed()
        super().count_bytes(used)

    def bytes_of(self, stream: BinaryReader, entity: Entity) -> bytes:
        """Return the bytes that a record uses in its file, with its terminator."""
        stream.seek(entity.position)
        return read_fully(stream, entity.used_bytes)

    def reread(self, stream: BinaryReader, block: FileBlockMetadata, position: int, is_narrowed: bool) -> bytes | None:
        """Return the bytes that the record at a position uses: of a compressed file, decompressed ones."""
        files = self.reader_context
        if isinstance(files, DecompressingContext):
            files.initialize(stream, block, False)
            if files.unit:
                return _reread_compressed(files, stream, block, position)
        return super().reread(stream, block, position, is_narrowed)


def clipped(block: FileBlockMetadata, length: int) -> FileBlockMetadata:
    """Return the part of a block that lies within a length of its file."""
    return attrs.evolve(block, stop=min(block.stop, length), file_length=min(block.file_length, length))


def _reread_compressed(
    context: DecompressingContext, stream: BinaryReader, block: FileBlockMetadata, position: int
) -> bytes | None:
    if context.can_be_cut():  # then the member in which the record starts is enough
        start = context.claimed_at(position)
        context.initialize(stream, attrs.evolve(block, start=start, stop=start + 1), False)
    while (entity := context.next()) is not None and entity.position < position:
        pass
    return context.bytes_at(entity) if entity is not None and entity.position == position else None
