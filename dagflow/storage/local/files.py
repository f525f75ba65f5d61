"""Files on disks that the operating system has mounted."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from typing import cast

import attrs

from dagflow.storage.files import BinaryReader, BinaryWriter, FileStatus
from dagflow.storage.urls import split_url

# The error numbers of file systems that cannot sync a folder.
_CANNOT_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EROFS, errno.EBADF, errno.ENOSYS})
_WRITE_BUFFER = 256 * 1024
_REMEMBERED = 10_000


def sync_descriptor(descriptor: int) -> None:
    """Wait until the content of an open file would survive a power cut."""
    if sys.platform == "darwin":  # there, fsync only hands the data to the disk, which may keep it in its cache
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
        except OSError:  # not offered by network file systems
            pass
    os.fsync(descriptor)


_CANNOT_LINK = (errno.ENOENT, errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EXDEV)


def sync_folder(path: str) -> None:
    """Wait until the names in a folder would survive a power cut, if the file system supports that."""
    descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_descriptor(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


_SETTLED: dict[str, int] = {}
"""The folders whose own names this process has seen survive, with their inodes: other libraries make folders, too."""


def _settle(folder: str) -> None:
    """Sync the folders above one on its disk, once: the process that made it may have died before it did."""
    status = os.stat(folder)
    while (above := os.path.dirname(folder)) != folder and (parent := os.stat(above)).st_dev == status.st_dev:
        if _SETTLED.get(folder) != status.st_ino:
            with contextlib.suppress(PermissionError):  # it may be entered, but not read: nothing that we could secure
                sync_folder(above)
            if len(_SETTLED) >= _REMEMBERED:
                _SETTLED.clear()
            _SETTLED[folder] = status.st_ino
        folder, status = above, parent


class LocalFileSystem:
    """The operating system's files: relative and absolute paths, and `file://` URLs; `~` is a name like any other."""

    def status(self, path: str) -> FileStatus:
        """See `FileSystem.status`."""
        plain = _plain(path)
        status = _status(path, os.stat(plain))
        return status if not os.path.islink(plain) else attrs.evolve(status, target=os.path.realpath(plain))

    def scan(self, path: str) -> Iterator[FileStatus]:
        """See `FileSystem.scan`. Takes about 3 µs a file. A dangling link is yielded as not regular."""
        with os.scandir(_plain(path) or ".") as entries:
            for entry in entries:
                try:
                    result = entry.stat()
                except OSError:
                    try:
                        result = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # removed between listing and looking
                        continue
                mode = result.st_mode & 0o170000
                yield FileStatus(
                    entry.path,
                    result.st_size,
                    result.st_mtime_ns,
                    mode == stat.S_IFDIR,
                    mode == stat.S_IFREG,
                    (result.st_dev, result.st_ino),
                    os.path.realpath(entry.path) if entry.is_symlink() else None,
                )

    def open(self, path: str) -> BinaryReader:
        """See `FileSystem.open`."""
        # Opening a pipe waits for its writer, unless told not to; for regular files the flag means nothing.
        descriptor = os.open(_plain(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                number = errno.EISDIR if stat.S_ISDIR(mode) else errno.ESPIPE
                raise OSError(number, os.strerror(number), path)
            return io.FileIO(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise

    def create(self, path: str) -> BinaryWriter:
        """See `FileSystem.create`."""
        plain = _plain(path)
        try:
            return open(plain, "xb", buffering=_WRITE_BUFFER)
        except FileNotFoundError:
            self.make_folders(os.path.dirname(plain))
            return open(plain, "xb", buffering=_WRITE_BUFFER)

    def abandon(self, writer: BinaryWriter) -> None:
        """See `FileSystem.abandon`."""
        writer.close()

    def remove_uploads(self, folder: str, is_stale: Callable[[str], bool]) -> int:
        """See `FileSystem.remove_uploads`: disks have none."""
        return 0

    def rename(self, source: str, target: str) -> None:
        """See `FileSystem.rename`; the two must be on one disk."""
        plain = _plain(target)
        try:
            os.replace(_plain(source), plain)
        except FileNotFoundError:
            folder = os.path.dirname(plain)
            if os.path.isdir(folder or "."):
                raise
            self.make_folders(folder)
            os.replace(_plain(source), plain)

    def remove(self, path: str) -> None:
        """See `FileSystem.remove`."""
        os.unlink(_plain(path))

    def remove_tree(self, path: str) -> None:
        """See `FileSystem.remove_tree`. Tries for a second, since a cancelled task may still be writing there."""
        plain = _plain(path)
        for attempts_left in range(10, -1, -1):
            try:
                if stat.S_ISDIR(os.lstat(plain).st_mode):
                    shutil.rmtree(plain)
                else:
                    os.unlink(plain)
                return
            except FileNotFoundError:
                if not os.path.lexists(plain):
                    return
                if not attempts_left:
                    raise
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not attempts_left:
                    raise
            time.sleep(1.0 / (1 << attempts_left))

    def make_folders(self, path: str) -> None:
        """See `FileSystem.make_folders`."""
        plain = _plain(path)
        missing = os.path.abspath(plain)
        while not os.path.isdir(missing) and missing != os.path.dirname(missing):
            _SETTLED.pop(missing, None)
            missing = os.path.dirname(missing)
        if plain:
            os.makedirs(plain, exist_ok=True)

    def exists(self, path: str) -> bool:
        """See `FileSystem.exists`. False for a dangling link."""
        try:
            os.stat(_plain(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def point(self, path: str, target: str) -> None:
        """See `FileSystem.point`."""
        folder, name = os.path.split(_plain(path))
        fresh = os.path.join(folder, f".{name}.new")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh)  # of a process that died here
        os.symlink(target, fresh)
        os.replace(fresh, os.path.join(folder, name))

    def pointed(self, path: str) -> str | None:
        """See `FileSystem.pointed`."""
        plain = _plain(path)
        try:
            return os.readlink(plain)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise FileExistsError(errno.EEXIST, "It is not a symbolic link", path) from error

    def link(self, path: str, name: str) -> bool:
        """See `FileSystem.link`."""
        try:
            os.link(_plain(path), _plain(name))
        except FileExistsError:
            return os.path.samefile(_plain(path), _plain(name))
        except OSError as error:
            if error.errno not in _CANNOT_LINK:
                raise
            return False
        return True

    def is_taken(self, path: str) -> bool:
        """See `FileSystem.is_taken`."""
        return self.exists(path)

    def start_sync(self, writer: BinaryWriter, start: int) -> None:
        """See `FileSystem.start_sync`."""
        if sys.platform != "linux":
            return
        with contextlib.suppress(OSError):
            # There, this begins to write dirty pages and does not wait. Those being written stay cached; few others are dropped.
            os.posix_fadvise(cast("io.BufferedWriter", writer).fileno(), start, 0, os.POSIX_FADV_DONTNEED)

    def sync_file(self, writer: BinaryWriter) -> None:
        """See `FileSystem.sync_file`."""
        writer.flush()
        sync_descriptor(cast("io.BufferedWriter", writer).fileno())

    def sync_folder(self, path: str) -> None:
        """See `FileSystem.sync_folder`."""
        plain = _plain(path)
        sync_folder(plain)
        _settle(os.path.abspath(plain))

    def local_path(self, path: str) -> str | None:
        """See `FileSystem.local_path`."""
        return _plain(path)


def _plain(path: str) -> str:
    # The check keeps URL parsing off the paths of a hundred thousand files.
    return split_url(path)[1] if path[:5].lower() == "file:" else path


def _status(path: str, result: os.stat_result) -> FileStatus:
    mode = result.st_mode
    return FileStatus(
        path, result.st_size, result.st_mtime_ns, stat.S_ISDIR(mode), stat.S_ISREG(mode), (result.st_dev, result.st_ino)
    )
