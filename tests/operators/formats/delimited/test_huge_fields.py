"""Fields of many megabytes: each byte is searched a bounded number of times, and what is too long is named."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import operators.formats.delimited.context as module
from dagflow.errors import RowTooLarge
from dagflow.scan import BatchLimits
from dagflow.testing import run_operator, scan_table
from dagflow.testing.files import blocks_of
from operators import CsvFormat, ScanReader
from operators.formats.delimited.dialect import Dialect
from operators.formats.delimited.errors import QuoteLeftOpen
from operators.formats.delimited.lexer import Lexer, LexerResult
from tests.operators.formats.delimited.test_context import records
from tests.tiers import examples

MIB = 1 << 20
UNITS = {
    "line ends": b"some, text with\nlines and so on ",
    "one line": b"some, text without any and so on ",
    "doubled quotes": b'{""a"": ""b c d e"", ""f"": 5}',
    "no quotes": b"some. text without any and so on ",
    "quotes astray": b'a 5" disk and "other" text so on ',
}
UNQUOTED = ("no quotes", "quotes astray")


def write_huge(path: Path, unit: bytes, size: int) -> int:
    quote = b"" if any(unit == UNITS[name] for name in UNQUOTED) else b'"'
    piece = unit * (MIB // len(unit))
    with path.open("wb") as file:
        file.write(b"id,text,n\n1," + quote)
        while file.tell() < size:
            file.write(piece)
        file.write(quote + b",5\n2,x,6\n")
        return file.tell()


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    sizes: list[int] = []
    find = Lexer.find

    def counted(self: Lexer, data: bytes, begin: int, end: int, **options: Any) -> LexerResult:
        sizes.append(end - begin)
        return find(self, data, begin, end, **options)

    monkeypatch.setattr(Lexer, "find", counted)
    return sizes


@pytest.mark.full
@pytest.mark.parametrize("unit", UNITS.values(), ids=list(UNITS))
def test_a_huge_field_is_searched_a_few_times_only(tmp_path: Path, searched: list[int], unit: bytes) -> None:
    size = write_huge(tmp_path / "f.csv", unit, 60 * MIB)
    reader = ScanReader(CsvFormat(), columns=["n", "id"], schema="id: int64, text: string, n: int64")
    assert scan_table(reader, tmp_path / "f.csv").to_pylist() == [{"n": 5, "id": 1}, {"n": 6, "id": 2}]
    assert sum(searched) < 3 * size
    searched.clear()
    assert scan_table(reader, tmp_path / "f.csv", block_size=20 * MIB).num_rows == 2
    assert sum(searched) < 9 * size  # three blocks, each of which looks back


@pytest.mark.nightly
def test_a_field_of_a_gibibyte(tmp_path: Path, searched: list[int]) -> None:
    size = write_huge(tmp_path / "f.csv", UNITS["line ends"], 1024 * MIB)
    with pytest.raises(
        QuoteLeftOpen, match=r"f.csv: the quote at byte 12, in column 'text' of the record that starts at byte 10"
    ):
        scan_table(ScanReader(CsvFormat(), schema="id: int64, text: string, n: int64"), tmp_path / "f.csv")
    assert sum(searched) < 200 * MIB
    searched.clear()
    reader = ScanReader(CsvFormat(), columns=["n"], limits=BatchLimits(max_record_bytes=2048 * MIB))
    assert scan_table(reader, tmp_path / "f.csv").to_pylist() == [{"n": "5"}, {"n": "6"}]  # the sample has no whole row
    assert sum(searched) < 3 * size


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("is_last", [False, True])
def test_a_huge_row_that_is_bad_and_those_behind_it_have_their_places(tmp_path: Path, pack: Any, is_last: bool) -> None:
    path, lines = tmp_path / "f.csv", 300_000
    huge = b'a,"' + b"some text with lines\xc3\xa9 and so\n" * lines + b'"\n'
    path.write_bytes(pack(b"id,text\n1,x\n" + huge + (b"" if is_last else b"2,y\nb,z\n")))
    reader = ScanReader(CsvFormat(), schema="id: int64, text: string", on_bad_row="route")
    emitted = run_operator(reader, {"blocks_metadata_input": blocks_of(str(path))})
    found = [(bad.position, bad.line, bad.reason, bad.raw[:9]) for bad in emitted["errors"]]
    expected = [
        (12, 3, "'a' is not a valid int64", 'a,"some t'),
        (12 + len(huge) + 4, lines + 5, "'b' is not a valid int64", "b,z"),
    ]
    assert found == expected[: 1 if is_last else 2]
    assert [row["id"] for row in emitted["batches"]] == ([1] if is_last else [1, 2])


@settings(max_examples=examples(300), deadline=None)
@given(
    text=st.lists(st.sampled_from([b'"', b'""', b",", b"\n", b"\r", b"\\", b"x", b"xy", b"#"]), max_size=40),
    escape=st.sampled_from([None, "\\"]),
    comment=st.sampled_from([None, "#"]),
    piece=st.integers(1, 9),
    window=st.integers(1, 9),
    cut=st.integers(0, 60),
)
def test_windows_find_what_one_search_finds(
    text: list[bytes], escape: str | None, comment: str | None, piece: int, window: int, cut: int
) -> None:
    data, dialect = b"".join(text), Dialect(escape=escape, comment=comment)
    whole = records(data, [0, len(data)], dialect, has_header=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW", window)
        patch.setattr(module, "FIRST_READ", 2)
        patch.setattr(module, "READ_AHEAD_BYTES", 1)
        cuts = [0, min(cut, len(data)), len(data)]
        assert records(data, cuts, dialect, has_header=False, piece_bytes=piece) == whole


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'a,b\n1,x\n2,"' + b"y\n" * 9_000, "column 'b' of the record that starts at byte 8"),
        (b'a,b\n1,x\n"' + b"y\n" * 9_000, "column 'a' of the record that starts at byte 8"),
        (b"a,b\n1,x\n2," + b"y" * 9_000 + b"\n", "byte 8: a row is larger than max_record_bytes = 5000, by its column 'b'"),
        (b"a,b\n1,x\n2," + b"y," * 9_000 + b"\n", "byte 8: a row is larger than max_record_bytes = 5000\n"),
    ],
)
def test_the_column_that_is_too_long_is_named(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(data)
    with pytest.raises((QuoteLeftOpen, RowTooLarge)) as error:
        scan_table(ScanReader(CsvFormat(), schema="a: int64, b: string", limits=BatchLimits(max_record_bytes=5_000)), path)
    assert found in str(error.value)
    assert str(path) in str(error.value)
