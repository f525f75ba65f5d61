"""Rows of the in-process runner between two levels: in memory while they are few, else in a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from dagflow.planning.plan import Plan
from dagflow.runtime.exchange.channels import TaskChannels
from dagflow.runtime.exchange.dataframes import transformed_rows, transforms_of
from dagflow.runtime.exchange.rows import Row, batch_of, tag_of
from dagflow.runtime.stage.program import DataFrameTransform, TaskSpec

if TYPE_CHECKING:
    import pyarrow as pa

_IN_MEMORY, _BATCHES = 64 << 20, 192 << 20
"""The bytes of blobs that stay in memory, and of batches that are not made into blobs."""


class TransformRunner(Protocol):
    """Runs DataFrame transforms for windows that run in this process."""

    def made(self, transform: DataFrameTransform, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches that a transform returns for some batches."""
        ...

    def close(self) -> None:
        """Lets go of what it has started."""


def transform_runner() -> TransformRunner:
    """Starts nothing yet. Only here, and where runners are made, does Spark get loaded."""
    import importlib

    # by name: layers above this one are plugged in, not imported
    made: TransformRunner = importlib.import_module("dagflow.spark.dataframes.local_transforms").LocalTransformRunner()
    return made


@attrs.frozen(order=True)
class _Entry:
    """A row in a spool: its blob is a batch, or `size` bytes of the file from `start` on."""

    src: int
    seq: int
    tag: int
    batch: pa.RecordBatch | None = attrs.field(order=False)
    start: int
    size: int


@attrs.define
class Spool:
    """A context manager; rows are put for a level, and read by task, sorted by source and sequence.

    `keeps`: they can be read again.
    """

    keeps: bool = False
    _file: tempfile.SpooledTemporaryFile[bytes] = attrs.field(init=False)
    _rows: dict[tuple[int, int], list[_Entry]] = attrs.field(factory=dict, init=False)
    _size: int = attrs.field(default=0, init=False)
    _here: TransformRunner | None = attrs.field(default=None, init=False)

    def __enter__(self) -> Spool:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, prefix="dagflow-exchange-")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()
        if self._here is not None:
            self._here.close()

    def put(self, level: int, row: Row) -> None:
        """Keeps a row for a level."""
        batch, start, size = self._kept(row), 0, 0
        if batch is None:
            start = self._file.seek(0, 2)
            self._file.write(row.encoded().blob)
            size = self._file.tell() - start
        self._rows.setdefault((level, row.dst), []).append(_Entry(row.src, row.seq, row.tag, batch, start, size))

    def _kept(self, row: Row) -> pa.RecordBatch | None:
        """Return the batch of a row if it stays in memory."""
        import pyarrow as pa

        batch = row.blob
        if not isinstance(batch, pa.RecordBatch) or self._size + batch.nbytes > _BATCHES:
            return None
        if batch.get_total_buffer_size() > 8 * batch.nbytes:  # a small part of what it would keep in memory
            batch = pa.concat_batches([batch, batch.slice(0, 0)])
        self._size += batch.nbytes
        return batch

    def through(self, transform: DataFrameTransform, here: TransformRunner) -> None:
        """Lets a transform have the rows for its operator, and keeps what it makes in their place."""
        tag = tag_of(transform.tag)
        places = [(transform.level, transform.first + number) for number in range(transform.partitions)]
        rows = [row for place in places for row in self._found(place, lambda entry: entry.tag == tag)]
        for row in transformed_rows(here.made(transform, (batch_of(row.blob) for row in rows)), transform, 0):
            self.put(transform.level, row)

    def transform(self, plan: Plan, spec: TaskSpec) -> None:
        """Runs the transform before a task, if it has one and is the first of its stage."""
        for transform in transforms_of(plan, [spec]).values():
            self._here = self._here or transform_runner()
            self.through(transform, self._here)

    def channels(self, spec: TaskSpec, levels: Mapping[int, int]) -> TaskChannels:
        """The channels of a task whose exchanges are all in this process. `levels`: by tag, where exchanges lead to."""
        return TaskChannels(self.rows(spec.layout.level, spec.layout.place), lambda row: self.put(levels[row.exchange], row))

    def rows(self, level: int, place: int) -> Iterator[Row]:
        """The rows for a task."""
        yield from self._found((level, place), lambda entry: True)

    def _found(self, place: tuple[int, int], wanted: Callable[[_Entry], bool]) -> Iterator[Row]:
        """Takes rows out, by source and sequence."""
        entries = self._rows.get(place, [])
        if not self.keeps:
            self._rows[place] = [entry for entry in entries if not wanted(entry)]
        for entry in sorted(filter(wanted, entries)):
            blob: Any = entry.batch
            if blob is None:
                self._file.seek(entry.start)
                blob = self._file.read(entry.size)
            elif not self.keeps:
                self._size -= blob.nbytes
            yield Row(place[1], entry.tag, entry.src, entry.seq, blob)
