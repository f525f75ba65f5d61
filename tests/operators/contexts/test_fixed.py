from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.contexts import FixedBytesReaderContext, FixedRecordsReaderContext, PartialRecord
from tests.tiers import examples

FORMS = ["next", "piece"]


def lengths(found: Any) -> list[list[int]]:
    return [[len(record) for record, _, _ in block] for block in found]


@pytest.mark.parametrize("form", FORMS)
def test_slices_start_anew_in_each_block(helpers: Any, form: str) -> None:
    found = helpers.read(FixedBytesReaderContext(length=4), bytes(range(25)), 10, form=form)
    assert lengths(found) == [[4, 4, 2], [4, 4, 2], [4, 1]]


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(60))
@given(
    data=st.binary(max_size=60),
    size=st.integers(1, 61),
    length=st.integers(1, 20),
    piece_bytes=st.integers(1, 70),
    most=st.sampled_from([1, 5, 100]),
    consecutive=st.booleans(),
)
def test_slices_are_all_of_the_file(
    helpers: Any, form: str, data: bytes, size: int, length: int, piece_bytes: int, most: int, consecutive: bool
) -> None:
    context = FixedBytesReaderContext(length, piece_bytes=piece_bytes)
    found = helpers.read(context, data, size, form=form, consecutive=consecutive, stream=partial(helpers.short_reads, most=most))
    assert b"".join(record for block in found for record, _, _ in block) == data
    for block, begun in zip(found, range(0, len(data), size), strict=True):
        stop = min(len(data), begun + size)
        assert block == [(data[at : min(stop, at + length)], min(length, stop - at), at) for at in range(begun, stop, length)]


@pytest.mark.parametrize("form", FORMS)
def test_a_slice_is_the_whole_block_by_default(helpers: Any, table: bytes, form: str) -> None:
    """The original's test: 82 blocks of 1500 bytes, the default length."""
    found = helpers.read(FixedBytesReaderContext(), table, 1500, form=form)
    assert lengths(found) == [[1500]] * 82
    assert b"".join(record for block in found for record, _, _ in block) == table
    assert lengths(helpers.read(FixedBytesReaderContext(length=1000), table, 123_000))[0] == [1000] * 123


def test_a_default_slice_has_at_most_a_mebibyte(helpers: Any) -> None:
    found = helpers.read(FixedBytesReaderContext(), bytes(2_500_000), form="piece")
    assert lengths(found) == [[1 << 20, 1 << 20, 2_500_000 - (2 << 20)]]


def test_slices_are_arrays_over_the_bytes_that_were_read(helpers: Any) -> None:
    import pyarrow as pa

    context = FixedBytesReaderContext(length=10)
    context.initialize(helpers.short_reads(b"0123456789" * 10, 1000), helpers.block(0, 100, 100), False)
    piece = context.next_piece()
    assert piece is not None
    array = piece.binary_array()
    assert array.buffers()[2].address == pa.py_buffer(piece.data).address
    assert array.to_pylist() == piece.bytes_list() == [b"0123456789"] * 10


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(80))
@given(
    data=st.binary(max_size=60),
    size=st.integers(1, 61),
    length=st.integers(1, 20),
    piece_bytes=st.integers(1, 70),
    consecutive=st.booleans(),
    partial_=st.sampled_from(["emit", "drop", "fail"]),
)
def test_fixed_records_are_the_same_however_the_file_is_cut(
    helpers: Any, form: str, data: bytes, size: int, length: int, piece_bytes: int, consecutive: bool, partial_: Any
) -> None:
    whole = len(data) // length * length
    context = FixedRecordsReaderContext(length, partial=partial_, piece_bytes=piece_bytes)
    expected = [(data[at : at + length], min(length, len(data) - at), at) for at in range(0, len(data), length)]
    if partial_ == "fail" and whole < len(data):
        with pytest.raises(PartialRecord) as caught:
            helpers.read(context, data, size, form=form, consecutive=consecutive)
        assert caught.value.position == whole
        assert (caught.value.expected, caught.value.found) == (length, len(data) - whole)
        return
    if partial_ == "drop" and whole < len(data):
        expected.pop()
    found = helpers.read(context, data, size, form=form, consecutive=consecutive)
    assert [record for block in found for record in block] == expected
    assert all(index * size <= position < (index + 1) * size for index, block in enumerate(found) for _, _, position in block)


def test_the_whole_records_come_before_the_error_that_the_last_one_is_partial(helpers: Any) -> None:
    import io

    context = FixedRecordsReaderContext(4)
    context.initialize(io.BytesIO(b"aaaabbbbcc"), helpers.block(0, 10, 10), False)
    piece = context.next_piece()
    assert piece is not None
    assert piece.bytes_list() == [b"aaaa", b"bbbb"]
    for _ in range(2):
        with pytest.raises(PartialRecord):
            context.next_piece()


@pytest.mark.parametrize("length", [0, -1, True, "4", 2.0, (1 << 30) + 1])
def test_a_length_is_a_number_of_bytes(length: Any) -> None:
    for context in (FixedBytesReaderContext, FixedRecordsReaderContext):
        with pytest.raises(ValueError, match=r"length is .*, but must be a number of bytes from 1 to 1073741824 \(1 GiB\)"):
            context(length)


def test_what_a_partial_record_is_to_become_is_one_of_three(helpers: Any) -> None:
    with pytest.raises(ValueError, match="partial"):
        FixedRecordsReaderContext(4, partial="ignore")  # type: ignore[arg-type]


def test_which_contexts_depend_on_the_cuts() -> None:
    assert (FixedBytesReaderContext.cuts, FixedRecordsReaderContext.cuts) == ("fixed", "any")
