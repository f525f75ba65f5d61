"""Parquet files that tasks stage beside a table: no reader of the table looks there, and no cleaner of its format.

They lie in `TABLE/_dagflow/tables/APPLICATION/SINK/staged`, with the window in their names, so that what dead attempts have left
is found by one listing. When the window is published, they are renamed into the table, and a transaction of the table names them.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from dagflow.storage import OWN_FOLDER, FileStatus, base_name, explained, file_system, inside, join, local_path, remove_uploads
from operators.sinks.table_formats.errors import StagedFileGone
from operators.sinks.tables.acceptance import TableLimits


def own_folder(table: str, application: str, sink: str) -> str:
    """Return the folder of a sink beside a table. Applications that write to the same table have folders of their own."""
    return join(table, OWN_FOLDER, "tables", quote(application or "-", safe=""), quote(sink, safe=""))


def applications_of(table: str) -> set[str]:
    """Return the identities of the applications that have published to a table, or have tried to."""
    folder = join(table, OWN_FOLDER, "tables")
    try:
        return {unquote(base_name(each.path)) for each in file_system(folder).scan(folder)}
    except FileNotFoundError:
        return set()


@attrs.define
class StagedParquet:
    """A Parquet file that a task writes.

    Attributes:
        path: where it is staged.
        name: its name in the table, once its window is published.
        folder: the part of the name that holds partition values, or "".
        columns: of its rows, those that name the folder too.
        sign: 1 for rows of a changing stream, -1 for those that are taken back; 0 where none are.
        rows, size: what was written so far.
        metadata: the footer, when the file is complete.
    """

    path: str
    name: str
    folder: str
    columns: pa.Schema
    sign: int = 0
    rows: int = 0
    size: int = 0
    metadata: list[pq.FileMetaData] = attrs.field(factory=list)
    _writer: Any = attrs.field(default=None, init=False)

    def write(self, data: Any) -> int:
        """Append bytes."""
        with explained(self.path, "writing the output"):
            if self._writer is None:
                self._writer = file_system(self.path).create(self.path)
            view = memoryview(data).cast("B")
            length = len(view)
            while len(view):
                view = view[self._writer.write(view) :]
        self.size += length
        return length

    def records(self, count: int) -> None:
        """Count rows."""
        self.rows += count

    def close(self) -> None:
        """Finish the file. It survives a power cut from now on."""
        if self._writer is None:
            return
        with explained(self.path, "writing the output"):
            file_system(self.path).sync_file(self._writer)
            self._writer.close()
        self._writer = None


@attrs.define
class AttemptFolder:
    """The files that one attempt of a task stages for a window."""

    folder: str
    window: int
    attempt: str = attrs.field(factory=lambda: uuid.uuid4().hex)
    files: list[StagedParquet] = attrs.field(factory=list)

    def create(self, folder: str, partition: int, columns: pa.Schema, sign: int) -> StagedParquet:
        """Return another file, which belongs into a folder of the table."""
        number = len(self.files)
        path = join(self.folder, f"{self.window:010d}.{self.attempt}.{number}.parquet")
        # unique over all applications and attempts: a rename never replaces a file of the table
        name = f"part-{self.window:06d}-{partition:04d}-{self.attempt}-{number}.parquet"
        file = StagedParquet(path, f"{folder}/{name}" if folder else name, folder, columns, sign)
        self.files.append(file)
        return file

    def sync(self) -> None:
        """Wait until the names of the files survive a power cut."""
        if self.files:
            file_system(self.folder).sync_folder(self.folder)


@attrs.define
class TaskState:
    """The state of a task in a window.

    Attributes:
        attempt: the files that it has staged; None before the first rows.
        table: the columns of the table, as far as the task knows them.
        limits: the values that the table takes.
        stand_in: a copy of the table, which evaluates its rules; None where it has none.
        with_nan: the columns in which there was NaN.
        columns: by the schema of arriving batches, the columns in which they are written.
        kinds: the columns and the sign of the rows of each kind, which have files of their own.
    """

    attempt: AttemptFolder | None = None
    table: pa.Schema | None = None
    limits: TableLimits = attrs.field(factory=lambda: TableLimits(operator="", target=""))
    stand_in: Any = None
    with_nan: set[str] = attrs.field(factory=set)
    columns: dict[pa.Schema, pa.Schema] = attrs.field(factory=dict)
    kinds: list[tuple[pa.Schema, int]] = attrs.field(factory=list)

    def begin(self) -> None:
        """Forget the attempt before."""
        self.attempt = self.table = self.stand_in = None
        self.with_nan.clear()
        self.columns.clear()
        self.kinds.clear()


def move_into_table(table: str, files: Iterable[tuple[str, str, int]], *, sink: str, window: int) -> None:
    """Give staged files `(path, name, size)` their names in the table, as often as needed. Raises StagedFileGone."""
    system = file_system(table)
    folders: set[str] = set()
    for path, name, size in files:
        target = inside(table, name)
        with explained(target, "moving a file into the table"):
            if system.exists(path):
                _check_size(path, size, sink, window)
                if "/" in name:
                    system.make_folders(target.rpartition("/")[0])
                system.rename(path, target)
            elif not system.exists(target):
                raise StagedFileGone(sink=sink, window=window, file=path, reason="it is not there")
            else:
                _check_size(target, size, sink, window)
        parts = name.split("/")[:-1]  # synced also where a launch before has moved it: it may have died before it did
        folders.update(join(table, *parts[:depth]) for depth in range(len(parts) + 1))
    for folder in folders:
        with explained(folder, "moving files into the table"):
            system.sync_folder(folder)


def check_staged(files: Iterable[tuple[str, int]], *, sink: str, window: int) -> None:
    """Raise StagedFileGone unless files `(path, size)` are there."""
    for path, size in files:
        if not file_system(path).exists(path):
            raise StagedFileGone(sink=sink, window=window, file=path, reason="it is not there")
        _check_size(path, size, sink, window)


def _check_size(path: str, size: int, sink: str, window: int) -> None:
    actual = file_system(path).status(path).length
    if actual != size:
        reason = f"it has {actual:,} bytes, {size:,} were written"
        raise StagedFileGone(sink=sink, window=window, file=path, reason=reason)


def sweep_staged(folder: str, window: int) -> None:
    """Remove the files that are staged for a window and those before: what counted of them is in the table."""

    def is_stale(name: str) -> bool:
        number = name.partition(".")[0]
        return number.isdigit() and int(number) <= window

    system = file_system(folder)
    remove_uploads(folder, is_stale)  # where the store refuses, they only cost storage
    staged: list[FileStatus] = []
    with contextlib.suppress(FileNotFoundError):
        staged += system.scan(folder)
    for file in staged:
        if is_stale(base_name(file.path)):
            with contextlib.suppress(FileNotFoundError):
                system.remove(file.path)


def sync_local(paths: Iterable[str]) -> None:
    """Wait until files that a library has written survive a power cut, and their names. Object stores need none of that."""
    places = [local for path in paths if (local := local_path(path)) is not None and os.path.exists(local)]
    for place in places:
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    for folder in sorted({os.path.dirname(place) for place in places}):
        file_system(folder).sync_folder(folder)
