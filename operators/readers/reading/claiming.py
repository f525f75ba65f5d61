"""The claims of a block reader on what it reads, where others may steal the rest of a block."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from dagflow import Clock
from operators.contexts import Entity, Piece, ReaderContext

TARGET = 0.05
"""Seconds of work that are claimed at once, at the pace of the claim before: what is claimed cannot be taken over any more, and
may turn out slower. A claim costs 15 µs, one of a batch 250, with all that follows from handing on less at once; 250 µs, too,
where records wait for something else, and the processor has forgotten what it did before: 0.5 % of the time (quick records, of
which `MOST` are claimed at once, up to 1.5 %)."""
MOST, MOST_ROWS = 1024, 65_536
"""Records that are claimed at once at most, however quick those before were; and in batches."""
FIRST = 4
"""Records claimed at once at the start of a block: its pace is not known yet, and may differ from that of the block before."""
COST = 0.00025
"""Seconds that it costs to pass on first records by themselves: nearly as much as many."""
SHARE, FREE = 0.02, 0.01
"""Of the time of a task, so much of that at most, or so many seconds: where very many blocks are short, and their records quick,
not each has first records."""
COLUMN_TARGET = 0.0004
"""Seconds of work that are claimed at once at least for each column of a batch: a batch costs 35 µs for each, however few rows it
has. So where there are very many columns, that stays a tenth; four tenths beside others that keep the processor busy."""
COLUMNS_A_FIRST_ROW = 16
"""Columns for each of the rows that are claimed at the start of a block, if those are more than `FIRST`."""
AS_QUICK, QUICK = 2.0, 0.0005
"""First records of a block that take at most so many seconds, and in batches at most so many times the shortest such time, say
nothing of its pace, which is taken to be that of the block before."""


@attrs.frozen
class _Positions(Sequence[int]):
    """The positions of some records of a piece; a tracker looks at two of them, so they are not all worked out."""

    piece: Piece
    first: int = 0
    stop: int = attrs.field(default=attrs.Factory(lambda self: len(self.piece), takes_self=True))

    def __len__(self) -> int:
        return self.stop - self.first

    def __getitem__(self, number: Any) -> Any:
        """Return the position of one record, or a slice of positions."""
        if isinstance(number, slice):
            start, stop, _ = number.indices(len(self))
            return _Positions(self.piece, self.first + start, self.first + stop)
        at = number + (self.stop if number < 0 else self.first)
        if not self.first <= at < self.stop:
            raise IndexError(number)
        return self.piece.position_of(at)


@attrs.define
class Claiming:
    """Claims the records of a block, few at a time where they are slow: down to one.

    Few at its start, too, as it may be slower than those before it (not of every block, if very many are short).

    `in_batches`: what is claimed is handed on as one batch. `columns`: of it; 0 as long as they are not known.
    """

    clock: Clock
    in_batches: bool = False
    columns: int = 0
    tracker: Any = None
    is_over: bool = False
    _limit: int = FIRST
    _before: int = FIRST
    _is_first: bool = False
    _joins: bool = False
    _quickest: float = math.inf
    _firsts: int = 0
    _worked: float = 0.0
    _waiting: int = 0
    _waits: bool = False

    def begin(self) -> None:
        """Begin a block. Nothing is claimed before it has a tracker."""
        self.tracker, self.is_over = None, False

    def track(self, tracker: Any, *, joins: bool = False) -> None:
        """Claim the records of the current block with a tracker. `joins`: they may be passed on with those of other blocks.

        Then its first records are passed on at once only while no pace is known, and where each record starts is not asked for.
        """
        self.tracker, self._joins = tracker, joins
        has_pace = self._firsts > 0 or self._worked > 0
        self._is_first = not (joins and has_pace) and (self._firsts + 1) * COST <= max(FREE, SHARE * self._worked)
        if self._is_first:
            self._before, self._limit = self._limit, FIRST

    def has_room(self, count: int) -> bool:
        """Return True if so many more records, with those that wait, would be claimed at once."""
        return self._waiting + count <= self._limit

    def may_wait(self, count: int) -> bool:
        """Return True if that many more records, just claimed, may be passed on with later ones (`passed_on`)."""
        self._waits = not self._is_first and self.has_room(count)
        if self._waits:
            self._waiting += count
        return self._waits

    def parts(self, piece: Piece) -> Iterator[Piece]:
        """Yield the parts of a piece, each claimed just before. `is_over` tells that some were refused."""
        points: Any = _Positions(piece) if self._joins and piece.has_only_split_points else piece.split_points
        total, at = len(points), 0
        if not total:  # all belongs to what was claimed before
            yield piece
        while at < total:
            limit = max(self._limit, self.columns // COLUMNS_A_FIRST_ROW) if self._is_first else self._limit
            count = min(max(1, limit * total // len(piece)), total - at)  # there may be many records to a split point
            if self.columns * COLUMN_TARGET > TARGET and (total - at - count) * 2 < count:
                count = total - at  # a few rows more cost next to nothing
            granted = self.tracker.try_return_batch_at(points[at : at + count])
            part = piece.between(at, at + granted)
            if part is not None:
                began = self.clock.monotonic()
                yield part
                if not self._waits:
                    self._took(len(part), self.clock.monotonic() - began)
                self._waits = False
            if granted < count:
                self.is_over = True
                return
            at += count

    def entity(self, context: ReaderContext, entity: Entity) -> bool:
        """Claim one record. Return False if it is no longer the reader's."""
        granted = self.tracker.try_return_record_at(entity.is_split_point, context.claimed_at(entity.position))
        self.is_over = not granted
        return bool(granted)

    @property
    def limit(self) -> int:
        """The number of records may be claimed before they are passed on."""
        return self._limit

    def _took(self, records: int, seconds: float) -> None:
        self._worked += seconds
        most = MOST_ROWS if self.in_batches else MOST
        target = max(TARGET, COLUMN_TARGET * self.columns) if self.in_batches else TARGET
        self._limit = max(1, int(min(most, records * target / seconds))) if seconds > 0 else most
        if self._is_first and records == FIRST:
            if seconds <= min(QUICK, AS_QUICK * self._quickest if self.in_batches else QUICK):
                self._limit = max(self._limit, self._before)
            self._quickest = min(self._quickest, seconds)
            self._firsts += 1
        self._is_first = False

    def passed_on(self, records: int, seconds: float) -> None:
        """Take note of records that were emitted together, and of the seconds that they took."""
        self._waiting = 0
        self._took(records, seconds)
