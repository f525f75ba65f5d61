"""AbstractFSBlockReader: blocks of files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Generic, Protocol

import attrs

from dagflow import FileBlockMetadata
from dagflow.storage import BinaryReader, FileStatus, explained, file_system
from operators.contexts import FileShortened
from operators.readers.abstract_block_reader import AbstractBlockReader, R
from operators.readers.errors import FileChanged, FileGone


class ReadableFiles(Protocol):
    """What block readers need of a file system; `dagflow.storage.file_system(url)` has it."""

    def open(self, path: str) -> BinaryReader:
        """An unbuffered reader of a file."""
        ...

    def status(self, path: str) -> FileStatus:
        """A file's length and time of modification."""
        ...


class FilesByUrl:
    """Every path on the file system that its URL names."""

    def open(self, path: str) -> BinaryReader:
        """An unbuffered reader of a file."""
        return file_system(path).open(path)

    def status(self, path: str) -> FileStatus:
        """A file's length and time of modification."""
        return file_system(path).status(path)


@attrs.define
class AbstractFSBlockReader(AbstractBlockReader[R, FileBlockMetadata, BinaryReader], Generic[R]):
    """Reads blocks of files (seed: Block Reader). A file must have the length and time of modification that were planned.

    Args:
        allow_growth: a file that has become longer since it was planned is read up to its planned length.

    Blocks of a splitter with `idempotent=False` are read as the file is by then, up to its planned length; counters
    `blocks_beyond_end` and `blocks_cut_short` tell of what was no longer there.

    Raises FileGone, FileChanged, and what the context raises.
    """

    allow_growth: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))

    def get_file_system(self) -> ReadableFiles:
        """Where the paths of blocks are opened. Override it for files that no URL names."""
        return FilesByUrl()

    def setup_stream(self, block: FileBlockMetadata) -> BinaryReader:
        """Opens a block's file."""
        path, files = block.file_path, self.get_file_system()
        with explained(path, "reading"):
            try:
                stream = files.open(path)
            except FileNotFoundError:
                if not block.as_planned:
                    return io.BytesIO()
                raise FileGone(path=path, planned_length=block.file_length) from None
            if not block.as_planned:
                return stream
            try:
                self._verify(block, files.status(path))  # after opening: what has replaced the file by now is noticed
            except BaseException as error:
                stream.close()
                if isinstance(error, FileNotFoundError):
                    raise FileGone(path=path, planned_length=block.file_length) from None
                raise
        return stream

    def _found(self, block: FileBlockMetadata, is_consecutive: bool) -> Iterator[Any]:
        with explained(block.file_path, "reading"):  # the context's errors; those of operators behind do not come through here
            if block.as_planned:
                yield from super()._found(block, is_consecutive)
            else:
                yield from self._found_by_now(block)

    def _found_by_now(self, block: FileBlockMetadata) -> Iterator[Any]:
        """What the context finds in a block of a file that may have changed: as much as is there of what was planned."""
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

    def _verify(self, block: FileBlockMetadata, found: FileStatus) -> None:
        is_grown = found.length > block.file_length
        is_same_time = not block.modified_ns or not found.modified_ns or block.modified_ns == found.modified_ns
        if found.length < block.file_length or not (is_same_time or (is_grown and self.allow_growth)):
            raise FileChanged(
                path=block.file_path,
                planned_length=block.file_length,
                found_length=found.length,
                planned_modified_ns=block.modified_ns,
                found_modified_ns=found.modified_ns,
            )
