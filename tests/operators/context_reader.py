"""A `make_reader` of a reader context alone, which claims each record by itself: finer than what any block reader does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dagflow import FileBlockMetadata
from dagflow.ranges import RangeTracker
from dagflow.testing.readers import CountedFiles, MakeReader


def context_reader(make_context: Callable[[], Any], *, files: CountedFiles | None = None, in_pieces: bool = False) -> MakeReader:
    """Reads the tracker's range as a block. `in_pieces`: read pieces (`next_piece`), each with one claim for all of it."""
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
    while (found := context.next()) is not None:
        at = context.claimed_at(found.position)
        if not tracker.try_return_record_at(found.is_split_point, at):
            return
        yield at, found.is_split_point, found.record


def _pieces(context: Any, tracker: RangeTracker[int]) -> Iterator[tuple[int, bool, Any]]:
    last = tracker.start_position
    while (piece := context.next_piece()) is not None:
        points = piece.split_points.tolist()
        owned = tracker.try_return_batch_at(points)
        kept = piece if owned == len(points) else piece.before(owned)
        if kept is not None:
            for entity in kept.entities():
                last = context.claimed_at(entity.position) if entity.is_split_point else last
                yield last, entity.is_split_point, entity.record
        if kept is not piece:
            return
