"""Files by path or URL: what a file system can do, and which one answers to a URL.

Every call raises the builtin OSErrors (FileNotFoundError, PermissionError, …); `dagflow.storage.explained` words them for users.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import attrs

from dagflow.storage.urls import split_url

if TYPE_CHECKING:
    from typing_extensions import Buffer


@attrs.frozen
class FileStatus:
    """The status of a file or folder that is not opened; symbolic links are followed.

    `length` in bytes; `modified_ns` in nanoseconds since the epoch, 0 where the file system does not tell; `is_regular` is False
    for folders, pipes, sockets, devices and links that lead nowhere; `inode` is (device, inode), which tells two paths to one
    file or folder apart from two files, None where there is none. `target` is the real path that a symbolic link leads to, None
    for what is not a link. `version` is the server's own mark of this content (an ETag), None where there is none.
    """

    path: str
    length: int
    modified_ns: int
    is_directory: bool
    is_regular: bool
    inode: tuple[int, int] | None = None
    target: str | None = None
    version: str | None = None


class BinaryReader(Protocol):
    """A file opened for reading. `read` and `readinto` may return less than was asked for; nothing means the end."""

    def seek(self, position: int, whence: int = 0, /) -> int:
        """Goes to a position, from the start unless `whence` says otherwise; returns it."""
        ...

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes, or all that is left."""
        ...

    def readinto(self, buffer: Any, /) -> int | None:
        """Fills a buffer from its start; returns how far."""
        ...

    def close(self) -> None:
        """Ends it; fine when it is closed already."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None: ...


class BinaryWriter(Protocol):
    """A file opened for writing, buffered; what is written is whole only after `close`, and safe only after `sync_file`."""

    def write(self, data: Buffer, /) -> int:
        """Takes all of the data; returns its length."""
        ...

    def flush(self) -> None:
        """Hands on what is buffered."""
        ...

    def close(self) -> None:
        """Hands on what is buffered, and ends it."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None: ...


@runtime_checkable
class FileSystem(Protocol):
    """All that dagflow does with files. Stateless: cheap to make, safe to share between threads, and picklable.

    Paths are what users write: relative or absolute paths or URLs. The paths in answers are written in the same way.
    """

    def status(self, path: str) -> FileStatus:
        """Length, time and kind; raises FileNotFoundError, PermissionError."""
        ...

    def scan(self, path: str) -> Iterator[FileStatus]:
        """One level of a folder, lazily and in no order; what vanishes meanwhile is left out."""
        ...

    def open(self, path: str) -> BinaryReader:
        """An unbuffered reader of a regular file; never blocks on a pipe, but raises OSError(ESPIPE)."""
        ...

    def create(self, path: str) -> BinaryWriter:
        """A writer of a new file; makes missing folders, raises FileExistsError rather than touch an existing file."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Gives a file its name, in one step on disks, replacing an existing file; makes missing folders."""
        ...

    def remove(self, path: str) -> None:
        """Removes a file (or a symbolic link); raises FileNotFoundError."""
        ...

    def remove_tree(self, path: str) -> None:
        """Removes a folder with all that is in it, or a file; fine when it is gone already. Links are not followed."""
        ...

    def make_folders(self, path: str) -> None:
        """Makes a folder and those above it; fine when it exists."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether the path exists. Raises PermissionError when that cannot be known."""
        ...

    def sync_file(self, writer: BinaryWriter) -> None:
        """Returns when what was written would survive a power cut (on object stores, `close` does that)."""
        ...

    def sync_folder(self, path: str) -> None:
        """Returns when the names in a folder would survive a power cut."""
        ...

    def local_path(self, path: str) -> str | None:
        """The path for the operating system's own calls, None when there is none."""
        ...


def file_system(url: str) -> FileSystem:
    """The file system that answers to a path or URL: the operating system for paths and `file://`, fsspec's drivers for others.

    >>> file_system("logs").exists("no such folder")
    False

    Raises UnknownScheme, and DriverMissing with what to install.
    """
    scheme, _ = split_url(url)
    return _local() if scheme == "file" else _remote(scheme, url)


def open_planned(status: FileStatus) -> BinaryReader:
    """Open a file of which a listing gave the status. Where the store reads by version, no status is asked for again.

    Reads then raise OSError when the file is gone or is another one.
    """
    from dagflow.storage.remote.files import FsspecFileSystem

    files = file_system(status.path)
    return files.open(status.path, status) if isinstance(files, FsspecFileSystem) else files.open(status.path)


def opened_status(stream: BinaryReader, path: str) -> FileStatus | None:
    """Return the status that opening a remote file revealed, without another request; None where its stream does not tell."""
    if split_url(path)[0] == "file":
        return None
    from dagflow.storage.remote.files import opened_status as told

    return told(stream, path)


@lru_cache(maxsize=1)
def _local() -> FileSystem:
    from dagflow.storage.local.files import LocalFileSystem

    return LocalFileSystem()


_REMOTE: dict[str, FileSystem] = {}


def _remote(scheme: str, url: str) -> FileSystem:
    if scheme not in _REMOTE:
        from dagflow.storage.remote.files import FsspecFileSystem

        _REMOTE[scheme] = FsspecFileSystem(scheme, url=url)
    return _REMOTE[scheme]


def read_fully(reader: BinaryReader, size: int) -> bytes:
    """`size` bytes from where the reader stands, fewer only at the end of the file: short reads are repeated.

    >>> import io
    >>> read_fully(io.BytesIO(b"abc"), 2), read_fully(io.BytesIO(b"abc"), 9)
    (b'ab', b'abc')
    """
    piece = reader.read(size) or b""
    if len(piece) == size or not piece:
        return piece
    pieces = [piece]
    missing = size - len(piece)
    while missing > 0:
        piece = reader.read(missing)
        if not piece:
            break
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)
