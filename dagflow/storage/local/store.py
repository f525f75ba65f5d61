"""Publishing on disks: a temporary file, synced, is linked to its name; hard links never replace a file."""

from __future__ import annotations

import ctypes
import errno
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from dagflow.storage.confined import inside
from dagflow.storage.errors import StoreRefused
from dagflow.storage.explain import explained
from dagflow.storage.local.files import sync_descriptor, sync_folder
from dagflow.storage.records.bounded import max_bytes, read_parts, read_regular
from dagflow.storage.records.errors import RecordDamaged, check_size
from dagflow.storage.store import check_name
from dagflow.storage.urls import local_path

_TEMPORARY = ".tmp-"
_NO_LINKS = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV})
_NO_RENAME = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_REMEMBERED = 10_000
_ATTEMPTS = 40
_PAUSE = 0.001  # seconds, for each attempt that failed
_MAX_PARTS = 8  # of the names that are listed

_Identity = tuple[int, int]
Content = TypeVar("Content")


class LocalStore:
    """A store in a folder, whose files are the records. The folder is made for the first record.

    With `durable`, a record that `create` has reported (True or False) or that was read survives a power cut; without, it
    survives the death of any process. Temporary files of writers that died begin with `.tmp-` and are never listed; `sweep`
    removes them. Safe to share between threads, processes, and machines that see the same folder; picklable.
    """

    def __init__(self, folder: str, durable: bool = True) -> None:
        plain = local_path(folder)
        if plain is None:
            raise ValueError(f"{folder!r} is not a local folder: open_store(url) finds the store for other URLs")
        self.folder = os.path.abspath(plain)
        self.durable = durable
        self._settled: set[str] = set()

    def __reduce__(self) -> tuple[Callable[..., LocalStore], tuple[str, bool]]:
        return LocalStore, (self.folder, self.durable)

    def __repr__(self) -> str:
        return f"LocalStore({self.folder!r}, durable={self.durable})"

    @property
    def url(self) -> str:
        """The folder."""
        return self.folder

    def _path(self, name: str) -> str:
        """Return the path of a record. Raises BadRecordName, and PathOutside where a link leads out of the folder."""
        return inside(self.folder, check_name(name))

    def create(self, name: str, data: bytes | memoryview) -> bool:
        """See `Store.create`. Costs about 0.05 ms, and two syncs of the disk when durable."""
        path = self._path(name)
        folder = os.path.dirname(path)
        check_size(self.folder, name, len(data))
        with explained(path, "publishing a record"):
            won = False if os.path.lexists(path) else self._publish(folder, path, data)
            if not won and os.path.isdir(path):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            if self.durable:
                # Also for the losers: they act upon the winner's record, which it may not have secured yet.
                with suppress(FileNotFoundError):  # another process discarded the record already
                    self._settle(os.path.dirname(folder))
                    sync_folder(folder)
                    self._remember(folder)
            return won

    def read(self, name: str) -> bytes | None:
        """See `Store.read`."""
        return self._read(name, lambda path: read_regular(path, max_bytes(name)))

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes] | None:
        """See `Store.read_ranges`."""
        return self._read(name, lambda path: read_parts(path, ranges))

    def _read(self, name: str, reading: Callable[[str], Content]) -> Content | None:
        path = self._path(name)
        with explained(path, "reading a record"):
            try:
                data = reading(path)
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None
            except OSError as error:
                if error.errno in (errno.ESPIPE, errno.EFBIG):  # no launch leaves such a file
                    raise RecordDamaged(self.folder, name, str(error.strerror)) from error
                raise
            if self.durable:
                with suppress(FileNotFoundError):
                    self._settle(os.path.dirname(path))
        return data

    def names(self, prefix: str = "") -> list[str]:
        """See `Store.names`: reads only the folders that the prefix leaves open."""
        start = prefix.rpartition("/")[0]
        if start:
            check_name(start)
        with explained(self.folder, "listing records"):
            return sorted(name for name in self._walk(start) if name.startswith(prefix))

    def discard(self, name: str) -> None:
        """See `Store.discard`; folders that become empty go too."""
        path = self._path(name)
        with explained(path, "removing a record"):
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(path)
            folder = os.path.dirname(path)
            while len(folder) > len(self.folder):
                try:
                    os.rmdir(folder)
                except FileNotFoundError:
                    pass
                except OSError:  # not empty, mostly: it stays
                    break
                self._settled.discard(folder)
                folder = os.path.dirname(folder)

    def discard_all(self, names: Sequence[str]) -> None:
        """See `Store.discard_all`."""
        for name in names:
            self.discard(name)

    def sweep(self, before: float) -> int:
        """Remove temporary files last written before a time (seconds since the epoch), and return their number.

        They are left by writers that died. A writer that lives, however slow, only has to write its temporary file again.
        """
        removed = 0
        with explained(self.folder, "removing temporary files"):
            for folder, _, files in os.walk(self.folder):
                for name in files:
                    if name.startswith(_TEMPORARY):
                        path = f"{folder}/{name}"
                        with suppress(FileNotFoundError):
                            if os.lstat(path).st_mtime < before:
                                os.unlink(path)
                                removed += 1
        return removed

    def _publish(self, folder: str, path: str, data: bytes | memoryview) -> bool:
        attempts = _ATTEMPTS
        while True:
            attempts -= 1
            temporary, descriptor = self._write(folder, data)
            try:
                return _give_name(temporary, path, _identity(descriptor))
            except FileNotFoundError:  # the temporary file was swept, or the folder removed with it: once more
                if not attempts:
                    raise
            finally:
                os.close(descriptor)  # not before: another writer's file could get the number of one that was swept
                with suppress(OSError):  # a leftover is harmless, and the outcome stands
                    os.unlink(temporary)

    def _write(self, folder: str, data: bytes | memoryview) -> tuple[str, int]:
        """Write a temporary file, and return its path and its descriptor, which is open."""
        temporary = f"{folder}/{_TEMPORARY}{os.urandom(12).hex()}"
        descriptor = self._open_new(folder, temporary)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if self.durable:
                sync_descriptor(descriptor)
        except BaseException:
            os.close(descriptor)
            with suppress(OSError):
                os.unlink(temporary)
            raise
        return temporary, descriptor

    def _open_new(self, folder: str, temporary: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        attempts = _ATTEMPTS
        while True:
            attempts -= 1
            try:
                return os.open(temporary, flags, 0o666)
            except FileNotFoundError:
                if not attempts:
                    raise
                # `discard` may take an empty folder away while we make the one below it, or before we use it: once more, after
                # a random pause, since two threads can get in each other's way in step for ever.
                time.sleep(random.random() * _PAUSE * (_ATTEMPTS - 1 - attempts))
                with suppress(FileNotFoundError, FileExistsError):
                    self._make_folders(folder)

    def _make_folders(self, folder: str) -> None:
        missing = []
        above = folder
        while not os.path.isdir(above) and above != os.path.dirname(above):
            missing.append(above)
            above = os.path.dirname(above)
        os.makedirs(folder, exist_ok=True)
        if self.durable:
            for folder_made in missing:
                with suppress(FileNotFoundError):
                    sync_folder(os.path.dirname(folder_made))

    def _walk(self, below: str) -> Iterator[str]:
        folder = inside(self.folder, below) if below else self.folder
        start = f"{below}/" if below else ""
        try:
            if self.durable:
                self._settle(folder)
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name[0] == ".":
                        continue
                    if not _is_folder(entry):
                        yield start + entry.name
                    elif entry.is_symlink():  # it may lead round in circles; what it leads to is listed elsewhere
                        inside(self.folder, start + entry.name)
                    elif start.count("/") < _MAX_PARTS:
                        yield from self._walk(start + entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return

    def _settle(self, folder: str) -> None:
        """Sync a folder and those above it, once: the process that wrote there may have died before it did."""
        unsettled = []
        top = os.path.dirname(self.folder)
        while folder not in self._settled and len(folder) >= len(top):
            unsettled.append(folder)
            if folder == top:
                break
            folder = os.path.dirname(folder)
        for each in reversed(unsettled):
            with suppress(PermissionError):  # it may be entered but not read: nothing that we could secure
                sync_folder(each)
            self._remember(each)

    def _remember(self, folder: str) -> None:
        if len(self._settled) >= _REMEMBERED:
            self._settled.clear()
        self._settled.add(folder)


def _give_name(temporary: str, path: str, identity: _Identity) -> bool:
    try:
        os.link(temporary, path)
    except OSError as error:
        # The link may stand although an error says otherwise: a network file system repeats a request whose answer was lost,
        # and is then told of its own link. So we look whose file it is, and never take anything away.
        if _is_same(path, identity):
            return True
        if error.errno == errno.EEXIST:
            return False
        if error.errno in _NO_LINKS:
            return _rename_if_absent(temporary, path, identity, error)
        raise
    return True


def _identity(descriptor: int) -> _Identity:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _is_same(path: str, identity: _Identity) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == identity


def _rename_if_absent(temporary: str, path: str, identity: _Identity, no_links: OSError) -> bool:
    """Rename without replacing, for file systems without hard links (FAT, some network and user-space ones)."""
    try:
        _rename_no_replace(temporary, path)
    except OSError as error:
        if _is_same(path, identity):
            return True
        if error.errno == errno.EEXIST:
            return False
        if error.errno in _NO_RENAME:
            why = f"its file system has neither hard links ({no_links.strerror}) nor a rename that refuses to replace"
            raise StoreRefused(url=os.path.dirname(path), why=why) from no_links
        raise
    return True


def _rename_no_replace(source: str, target: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        if sys.platform == "darwin":
            failed = libc.renamex_np(os.fsencode(source), os.fsencode(target), ctypes.c_uint(4))  # RENAME_EXCL
        else:
            here = ctypes.c_int(-100)  # AT_FDCWD
            failed = libc.renameat2(here, os.fsencode(source), here, os.fsencode(target), ctypes.c_uint(1))  # RENAME_NOREPLACE
    except AttributeError as error:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from error
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), source, None, target)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself: it stands for a record, which cannot be read
        return False
