"""The file system and the store for a URL. The choice is by scheme; drivers of remote ones are loaded when one is asked for."""

from __future__ import annotations

from dagflow.storage.files import BinaryReader, FileStatus, FileSystem
from dagflow.storage.local.files import LocalFileSystem
from dagflow.storage.local.store import LocalStore
from dagflow.storage.store import Store
from dagflow.storage.urls import split_url

_LOCAL = LocalFileSystem()


def file_system(url: str) -> FileSystem:
    """Return the file system for a path or URL: the operating system for paths and `file://`, drivers of fsspec for others.

    >>> file_system("logs").exists("no such folder")
    False

    Raises UnknownScheme, and PackageMissing with what to install.
    """
    if split_url(url)[0] == "file":
        return _LOCAL
    from dagflow.storage.remote.files import remote_file_system

    return remote_file_system(url)


def open_planned(status: FileStatus, stop: int | None = None) -> BinaryReader:
    """Open a file whose status is known from a listing. Stores that read by version need no second request for it.

    Their reads raise OSError if the file is gone or has changed. `stop`: the end of the part that is to be read: such stores
    request nothing behind it ahead of time.
    """
    if split_url(status.path)[0] == "file":
        return _LOCAL.open(status.path)
    from dagflow.storage.remote.files import remote_file_system

    return remote_file_system(status.path).open(status.path, status, stop)


def opened_status(stream: BinaryReader, path: str) -> FileStatus | None:
    """Return the status that a driver learned by opening a remote file; None if it does not keep it."""
    if split_url(path)[0] == "file":
        return None
    from dagflow.storage.remote.files import opened_status as from_stream

    return from_stream(stream, path)


def open_store(url: str, *, durable: bool = True) -> Store:
    """Return the store in a folder, by path or URL; `durable`: records survive a power cut, not only kills.

    Raises StoreRefused for kinds of URL that cannot publish, UnknownScheme and PackageMissing. `probe` checks, once before a run,
    that the place really keeps the promise.
    """
    scheme, path = split_url(url)
    if scheme == "file":
        return LocalStore(path, durable=durable)
    from dagflow.storage.remote.store import FsspecStore

    return FsspecStore(url)
