"""Rows of exchanges between worker processes: each attempt of a task writes a file, and later tasks read from it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import BinaryIO, NamedTuple

from dagflow.local.spool import TransformRunner
from dagflow.runtime.exchange.channels import TaskChannels
from dagflow.runtime.exchange.dataframes import transformed_rows
from dagflow.runtime.exchange.rows import Row, batch_of, tag_of
from dagflow.runtime.stage.program import DataFrameTransform


class StoredRow(NamedTuple):
    """A row without its blob, the level that it leads to, and where the blob is: `size` bytes of a file from `start` on."""

    level: int
    dst: int
    tag: int
    src: int
    seq: int
    path: str
    start: int
    size: int


class RowWriter:
    """Writes the rows of one attempt to a file, which exists once there is a row. A context manager.

    Args:
        levels: by the tag of an exchange, the level that it leads to.
    """

    def __init__(self, path: str, levels: Mapping[int, int]) -> None:
        self._path = path
        self._levels = levels
        self._file: BinaryIO | None = None
        self.rows: list[StoredRow] = []

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def put(self, row: Row) -> None:
        """Write a row."""
        if self._file is None:
            self._file = open(self._path, "xb")  # noqa: SIM115  # closed by __exit__
        start = self._file.tell()
        self._file.write(row.encoded().blob)
        size = self._file.tell() - start
        self.rows.append(StoredRow(self._levels[row.exchange], row.dst, row.tag, row.src, row.seq, self._path, start, size))


def read_rows(stored: Iterable[StoredRow]) -> Iterator[Row]:
    """Read rows, by source and sequence."""
    path, file = "", -1
    try:
        for each in sorted(stored, key=lambda row: (row.src, row.seq)):
            if each.path != path:
                if file >= 0:
                    os.close(file)
                path, file = each.path, -1
                file = os.open(path, os.O_RDONLY)
            yield Row(each.dst, each.tag, each.src, each.seq, os.pread(file, each.size, each.start))
    finally:
        if file >= 0:
            os.close(file)


class RowFiles:
    """The rows of one job: which task of which level gets which.

    Args:
        folder: for the files; only this user can enter it.
        levels: by the tag of an exchange, the level that it leads to; empty: there are no rows.
    """

    def __init__(self, folder: str, levels: Mapping[int, int]) -> None:
        self._folder = tempfile.mkdtemp(dir=folder) if levels else ""
        self._levels = levels
        self._rows: dict[tuple[int, int], list[StoredRow]] = {}

    def path_for(self, attempt: str) -> str:
        """The path of the file that an attempt of a task writes."""
        return os.path.join(self._folder, attempt)

    def remove(self) -> None:
        """Remove all files."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, rows: Iterable[StoredRow]) -> None:
        """Add the rows of an attempt that has ended well."""
        for row in rows:
            self._rows.setdefault((row.level, row.dst), []).append(row)

    def rows_for(self, level: int, place: int) -> list[StoredRow]:
        """The rows for a task. They stay, since its process may die."""
        return self._rows.get((level, place), [])

    def through(self, transform: DataFrameTransform, here: TransformRunner) -> None:
        """Put the rows that a transform makes in the place of those for its operator."""
        tag = tag_of(transform.tag)
        arrived: list[list[StoredRow]] = []
        for place in range(transform.first, transform.first + transform.partitions):
            rows = self.rows_for(transform.level, place)
            arrived.append([row for row in rows if row.tag == tag])
            self._rows[transform.level, place] = [row for row in rows if row.tag != tag]
        batches = (batch_of(row.blob) for rows in arrived for row in read_rows(rows))
        with RowWriter(self.path_for(f"transform-{transform.tag}"), self._levels) as writer:
            for row in transformed_rows(here.made(transform, batches), transform, 0):
                writer.put(row)
        self.add(writer.rows)


def channels(stored: Iterable[StoredRow], writer: RowWriter) -> TaskChannels:
    """The channels of a task that reads some rows and writes others."""
    return TaskChannels(read_rows(stored), writer.put)
