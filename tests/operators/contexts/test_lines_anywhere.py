"""Promise 1: any cut of any file into blocks gives the same lines, once each, in order."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from operators.contexts import ReadAheadLineReaderContext
from tests.tiers import examples

NEWLINE = (rb"\r?\n", rb"\r?\Z")
ANY = (rb"\r\n|\r|\n", b"")
DELIMITERS = [b"\n", b"\r\n", b"\x1e", b"||", b"aab", b"aa", b"aba", b"abab", "é".encode(), b"\r\r"]


def text(alphabet: str, longest: int = 40) -> st.SearchStrategy[bytes]:
    return st.text(alphabet, max_size=longest).map(str.encode)


def check(helpers: Any, context: ReadAheadLineReaderContext, data: bytes, reference: Any, **how: Any) -> None:
    for size in range(1, len(data) + 2):
        found = helpers.read(context, data, size, **how)
        assert [line for block in found for line in block] == reference
        assert sum(used for block in found for _, used, _ in block) == sum(used for _, used, _ in reference)
        for index, block in enumerate(found):
            assert all(index * size <= position < (index + 1) * size for _, _, position in block)
            assert all(data[position:].startswith(record) for record, _, position in block)


@pytest.mark.parametrize("form", ["next", "piece"])
@settings(max_examples=examples(60))
@given(
    data=text("ab\n\ré."),
    piece_bytes=st.sampled_from([1, 2, 3, 7, 1 << 20]),
    consecutive=st.booleans(),
    most=st.sampled_from([1, 3, None]),
)
@example(data=b"a\r\nb", piece_bytes=1, consecutive=True, most=1)
@example(data=b"a\r", piece_bytes=1, consecutive=False, most=None)
@example(data=b"a\n\r", piece_bytes=1, consecutive=True, most=None)
@example(data=b"\r", piece_bytes=1, consecutive=False, most=1)
@example(data=b"\r\r\n\n\r", piece_bytes=2, consecutive=True, most=None)
def test_lines_are_the_same_however_the_file_is_cut(
    helpers: Any, form: str, data: bytes, piece_bytes: int, consecutive: bool, most: int | None
) -> None:
    how = {"form": form, "consecutive": consecutive}
    if most:
        how["stream"] = partial(helpers.short_reads, most=most)
    check(helpers, ReadAheadLineReaderContext(piece_bytes=piece_bytes), data, helpers.lines(data, *NEWLINE), **how)


@pytest.mark.parametrize("form", ["next", "piece"])
@settings(max_examples=examples(40))
@given(data=text("ab\n\r"), piece_bytes=st.sampled_from([1, 2, 3, 1 << 20]), consecutive=st.booleans())
@example(data=b"a\r\nb\rc\n\r\r\n", piece_bytes=1, consecutive=True)
@example(data=b"a\rb\r", piece_bytes=1 << 20, consecutive=True)
def test_a_carriage_return_alone_may_end_lines_too(
    helpers: Any, form: str, data: bytes, piece_bytes: int, consecutive: bool
) -> None:
    context = ReadAheadLineReaderContext(terminators=["\n", "\r\n", "\r"], piece_bytes=piece_bytes)
    check(helpers, context, data, helpers.lines(data, *ANY), form=form, consecutive=consecutive)


@pytest.mark.parametrize("form", ["next", "piece"])
@pytest.mark.parametrize("delimiter", DELIMITERS)
@settings(max_examples=examples(15))
@given(data=st.data(), piece_bytes=st.sampled_from([1, 2, 3, 1 << 20]), consecutive=st.booleans())
def test_any_bytes_may_end_records(
    helpers: Any, form: str, delimiter: bytes, data: Any, piece_bytes: int, consecutive: bool
) -> None:
    """Also delimiters that begin as they end: in `|||||` the scan of the file takes the first two and the next two."""
    units = [delimiter, delimiter[:1], delimiter[-1:], b"a", b"b", b"\n"]
    content = b"".join(data.draw(st.lists(st.sampled_from(units), max_size=20)))
    context = ReadAheadLineReaderContext(terminators=delimiter, piece_bytes=piece_bytes)
    check(helpers, context, content, helpers.lines(content, re.escape(delimiter), b""), form=form, consecutive=consecutive)


@pytest.mark.parametrize("delimiter", ["abab", "abc"])
@pytest.mark.parametrize("form", ["next", "piece"])
def test_a_record_may_be_shorter_than_its_delimiter(helpers: Any, form: str, delimiter: str) -> None:
    for data in (b"a", b"ab", b"aba", b"x" + delimiter.encode() + b"a"):
        reference = helpers.lines(data, delimiter.encode(), b"")
        check(helpers, ReadAheadLineReaderContext(terminators=delimiter), data, reference, form=form)


def test_a_long_row_of_overlapping_delimiters_is_gone_back_over(helpers: Any) -> None:
    data = b"x" + b"|" * 200_001 + b"y"
    found = helpers.read(ReadAheadLineReaderContext(terminators="||"), data, 70_001, form="piece")
    assert [line for block in found for line in block] == helpers.lines(data, rb"\|\|", b"")


@pytest.mark.parametrize("form", ["next", "piece"])
@settings(max_examples=examples(40))
@given(data=text("ab\n\r"), size=st.integers(1, 9), limit=st.integers(1, 6))
def test_a_stream_of_unknown_length_is_read_to_its_end(helpers: Any, form: str, data: bytes, size: int, limit: int) -> None:
    """Blocks may be ranges of anything: no reader need know where the source ends."""
    import io

    found = []
    for block in helpers.blocks(len(data), size):
        context = ReadAheadLineReaderContext(piece_bytes=limit)
        context.initialize(io.BytesIO(data), helpers.block(block.start, block.stop, -1), False)
        found += helpers.drain(context, form)
    assert found == helpers.lines(data)
