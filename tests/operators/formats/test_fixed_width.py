from __future__ import annotations

import datetime
import decimal
import gzip
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow.errors import BadRowFound
from dagflow.scan import Column
from dagflow.testing import assert_reader_is_splittable, run_operator, scan_reader_of, scan_table
from dagflow.testing.files import blocks_of
from operators import FixedWidthFormat, ScanReader
from tests.tiers import examples

reusing_folders = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(40))
PLACES = {"id": (0, 4), "name": (4, 6), "day": (10, 10)}
TYPES = {"id": "int16", "day": "date32"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.dat"


def read(
    path: Path, data: bytes, kind: FixedWidthFormat, block_size: int | None = None, **properties: Any
) -> list[dict[str, Any]]:
    path.write_bytes(data)
    rows: list[dict[str, Any]] = scan_table(ScanReader(kind, **properties), path, block_size=block_size).to_pylist()
    return rows


def routed(path: Path, data: bytes, kind: FixedWidthFormat, block_size: int | None = None) -> tuple[list[Any], list[Any]]:
    path.write_bytes(data)
    reader = ScanReader(kind, on_bad_row="route")
    found = run_operator(reader, {"blocks_metadata_input": blocks_of(str(path), block_size)})
    return found["batches"], found.get("errors", [])


def record(number: int | None, name: str, day: str = "") -> bytes:
    return f"{'' if number is None else number:>4}{name:<6}{day:<10}".encode()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize("is_ended", [True, False])
def test_columns_by_their_places(path: Path, end: bytes, is_ended: bool) -> None:
    records = [record(1, "one", "2026-01-31"), record(None, "two\0\0"), record(-30, " x y")]
    data = end.join(records) + (end if is_ended else b"")
    assert read(path, data, FixedWidthFormat(PLACES, types=TYPES, line_end=end.decode())) == [
        {"id": 1, "name": "one", "day": datetime.date(2026, 1, 31)},
        {"id": None, "name": "two", "day": None},
        {"id": -30, "name": "x y", "day": None},
    ]


def test_half_a_line_end_at_the_end_of_a_file_will_do(path: Path) -> None:
    assert read(path, b"ab\r\ncd\r", FixedWidthFormat({"a": (0, 2)}, line_end="\r\n")) == [{"a": "ab"}, {"a": "cd"}]


def test_columns_may_overlap_and_leave_gaps(path: Path) -> None:
    kind = FixedWidthFormat({"whole": (0, 6), "part": (2, 2), "last": (7, 1)}, line_end="", record_length=9)
    assert read(path, b"abcdef-X-ghijkl-Y-", kind) == [
        {"whole": "abcdef", "part": "cd", "last": "X"},
        {"whole": "ghijkl", "part": "ij", "last": "Y"},
    ]


def test_other_types_encodings_and_packed_files(path: Path) -> None:
    kind = FixedWidthFormat({"n": (0, 5), "text": (5, 3)}, types={"n": "decimal128(5, 2)"}, encoding="cp037", line_end="")
    row = {"n": decimal.Decimal("12.50"), "text": "é€"[:1]}
    assert read(path, "12.50é  ".encode("cp037") * 2, kind) == [row, row]
    utf_16 = FixedWidthFormat({"text": (0, 6)}, encoding="utf-16-le", line_end="")
    assert read(path, "abcäö ".encode("utf-16-le"), utf_16) == [{"text": "abc"}, {"text": "äö"}]
    assert read(path, gzip.compress(b"a\nb\n"), FixedWidthFormat({"a": (0, 1)}), 10) == [{"a": "a"}, {"a": "b"}]


def test_projection_and_counting(path: Path) -> None:
    data = record(1, "one", "2026-01-31") + b"\n" + record(2, "two") + b"\n"
    assert read(path, data, FixedWidthFormat(PLACES), columns=["day", "id"]) == [
        {"day": "2026-01-31", "id": "1"},
        {"day": None, "id": "2"},
    ]
    assert scan_table(ScanReader(FixedWidthFormat(PLACES)), path, columns=[]).num_rows == 2


def test_an_empty_file(path: Path) -> None:
    assert read(path, b"", FixedWidthFormat(PLACES)) == []


@pytest.mark.parametrize("block_size", [None, 4])
def test_bad_rows_are_told_with_their_places(path: Path, block_size: int | None) -> None:
    kind = FixedWidthFormat({"a": (0, 2), "b": (2, 3)}, types={"b": "int64"})
    records = [b"ok001\n", b"ab\xff\xff2\n", b"cd3\n4\n", b"no one", b"\0\0" + b"2\0 \n", b"end"]
    rows, bad = routed(path, b"".join(records), kind, block_size)
    assert rows == [{"a": "ok", "b": 1}, {"a": None, "b": 2}]
    told = sorted((row.position, row.column or "", row.reason, row.raw) for row in bad)
    assert told[0] == (6, "b", "byte 2 of the record (0xff) is not utf-8", "ab\\xff\\xff2\n")
    assert told[1][:2] == (12, "b")
    assert told[2] == (18, "", r"b'\n' should end the record, and b'e' stands there", "no one")
    assert told[3] == (30, "", "the record is cut short: it has 3 bytes, not 6", "end")


def test_a_record_that_is_cut_short(path: Path) -> None:
    rows, bad = routed(path, b"abc\nde", FixedWidthFormat({"a": (0, 3)}))
    assert rows == [{"a": "abc"}]
    (row,) = bad
    assert (row.file_path, row.position, row.line, row.raw) == (str(path), 4, 2, "de")
    assert row.reason == "the record is cut short: it has 2 bytes, not 4"
    with pytest.raises(BadRowFound, match=re.escape(str(path))):
        read(path, b"abc\nde", FixedWidthFormat({"a": (0, 3)}))


@pytest.mark.parametrize(
    ("data", "line_end", "told"),
    [
        (
            b"abc\r\ndef\r\n",
            "\n",
            r"b'\n' should end the record, and b'\r' stands there: do lines end with '\r\n'? Then say line_end='\r\n'",
        ),
        (b"a\ndef\nghi\n", "\n", "stands there: a line ends after 2 of 4 bytes, and what follows is out of step"),
        (b"abc\ndef\n", "\r\n", "stands there: a line ends after 4 of 5 bytes, and what follows is out of step"),
    ],
)
def test_the_first_wrong_line_end_is_told(path: Path, data: bytes, line_end: str, told: str) -> None:
    with pytest.raises(BadRowFound) as caught:
        read(path, data, FixedWidthFormat({"a": (0, 3)}, line_end=line_end))
    assert told in str(caught.value)
    assert "line 1, byte 0: " in str(caught.value)


@pytest.mark.parametrize("size", [None, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\xef\xbb\xbf01x\n22y\n", FixedWidthFormat({"a": (0, 2), "b": (2, 1)})),
        (b"01x\n22y", FixedWidthFormat({"a": (0, 2), "b": (2, 1)}, encoding="utf-8")),
        (gzip.compress(b"\xef\xbb\xbf01x\n22y\n", mtime=0), FixedWidthFormat({"a": (0, 2), "b": (2, 1)})),
        (gzip.compress(b"01x\n22y\n", mtime=0), FixedWidthFormat({"a": (0, 2), "b": (2, 1)})),
        *(
            ("\ufeff01x22y".encode(order), FixedWidthFormat({"a": (0, 4), "b": (4, 2)}, line_end="", encoding=encoding))
            for encoding, order in [("utf-16", "utf-16-le"), ("utf-16", "utf-16-be"), ("utf-16-be", "utf-16-be")]
        ),
        ("01x22y".encode("utf-16-le"), FixedWidthFormat({"a": (0, 4), "b": (4, 2)}, line_end="", encoding="utf-16-le")),
    ],
)
def test_a_byte_order_mark_is_not_part_of_the_first_record(
    path: Path, data: bytes, kind: FixedWidthFormat, size: int | None
) -> None:
    assert read(path, data, kind, size) == [{"a": "01", "b": "x"}, {"a": "22", "b": "y"}]


def test_a_short_line_puts_those_behind_it_out_of_step(path: Path) -> None:
    rows, bad = routed(path, b"abc\nd\nefg\nhij\n", FixedWidthFormat({"a": (0, 3)}))
    assert rows == [{"a": "abc"}]
    assert len(bad) == 3


@reusing_folders
@given(st.lists(st.tuples(st.integers(-99, 999), st.text(alphabet="abé ", max_size=3)), max_size=20), st.integers(1, 90))
def test_any_cut_gives_the_same(path: Path, values: list[tuple[int, str]], size: int) -> None:
    data = b"".join(f"{n:>4}".encode() + text.encode().ljust(6) + b"\n" for n, text in values)
    kind = FixedWidthFormat({"n": (0, 4), "text": (4, 6)}, types={"n": "int64"})
    assert read(path, data, kind, size) == [{"n": n, "text": text.strip() or None} for n, text in values]


def test_it_is_splittable_anywhere(path: Path) -> None:
    path.write_bytes(b"".join(f"{n:>3000}\n".encode() for n in range(1_200)))
    assert_reader_is_splittable(scan_reader_of(ScanReader(FixedWidthFormat({"n": (0, 3_000)}))), path, effort=0.03)


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"columns": {}}, "columns is empty: give names, offsets and widths"),
        ({"columns": {"a": (0, 0)}}, "column 'a' is at 0, 0 bytes wide: offsets begin at 0, widths at 1"),
        ({"columns": {"a": (2, 3)}, "record_length": 5}, "column 'a' ends at byte 5, but records have 4 bytes"),
        ({"columns": {"a": (0, 1)}, "types": {"b": "int8"}}, "a type is given for 'b', which is not a column"),
        ({"columns": {"a": (0, 1)}, "encoding": "utf-9"}, "encoding 'utf-9' is not a text encoding that Python knows"),
    ],
)
def test_places_that_do_not_fit(properties: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        FixedWidthFormat(**properties)


def test_the_schema_is_known_before_a_row_is_read(path: Path) -> None:
    path.write_bytes(b"")
    assert FixedWidthFormat(PLACES, types=TYPES).schema == pa.schema({"id": pa.int16(), "name": pa.string(), "day": pa.date32()})


def test_declared_numbers_take_leading_zeros_and_columns_may_have_decimal_commas(path: Path) -> None:
    kind = FixedWidthFormat({"n": (0, 3), "p": (3, 4)}, types={"n": "int64"})
    assert read(path, b"0071,50\n+12 2,5\n", kind, schema={"p": Column("float64", decimal=",")}) == [
        {"p": 1.5, "n": 7},
        {"p": 2.5, "n": 12},
    ]
