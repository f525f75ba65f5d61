"""FileBlocks: what all readers of blocks of files share, how their files are opened."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, Self, cast

import attrs

from dagflow import FileBlockMetadata
from dagflow.storage import BinaryReader, FileStatus, explained, file_system, is_local, open_planned, opened_status
from operators.readers.errors import FileChanged, FileGone, PartsNotReadable
from operators.readers.scaled_reader import ScaledReader


class ReadableFiles(Protocol):
    """The methods of a file system that block readers call; `dagflow.storage.file_system(url)` has them."""

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

    def open_planned(self, block: FileBlockMetadata) -> BinaryReader:
        """A reader of a block's file as it was planned; of object stores without a request for its status."""
        path = block.file_path
        status = FileStatus(path, block.file_length, block.modified_ns or 0, False, True, version=block.version)
        return open_planned(status)

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
        """Return True if records of files are whole up to any `end` (outside of `quote`s): the splitter resumes there."""
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
        """Return the file system of the blocks' paths. Override it for files that no URL names."""
        return FilesByUrl()

    def setup_stream(self, block: FileBlockMetadata) -> BinaryReader:
        """Opens a block's file."""
        path, files = block.file_path, self.get_file_system()
        with explained(path, "reading"):
            try:
                stream = self._open_stream(files, block)
            except FileNotFoundError:
                if not block.as_planned:
                    return io.BytesIO()
                raise FileGone(path=path, planned_length=block.file_length) from None
            if not block.as_planned:
                return stream
            try:
                if isinstance(files, FilesByUrl):
                    self._verify(block, files.opened_status(stream, path))
                else:
                    self._look(block, files)  # after opening: what has replaced the file by now is noticed
            except BaseException:
                stream.close()
                raise
        return stream if is_local(path) else cast("BinaryReader", _Watched(stream, lambda: self._look(block, files)))

    def _open_stream(self, files: ReadableFiles, block: FileBlockMetadata) -> BinaryReader:
        may_grow = self.allow_growth or block.record_end is not None  # a longer file is another version
        if type(files) is FilesByUrl and block.as_planned and not may_grow:
            return files.open_planned(block)
        return files.open(block.file_path)

    def _look(self, block: FileBlockMetadata, files: ReadableFiles) -> None:
        """Raises FileGone or FileChanged where a file is not there as it was planned."""
        try:
            found = files.status(block.file_path)
        except FileNotFoundError:
            raise FileGone(path=block.file_path, planned_length=block.file_length) from None
        self._verify(block, found)

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


class _Watched:
    """A stream of a file that another host keeps: where a read fails, `look` raises what has become of the file."""

    def __init__(self, stream: BinaryReader, look: Callable[[], None]) -> None:
        self._stream = stream
        self._look = look

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int = -1, /) -> bytes:
        with self._looking():
            return self._stream.read(size)

    def readinto(self, buffer: Any, /) -> int | None:
        with self._looking():
            return self._stream.readinto(buffer)

    @contextlib.contextmanager
    def _looking(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._look()
            raise
