"""Readers for `assert_reader_is_splittable`: one made of a reader context, and files that count what is read of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

import attrs

from dagflow.model.records import FileBlockMetadata
from dagflow.ranges import RangeTracker
from dagflow.storage import BinaryReader, FileStatus, file_system

MakeReader = Callable[[str, Any], Iterator[tuple[Any, bool, Any]]]
"""`make_reader(path, tracker)` yields (position, is_split_point, record) of the tracker's range, each after it has claimed it."""


@attrs.define(eq=False)
class CountedFiles:
    """Opens files by path or URL, and counts the bytes that are read. With `most`, no read gives more bytes: all are short.

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
        """A reader of a file, whose reads are counted here."""
        return _CountedReader(file_system(path).open(path), self)

    def status(self, path: str) -> FileStatus:
        """A file's length and time of modification."""
        return file_system(path).status(path)

    def count(self, size: int) -> None:
        """Notes that so many bytes were read."""
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


def reader_of(make_context: Callable[[], Any], *, files: CountedFiles | None = None, in_pieces: bool = False) -> MakeReader:
    r"""A `make_reader` of a reader context: reads the tracker's range as a block, and claims each record before it is returned.

    Args:
        make_context: makes a reader context (`operators.ReaderContext`, or whatever has its methods) for each range.
        files: opens the files; by default, what their paths or URLs name.
        in_pieces: read pieces (`next_piece`), each with one claim for all of its split points.

    What is claimed, and yielded as position, is in bytes of the file also where the positions of records are not (compressed).

    >>> import pathlib, tempfile
    >>> from dagflow.ranges import OffsetRangeTracker
    >>> from operators import ReadAheadLineReaderContext
    >>> make_reader = reader_of(ReadAheadLineReaderContext)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "lines.txt")
    ...     _ = path.write_bytes(b"one\ntwo\nthree\n")
    ...     list(make_reader(str(path), OffsetRangeTracker(1, 9)))
    [(4, True, b'two'), (8, True, b'three')]
    """
    opened = CountedFiles() if files is None else files

    def make_reader(path: str, tracker: RangeTracker[int]) -> Iterator[tuple[int, bool, Any]]:
        start, stop, length = tracker.start_position, tracker.stop_position, opened.status(path).length
        block = FileBlockMetadata(0, path, start, stop, length, is_last_block=stop == length)
        context, stream = make_context(), opened.open(path)
        try:
            context.initialize(stream, block, False)
            yield from (_pieces if in_pieces else _entities)(context, tracker)
        finally:
            context.close()
            stream.close()

    return make_reader


def _entities(context: Any, tracker: RangeTracker[int]) -> Iterator[tuple[int, bool, Any]]:
    claimed_at = getattr(context, "claimed_at", int)
    while (found := context.next()) is not None:
        at = claimed_at(found.position)
        if not tracker.try_return_record_at(found.is_split_point, at):
            return
        yield at, found.is_split_point, found.record


def _pieces(context: Any, tracker: RangeTracker[int]) -> Iterator[tuple[int, bool, Any]]:
    claimed_at, last = getattr(context, "claimed_at", int), tracker.start_position
    while (piece := context.next_piece()) is not None:
        points = piece.split_points.tolist()
        owned = tracker.try_return_batch_at(points)
        kept = piece if owned == len(points) else piece.before(owned)
        if kept is not None:
            for entity in kept.entities():
                last = claimed_at(entity.position) if entity.is_split_point else last
                yield last, entity.is_split_point, entity.record
        if kept is not piece:
            return
