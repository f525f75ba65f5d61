"""Ranges of keys as work items, cut out of a table by the keys of every n-th row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from operators.sources.postgres.keys import KeyType


@attrs.frozen
class KeyBlock:
    """The rows of a table whose keys lie in `[start, stop)`.

    Attributes:
        table: schema and name.
        key, key_type: the column, and its type in PostgreSQL.
        start, stop: positions (`KeyType`).
        rows: the number of rows when the block was planned.
        size: about how many bytes they are.
    """

    block_id: int
    table: str
    key: str
    key_type: str
    start: int
    stop: int
    rows: int
    size: int

    @property
    def words(self) -> str:
        """The range in words.

        >>> KeyBlock(0, "public.sales", "id", "bigint", start=1, stop=901, rows=900, size=0).words
        'rows with id from 1 to 900'
        """
        kind = KeyType(self.key_type)
        if kind.is_time:
            return f"rows with {self.key} from {kind.shown(self.start)} to before {kind.shown(self.stop)}"
        return f"rows with {self.key} from {self.start} to {self.stop - 1}"


@attrs.frozen
class MarkedRow:
    """One row of those that a window takes in the order of keys.

    Attributes:
        position: that of its key.
        before: the number of rows of the window with smaller keys.
        number: the row's own number, from 1. Rows with equal keys have different ones.
    """

    position: int
    before: int
    number: int


@attrs.frozen
class WindowCut:
    """The cut of a window: `stop` is the position behind it, and `bounds` are inner ones with the rows before each."""

    stop: int
    rows: int
    bounds: tuple[tuple[int, int], ...] = ()

    def ranges(self, start: int) -> Iterator[tuple[int, int, int]]:
        """Yield start, stop and number of rows of each block from `start` on. None is empty.

        >>> list(WindowCut(stop=31, rows=5, bounds=((20, 2), (30, 4))).ranges(10))
        [(10, 20, 2), (20, 30, 2), (30, 31, 1)]
        """
        before = 0
        for position, rows in (*self.bounds, (self.stop, self.rows)):
            if rows > before:
                yield start, position, rows - before
                start, before = position, rows


def window_cut(marked: Sequence[MarkedRow], until: int, *, block_rows: int, blocks: int) -> WindowCut | None:
    """Return the cut of a window of at most `blocks` blocks of `block_rows` rows, of rows before the position `until`.

    `marked`: the first row of each block, then the last row if there are no more than the window takes, else the first one
    behind the window. A bound is never among rows with equal keys, so that a block may have more rows than `block_rows`. None:
    all rows that the window takes have the same key, and there may be more of it.
    """
    last, most = marked[-1], block_rows * blocks
    if last.number <= most:
        stop, rows = until, last.number
    elif last.before == 0:
        return None
    else:
        stop, rows = last.position, last.before
    firsts = (row for row in marked if (row.number - 1) % block_rows == 0 and row.position < stop)
    inner = {row.position: row.before for row in firsts if row.before}
    return WindowCut(stop, rows, tuple(inner.items()))
