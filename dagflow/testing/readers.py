"""Readers for `assert_reader_is_splittable`: one made of a block reader, and files that count what is read of them."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from threading import Lock
from typing import Any

import attrs

from dagflow.model.operator.base import Operator
from dagflow.model.operator.context import OperatorContext, OperatorServices
from dagflow.model.operator.ports import output_ports
from dagflow.model.types.records import FileBlockMetadata
from dagflow.ranges import RangeTracker
from dagflow.storage import BinaryReader, FileStatus, file_system

MakeReader = Callable[[str, Any], Iterator[tuple[Any, bool, Any]]]
"""`make_reader(path, tracker)` yields (position, is_split_point, record) of the tracker's range, each after it has claimed it."""


@attrs.define(eq=False)
class CountedFiles:
    """A file system that opens files by path or URL, and counts the bytes that are read.

    With `most`, no read gives more bytes: all are short.

    It can stand where a reader asks for a file system: `get_file_system()` of block readers, `reader_of(…, files=…)`.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"abcdef")
    ...     file.flush()
    ...     files = CountedFiles(most=2)
    ...     with files.open(file.name) as stream:
    ...         stream.read(5), files.bytes_read
    (b'ab', 2)
    """

    most: int | None = None
    bytes_read: int = attrs.field(init=False, default=0)
    _lock: Lock = attrs.field(init=False, repr=False, factory=Lock)

    def open(self, path: str) -> Any:
        """Open a file, and count its reads."""
        return _CountedReader(file_system(path).open(path), self)

    def status(self, path: str) -> FileStatus:
        """Return a file's length and time of modification."""
        return file_system(path).status(path)

    def count(self, size: int) -> None:
        """Add to the bytes that were read."""
        with self._lock:
            self.bytes_read += size


@attrs.define(eq=False)
class _CountedReader:
    _inner: BinaryReader
    _files: CountedFiles

    def read(self, size: int = -1, /) -> bytes:
        most = self._files.most
        data = self._inner.read(size if most is None else most if size < 0 else min(size, most))
        self._files.count(len(data))
        return data

    def readinto(self, buffer: Any, /) -> int | None:
        view = memoryview(buffer).cast("B")
        size = self._inner.readinto(view if self._files.most is None else view[: self._files.most])
        self._files.count(size or 0)
        return size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __enter__(self) -> _CountedReader:
        return self

    def __exit__(self, *error: object) -> None:
        self._inner.close()


PACES = (0.0125, 0.00125, 0.125)
"""Seconds that records are taken to need, in turn: readers claim few of slow ones at once, and more of others."""


def reader_of(
    reader: Operator,
    *,
    files: CountedFiles | None = None,
    in_batches: bool = False,
    block_of: Callable[[str, Any, Any], Any] | None = None,
) -> MakeReader:
    r"""Return a `make_reader` of a block reader. It proves the code that reads and claims in a run.

    Args:
        reader: a `BlockReader`, or any operator with its `read_block`, `tracker_of` and `claimed_at`; it works on copies. The
            records are what its port `messages` emits.
        files: opens the files, instead of its own `get_file_system`; by default, what their paths or URLs name.
        in_batches: the port is asked for batches.
        block_of: makes the block of `(path, start, stop)`, for readers of anything but files.

    Claims and yielded positions are in bytes of the file, also where the positions of records are not (compressed files).
    Records are returned after all records of the same claim have been emitted: four at first, then as many as the pace allows.
    The pace is fixed here, so that every proof is the same. Nothing can be stolen from a reader that does not track its block
    (slices of fixed lengths): all of it counts as claimed before its first record is returned.

    >>> import pathlib, tempfile
    >>> from dagflow.ranges import OffsetRangeTracker
    >>> from operators import BlockReader
    >>> make_reader = reader_of(BlockReader())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "lines.txt")
    ...     _ = path.write_bytes(b"one\ntwo\nthree\n")
    ...     list(make_reader(str(path), OffsetRangeTracker(1, 9)))
    [(4, True, 'two'), (8, True, 'three')]
    """
    opened, ports = CountedFiles() if files is None else files, tuple(output_ports(type(reader)))

    def of_file(path: str, start: Any, stop: Any) -> FileBlockMetadata:
        length = opened.status(path).length
        return FileBlockMetadata(0, path, start, stop, length, is_last_block=stop == length)

    def make_reader(path: str, tracker: RangeTracker[Any]) -> Iterator[tuple[Any, bool, Any]]:
        block = (block_of or of_file)(path, tracker.start_position, tracker.stop_position)
        return _Read(copy.deepcopy(reader), _Asked(tracker), in_batches, ports).records(block, opened)

    return make_reader


@attrs.define(eq=False)
class _Asked:
    """A tracker that notes which records are not split points, as the reader says; and, in a task, which might split it."""

    inner: RangeTracker[Any]
    points: set[Any] = attrs.field(factory=set)
    within: set[Any] = attrs.field(factory=set)
    is_tracked: bool = False

    def try_return_record_at(self, is_at_split_point: bool, record_start: Any) -> bool:
        if is_at_split_point:
            self.points.add(record_start)
        elif record_start not in self.points:
            self.within.add(record_start)
        return self.inner.try_return_record_at(is_at_split_point, record_start)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def track(self, tracker: Any) -> None:
        """See StealableWork."""
        if tracker is not self:
            raise TypeError(f"it is read through {tracker!r}, which is none that its tracker_of() has made")
        self.is_tracked = True

    def check(self) -> None:
        """See StealableWork."""

    def completes(self, operator: str) -> bool:
        """See StealableWork."""
        return True


@attrs.define(eq=False)
class _Read:
    """A copy of a reader, in a task of its own; and the clock of that task."""

    reader: Any
    tracker: _Asked
    in_batches: bool
    ports: Collection[str]
    found: list[tuple[Any, int, Any]] = attrs.field(factory=list)  # emitted, and not returned yet: split point, position, record
    seconds: float = 0.0
    paces: Iterator[float] = attrs.field(factory=lambda: itertools.cycle(PACES))
    last: tuple[int, int] | None = None  # of the record before: its split point, its position

    def records(self, block: Any, files: CountedFiles) -> Iterator[tuple[Any, bool, Any]]:
        """Yield the records that it reads of a block."""
        for port in map(self.reader.__getattribute__, self.ports):
            port.emit = port.emit_all = port.emit_batch = _nowhere
            port.is_connected = port.wants_batches = False
        messages = self.reader.messages
        messages.is_connected, messages.wants_batches = True, self.in_batches
        messages.emit_all, messages.emit_batch = self.take, self.take_batch
        self.reader.get_file_system = lambda: files
        self.reader.tracker_of = lambda block: self.tracker
        self.reader.setup(OperatorContext(name="reader", clock=self, services=OperatorServices(stealable=self.tracker)))
        try:
            with closing(self.reader.read_block(block)) as steps:
                for _ in itertools.chain(steps, (None,)):  # the last ones come with no step
                    if self.tracker.is_tracked:
                        yield from self.returned()
            yield from self.claimed_at_once(list(self.returned()))
        finally:
            self.reader.teardown()

    def take(self, records: Any) -> None:
        """Take emitted records."""
        before = len(self.found)
        self.found += ((self.reader.claimed_at(each.position), each.position, each.record) for each in records)
        self.seconds += (len(self.found) - before) * next(self.paces)

    def take_batch(self, batch: Any) -> None:
        """Take an emitted batch."""
        self.take(map(_Row, batch["position"].to_pylist(), batch["record"].to_pylist()))

    def returned(self) -> Iterator[tuple[int, bool, Any]]:
        """Yield the emitted records, each with its split point."""
        records, self.found = self.found, []
        for at, position, record in records:
            again = self.last is not None and self.last[0] == at and self.last[1] != position
            self.last = at, position
            yield at, not again and at not in self.tracker.within, record

    def claimed_at_once(self, found: list[tuple[int, bool, Any]]) -> Iterator[tuple[int, bool, Any]]:
        """Yield the records in the range, of a block from which nothing is stolen."""
        points = [at for at, is_split_point, _ in found if is_split_point]
        granted = self.tracker.try_return_batch_at(points) if points else 0
        refused = points[granted] if granted < len(points) else None
        return itertools.takewhile(lambda each: each[0] != refused, found)

    def now(self) -> float:
        """See Clock."""
        return self.seconds

    def monotonic(self) -> float:
        """See Clock."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """See Clock."""
        self.seconds += seconds


@attrs.frozen
class _Row:
    position: int
    record: Any


def _nowhere(what: object) -> None:
    """Take the records of other ports."""
