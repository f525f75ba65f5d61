"""Attempt files: what a task writes stays in a hidden staging folder until its window is decided."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from dagflow.model.operator.context import AttemptFile
from dagflow.runtime.run_folder.layout import STAGING
from dagflow.runtime.run_folder.reports import StagedFile
from dagflow.storage import (
    FILES_ALGORITHM,
    OWN_FOLDER,
    BinaryWriter,
    absolute,
    explained,
    file_system,
    is_local,
    join,
    local_path,
    new_hash,
)

_BUFFER = 256 << 10  # writes of this size and more go straight through
_SYNC_EVERY = 8 << 20  # bytes after which a durable file is written to the disk, while the task goes on


class _Attempt:
    """One attempt file; collects small writes."""

    def __init__(self, operator: str, folder: str, name: str, path: str, durable: bool) -> None:
        self.operator, self.folder, self.name, self.path = operator, folder, name, path
        self._durable = durable
        self._written = self._syncing = 0  # bytes handed to the system; those whose sync has started
        self.size = 0
        self.count: int | None = None
        self._hash = new_hash(FILES_ALGORITHM)
        self._system = file_system(path)
        self._writer: BinaryWriter | None = None
        self._pending: list[Any] = []
        self._waiting = 0
        self._closed: str | None = None

    def write(self, data: Any, /) -> int:
        """Append bytes."""
        length = memoryview(data).nbytes
        if length >= _BUFFER:
            self._drain()
            self._put(data)
        else:
            self._pending.append(bytes(data) if not isinstance(data, bytes) else data)
            self._waiting += length
            if self._waiting >= _BUFFER:
                self._drain()
        self.size += length
        return length

    def records(self, count: int) -> None:
        """Add the number of records written since the last call. Raises ValueError for less than none."""
        if type(count) is not int or count < 0:
            raise ValueError(f"records({count!r}): it must be the number of records written since the last call")
        self.count = (self.count or 0) + count

    def _drain(self) -> None:
        if self._pending:
            self._put(self._pending[0] if len(self._pending) == 1 else b"".join(self._pending))
            self._pending.clear()
            self._waiting = 0

    def _put(self, data: Any) -> None:
        with explained(self.path, "writing the output"):
            if self._writer is None:
                self._writer = self._open()
            view = memoryview(data).cast("B")
            self._hash.update(view)
            self._written += len(view)
            while len(view):
                view = view[self._writer.write(view) :]
            if self._durable and self._written - self._syncing >= _SYNC_EVERY:
                self._system.start_sync(self._writer, self._syncing)
                self._syncing = self._written

    def close(self) -> None:
        """Close the open file for now. The next write opens it again where that is possible."""
        self._drain()
        if self._writer is not None and (path := local_path(self.path)) is not None:
            with explained(self.path, "writing the output"):
                self._writer.close()
            self._writer, self._closed = None, path

    def _open(self) -> BinaryWriter:
        if self._closed is not None:
            return open(self._closed, "ab", buffering=0)
        return self._system.create(self.path)

    def finish(self) -> StagedFile:
        """Write what is left, synced if asked, and close."""
        self._drain()
        with explained(self.path, "writing the output"):
            if self._writer is None:
                self._writer = self._open()
            if self._durable:
                self._system.sync_file(self._writer)
            self._writer.close()
        records = (1 if self.size else 0) if self.count is None else self.count
        digest = f"{FILES_ALGORITHM}:{self._hash.hexdigest()}"
        return StagedFile(self.operator, self.folder, self.name, self.path, self.size, records, digest)

    def abandon(self) -> None:
        """Close without finishing."""
        if self._writer is not None:
            # On a full disk, what is left in the buffer cannot be written now either. Drivers raise errors of their own. None of
            # them may replace the error for which the attempt ends.
            with contextlib.suppress(Exception):
                self._system.abandon(self._writer)


def place(folder: str, base: str) -> str:
    """Return a folder as every process finds it: a relative path starts from `base`."""
    return absolute(os.path.join(base, folder)) if is_local(folder) and folder[:5].lower() != "file:" else folder


def _refuse_name(name: Any) -> None:
    """Raise ValueError for names that no file in an output can have: the window could be decided, and never be committed."""
    words = name.split("/") if isinstance(name, str) else []
    if not words or "\0" in name or any(word in ("", ".", "..") for word in words):
        raise ValueError(f"create_file: {name!r} is not the name of a file below the output folder")
    if words[0].casefold() == OWN_FOLDER:
        raise ValueError(f"create_file: {name!r} is in {OWN_FOLDER}/, which is dagflow's own")


class AttemptFiles:
    """The files of one attempt of one task: `FOLDER/_dagflow/staging/WINDOW.EPOCH.ATTEMPT.NUMBER`.

    One flat folder: on common file systems making and removing folders costs milliseconds, files microseconds.
    """

    def __init__(self, window: int, epoch: str, attempt: str, durable: bool, base: str = "") -> None:
        self._base = base
        self._prefix = f"{window:010d}.{epoch}.{attempt}"
        self._durable = durable
        self._open: dict[tuple[str, str, str], _Attempt] = {}

    def create(self, operator: str, folder: str, name: str) -> AttemptFile:
        """Open the attempt file that becomes `folder/name`; the same one again for the same name. Raises ValueError."""
        _refuse_name(name)
        folder = place(folder, self._base)
        key = (operator, folder, name)
        if key not in self._open:
            path = join(folder, f"{STAGING}/{self._prefix}.{len(self._open)}")
            self._open[key] = _Attempt(operator, folder, name, path, self._durable)
        return self._open[key]

    def finish(self) -> list[StagedFile]:
        """Close all files, synced if asked, and return what they are to become. The process that decides syncs their names."""
        done = [attempt.finish() for attempt in self._open.values()]
        self._open.clear()
        return done

    def abandon(self) -> None:
        """Close all files without finishing; the driver sweeps them."""
        for attempt in self._open.values():
            attempt.abandon()
        self._open.clear()
