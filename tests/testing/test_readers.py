"""The shipped reader contexts are proved: those that may be cut anywhere pass, the others fail, and old defects stay away."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dagflow.ranges import OffsetRangeTracker
from dagflow.testing.readers import CountedFiles, reader_of
from dagflow.testing.splittable import assert_reader_is_splittable
from operators.contexts import (
    FixedBytesReaderContext,
    FixedRecordsReaderContext,
    LineReaderContext,
    ReadAheadLineReaderContext,
)

LINES = b"one\ntwo\n\nthree\r\nfour\nfive\nsix"
LONG = b"".join(b"%d," % i * (i % 12) + b"\n" for i in range(150))


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "data.txt"
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize(
    ("context", "data"),
    [
        (partial(ReadAheadLineReaderContext, piece_bytes=16), LINES),
        (partial(ReadAheadLineReaderContext, piece_bytes=16), LINES + b"\n"),
        (partial(FixedRecordsReaderContext, 4, piece_bytes=8), b"aaaabbbbccccddddeeee"),
        (partial(FixedRecordsReaderContext, 4, partial="emit", piece_bytes=8), b"aaaabbbbccccddddee"),
        (partial(FixedRecordsReaderContext, 1, piece_bytes=2), b"abcdef"),
    ],
)
def test_contexts_that_may_be_cut_anywhere(file: Any, context: Any, data: bytes, in_pieces: bool) -> None:
    assert context().cuts == "any"
    assert_reader_is_splittable(reader_of(context, in_pieces=in_pieces), file(data))


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("context", [LineReaderContext, partial(FixedBytesReaderContext, 4)])
def test_contexts_that_depend_on_the_cuts(file: Any, context: Any, in_pieces: bool) -> None:
    assert context().cuts == "fixed"
    with pytest.raises(AssertionError, match=r"2, cuts: .*is not \[0, 29\)"):
        assert_reader_is_splittable(reader_of(context, in_pieces=in_pieces), file(LINES))


def test_slices_are_compared_by_their_bytes(file: Any) -> None:
    """However a file is cut into blocks, their slices hold the same bytes; but a slice that was begun is not divided."""
    make_reader = reader_of(partial(FixedBytesReaderContext, 4))
    assert_reader_is_splittable(make_reader, file(LINES), compare=b"".join, while_reading=False)
    with pytest.raises(AssertionError, match=r"4, splits: .*\n  expected b"):
        assert_reader_is_splittable(make_reader, file(LINES), compare=b"".join)
    with pytest.raises(AssertionError, match=r"2, cuts: .*\n  expected b"):
        assert_reader_is_splittable(reader_of(LineReaderContext), file(LINES), compare=b"".join, while_reading=False)


def test_contexts_read_their_range_and_little_more(file: Any) -> None:
    files, path = CountedFiles(), file(LONG)
    for context in (ReadAheadLineReaderContext, partial(FixedRecordsReaderContext, 50, partial="emit")):
        make_reader = reader_of(partial(context, piece_bytes=64), files=files)
        assert_reader_is_splittable(make_reader, path, files=files, buffer_bytes=64, effort=0.2)


# Defects known elsewhere, which ours must not have


@pytest.mark.parametrize("most", [None, 1])
@pytest.mark.parametrize("piece_bytes", [1, 3, 1 << 20])
@pytest.mark.parametrize(
    ("terminators", "data", "records"),
    [
        # A range that starts inside a delimiter of many bytes (Beam 2.77, Python): the record behind it was lost.
        (b"cabdab", b"bcabdabb", [b"b", b"b"]),
        (b"cabdab", b"cabdabcabdabxcabda", [b"", b"", b"xcabda"]),
        (b"||", b"|||||x||y", [b"", b"", b"|x", b"y"]),
        (b"aba", b"xababay", [b"x", b"bay"]),
        # A partial match of a delimiter before the whole one (Beam #32251), also over the edge of a buffer (#32249, #15864).
        (b"abcabd", b"abcabcabdabcabdz", [b"abc", b"", b"z"]),
        # CRLF cut in half, a cut right behind LF at a buffer's edge (Beam #29146).
        (["\n", "\r\n"], b"a\r\nb\r\n\r\nc\rd\r\ne", [b"a", b"b", b"", b"c\rd", b"e"]),
        (["\n", "\r\n", "\r"], b"a\r\nb\r\n\r\nc\rd\r\r\n\re", [b"a", b"b", b"", b"c", b"d", b"", b"", b"e"]),
        (b"\r\n", b"a\r\n\r\r\nb\nc\r", [b"a", b"\r", b"b\nc\r"]),
        # An unterminated last line that ends where a buffer does; one that is only CR.
        (["\n", "\r\n"], b"ab\ncdefgh", [b"ab", b"cdefgh"]),
        (["\n", "\r\n"], b"ab\nc\r", [b"ab", b"c"]),
        (["\n", "\r\n"], b"ab\nc\n\r", [b"ab", b"c"]),
        (["\n", "\r\n"], b"ab\r\n\r\r", [b"ab", b"\r"]),
        (["\n", "\r\n"], b"\n\n\n", [b"", b"", b""]),
        # Characters of several bytes at a cut: U+010A and U+0A0D have LF and CR in their numbers, not in their UTF-8.
        (["\n", "\r\n"], "ä€🙂\nĊਊ\n🙂".encode(), ["ä€🙂".encode(), "Ċਊ".encode(), "🙂".encode()]),
        ("é", "aéé\nbé🙂".encode(), [b"a", b"", b"\nb", "🙂".encode()]),
    ],
)
@pytest.mark.parametrize("in_pieces", [False, True])
def test_defects_known_elsewhere(
    file: Any, terminators: Any, data: bytes, records: list[bytes], piece_bytes: int, most: int | None, in_pieces: bool
) -> None:
    path = file(data)
    context = partial(ReadAheadLineReaderContext, terminators=terminators, piece_bytes=piece_bytes)
    make_reader = reader_of(context, files=CountedFiles(most), in_pieces=in_pieces)
    found = [record for _, _, record in make_reader(str(path), OffsetRangeTracker(0, len(data)))]
    assert found == records
    is_claimed_at_once = in_pieces and piece_bytes >= len(data)
    assert_reader_is_splittable(make_reader, path, while_reading=not is_claimed_at_once, effort=0.2)


def test_an_unterminated_last_line_at_the_edge_of_the_original_s_buffer(file: Any) -> None:
    for length in (8191, 8192, 8193):
        path = file(b"first\n" + b"x" * length)
        assert_reader_is_splittable(reader_of(ReadAheadLineReaderContext), path)


def test_files_count_every_byte_that_is_read(file: Any) -> None:
    path = str(file(b"abcdefgh"))
    files, short = CountedFiles(), CountedFiles(most=3)
    assert files.status(path).length == 8
    for opened, whole, filled in ((files, b"abcdefgh", 5), (short, b"abc", 3)):
        with opened.open(path) as stream:
            assert stream.read() == whole
            assert stream.seek(2) == 2
            buffer = bytearray(5)
            assert stream.readinto(buffer) == filled
            assert buffer[:filled] == b"cdefg"[:filled]
        assert opened.bytes_read == len(whole) + filled
        with pytest.raises(ValueError, match="closed"):
            stream.read()
