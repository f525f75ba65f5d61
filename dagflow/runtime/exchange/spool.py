"""Rows of the in-process runner between two levels: in memory while they are few, else in a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from types import TracebackType

import attrs

from dagflow.runtime.exchange.passing import Passing
from dagflow.runtime.exchange.rows import Row
from dagflow.runtime.program import TaskSpec

_IN_MEMORY = 64 << 20


@attrs.define
class Spool:
    """A context manager; rows are put for a level, and read by task, sorted by source and sequence."""

    _file: tempfile.SpooledTemporaryFile[bytes] = attrs.field(init=False)
    _rows: dict[tuple[int, int], list[tuple[int, int, int, int, int]]] = attrs.field(factory=dict, init=False)

    def __enter__(self) -> Spool:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, prefix="dagflow-exchange-")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    def put(self, level: int, row: Row) -> None:
        """Keeps a row for a level."""
        start = self._file.seek(0, 2)
        self._file.write(row.blob)
        self._rows.setdefault((level, row.dst), []).append((row.src, row.seq, row.tag, start, self._file.tell() - start))

    def passing(self, spec: TaskSpec, levels: Mapping[int, int]) -> Passing:
        """What a task has to do with exchanges, where they are all here. `levels`: where they lead to, by tag."""
        return Passing(self.rows(spec.level, spec.place), lambda row: self.put(levels[row.tag >> 1], row))

    def rows(self, level: int, place: int) -> Iterator[Row]:
        """The rows for a task."""
        for src, seq, tag, start, size in sorted(self._rows.pop((level, place), ())):
            self._file.seek(start)
            yield Row(place, tag, src, seq, self._file.read(size))
