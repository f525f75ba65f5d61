"""FileBlocks: what all readers of blocks of files share, how their files are opened."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Protocol

import attrs

from dagflow import FileBlockMetadata
from dagflow.storage import BinaryReader, FileStatus, explained, file_system, opened_status
from operators.readers.errors import FileChanged, FileGone, PartsNotReadable
from operators.readers.scaled_reader import ScaledReader


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

    def opened_status(self, stream: BinaryReader, path: str) -> FileStatus:
        """The length and time of an open file; of object stores, as they were when it was opened."""
        return opened_status(stream, path) or self.status(path)

    def status(self, path: str) -> FileStatus:
        """A file's length and time of modification."""
        return file_system(path).status(path)


@attrs.define(slots=False)  # beside AbstractBlockReader as a base, whose slots leave no room for others
class FileBlocks(ScaledReader):
    """A reader of blocks of files. A file must have the length and time of modification that were planned.

    Args:
        allow_growth: a file that has become longer since it was planned is read up to its planned length.

    Raises FileGone, FileChanged.
    """

    allow_growth: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))

    def ends_records(self, end: str, quote: str | None) -> bool:
        """Whether records of files are whole up to any `end` (outside of `quote`s): the splitter then reads on from there."""
        return False

    def check_parts(self, blocks: Iterable[FileBlockMetadata], name: str) -> None:
        """Raises PartsNotReadable for blocks of files that are appended to, where records may not end where the parts do."""
        for block in blocks:
            if block.record_end is not None and not self.ends_records(block.record_end, block.record_quote):
                raise PartsNotReadable(
                    operator=name, path=block.file_path, end=block.record_end, quote=block.record_quote, why=self.why_no_parts()
                )

    def why_no_parts(self) -> str:
        """The reason why `ends_records` says no."""
        return f"{type(self).__name__} does not say where records of a file that is appended to end"

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
                found = files.opened_status(stream, path) if isinstance(files, FilesByUrl) else files.status(path)
                self._verify(block, found)  # after opening: what has replaced the file by now is noticed
            except BaseException as error:
                stream.close()
                if isinstance(error, FileNotFoundError):
                    raise FileGone(path=path, planned_length=block.file_length) from None
                raise
        return stream

    def _verify(self, block: FileBlockMetadata, found: FileStatus) -> None:
        is_grown = found.length > block.file_length
        is_same_time = not block.modified_ns or not found.modified_ns or block.modified_ns == found.modified_ns
        is_same = is_same_time and (block.version is None or found.version is None or block.version == found.version)
        may_grow = block.record_end is not None or (is_grown and self.allow_growth)
        if found.length < block.file_length or not (is_same or may_grow):
            raise FileChanged(
                path=block.file_path,
                planned_length=block.file_length,
                found_length=found.length,
                planned_modified_ns=block.modified_ns,
                found_modified_ns=found.modified_ns,
            )
