"""Promise 1: any cut of any file gives the same records, once each; also within quotes."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import FileBlockMetadata
from dagflow.testing import assert_reader_is_splittable, scan_table
from operators import CsvFormat, ScanReader
from operators.contexts.errors import FileShortened, ReadError, RecordTooLong
from operators.formats.delimited import context as module
from operators.formats.delimited.context import DelimitedContext
from operators.formats.delimited.dialect import Dialect
from operators.formats.delimited.errors import HeaderBad, NotDelimited, QuoteLeftOpen
from tests.operators.context_reader import context_reader
from tests.tiers import examples

FILES = {
    "quoted line ends": (Dialect(), b'a,b\n1,"x\ny"\n2,"""\n"\n"3\n\n",\n4,z\n'),
    "CRLF": (Dialect(), b'a,b\r\n1,"x\r\ny"\r\n2,\r\n3,z'),
    "CR": (Dialect(), b'a,b\r1,"x\ry"\r2,\r3,z\r'),
    "BOM, several bytes a character": (Dialect(), '\ufeffä,日本\n1,"é\n🙂"\n"ß",2\n3,4'.encode()),
    "escapes": (Dialect(escape="\\"), b'a,b\n1,"x\\"\n"\n2\\\n,3\n\\"4,5\\\\\n6,7\n'),
    "comments": (Dialect(comment="#"), b'# it\'s "open\na,b\n1,"x\n#y"\n# "\n2,3\n'),
    "several characters": (Dialect(delimiter="||"), b'a||b\n1|||"x\n2||"y\n||"\n3||4\n'),
    "quotes in fields": (Dialect(), b'a,b\n5" disk,1\n6" disk,"2\n"\n7",8\n"a"b"\n",9\n'),
    "blanks": (Dialect(trim=True), b'a , b\n1, "x\ny" \n 2 ,z "\n3,4\n'),
    "delimiters first in quotes": (Dialect(), b'a,b\n1,",\n,",2\n1,",\n,",2\n1,",\n,",2\n'),
    "no quotes": (Dialect(quote=None), b'a,b\n1,"x\n2,y"\n3,4\n'),
}


def records(data: bytes, cuts: Sequence[int], dialect: Dialect, **options: int | bool) -> list[tuple[int, bytes]]:
    return records_of_blocks(data, list(itertools.pairwise(cuts)), DelimitedContext(dialect, **options))  # type: ignore[arg-type]  # of any type


def records_of_blocks(
    data: bytes, blocks: Sequence[tuple[int, int]], context: DelimitedContext, *, is_one_task: bool = False
) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    for start, stop in blocks:
        block = FileBlockMetadata(1, "f", start=start, stop=stop, file_length=len(data))
        context.known = context.reached if is_one_task else None
        context.initialize(io.BytesIO(data), block, False)
        while (piece := context.next_piece()) is not None:
            found += zip(piece.positions.tolist(), piece.bytes_list(), strict=True)
    return found


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_files_can_be_cut_anywhere(name: str, in_pieces: bool, tmp_path: Path) -> None:
    dialect, data = FILES[name]
    path = tmp_path / "f.csv"
    path.write_bytes(data)
    assert_reader_is_splittable(
        context_reader(lambda: DelimitedContext(dialect, piece_bytes=7 if in_pieces else 1 << 20), in_pieces=in_pieces),
        path,
        while_reading=not in_pieces,
        effort=0.3,
    )


@pytest.mark.parametrize("quotes", ['"', '"""', '","', 'a"a'])
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_looking_back_a_little_tells_what_reading_all_would(quotes: str, data: st.DataObject) -> None:
    """With tiny steps of looking back, and records that are as long as they may be."""
    part = st.sampled_from(["aaaaaaaa", ",", "\n", "\n", quotes, "\r\n"])
    text = "".join(data.draw(st.lists(part, max_size=30))).encode()
    limit = data.draw(st.sampled_from([12, 20, 40]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FIRST_READ", 4)
        patch.setattr(module, "MiB", 9)
        try:
            whole = records(text, [0, len(text)], Dialect(), has_header=False, max_record_bytes=limit)
        except ReadError:
            return
        for cut in range(len(text) + 1):
            found = records(text, [0, cut, len(text)], Dialect(), has_header=False, max_record_bytes=limit, piece_bytes=5)
            assert found == whole, cut
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
        blocks = data.draw(st.permutations(list(itertools.pairwise([0, *cuts, len(text)]))))
        context = DelimitedContext(Dialect(), has_header=False, max_record_bytes=limit)
        assert sorted(records_of_blocks(text, blocks, context, is_one_task=True)) == whole, blocks


def test_a_task_looks_back_in_its_first_block_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.csv"
    path.write_text("a,b\n" + "1,some text\n" * 50)
    whole = scan_table(ScanReader(CsvFormat()), path)
    monkeypatch.setattr(DelimitedContext, "_state_before", None)
    assert scan_table(ScanReader(CsvFormat()), path, block_size=100).equals(whole)


def bytes_before(data: bytes, start: int, **options: int) -> int:
    """The number of bytes that are read to find where a block begins, without those of the header."""

    class Counted(io.BytesIO):
        count = 0

        def read(self, size: int | None = -1, /) -> bytes:
            at = self.tell()
            found = super().read(size)
            Counted.count += max(0, min(at + len(found), start) - at) if at else 0
            return found

    block = FileBlockMetadata(1, "f", start=start, stop=len(data), file_length=len(data))
    DelimitedContext(Dialect(), **options).initialize(Counted(data), block, False)  # type: ignore[arg-type]
    return Counted.count


def test_little_is_read_to_find_where_a_block_begins() -> None:
    rows = b'1,"two\nlines",3\n' * 500_000
    assert bytes_before(b"a,b,c\n" + rows, 5_000_000) <= 2 * module.FIRST_READ
    plain = b"1,no quotes,3\n" * 500_000
    assert bytes_before(b"a,b,c\n" + plain, 5_000_000, max_record_bytes=100_000) <= 2 * module.MiB


def test_a_record_that_is_too_long_ends_the_run() -> None:
    data = b"a,b\n" + b"x" * 50 + b",1\n2,3\n"
    with pytest.raises(RecordTooLong) as error:
        records(data, [0, len(data)], Dialect(), max_record_bytes=40, piece_bytes=8)
    assert error.value.position == 4


def test_a_quote_that_stays_open_too_long_is_named() -> None:
    data = b'a,b\n1,2\n3,"' + b"x,\n" * 50
    with pytest.raises(QuoteLeftOpen) as error:
        records(data, [0, len(data)], Dialect(), max_record_bytes=40, piece_bytes=8)
    assert (error.value.position, error.value.opened) == (8, 10)
    assert "byte 10" in str(error.value)


def test_records_before_one_that_is_too_long_come_first() -> None:
    data = b"a\n1\n2\n" + b"x" * 50 + b"\n3\n"
    context = DelimitedContext(Dialect(), max_record_bytes=40)
    context.initialize(io.BytesIO(data), FileBlockMetadata(1, "f", start=0, stop=len(data), file_length=len(data)), False)
    piece = context.next_piece()
    assert piece is not None
    assert piece.bytes_list() == [b"1\n", b"2\n"]
    with pytest.raises(RecordTooLong):
        context.next_piece()


def test_a_last_record_within_quotes_is_told() -> None:
    data = b'a,b\n1,2\n3,"x\ny'
    context = DelimitedContext(Dialect())
    context.initialize(io.BytesIO(data), FileBlockMetadata(1, "f", start=0, stop=len(data), file_length=len(data)), False)
    pieces = [(context.next_piece(), context.opened) for _ in range(3)]
    assert [None if piece is None else piece.bytes_list() for piece, _ in pieces] == [[b"1,2\n"], [b'3,"x\ny'], None]
    assert [opened for _, opened in pieces][:2] == [None, 10]


def test_a_record_of_several_reads_is_not_told_to_be_open() -> None:
    data = b'a,b\n1,"' + b"x\n" * 50_000 + b'"\n2,y\n'
    context = DelimitedContext(Dialect(), piece_bytes=8)
    context.initialize(io.BytesIO(data), FileBlockMetadata(1, "f", start=0, stop=len(data), file_length=len(data)), False)
    while context.next_piece() is not None:
        assert context.opened is None


def test_a_file_that_became_shorter_is_told() -> None:
    context = DelimitedContext(Dialect())
    with pytest.raises(FileShortened):
        context.initialize(io.BytesIO(b"a,b\n1,"), FileBlockMetadata(1, "f", start=0, stop=20, file_length=20), False)


def test_lines_are_skipped_before_the_header() -> None:
    data = b'made by "us\n\n# note\n\na,b\n1,2\n'
    context = DelimitedContext(Dialect(comment="#"), skip_lines=1)
    for start, expected in [(0, b"1,2\n"), (3, b"1,2\n"), (24, b"1,2\n"), (26, None)]:
        context.initialize(io.BytesIO(data), FileBlockMetadata(1, "f", start=start, stop=len(data), file_length=len(data)), False)
        found = context.next()
        assert context.beginning.header == b"a,b"
        assert (found and found.record) == expected


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"PAR1\x15\x04", "Parquet"),
        (b"Obj\x01\x04", "Avro"),
        (b"PK\x03\x04", "zip"),
        ("a,b\n".encode("utf-16"), "UTF-16"),
        ("a,b\n".encode("utf-32"), "UTF-32"),
    ],
)
def test_other_kinds_of_files_are_named(data: bytes, told: str) -> None:
    with pytest.raises(NotDelimited, match=told):
        records(data, [0, len(data)], Dialect())


def test_a_header_that_never_ends_is_told() -> None:
    with pytest.raises(HeaderBad, match="byte 2 that is never closed"):
        records(b'a,"b\n1,2\n', [0, 9], Dialect())
