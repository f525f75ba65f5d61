"""Archives with an address: the hash of their files' names and contents. The same files give the same bytes, anywhere."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import IO

import attrs

from dagflow.packaging.errors import PackageNotMade
from dagflow.storage import FILES_ALGORITHM, new_hash

_FORMAT = b"dagflow package 1\n"
_TIME = 315_532_800  # 1980, the earliest that a zip can hold
_PIECE = 4 << 20
_LEVEL = 1
_MAX_NAME = 240  # characters: file names may have 255 bytes


@attrs.frozen
class Member:
    """A file of an archive: its contents, or the file that has them."""

    source: Path | bytes
    is_program: bool = False

    def read(self) -> bytes:
        """Return its bytes."""
        return self.source if isinstance(self.source, bytes) else self.source.read_bytes()


def checked_name(name: str) -> str:
    """Return a name that an archive may hold. Raises PackageNotMade for one that leads out of the folder, or cannot be a name.

    >>> checked_name("lib/python3.11/six.py")
    'lib/python3.11/six.py'
    """
    path = PurePosixPath(name)
    parts = name.split("/")
    is_plain = all(part.isprintable() and 0 < len(part) <= _MAX_NAME and "\\" not in part for part in parts)
    if path.is_absolute() or not is_plain or {".", ".."} & set(parts):
        remedy = "rename the file, or leave its library out"
        raise PackageNotMade(
            doing="naming its files", reason=f"{name!r} cannot be the name of a file in an archive", remedy=remedy
        )
    return name


def address(members: Mapping[str, Member]) -> str:
    """Return the address of files: 16 hexadecimal digits."""
    digest = new_hash(FILES_ALGORITHM)
    digest.update(_FORMAT)
    for name in sorted(members):
        content = new_hash(FILES_ALGORITHM)
        content.update(members[name].read())
        digest.update(f"{checked_name(name)}\0{members[name].is_program}\0{content.hexdigest()}\n".encode())
    return str(digest.hexdigest()[:16])


def write_tar(file: IO[bytes], members: Mapping[str, Member]) -> None:
    """Write a `.tar.gz`: sorted, all files of the same time and owner."""
    with _Gzip(file) as compressed, tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(members):
            data = members[name].read()
            info = tarfile.TarInfo(checked_name(name))
            info.size, info.mtime, info.mode = len(data), _TIME, 0o755 if members[name].is_program else 0o644
            tar.addfile(info, io.BytesIO(data))


def write_zip(file: IO[bytes], members: Mapping[str, Member]) -> None:
    """Write a `.zip`, likewise."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(checked_name(name))
            info.compress_type, info.external_attr, info.create_system = zipfile.ZIP_DEFLATED, 0o644 << 16, 3
            archive.writestr(info, members[name].read())


class _Gzip(io.RawIOBase):
    """Compresses pieces in threads. Each piece is a member of the gzip file, as its format allows."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._piece = bytearray()
        self._cores = os.cpu_count() or 1
        self._threads = ThreadPoolExecutor(self._cores, thread_name_prefix="dagflow-package")
        self._ahead: list[Future[bytes]] = []

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: object) -> int:
        """Take some bytes."""
        view = memoryview(data).cast("B")  # type: ignore[arg-type]  # whatever the buffer protocol allows
        self._piece += view
        while len(self._piece) >= _PIECE:
            self._send(bytes(self._piece[:_PIECE]))
            del self._piece[:_PIECE]
        return len(view)

    def _send(self, piece: bytes) -> None:
        self._ahead.append(self._threads.submit(gzip.compress, piece, _LEVEL, mtime=0))
        while len(self._ahead) > 2 * self._cores:
            self._file.write(self._ahead.pop(0).result())

    def close(self) -> None:
        """Write what is left."""
        if self.closed:
            return
        try:
            if self._piece:
                self._send(bytes(self._piece))
            for piece in self._ahead:
                self._file.write(piece.result())
        finally:
            self._threads.shutdown()
            super().close()


def publish(path: Path, members: Mapping[str, Member]) -> bool:
    """Write an archive under its name, complete or not at all. Return False if it is there already. Raises PackageNotMade."""
    try:
        if path.is_file():
            os.utime(path)  # in use, so not one to be removed
            return False
        with tempfile.NamedTemporaryFile(prefix=".", suffix=".part", dir=path.parent, delete=False) as file:
            try:
                (write_zip if path.suffix == ".zip" else write_tar)(file, members)
                file.close()
                os.replace(file.name, path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        remedy = "free 1 GB, or set XDG_CACHE_HOME to another folder"
        raise PackageNotMade(doing=f"writing {path}", reason=error.strerror or str(error), remedy=remedy) from error
    return True


def share(archive: Path, folder: Path) -> tuple[Path, bool]:
    """Copy an archive into a folder that all machines see, unless it is there. Return its path, and whether it was copied.

    Raises PackageNotMade.
    """
    path = folder / archive.name
    try:
        if path.is_file() and path.stat().st_size == archive.stat().st_size:
            return path, False
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=".", suffix=".part", dir=folder, delete=False) as file:
            try:
                with archive.open("rb") as source:
                    shutil.copyfileobj(source, file, _PIECE)
                file.close()
                os.chmod(file.name, 0o644)
                os.replace(file.name, path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        reason, remedy = error.strerror or str(error), "check that the folder may be written, and has 1 GB of room"
        raise PackageNotMade(doing=f"copying it to {folder}", reason=reason, remedy=remedy) from error
    return path, True


def remove_old(folder: Path, patterns: Iterable[str], keep: int) -> None:
    """Remove all but the archives of each pattern that were used last."""
    for pattern in patterns:
        for path in sorted(folder.glob(pattern), key=_used, reverse=True)[keep:]:
            path.unlink(missing_ok=True)


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def names(path: Path) -> Iterator[str]:
    """Yield the names in a `.tar.gz`."""
    with tarfile.open(path) as archive:
        yield from archive.getnames()
