"""Files behind any other URL, by fsspec's drivers (s3, gs, abfs, hdfs, sftp, memory, …)."""

from __future__ import annotations

import datetime
import errno
import io
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from typing import Any, cast

from dagflow.errors.packages import PackageMissing
from dagflow.errors.wording import suggest
from dagflow.storage.errors import CredentialsMissing, FolderPage, UnknownScheme
from dagflow.storage.files import BinaryReader, BinaryWriter, FileStatus
from dagflow.storage.remote import azure, s3
from dagflow.storage.remote.drivers import driver_errors
from dagflow.storage.remote.ranges import RangeReader
from dagflow.storage.urls import BUCKETS, join, split_url

# What pip calls the package in which a module is.
_PACKAGES = {
    "smbclient": "smbprotocol",
    "git": "gitpython",
    "pygit2": "pygit2",
    "dropboxdrivefs": "dropboxdrivefs",
    "yaml": "pyyaml",
}
# The extras of dagflow that bring the packages of a scheme.
_EXTRAS = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(azure.SCHEMES, "abfs"),
    **dict.fromkeys(("http", "https"), "http"),
}
_POINTER = 1024  # bytes that are looked at of a file that may be a pointer
# Under these keys the drivers tell the version of a file, and when it was modified; the first that is there counts.
_MARKS = ("ETag", "etag", "Content-MD5", "Digest")
_TIMES = (
    "Last-Modified",
    "mtime",
    "LastModified",
    "last_modified",
    "modified",
    "updated",
    "modification_time",
    "ModifiedTime",
    "created",
)


class FsspecFileSystem:
    """Files of one URL scheme. Lists and looks afresh each time: fsspec's caches of listings would hide new files."""

    def __init__(self, scheme: str, *, url: str = "") -> None:
        self.scheme = scheme
        _driver(scheme, url or f"{scheme}://")

    def __reduce__(self) -> tuple[Callable[..., FsspecFileSystem], tuple[str]]:
        return FsspecFileSystem, (self.scheme,)

    def resolve(self, path: str) -> tuple[Any, str]:
        """Return fsspec's file system for a URL, and the path in it. Other options in a URL, such as a host, make another one."""
        from fsspec.core import url_to_fs

        _, separator, rest = path.partition("://")
        try:
            resolved: tuple[Any, str] = url_to_fs(
                f"{self.scheme}://{rest if separator else path}", **(s3.options() if self.scheme in s3.SCHEMES else {})
            )
        except ValueError as error:
            if "credentials" not in str(error):
                raise
            raise CredentialsMissing(path=path, doing="connecting to the store", reason=str(error)) from error
        return resolved

    def status(self, path: str) -> FileStatus:
        """See `FileSystem.status`."""
        with driver_errors(path, "looking at it"):
            driver, name = self.resolve(path)
            driver.invalidate_cache(driver._parent(name))
            driver.invalidate_cache(name)  # as a folder that was listed before: it may be gone
            return _status(path, driver.info(name))

    def scan(self, path: str) -> Iterator[FileStatus]:
        """See `FileSystem.scan`."""
        with driver_errors(path, "listing it"):
            driver, name = self.resolve(path)
            driver.invalidate_cache(name)
            entries = driver.ls(name, detail=True)
            driver.invalidate_cache(name)  # nothing is kept: two threads that let it go at once would meet a KeyError
        for info in entries:
            key = str(info["name"]).rstrip("/")
            if key == name.rstrip("/"):  # object stores list a folder's marker; and a file lists itself
                if info.get("type") == "file" and not driver.isdir(name):
                    raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)
                continue
            yield _status(join(path, key.rpartition("/")[2]), info)

    def open(self, path: str, planned: FileStatus | None = None, stop: int | None = None) -> BinaryReader:
        """See `FileSystem.open`; drivers read ahead, so that reads of a mebibyte are cheap.

        `planned`: the status that a listing gave. Where each read of a driver asks for that version, the file is opened
        without a request for its status. A read of a file that has changed since then raises OSError.
        `stop`: the end of the part that is to be read (see `RangeReader`).
        """
        with driver_errors(path, "opening it"):
            driver, name = self.resolve(path)
            parent = driver._parent(name)
            driver.invalidate_cache(parent)  # what the stream knows of the file is what `opened_status` tells
            is_s3 = self.scheme in s3.SCHEMES
            if planned is not None and planned.version and is_s3:  # so the driver asks for no status; each read names the version
                driver.dircache[parent] = [_listing_entry(name, planned)]
            stream = driver.open(name, "rb")
            driver.invalidate_cache(parent)
            if is_s3 and planned is not None:
                length = planned.length
                fetch = s3.fetch_of(driver, name, planned.version)
                return RangeReader(fetch, length, length if stop is None else stop, stream.details)
        if isinstance(stream, io.BytesIO):  # memory:// hands the same object, with one position, to every reader
            return io.BytesIO(stream.getvalue())
        return cast("BinaryReader", stream)

    def create(self, path: str) -> BinaryWriter:
        """See `FileSystem.create`. If a driver cannot create exclusively, it checks first; a race may then overwrite.

        Object stores replace an existing object: if the answer to a write is lost, the driver writes again, and a condition would
        refuse the object's own second request. Callers give names that no other writer has.
        """
        driver, name = self.resolve(path)
        if self.scheme in BUCKETS:
            return cast("BinaryWriter", driver.open(name, "wb"))
        try:
            return _create(driver, name)
        except FileNotFoundError:
            driver.makedirs(driver._parent(name), exist_ok=True)
            return _create(driver, name)

    def abandon(self, writer: BinaryWriter) -> None:
        """See `FileSystem.abandon`. Ends the upload that a large file has begun."""
        from fsspec.spec import AbstractBufferedFile

        stream: Any = writer
        if isinstance(stream, AbstractBufferedFile):
            stream.discard()
            stream.closed = True  # else the destructor would write what is left
        else:  # a stream of the driver's own, as of hdfs: it has written what it was given
            stream.close()

    def remove_uploads(self, folder: str, is_stale: Callable[[str], bool]) -> int:
        """See `FileSystem.remove_uploads`. The stores other than S3 remove such parts by themselves, after a week."""
        if self.scheme not in s3.SCHEMES:
            return 0
        with driver_errors(folder, "listing unfinished uploads"):
            driver, name = self.resolve(folder)
            return s3.remove_uploads(driver, name, is_stale)

    def rename(self, source: str, target: str) -> None:
        """See `FileSystem.rename`. Object stores copy and remove; the target still appears complete."""
        from fsspec import AbstractFileSystem

        driver, name = self.resolve(source)
        _, new = self.resolve(target)
        if self.scheme not in BUCKETS and type(driver).mv is not AbstractFileSystem.mv:
            driver.makedirs(driver._parent(new), exist_ok=True)
            driver.mv(name, new)
            return
        copy = s3.copy if self.scheme in s3.SCHEMES else azure.copy if self.scheme in azure.SCHEMES else _copy
        copy(driver, name, new)
        driver.rm_file(name)

    def remove(self, path: str) -> None:
        """See `FileSystem.remove`."""
        driver, name = self.resolve(path)
        driver.rm_file(name)

    def remove_tree(self, path: str) -> None:
        """See `FileSystem.remove_tree`."""
        from glob import has_magic

        driver, name = self.resolve(path)
        driver.invalidate_cache(name)
        try:
            if not has_magic(name):
                driver.rm(name, recursive=True)
                return
            for file in driver.find(name):
                driver.rm_file(file)
        except FileNotFoundError:
            pass

    def make_folders(self, path: str) -> None:
        """See `FileSystem.make_folders`. Object stores do not have folders."""
        if self.scheme not in BUCKETS:  # there, it would make a bucket
            with driver_errors(path, "making the folder"):
                driver, name = self.resolve(path)
                driver.makedirs(name, exist_ok=True)

    def exists(self, path: str) -> bool:
        """See `FileSystem.exists`."""
        try:
            self.status(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def point(self, path: str, target: str) -> None:
        """See `FileSystem.point`: one request."""
        with driver_errors(path, "writing it"):
            driver, name = self.resolve(path)
            driver.pipe_file(name, f"{target}\n".encode())

    def pointed(self, path: str) -> str | None:
        """See `FileSystem.pointed`."""
        try:
            with driver_errors(path, "reading it"):
                driver, name = self.resolve(path)
                driver.invalidate_cache(driver._parent(name))
                return str(driver.cat_file(name)[:_POINTER].decode(errors="replace")).strip()
        except FileNotFoundError:
            return None
        except IsADirectoryError as error:
            raise FileExistsError(errno.EEXIST, "It is a folder", path) from error

    def link(self, path: str, name: str) -> bool:
        """See `FileSystem.link`: objects have one name."""
        return False

    def is_taken(self, path: str) -> bool:
        """See `FileSystem.is_taken`."""
        if self.scheme not in s3.SCHEMES:
            return self.exists(path)
        with driver_errors(path, "looking at it"):
            return s3.is_object(*self.resolve(path))

    def start_sync(self, writer: BinaryWriter, start: int) -> None:
        """See `FileSystem.start_sync`: nothing to do."""

    def sync_file(self, writer: BinaryWriter) -> None:
        """See `FileSystem.sync_file`: the store has the file when it is closed."""
        writer.flush()

    def sync_folder(self, path: str) -> None:
        """See `FileSystem.sync_folder`: nothing to do."""

    def local_path(self, path: str) -> str | None:
        """Return None: the operating system does not have a path to it."""
        return None


_SYSTEMS: dict[str, FsspecFileSystem] = {}


def remote_file_system(url: str) -> FsspecFileSystem:
    """Return the file system for a URL: one for each scheme. Raises UnknownScheme, PackageMissing."""
    scheme, _ = split_url(url)
    if scheme not in _SYSTEMS:
        _SYSTEMS[scheme] = FsspecFileSystem(scheme, url=url)
    return _SYSTEMS[scheme]


def opened_status(stream: Any, path: str) -> FileStatus | None:
    """Return the status that a driver learned by opening a file; None if it does not keep it. Saves a request per block."""
    details = getattr(stream, "details", None)
    return _status(path, details) if isinstance(details, dict) and details.get("type") == "file" else None


def _driver(scheme: str, url: str) -> Any:
    """Return fsspec's class for a scheme, or an error that says what to install."""
    try:
        from fsspec import get_filesystem_class
        from fsspec.registry import known_implementations
    except ModuleNotFoundError as error:
        raise PackageMissing(needed_by=url, package="fsspec", install="fsspec", reason=str(error)) from error
    try:
        return get_filesystem_class(scheme)
    except ImportError as error:
        cause = error.__cause__
        missing = (cause.name if isinstance(cause, ImportError) else error.name) or ""
        if not missing:
            missing = str(known_implementations.get(scheme, {}).get("class", scheme))
        module = missing.partition(".")[0]
        package = _PACKAGES.get(module, module)
        install = f"'dagflow[{_EXTRAS[scheme]}]'" if scheme in _EXTRAS else package
        raise PackageMissing(needed_by=url, package=package, install=install, reason=str(error)) from error
    except ValueError as error:
        raise UnknownScheme(url=url, scheme=scheme, nearest=suggest(scheme, sorted(known_implementations))) from error


def _copy(driver: Any, path: str, new: str) -> None:
    driver.cp_file(path, new)  # the general mv, and that of gcsfs, take * and [ in names for patterns


def _create(driver: Any, name: str) -> BinaryWriter:
    try:
        return cast("BinaryWriter", driver.open(name, "xb"))
    except (ValueError, NotImplementedError):
        if driver.exists(name):
            raise FileExistsError(errno.EEXIST, "File exists", name) from None
        return cast("BinaryWriter", driver.open(name, "wb"))


def _listing_entry(name: str, status: FileStatus) -> dict[str, Any]:
    """Return a status as s3fs has it in listings."""
    modified = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=status.modified_ns // 1000)
    return {"name": name, "size": status.length, "type": "file", "ETag": status.version, "LastModified": modified}


def _status(path: str, info: dict[str, Any]) -> FileStatus:
    kind = info.get("type")
    length = info.get("size")
    final = str(info.get("url", "")).partition("?")[0]
    if info.get("mimetype") == "text/html" and (final.endswith("/") or "." not in final.rpartition("/")[2]):
        raise FolderPage(path=path, doing="looking at it")
    mark = next((str(info[key]) for key in _MARKS if info.get(key)), None)
    return FileStatus(path, int(length or 0), _modified_ns(info), kind == "directory", kind == "file", version=mark)


def _modified_ns(info: dict[str, Any]) -> int:
    value = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    if isinstance(value, str):
        try:
            value = parsedate_to_datetime(value) if value[:1].isalpha() else datetime.datetime.fromisoformat(value)
        except ValueError:
            return 0
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=datetime.UTC)
        past = value - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return (past.days * 86_400 + past.seconds) * 1_000_000_000 + past.microseconds * 1000
    # a float has no nanoseconds of its own: the same time as a float and as a datetime is the same number
    return round(value * 1_000_000) * 1000 if isinstance(value, (int, float)) else 0
