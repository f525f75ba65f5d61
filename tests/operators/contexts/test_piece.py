"""The forms of a piece agree with decoding its records one by one."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from operators.contexts import BadText, FixedBytesReaderContext, Piece, ReadAheadLineReaderContext, decode_text, text_codec
from tests.tiers import examples


def pieces(helpers: Any, data: bytes, **properties: Any) -> list[Piece]:
    context = ReadAheadLineReaderContext(**properties)
    context.initialize(io.BytesIO(data), helpers.block(0, len(data), len(data)), False)
    found = []
    while (piece := context.next_piece()) is not None:
        found.append(piece)
    return found


SOME_BYTES = [
    b"a",
    b"\n",
    b"\r\n",
    b"\r",
    b"||",
    b"\xc3\xa9",
    b"\xe2\x82\xac",
    b"\xc3",
    b"\xe2\x82",
    b"\xff",
    b"\x81",
    b"\xed\xa0\x80",
]


@pytest.mark.parametrize("terminators", [["\n", "\r\n"], ["\n", "\r\n", "\r"], "\n", "||", "é", "a"])
@settings(max_examples=examples(50))
@given(
    data=st.lists(st.sampled_from(SOME_BYTES), max_size=12).map(b"".join),
    encoding=st.sampled_from(["utf-8", "latin-1", "cp1252", "ascii", "shift_jis", "koi8-r"]),
    errors=st.sampled_from(["strict", "replace", "ignore"]),
)
@example(data=b"|\xff||a", encoding="utf-8", errors="ignore")
@example(data=b"\x81||\x81a\x81\n", encoding="shift_jis", errors="strict")
@example(data=b"\x81||\x81a\x81\n", encoding="shift_jis", errors="replace")
@example(data=b"a\xe2\x82\r\n\xc3\n", encoding="utf-8", errors="replace")
def test_text_is_what_decoding_each_record_gives(helpers: Any, terminators: Any, data: bytes, encoding: str, errors: str) -> None:
    for piece in pieces(helpers, data, terminators=terminators):
        try:
            expected = [record.decode(encoding, errors) for record in piece.bytes_list()]
        except UnicodeDecodeError:
            with pytest.raises(BadText) as from_list:
                piece.text_list(encoding, errors)
            with pytest.raises(BadText) as from_array:
                piece.string_array(encoding, errors)
            assert from_list.value.message() == from_array.value.message()
            continue
        assert piece.text_list(encoding, errors) == expected
        array = piece.string_array(encoding, errors)
        array.validate(full=True)
        assert array.type == pa.string()
        assert array.to_pylist() == expected


@pytest.mark.parametrize(
    ("data", "delimiter"),
    [(b"a\nb\n", b"\n"), (b"a\r\nb\r\n", b"\r\n"), (b"a\rb\r", b"\r"), (b"a\n\rb\n", b"\n")],
)
def test_evenly_terminated_records_are_not_copied_to_be_split(helpers: Any, data: bytes, delimiter: bytes) -> None:
    (piece,) = pieces(helpers, data, terminators=["\n", "\r\n", "\r"])[:1]
    even = piece._evenly()
    assert (even.delimiter, even.data is piece.data) == (delimiter, b"\n\r" not in data)


def test_bad_text_is_found_in_its_record(helpers: Any) -> None:
    data = "eins\nzwei\ndrei ü\nvier\n".encode("latin-1")
    (piece,) = pieces(helpers, data)
    for form in (piece.text_list, piece.string_array):
        with pytest.raises(BadText) as caught:
            form()
        error = caught.value
        assert (error.path, error.position, error.byte_offset, error.encoding) == ("data.txt", 10, 15, "utf-8")
        assert isinstance(error, ValueError)
    assert piece.text_list("latin-1") == piece.string_array("cp1252").to_pylist() == ["eins", "zwei", "drei ü", "vier"]
    assert piece.text_list(errors="replace")[2] == "drei \ufffd"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp037", "utf-7x", "hex", "utf-8-sig"])
def test_encodings_in_which_a_line_end_is_not_a_byte_are_refused(helpers: Any, encoding: str) -> None:
    (piece,) = pieces(helpers, b"a\n")
    for form in (piece.text_list, piece.string_array, lambda name: text_codec(name)):
        with pytest.raises(ValueError, match=f"^encoding '{encoding}' "):
            form(encoding)


def test_slices_may_have_any_encoding(helpers: Any) -> None:
    for encoding, text in [("cp037", "Jürgen"), ("utf-16-le", "Jürgen"), ("utf-16-le", "Jan")]:
        data = text.encode(encoding)
        context = FixedBytesReaderContext()
        context.initialize(io.BytesIO(data), helpers.block(0, len(data), len(data)), False)
        piece = context.next_piece()
        assert piece is not None
        assert piece.text_list(encoding) == piece.string_array(encoding).to_pylist() == [text]


def test_a_text_of_one_record_can_be_had_too() -> None:
    assert decode_text("é".encode()) == "é"
    with pytest.raises(BadText) as caught:
        decode_text(b"ab\xff", path="x.txt", position=7)
    assert caught.value.byte_offset == 9


@given(count=st.integers(0, 6), terminators=st.sampled_from([["\n", "\r\n"], ["\n", "\r\n", "\r"], "\n"]))
def test_the_head_of_a_piece_is_a_piece(helpers: Any, count: int, terminators: Any) -> None:
    (piece,) = pieces(helpers, b"a\nbb\r\n\n\xc3\xa9\n", terminators=terminators)
    head = piece.head(count)
    assert len(head) == min(count, 4)
    assert head.bytes_list() == head.binary_array().to_pylist() == piece.bytes_list()[:count]
    assert head.text_list() == head.string_array().to_pylist() == piece.text_list()[:count]
    assert head.positions.tolist() == [0, 2, 6, 7][:count]
    assert head.used_bytes == [0, 2, 6, 7, 10, 10, 10][count]
    assert [entity.record for entity in head.entities()] == head.bytes_list()


class _Counting:
    """Newlines, which counts how often the records are looked for."""

    joiner = b"\n"

    def __init__(self) -> None:
        self.looks = 0

    def offsets(self, data: bytes, begin: int, end: int) -> Any:
        self.looks += 1
        ends = np.flatnonzero(np.frombuffer(data, np.uint8)[begin:end] == ord("\n")) + begin + 1
        return np.concatenate([[begin], ends]).astype(np.int32)


@pytest.mark.parametrize(("lines", "looks"), [(20, 0), (20_000, 1)])
def test_records_are_looked_for_once_however_often_they_are_counted(lines: int, looks: int) -> None:
    """Claiming asks for the length of a piece again and again; small ones are counted without looking for each record."""
    data, layout = b"a line\n" * lines, _Counting()
    piece = Piece(data, 0, len(data), 100, layout)  # type: ignore[arg-type]
    for _ in range(3):
        assert len(piece) == lines
        assert piece.position_of(lines - 1) == 100 + len(data) - 7
    assert layout.looks == looks
    assert piece.positions[-1] == piece.position_of(lines - 1)
    assert len(piece.part(0, lines)) == lines
    assert layout.looks == 1


def test_positions_are_64_bits_wide(helpers: Any) -> None:
    piece = Piece.of_slices(b"abcd", [0, 2, 4], position=5_000_000_000)
    assert piece.positions.dtype == np.int64
    assert piece.positions.tolist() == [5_000_000_000, 5_000_000_002]
    assert repr(piece) == "Piece('', position=5000000000, used_bytes=4)"


def test_a_piece_may_begin_anywhere_in_its_data() -> None:
    piece = Piece.of_slices(b"..abcd", [2, 3, 6], position=10)
    assert piece.positions.tolist() == [10, 11]
    assert piece.bytes_list() == piece.binary_array().to_pylist() == [b"a", b"bcd"]
    assert [tuple(entity) for entity in piece.entities()] == [(b"a", 1, 10, True), (b"bcd", 3, 11, True)]
