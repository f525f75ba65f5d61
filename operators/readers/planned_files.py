"""Files of blocks, opened as they were planned."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, Self, cast

import attrs

from dagflow import FileBlockMetadata
from dagflow.storage import BinaryReader, FileStatus, explained, file_system, is_local, open_planned, opened_status
from operators.readers.errors import FileChanged, FileGone, PartsNotReadable


class ReadableFiles(Protocol):
    """The methods of a file system that block readers call; `dagflow.storage.file_system(url)` has them."""

    def open(self, path: str) -> BinaryReader:
        """Open a file, unbuffered."""
        ...

    def status(self, path: str) -> FileStatus:
        """Return a file's length and time of modification."""
        ...


class FilesByUrl:
    """The files that URLs and paths name."""

    def open(self, path: str) -> BinaryReader:
        """Open a file, unbuffered."""
        return file_system(path).open(path)

    def open_planned(self, block: FileBlockMetadata) -> BinaryReader:
        """Open a block's file as it was planned; of object stores without a request for its status."""
        path = block.file_path
        status = FileStatus(path, block.file_length, block.modified_ns or 0, False, True, version=block.version)
        return open_planned(status, block.stop)

    def opened_status(self, stream: BinaryReader, path: str) -> FileStatus:
        """Return the length and time of an open file; of object stores, as they were when it was opened."""
        return opened_status(stream, path) or self.status(path)

    def status(self, path: str) -> FileStatus:
        """Return a file's length and time of modification."""
        return file_system(path).status(path)


@attrs.frozen
class PlannedFiles:
    """Opens the files of blocks, and refuses those that are not as they were planned.

    `allow_growth`: a file may have become longer. Raises FileGone, FileChanged.
    """

    files: ReadableFiles
    allow_growth: bool

    def open(self, block: FileBlockMetadata) -> BinaryReader:
        """Open a block's file."""
        path, files = block.file_path, self.files
        with explained(path, "reading"):
            try:
                stream = self._open_stream(block)
            except FileNotFoundError:
                if not block.as_planned:
                    return io.BytesIO()
                raise FileGone(path=path, planned_length=block.file_length) from None
            if not block.as_planned:
                return stream
            try:
                if isinstance(files, FilesByUrl):
                    self._check_status(block, files.opened_status(stream, path))
                else:
                    self.check(block)  # after opening: a file that has replaced the planned one by now is noticed
            except BaseException:
                stream.close()
                raise
        return stream if is_local(path) else cast("BinaryReader", _CheckedStream(stream, lambda: self.check(block)))

    def check(self, block: FileBlockMetadata) -> None:
        """Raise FileGone or FileChanged if a block's file is not there as it was planned."""
        try:
            status = self.files.status(block.file_path)
        except FileNotFoundError:
            raise FileGone(path=block.file_path, planned_length=block.file_length) from None
        self._check_status(block, status)

    def _open_stream(self, block: FileBlockMetadata) -> BinaryReader:
        may_grow = self.allow_growth or block.record_end is not None  # a longer file is another version
        if type(self.files) is FilesByUrl and block.as_planned and not may_grow:
            return self.files.open_planned(block)
        return self.files.open(block.file_path)

    def _check_status(self, block: FileBlockMetadata, status: FileStatus) -> None:
        is_grown = status.length > block.file_length
        is_same_time = not block.modified_ns or not status.modified_ns or block.modified_ns == status.modified_ns
        is_same = is_same_time and (block.version is None or status.version is None or block.version == status.version)
        may_grow = block.record_end is not None or (is_grown and self.allow_growth)
        if status.length < block.file_length or not (is_same or may_grow):
            raise FileChanged(
                path=block.file_path,
                planned_length=block.file_length,
                found_length=status.length,
                planned_modified_ns=block.modified_ns,
                found_modified_ns=status.modified_ns,
            )


@attrs.define(slots=False)  # a base beside another one, whose slots leave no room
class ReadsPlannedFiles:
    """The part of a reader that opens files. A file must have the length and time of modification that were planned.

    Args:
        allow_growth: a file that has become longer since it was planned is read up to its planned length.

    Raises FileGone, FileChanged.
    """

    allow_growth: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))

    def get_file_system(self) -> ReadableFiles:
        """Return the file system of the blocks' paths. Override it for files that no URL names."""
        return FilesByUrl()

    def setup_stream(self, block: FileBlockMetadata) -> BinaryReader:
        """Open a block's file."""
        return PlannedFiles(self.get_file_system(), self.allow_growth).open(block)

    def length_by_now(self, path: str) -> int:
        """Return the length that a file has now; 0 if it is gone."""
        try:
            return self.get_file_system().status(path).length
        except FileNotFoundError:
            return 0

    # Files that are appended to are read in parts

    def ends_records(self, end: str, quote: str | None) -> bool:
        """Return True if records of files are whole up to any `end` (outside of `quote`s): the splitter resumes there."""
        return False

    def why_no_parts(self) -> str:
        """Return the reason why `ends_records` is False."""
        return f"{type(self).__name__} does not say where records of a file that is appended to end"

    def check_parts(self, blocks: Iterable[FileBlockMetadata], name: str) -> None:
        """Raise PartsNotReadable for blocks of files that are appended to, where records may not end where the parts do."""
        for block in blocks:
            if block.record_end is not None and not self.ends_records(block.record_end, block.record_quote):
                raise PartsNotReadable(
                    operator=name, path=block.file_path, end=block.record_end, quote=block.record_quote, why=self.why_no_parts()
                )


class _CheckedStream:
    """A stream of a file on another host: where a read fails, `check` raises an error if the file has changed or is gone."""

    def __init__(self, stream: BinaryReader, check: Callable[[], None]) -> None:
        self._stream = stream
        self._check = check

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int = -1, /) -> bytes:
        with self._checking():
            return self._stream.read(size)

    def readinto(self, buffer: Any, /) -> int | None:
        with self._checking():
            return self._stream.readinto(buffer)

    @contextlib.contextmanager
    def _checking(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._check()
            raise
