from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.config import MiB
from operators.files.blocks import FileBlocks, default_block_size, default_window_bytes


def blocks_of(length: int, size: int, first_id: int = 0) -> FileBlocks:
    return FileBlocks("f", length=length, modified_ns=7, block_size=size, first_id=first_id)


@given(length=st.integers(0, 500), size=st.integers(1, 600), steps=st.lists(st.integers(1, 50)))
def test_blocks_cover_a_file_without_gaps_however_they_are_taken(length, size, steps):
    rest = blocks_of(length, size, first_id=100)
    taken = [b for n in steps for b in rest.take(n)]
    taken += rest.take(length + 1)
    assert rest.left == 0
    assert len(taken) == rest.count
    edges = [0] + [b.stop for b in taken]
    assert edges[-1] == length
    assert [b.start for b in taken] == edges[:-1]
    assert all(0 < b.stop - b.start <= size for b in taken)
    assert [b.block_id for b in taken] == list(range(100, 100 + len(taken)))
    assert [b.previous_block_id for b in taken] == [-1, *range(100, 99 + len(taken))][: len(taken)]
    assert [b.is_last_block for b in taken] == [False] * (len(taken) - 1) + [True] * bool(taken)
    assert all((b.file_path, b.file_length, b.modified_ns) == ("f", length, 7) for b in taken)


def test_state_holds_every_field():
    rest = blocks_of(10, 2)
    rest.take(2)
    plain = attrs.asdict(FileBlocks("", 0, None, 1, 0))
    assert rest.as_state() == {k: v for k, v in attrs.asdict(rest).items() if k in rest.as_state() or v != plain[k]}
    whole = attrs.evolve(
        rest, version="v", begin=2, record_end="\n", record_quote='"', folder_columns="k: int8", empty_is_null=True
    )
    assert whole.as_state() == attrs.asdict(whole)
    assert FileBlocks(**rest.as_state()) == rest


def test_blocks_count_as_planned_before_they_are_made():
    rest = blocks_of(10, 2)
    taken = rest.take(3)
    assert rest.planned == 3
    assert [b.start for b in taken] == [0, 2, 4]


@given(length=st.integers(0, 1 << 50), slots=st.integers(1, 10_000))
def test_default_block_size_is_whole_mebibytes_between_its_bounds(length, slots):
    size = default_block_size(length, slots)
    assert size % MiB == 0
    assert MiB <= size <= 64 * MiB
    if MiB < size < 64 * MiB:
        assert -(-length // size) <= slots * 8, "no more blocks than eight a slot"
    assert default_block_size(length + 1, slots) >= size


@pytest.mark.parametrize("slots", [1, 2, 4, 64])
def test_default_window_keeps_fixed_costs_below_three_percent(slots):
    seconds = default_window_bytes(slots) / (slots * 250e6)
    assert 0.15 / seconds == pytest.approx(0.03)
