"""Errors of the operating system as errors of dagflow, which name the path, the operation and the remedy."""

from __future__ import annotations

import errno
import os
import stat
from itertools import islice
from types import TracebackType

from dagflow.errors import DagflowError
from dagflow.errors.wording import suggest
from dagflow.storage.errors import (
    DeviceFailed,
    DiskFull,
    NameTooLong,
    NotAFile,
    NotAFolder,
    NotReadable,
    NotWritable,
    PathMissing,
    PathTaken,
    StorageBusy,
    StorageError,
    SymlinkLoop,
    TooManyOpenFiles,
)
from dagflow.storage.transient import is_transient
from dagflow.storage.urls import local_path

_READING = frozenset({"reading", "listing", "scanning", "opening", "looking", "finding", "splitting"})
_DEVICE = frozenset({errno.EIO, errno.ENXIO, errno.ENODEV})
_BY_TYPE = (
    (FileNotFoundError, errno.ENOENT),
    (PermissionError, errno.EACCES),
    (NotADirectoryError, errno.ENOTDIR),
    (IsADirectoryError, errno.EISDIR),
    (FileExistsError, errno.EEXIST),
)


def translate(error: OSError, path: str, doing: str) -> StorageError:
    """Return the error of dagflow for an error of the operating system.

    `path` is the path that was to be used, `doing` a phrase that begins with an -ing word ("reading the input", "writing
    output"): one of reading, listing, scanning, opening, looking, finding, splitting turns a missing permission into
    NotReadable, any other into NotWritable. Raise it `from error`, or use `explained`.

    >>> str(translate(OSError(28, "No space left on device"), "out", "writing output"))[:58]
    'out: no space is left on the device, while writing output.'
    """
    number = error.errno
    if number is None:  # fsspec's drivers raise FileNotFoundError(path), without a number
        number = next((code for kind, code in _BY_TYPE if isinstance(error, kind)), None)
    named = error.filename2 if number == errno.EEXIST and error.filename2 else error.filename
    at = os.fsdecode(named) if isinstance(named, (str, bytes)) else None
    reason = error.strerror or str(error) or type(error).__name__
    if is_transient(error):
        return StorageBusy(path=path, doing=doing, reason=reason, at=at)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(path=path, doing=doing, reason=reason, at=at, quota=number == errno.EDQUOT)
    if number in (errno.EACCES, errno.EPERM):
        kind = NotReadable if doing.partition(" ")[0] in _READING else NotWritable
        return kind(path=path, doing=doing, reason=reason, at=at)
    if number == errno.EROFS:
        return NotWritable(path=path, doing=doing, reason=reason, at=at, read_only=True)
    if number == errno.ENOENT:
        parent, nearest = _neighbours(at or path)
        return PathMissing(path=path, doing=doing, reason=reason, at=at, parent=parent, nearest=nearest)
    if number == errno.ENOTDIR or (number == errno.EEXIST and doing.startswith("making ") and _file_on_the_way(at or path)):
        return NotAFolder(path=path, doing=doing, reason=reason, at=at, file=_file_on_the_way(at or path))
    if number in (errno.EISDIR, errno.ESPIPE):
        return NotAFile(path=path, doing=doing, reason=reason, at=at, kind=_kind(at or path, number))
    if number in _DEVICE:
        return DeviceFailed(path=path, doing=doing, reason=reason, at=at)
    plain = {
        errno.EMFILE: TooManyOpenFiles,
        errno.ENFILE: TooManyOpenFiles,
        errno.ELOOP: SymlinkLoop,
        errno.ENAMETOOLONG: NameTooLong,
        errno.EEXIST: PathTaken,
    }.get(number or 0, StorageError)
    return plain(path=path, doing=doing, reason=reason, at=at)


class explained:  # noqa: N801  # reads as a word: `with explained(path, "reading the input"):`
    """A context manager that turns an OSError from its block into the fitting StorageError, with the original as its cause.

    >>> with explained("/nowhere", "listing the input"):
    ...     os.listdir("/nowhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dagflow.storage.errors.PathMissing: /nowhere: no such file or folder, while listing the input. ...
    """

    __slots__ = ("doing", "path")

    def __init__(self, path: str, doing: str) -> None:
        self.path, self.doing = path, doing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, OSError):
            raise translate(error, self.path, self.doing) from error
        if (
            isinstance(error, Exception) and is_transient(error) and not isinstance(error, DagflowError)
        ):  # drivers have errors of their own
            raise StorageBusy(path=self.path, doing=self.doing, reason=str(error) or type(error).__name__) from error


def _neighbours(path: str) -> tuple[str | None, str | None]:
    """Return the deepest folder above a missing path that exists, and the path in it that is most like the missing one."""
    plain = local_path(path)
    if plain is None:
        return None, None
    missing = plain.rstrip("/")
    while True:
        parent, name = os.path.split(missing)
        if os.path.isdir(parent or "."):
            break
        if parent == missing or not parent:
            return None, None
        missing = parent
    try:
        with os.scandir(parent or ".") as entries:
            names = [entry.name for entry in islice(entries, 5000)]
    except OSError:
        names = []
    near = suggest(name, names, cutoff=0.7)
    return parent or ".", None if near is None else os.path.join(parent, near)


def _file_on_the_way(path: str) -> str | None:
    plain = local_path(path)
    while plain and plain != os.path.dirname(plain):
        if os.path.exists(plain) and not os.path.isdir(plain):
            return plain
        plain = os.path.dirname(plain)
    return None


def _kind(path: str, number: int) -> str:
    if number == errno.EISDIR:
        return "a folder"
    plain = local_path(path)
    try:
        mode = os.stat(plain).st_mode if plain is not None else 0
    except OSError:
        mode = 0
    kinds = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))
    return next((word for test, word in kinds if test(mode)), "not a regular file")
