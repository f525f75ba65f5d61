"""Types of CSV files are inferred by round trip: a value is the text of the file or a number that would be written so."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.errors import BadRowFound
from dagflow.scan import Column, Drift
from dagflow.testing import scan_table
from operators import CsvFormat, JsonLinesFormat, ScanReader
from tests.tiers import examples

CELLS = st.one_of(
    st.integers(-200, 10**6).map(str),
    st.floats(-1e6, 1e6).map(lambda value: f"{value:.2f}"),
    st.sampled_from(
        [
            "007",
            "+49",
            "-0",
            "-0.0",
            "0x1F",
            "1.0",
            "0",
            "00",
            "1e5",
            "1.50",
            "12345678901234567",
            "true",
            "yes",
            "1",
            "",
            " 7",
            "x",
        ]
    ),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "f.csv"


def read(path: Path, text: str, format: CsvFormat | None = None, size: int | None = None, **properties: Any) -> pa.Table:
    path.write_bytes(text.encode())
    return scan_table(ScanReader(format or CsvFormat(), **properties), path, block_size=size)


def is_itself(text: str, value: Any) -> bool:
    """Return whether a value is what a text says: without a sign, zeros, digits or a word that would be lost."""
    if isinstance(value, str):
        return value == text
    if value is None:
        return not text.strip()
    text = text.strip()
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    has_code = re.match(r"\+|-?0[0-9xX]", text) is not None
    if isinstance(value, int):
        return not has_code and re.fullmatch(r"(0|-?[1-9][0-9]*)(\.0*)?", text) is not None and Decimal(text) == value
    if re.match("-?[0-9]{16}", text) and Decimal(text) not in (Decimal(value), Decimal(repr(value))):
        return False
    return not has_code and float(text) == value and math.copysign(1, float(text)) == math.copysign(1, value)


@settings(max_examples=examples(100), deadline=None)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8),
    is_quoted=st.booleans(),
    end=st.sampled_from(["", "\n"]),
    size=st.integers(1, 40),
)
def test_a_cell_is_itself_at_any_cut(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], is_quoted: bool, end: str, size: int
) -> None:
    text = "a,b\n" + "\n".join(",".join(f'"{cell}"' if is_quoted else cell for cell in row) for row in rows) + end
    file = tmp_path_factory.mktemp("csv") / "f.csv"
    table = read(file, text, size=size)
    assert repr(table.to_pydict()) == repr(read(file, text).to_pydict())
    for found, row in zip(table.to_pylist(), rows, strict=True):
        for value, cell in zip(found.values(), row, strict=True):
            assert is_itself(cell, value) or (value is None and not cell), (cell, value)


@settings(max_examples=examples(100), deadline=None)
@given(
    sample=st.sampled_from(["1,2.5", "1.5,true", "true,7", "2,x"]),
    rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6),
    is_ragged=st.booleans(),
    size=st.integers(1, 40),
)
def test_a_cell_behind_the_sample_is_itself_or_a_bad_row(
    tmp_path_factory: pytest.TempPathFactory, sample: str, rows: list[tuple[str, str]], is_ragged: bool, size: int
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    first, second = folder / "1.csv", folder / "2.csv"
    first.write_text(f"a,b\n{sample}\n")
    second.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows) + ("1,2,3\n" if is_ragged else ""))
    reader = ScanReader(CsvFormat(extra_fields="bad"), sample_files=1, on_bad_row="drop", columns=["a", "b", "block_offset"])
    table = scan_table(reader, [first, second], block_size=size)
    assert repr(table.to_pydict()) == repr(scan_table(reader, [first, second]).to_pydict())
    at, cells = 4, {}
    for row in rows:
        cells[at] = row
        at += len(f"{row[0]},{row[1]}\n")
    for found in table.to_pylist()[1:]:
        row = cells[found.pop("block_offset")]
        for value, cell in zip(found.values(), row, strict=True):
            assert is_itself(cell, value) or (value is None and not cell), (cell, value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("x\n1\n2.5", [1.0, 2.5]),
        ("x\n2\nn/a", ["2", "n/a"]),
        ("x\n10001\n00501", ["10001", "00501"]),
        ("x\n\n12", [12]),
        ("x\n+49123\n10001\n", ["+49123", "10001"]),
        ("x\n-0\n5\n", [-0.0, 5.0]),
        ("x\n1.50\n1e5\n", [1.5, 1e5]),
    ],
)
def test_the_last_row_and_codes_count(file: Path, text: str, values: list[Any]) -> None:
    assert repr(read(file, text).to_pydict()["x"]) == repr(values)


def test_a_lone_row_behind_comments_has_its_type(file: Path) -> None:
    assert read(file, "x\n# no\n12", CsvFormat(comment="#")).to_pydict() == {"x": [12]}


@pytest.mark.parametrize("code", ["007", "+7", "0x1F", "-0"])
def test_a_code_far_behind_the_sample_is_a_bad_row_that_says_why(file: Path, code: str) -> None:
    text = "n,s\n" + "1,x\n" * 300_000 + f"{code},y\n"
    with pytest.raises(BadRowFound) as caught:
        read(file, text)
    reason = f"'{code}' is not a valid int64, the type that the sample has: written again, it would be another text"
    assert reason in str(caught.value)
    assert "give the column a type that is wide enough" in str(caught.value)
    assert read(file, text, drift=Drift(changed="null"))["n"].to_pylist()[-1] is None
    assert read(file, text, schema="n: string")["n"].to_pylist()[-1] == code


@pytest.mark.parametrize("size", [None, 3])
def test_declared_booleans_have_more_spellings_than_inferred_ones_beside_them(file: Path, size: int | None) -> None:
    text = "b,c\nyes,true\n1,false\n"
    assert read(file, text, size=size, schema="b: bool").to_pydict() == {"b": [True, True], "c": [True, False]}


def test_a_given_type_takes_codes(file: Path) -> None:
    assert read(file, "n,f\n007,+1.5\n0x1F,01.5\n", schema="n: int64, f: float64").to_pydict() == {"n": [7, 31], "f": [1.5, 1.5]}


@pytest.mark.parametrize("size", [None, 3, 10])
def test_integers_with_a_fraction_of_zeros_are_integers(file: Path, size: int | None) -> None:
    assert read(file, "t,n\n1,1\n1.0,2\n", size=size, schema="t: int64, n: int64").to_pydict() == {"t": [1, 1], "n": [1, 2]}


def test_widening_by_a_code_makes_text(tmp_path: Path) -> None:
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    first.write_text("n\n1\n")
    second.write_text("n\n+49123\n")
    table = scan_table(ScanReader(CsvFormat(), sample_files=1, drift=Drift(changed="widen")), [first, second])
    assert table.to_pydict() == {"n": ["1", "+49123"]}


def test_text_in_a_json_column_of_numbers_is_itself_or_a_bad_row(tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text('{"n": 1, "m": {"k": 1}}\n')
    second.write_text('{"n": "3", "m": {"k": "3"}}\n{"n": "007", "m": {"k": 1}}\n{"n": 4, "m": {"k": "007"}}\n')
    reader = ScanReader(JsonLinesFormat(), sample_files=1, on_bad_row="drop")
    assert scan_table(reader, [first, second]).to_pydict() == {"n": [1, 3], "m": [{"k": 1}, {"k": 3}]}
    declared = ScanReader(JsonLinesFormat(), columns=["n"], schema="n: int64")
    assert scan_table(declared, [first, second]).to_pydict() == {"n": [1, 3, 7, 4]}


@pytest.mark.parametrize("value", ["007", "-0", "+5"])
def test_values_of_folders_are_themselves(tmp_path: Path, value: str) -> None:
    paths = []
    for each in ("1", value):
        path = tmp_path / f"y={each}" / "a.csv"
        path.parent.mkdir()
        path.write_text("a\n1\n")
        paths.append(path)
    assert scan_table(ScanReader(CsvFormat()), paths).to_pydict() == {"a": [1, 1], "y": ["1", value]}
    given_type = scan_table(ScanReader(CsvFormat(), schema="y: int64"), paths).to_pydict()["y"]
    assert given_type == [1, int(value)]


# Decimal commas


@pytest.mark.parametrize("size", [None, 1, 7, 20])
@pytest.mark.parametrize(
    ("format", "text", "columns"),
    [
        (
            CsvFormat(delimiter=";", decimal=",", thousands="."),
            "p;n;s\n1.234,5;1.000;a\n-0,5;12;1.5\n",
            {"p": [1234.5, -0.5], "n": [1000, 12], "s": ["a", "1.5"]},
        ),
        (CsvFormat(decimal=","), 'p,n\n"1,5",7\n"2,25",8\n', {"p": [1.5, 2.25], "n": [7, 8]}),
        (CsvFormat(thousands=","), 'p,n\n"1,234.5",7\n2.5,"1,000"\n', {"p": [1234.5, 2.5], "n": [7, 1000]}),
        (CsvFormat(delimiter=";", decimal=","), "p;d\n1,5;1.5\n2,5;2\n", {"p": [1.5, 2.5], "d": ["1.5", "2"]}),
        (CsvFormat(delimiter=";", decimal=",", thousands="."), "p\n001.000\n", {"p": ["001.000"]}),
        (CsvFormat(delimiter=";", decimal=",", trim=True), "p ; q\n 1,5 ; x\n", {"p": [1.5], "q": ["x"]}),
        (
            CsvFormat(delimiter=";", decimal=",", nulls=["NA", ""]),
            "p;q\n1,5;1\nNA;2\n;3\n",
            {"p": [1.5, None, None], "q": [1, 2, 3]},
        ),
        (CsvFormat(delimiter=";", decimal=",", encoding="utf-16"), "p;q\n1,5;1\n", {"p": [1.5], "q": [1]}),
    ],
)
def test_decimal_commas_and_thousands_are_inferred(
    file: Path, size: int | None, format: CsvFormat, text: str, columns: dict[str, Any]
) -> None:
    file.write_bytes(text.encode(format.encoding))
    assert repr(scan_table(ScanReader(format), file, block_size=size).to_pydict()) == repr(columns)


@pytest.mark.parametrize("size", [None, 5])
def test_decimal_commas_of_single_columns_and_of_each_type(file: Path, size: int | None) -> None:
    text = 'd,f,n,u\n"1.234,50","1,5",1 000,1.5\n"-2,25","2.000,5",7,2.5\n'
    german = {"decimal": ",", "thousands": "."}
    schema = {
        "d": Column("decimal128(9, 2)", **german),
        "f": Column("float32", **german),
        "n": Column("int32", thousands=" "),
        "u": "float64",
    }
    table = read(file, text, size=size, schema=schema)
    assert [[str(row["d"]), row["f"], row["n"], row["u"]] for row in table.to_pylist()] == [
        ["1234.50", 1.5, 1000, 1.5],
        ["-2.25", 2000.5, 7, 2.5],
    ]


def test_a_column_may_differ_from_its_format(file: Path) -> None:
    german = CsvFormat(delimiter=";", decimal=",", thousands=".")
    table = read(file, "p;q\n1.234,5;1.5\n", german, schema={"q": Column("float64", decimal=".")})
    assert table.to_pydict() == {"q": [1.5], "p": [1234.5]}


def test_a_quoted_null_is_null_in_a_column_of_numbers_that_is_read_as_text(file: Path) -> None:
    commas = CsvFormat(decimal=",", nulls=["NA", ""])
    assert read(file, 'p\n"1,5"\n"NA"\n', commas, schema="p: float64").to_pydict() == {"p": [1.5, None]}


def test_a_number_with_the_other_point_is_a_bad_row(file: Path) -> None:
    german = CsvFormat(delimiter=";", decimal=",", thousands=".")
    with pytest.raises(BadRowFound, match=re.escape("'1.5' is not a valid float64")):
        read(file, "p\n1,5\n1.5\n", german, schema="p: float64")


@settings(max_examples=examples(50), deadline=None)
@given(
    values=st.lists(st.tuples(st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9)), min_size=1, max_size=6),
    size=st.integers(1, 40),
)
def test_numbers_with_decimal_commas_are_those_with_points(
    tmp_path_factory: pytest.TempPathFactory, values: list[tuple[int, float]], size: int
) -> None:
    file = tmp_path_factory.mktemp("csv") / "f.csv"
    plain = read(file, "n;f\n" + "".join(f"{n};{f:.3f}\n" for n, f in values), CsvFormat(delimiter=";"))
    swapped = str.maketrans("_.", ".,")
    text = "n;f\n" + "".join(f"{n:_};{f:_.3f}\n".translate(swapped) for n, f in values)
    found = read(file, text, CsvFormat(delimiter=";", decimal=",", thousands="."), size=size)
    assert repr(found.to_pydict()) == repr(plain.to_pydict())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"decimal": ",", "quote": None}, "delimiter and decimal are both ',', and there is no quote"),
        ({"thousands": ",", "quote": ""}, "delimiter and thousands are both ',', and there is no quote"),
        ({"decimal": ",", "thousands": ","}, "decimal and thousands are both ','"),
        ({"decimal": "comma"}, "decimal is 'comma', but must be one character"),
        ({"thousands": "0"}, "thousands is '0', but must be one character"),
    ],
)
def test_contradictions_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        CsvFormat(**options)


@pytest.mark.parametrize(
    ("reader", "problem"),
    [
        (
            ScanReader(CsvFormat(quote=None), schema={"p": Column("float64", decimal=",")}),
            "column 'p': delimiter and decimal are both ','",
        ),
        (
            ScanReader(JsonLinesFormat(), schema={"p": Column("float64", decimal=",")}),
            "column 'p' has decimal or thousands, but numbers of JsonLinesFormat are not text",
        ),
        (
            ScanReader(CsvFormat(), schema={"s": Column("string", thousands=",")}),
            "column 's' has decimal or thousands, but is of type string",
        ),
        (
            ScanReader(CsvFormat(decimal=","), schema={"s": Column("int64", thousands=",")}),
            "column 's': decimal and thousands are both ','",
        ),
    ],
)
def test_contradictions_of_columns_are_refused(reader: ScanReader, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        reader.check()
