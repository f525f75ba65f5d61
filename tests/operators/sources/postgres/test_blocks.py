"""Windows cut into blocks: any keys, any sizes, each row in one block. Without a server."""

from __future__ import annotations

import bisect

from hypothesis import given, settings
from hypothesis import strategies as st

from operators.sources.postgres.blocks import MarkedRow, WindowCut, window_cut
from tests.tiers import examples


def marked(keys: list[int], block_rows: int, blocks: int) -> list[MarkedRow]:
    """The rows that the statement of `SourceTable.cut` returns for sorted keys."""
    most = block_rows * blocks
    rows = [MarkedRow(key, bisect.bisect_left(keys, key), number) for number, key in enumerate(keys, 1)][: most + 1]
    return [row for row in rows if (row.number - 1) % block_rows == 0 or row.number == len(keys)]


def cut_of(keys: list[int], until: int, block_rows: int, blocks: int) -> WindowCut:
    """The cut, with the rest of what `SourceTable.cut` does."""
    found = window_cut(marked(keys, block_rows, blocks), until, block_rows=block_rows, blocks=blocks)
    if found is not None:
        return found
    stop = next((key for key in keys if key > keys[0]), until)
    return WindowCut(stop, sum(key < stop for key in keys))


@settings(max_examples=examples(300))
@given(
    keys=st.lists(st.integers(-20, 60), max_size=60).map(sorted),
    block_rows=st.integers(1, 7),
    blocks=st.integers(1, 4),
)
def test_each_row_is_in_one_block_of_one_window(keys: list[int], block_rows: int, blocks: int) -> None:
    until, position, taken = 61, -20, []
    while position < until and any(key >= position for key in keys):
        left = [key for key in keys if key >= position]
        cut = cut_of(left, until, block_rows, blocks)
        start, ranges = position, list(cut.ranges(position))
        for first, stop, rows in ranges:
            assert first == start
            inside = [key for key in keys if first <= key < stop]
            assert len(inside) == rows > 0
            assert len(set(inside)) == 1 or rows <= block_rows + max(map(keys.count, inside)) - 1
            taken += inside
            start = stop
        assert start == cut.stop
        assert cut.rows == sum(rows for *_, rows in ranges)
        assert cut.rows <= block_rows * blocks or len({key for key in left if key < cut.stop}) == 1
        position = cut.stop
    assert taken == keys


def test_dense_keys_are_cut_by_number() -> None:
    cut = cut_of(list(range(100, 200)), 200, block_rows=30, blocks=10)
    assert list(cut.ranges(100)) == [(100, 130, 30), (130, 160, 30), (160, 190, 30), (190, 200, 10)]


def test_a_window_ends_before_the_row_that_has_no_place() -> None:
    cut = cut_of(list(range(10)), 10, block_rows=2, blocks=3)
    assert list(cut.ranges(0)) == [(0, 2, 2), (2, 4, 2), (4, 6, 2)]


def test_gaps_belong_to_the_block_before_them() -> None:
    cut = cut_of([1, 2, 1_000_000, 1_000_001], 1_000_002, block_rows=2, blocks=2)
    assert list(cut.ranges(0)) == [(0, 1_000_000, 2), (1_000_000, 1_000_002, 2)]


def test_equal_keys_are_never_apart() -> None:
    cut = cut_of([5, 5, 5, 5, 5, 6], 100, block_rows=2, blocks=2)
    assert list(cut.ranges(5)) == [(5, 6, 5)]
