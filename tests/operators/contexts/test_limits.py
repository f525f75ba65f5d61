"""Long records, short files, and how much is read."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.contexts import (
    FileShortened,
    FixedBytesReaderContext,
    FixedRecordsReaderContext,
    LineReaderContext,
    ReadAheadLineReaderContext,
    RecordTooLong,
)
from tests.tiers import examples

FORMS = ["next", "piece"]
MIB = 1 << 20


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(60))
@given(
    data=st.text("ab\r\n", max_size=30).map(str.encode),
    size=st.integers(1, 31),
    limit=st.integers(1, 12),
    piece_bytes=st.sampled_from([1, 2, 5, MIB]),
)
def test_a_record_of_more_bytes_than_the_limit_is_refused(
    helpers: Any, form: str, data: bytes, size: int, limit: int, piece_bytes: int
) -> None:
    """Whatever the cuts: the records before it come first, then the error, as often as one asks."""
    lines = helpers.lines(data)
    too_long = [position for record, _, position in lines if len(record) > limit]
    context = ReadAheadLineReaderContext(max_record_bytes=limit, piece_bytes=piece_bytes)
    for block in helpers.blocks(len(data), size):
        context.initialize(io.BytesIO(data), block, False)
        owned = [line for line in lines if block.start <= line[2] < block.stop]
        refused = [position for position in too_long if block.start <= position < block.stop][:1]
        found, error = [], None
        try:
            while piece := (context.next() if form == "next" else context.next_piece()):
                found += [piece.position] if form == "next" else piece.positions.tolist()
        except RecordTooLong as caught:
            error = caught
            with pytest.raises(RecordTooLong):
                context.next_piece()
        assert ([error.position] if error else []) == refused
        assert error is None or (error.path, error.limit) == ("data.txt", limit)
        assert found == [position for _, _, position in owned if not refused or position < refused[0]]


@pytest.mark.parametrize("form", FORMS)
def test_a_record_may_span_many_pieces(helpers: Any, form: str) -> None:
    lines = [b"first", b"x" * (20 * MIB) + b"y", b"z" * (3 * MIB), b"last"]
    data = b"\r\n".join(lines)
    found = helpers.read(ReadAheadLineReaderContext(), data, 6 * MIB, form=form)
    assert [[len(record) for record, _, _ in block] for block in found] == [[5, 20 * MIB + 1], [], [], [3 * MIB, 4]]
    assert [record for block in found for record, _, _ in block] == lines


def test_a_long_record_is_searched_once_and_kept_once(helpers: Any) -> None:
    """Its bytes, the chunks that they are joined from, and one read: no more, and each byte is read once."""
    import tracemalloc

    data = b"x" * (32 * MIB) + b"\nshort\n"
    stream = helpers.watched(data)
    context = ReadAheadLineReaderContext(piece_bytes=MIB)
    context.initialize(stream, helpers.block(0, len(data), len(data)), False)
    tracemalloc.start()
    try:
        piece = context.next_piece()
        assert tracemalloc.get_traced_memory()[1] < 2 * 32 * MIB + 3 * MIB
    finally:
        tracemalloc.stop()
    assert piece is not None
    assert len(piece) == 2
    assert [position for position, _ in stream.reads] == [index * MIB for index in range(33)]


def test_records_over_the_limit_are_noticed_before_all_is_read(helpers: Any) -> None:
    stream = helpers.watched(bytes(64 * MIB))
    context = ReadAheadLineReaderContext(max_record_bytes=5 * MIB, piece_bytes=MIB)
    context.initialize(stream, helpers.block(0, 64 * MIB, 64 * MIB), False)
    with pytest.raises(RecordTooLong):
        context.next()
    assert len(stream.reads) == 6


def test_what_stands_before_a_blocks_first_line_is_skipped_not_kept(helpers: Any) -> None:
    import tracemalloc

    data = b"x" * (40 * MIB) + b"\nend"
    context = ReadAheadLineReaderContext(max_record_bytes=MIB, piece_bytes=MIB)
    tracemalloc.start()
    try:
        context.initialize(io.BytesIO(data), helpers.block(100, len(data), len(data)), False)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()
    assert helpers.drain(context, "next") == [(b"end", 3, 40 * MIB + 1)]


def test_nothing_past_stop_is_read_but_what_the_last_line_needs(helpers: Any) -> None:
    data = (b"x" * 99 + b"\n") * 1000
    for stop, reads in [(10_000, [(0, 10_000)]), (10_050, [(0, 10_050), (10_050, 8192)])]:
        stream = helpers.watched(data)
        context = ReadAheadLineReaderContext()
        context.initialize(stream, helpers.block(0, stop, len(data)), False)
        assert len(helpers.drain(context, "piece")) == -(-stop // 100)
        assert stream.reads == reads


def test_reads_past_stop_grow_with_the_record(helpers: Any) -> None:
    data = b"x" * 5 * MIB
    stream = helpers.watched(data)
    context = ReadAheadLineReaderContext(piece_bytes=MIB)
    context.initialize(stream, helpers.block(0, 1000, len(data)), False)
    assert helpers.drain(context, "next") == [(data, len(data), 0)]
    sizes = [1000] + [8192 << index for index in range(7)] + [MIB] * 5
    assert [size for _, size in stream.reads][:-1] == sizes[: len(stream.reads) - 1]
    assert len(stream.reads) == 13


def test_a_block_begins_with_one_read_from_the_byte_before_it(helpers: Any) -> None:
    stream = helpers.watched((b"x" * 99 + b"\n") * 1000)
    context = ReadAheadLineReaderContext()
    context.initialize(stream, helpers.block(500, 1000, 100_000), False)
    assert [position for _, _, position in helpers.drain(context, "next")] == [500, 600, 700, 800, 900]
    assert stream.reads == [(499, 501)]


def test_a_block_inside_a_line_reads_no_further_than_its_stop(helpers: Any) -> None:
    stream = helpers.watched(b"x" * 100_000 + b"\n")
    context = ReadAheadLineReaderContext()
    context.initialize(stream, helpers.block(500, 1000, 100_001), False)
    assert helpers.drain(context, "next") == []
    assert stream.reads == [(499, 501)]


@pytest.mark.parametrize("context", [ReadAheadLineReaderContext(), LineReaderContext()])
def test_consecutive_blocks_read_no_byte_twice(helpers: Any, context: Any) -> None:
    data = (b"x" * 99 + b"\n") * 1000
    stream = helpers.watched(data)
    for index, block in enumerate(helpers.blocks(len(data), 7777)):
        context.initialize(stream, block, index > 0)
        helpers.drain(context, "piece")
    reached = 0
    for position, size in stream.reads:
        assert position == reached
        reached = min(len(data), position + size)


def test_what_is_left_of_another_stream_or_place_is_never_used(helpers: Any) -> None:
    context, stream = ReadAheadLineReaderContext(), io.BytesIO(b"a\nb\nc\n")
    context.initialize(stream, helpers.block(0, 1, 6), False)
    assert helpers.drain(context, "next") == [(b"a", 2, 0)]
    context.initialize(io.BytesIO(b"d\ne\nf\n"), helpers.block(1, 3, 6), True)
    assert helpers.drain(context, "next") == [(b"e", 2, 2)]
    context.initialize(stream, helpers.block(0, 1, 6), False)
    assert helpers.drain(context, "next") == [(b"a", 2, 0)]
    context.initialize(stream, helpers.block(3, 6, 6), True)
    assert helpers.drain(context, "next") == [(b"c", 2, 4)]


@pytest.mark.parametrize("form", FORMS)
def test_after_a_block_inside_a_line_the_next_one_still_looks_for_its_first_line(helpers: Any, form: str) -> None:
    context, stream = ReadAheadLineReaderContext(), io.BytesIO(b"long line\nb\n")
    for start, stop, expected in [(2, 4, []), (4, 6, []), (6, 12, [(b"b", 2, 10)])]:
        context.initialize(stream, helpers.block(start, stop, 12), start > 2)
        assert helpers.drain(context, form) == expected


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", [ReadAheadLineReaderContext, LineReaderContext])
def test_a_block_that_was_left_half_read_is_no_hindrance(helpers: Any, make: Any, form: str) -> None:
    context, stream = make(piece_bytes=2), io.BytesIO(b"a\nb\nc\nd\n")
    context.initialize(stream, helpers.block(0, 4, 8), False)
    assert context.next() is not None
    context.initialize(stream, helpers.block(4, 8, 8), True)
    assert helpers.drain(context, form) == [(b"c", 2, 4), (b"d", 2, 6)]


def test_the_stream_may_have_been_moved_between_blocks(helpers: Any) -> None:
    data = (b"x" * 99 + b"\n") * 1000
    context, stream, found = ReadAheadLineReaderContext(), io.BytesIO(data), []
    for index, block in enumerate(helpers.blocks(len(data), 7777)):
        context.initialize(stream, block, index > 0)
        found += helpers.drain(context, "piece")
        stream.seek(3)
    assert found == helpers.lines(data)


def test_closing_leaves_the_stream_open(helpers: Any) -> None:
    stream = io.BytesIO(b"a\n")
    for context in (ReadAheadLineReaderContext(), FixedBytesReaderContext(), FixedRecordsReaderContext(1)):
        context.initialize(stream, helpers.block(0, 2, 2), False)
        context.close()
        assert context.next() is None
        assert context.next_piece() is None
    assert not stream.closed


CONTEXTS = [
    ReadAheadLineReaderContext(),
    LineReaderContext(),
    FixedBytesReaderContext(),
    FixedRecordsReaderContext(7, partial="emit"),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(("start", "stop"), [(0, 100), (50, 100), (90, 95), (10, 25)])
def test_a_file_that_was_shortened_is_noticed(helpers: Any, context: Any, form: str, start: int, stop: int) -> None:
    def read() -> None:
        context.initialize(io.BytesIO(b"x" * 20), helpers.block(start, stop, 100), False)
        helpers.drain(context, form)

    with pytest.raises(FileShortened) as caught:
        read()
    assert (caught.value.path, caught.value.expected, caught.value.found) == ("data.txt", 100, 20)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("context", [ReadAheadLineReaderContext(), FixedRecordsReaderContext(7, partial="emit")])
def test_a_record_that_was_cut_off_past_the_blocks_stop_is_noticed(helpers: Any, context: Any, form: str) -> None:
    """Without this, the first half of the record would pass for all of it."""
    context.initialize(io.BytesIO(b"x" * 45), helpers.block(0, 44, 100), False)
    with pytest.raises(FileShortened):
        helpers.drain(context, form)


def test_a_stream_that_cannot_tell_its_length_is_no_hindrance(helpers: Any) -> None:
    class Forward(io.BytesIO):
        def seek(self, position: int, whence: int = 0, /) -> int:
            if whence:
                raise OSError("not here")
            return super().seek(position)

    context = ReadAheadLineReaderContext()
    context.initialize(Forward(b"x" * 20), helpers.block(0, 100, 100), False)
    with pytest.raises(FileShortened) as caught:
        context.next()
    assert caught.value.found == 20


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_has_grown_is_read_as_it_was_planned(helpers: Any, form: str) -> None:
    """So that a window that runs again from its plan gives the same."""
    context = ReadAheadLineReaderContext()
    context.initialize(io.BytesIO(b"a\nbcd\ne\n"), helpers.block(0, 4, 4), False)
    assert helpers.drain(context, form) == [(b"a", 2, 0), (b"bc", 2, 2)]
