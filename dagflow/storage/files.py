"""Files by path or URL: the protocol of file systems.

Every call raises the builtin OSErrors (FileNotFoundError, PermissionError, …); `dagflow.storage.explained` words them for users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import attrs

if TYPE_CHECKING:
    from typing_extensions import Buffer


@attrs.frozen
class FileStatus:
    """The status of a file or folder that is not opened; symbolic links are followed.

    Attributes:
        length: in bytes.
        modified_ns: in nanoseconds since the epoch; 0 if the file system does not record it.
        is_regular: False for folders, pipes, sockets, devices and dangling links.
        inode: (device, inode), equal for two paths to the same file or folder; None if there is none.
        target: the real path that a symbolic link leads to; None if it is not a link.
        version: the mark of this content that the server gives (an ETag); None if there is none.
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
        """Go to a position, from the start unless `whence` says otherwise, and return it."""
        ...

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, or all that are left."""
        ...

    def readinto(self, buffer: Any, /) -> int | None:
        """Fill a buffer from its start, and return how many bytes were read."""
        ...

    def close(self) -> None:
        """Close the file. Closing it twice is allowed."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None: ...


class BinaryWriter(Protocol):
    """A file opened for writing, buffered. It is complete only after `close`, and durable only after `sync_file`."""

    def write(self, data: Buffer, /) -> int:
        """Write all of the data, and return its length."""
        ...

    def flush(self) -> None:
        """Write the buffer to the file."""
        ...

    def close(self) -> None:
        """Write the buffer to the file, and close it."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None: ...


@runtime_checkable
class FileSystem(Protocol):
    """The operations on files that dagflow needs. Stateless: cheap to make, safe to share between threads, and picklable.

    Paths are what users write: relative or absolute paths or URLs. The paths in answers are written in the same way.
    """

    def status(self, path: str) -> FileStatus:
        """Return length, time and kind. Raises FileNotFoundError, PermissionError."""
        ...

    def scan(self, path: str) -> Iterator[FileStatus]:
        """Yield the entries of a folder, lazily and in no order. Files that vanish meanwhile are left out."""
        ...

    def open(self, path: str) -> BinaryReader:
        """Open a regular file for unbuffered reading. A pipe does not block, but raises OSError(ESPIPE)."""
        ...

    def create(self, path: str) -> BinaryWriter:
        """Create a file, and missing folders. On disks, raises FileExistsError rather than touch an existing file."""
        ...

    def abandon(self, writer: BinaryWriter) -> None:
        """Close a file that will not be finished. Its content is undefined; in object stores, the file does not appear."""
        ...

    def remove_uploads(self, folder: str, is_stale: Callable[[str], bool]) -> int:
        """Remove the unfinished uploads to a folder of an object store, which are billed and not listed. Return their number.

        A process that was killed while it wrote a large file leaves one. `is_stale` is called with each name below the folder.
        Disks have none: a file that was not finished is listed.
        """
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename a file, in one step on disks. An existing file is replaced, missing folders are made."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file or a symbolic link. Raises FileNotFoundError."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a folder with all that is in it, or a file, if it exists. Links are not followed."""
        ...

    def make_folders(self, path: str) -> None:
        """Make a folder and those above it, if they do not exist."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether the path exists. Raises PermissionError when that cannot be known."""
        ...

    def point(self, path: str, target: str) -> None:
        """Make a name lead to a folder beside it, `target`, in one step. A name that leads elsewhere is replaced.

        On disks it is a symbolic link, elsewhere a file that holds `target`.
        """
        ...

    def pointed(self, path: str) -> str | None:
        """Return the folder that a name leads to; None if there is none. Raises FileExistsError if `point` did not make it."""
        ...

    def link(self, path: str, name: str) -> bool:
        """Give a file a further name, unless it has that. Return False where the file system cannot, or the file is gone."""
        ...

    def is_taken(self, path: str) -> bool:
        """Return whether no file can get this name: there is one, or, on disks, a folder. Costs an object store one request."""
        ...

    def start_sync(self, writer: BinaryWriter, start: int) -> None:
        """Start to sync what was written from an offset on, where the system can. Does not wait."""
        ...

    def sync_file(self, writer: BinaryWriter) -> None:
        """Wait until the data that was written would survive a power cut. On object stores, `close` does that."""
        ...

    def sync_folder(self, path: str) -> None:
        """Wait until the names in a folder would survive a power cut, and the folder itself."""
        ...

    def local_path(self, path: str) -> str | None:
        """Return the path for the operating system's own calls, None when there is none."""
        ...


def read_fully(reader: BinaryReader, size: int) -> bytes:
    """Read `size` bytes from the position of the reader; fewer only at the end of the file. Short reads are repeated.

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
