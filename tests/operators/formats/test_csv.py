from __future__ import annotations

import csv
import datetime
import gzip
import io
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import DAG
from dagflow.errors import BadRowFound, ColumnExtra, ColumnNoSuchPart, ColumnUnknown, RowTooLarge
from dagflow.scan import BatchLimits, Column, ScanSettings, TableSchema, agree
from dagflow.testing import Collector, run_dag, run_operator, scan_table
from dagflow.testing.files import blocks_of
from operators import CsvFormat, FileSplitterInput, JsonLinesFormat, ParquetFormat, ScanReader
from operators.contexts.errors import FileShortened
from operators.formats.delimited.dialect import Dialect
from operators.formats.delimited.errors import HeaderBad, NotDelimited, QuoteLeftOpen
from operators.formats.delimited.lexer import Lexer
from operators.readers.errors import FileChanged
from tests.tiers import examples

Table = list[dict[str, Any]]


def read(
    path: Path, data: bytes | str, format: CsvFormat | None = None, *, block_size: int | None = None, **options: Any
) -> Table:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return scan_table(ScanReader(format or CsvFormat(infer_types=False), **options), path, block_size=block_size).to_pylist()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "f.csv"


def lists(*rows: list[Any], names: str = "abc") -> Table:
    return [dict(zip(names, row, strict=True)) for row in rows]


# What a file holds


@settings(max_examples=examples(150), deadline=None)
@given(
    rows=st.lists(st.lists(st.text('xy,"\n\r é', max_size=5), min_size=3, max_size=3), min_size=1, max_size=8),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    ends=st.sampled_from(["\n", "\r\n", "\r"]),
    size=st.integers(1, 60),
)
def test_what_the_csv_module_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], quoting: int, ends: str, size: int
) -> None:
    if (
        quoting == csv.QUOTE_MINIMAL
    ):  # the module leaves line ends of other kinds than its own without quotes, and cannot read them
        other = str.maketrans("\r\n", ends[-1] * 2)
        rows = [[field.translate(other) for field in row] for row in rows]
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting, lineterminator=ends).writerows([["a", "b", "c"], *rows])  # type: ignore[arg-type]
    file = tmp_path_factory.mktemp("csv") / "f.csv"
    expected = rows if quoting == csv.QUOTE_ALL else [[field or None for field in row] for row in rows]
    assert read(file, text.getvalue(), block_size=size) == lists(*expected)


@settings(max_examples=examples(150), deadline=None)
@given(text=st.text('a1,"\n', max_size=40), size=st.integers(1, 50))
def test_odd_rows_are_those_of_the_csv_module(tmp_path_factory: pytest.TempPathFactory, text: str, size: int) -> None:
    """Ragged rows, quotes in the midst of fields: read in a slower way, with the same result."""
    found = list(csv.reader(io.StringIO("a,b\n" + text, newline="")))[1:]
    expected = [[field or None for field in [*row, "", ""][:2]] for row in found if row]
    file = tmp_path_factory.mktemp("csv") / "f.csv"
    rows = read(file, "a,b\n" + text, block_size=size, on_bad_row="drop")
    is_open = ends_in_quotes(text)
    assert [[row["a"] or None, row["b"] or None] for row in rows] == (expected[:-1] if is_open else expected)


def ends_in_quotes(text: str) -> bool:
    return Lexer(Dialect()).find(text.encode(), 0, len(text)).opened is not None


@pytest.mark.parametrize("size", [None, 7, 20])
@pytest.mark.parametrize(
    ("format", "text", "rows"),
    [
        (CsvFormat(delimiter="\t"), "a\tb\n1\tx,y\n", [[1, "x,y"]]),
        (CsvFormat(delimiter="||"), 'a||b\n1||"x||y"\n2||z|\n', [[1, "x||y"], [2, "z|"]]),
        (CsvFormat(delimiter="¦", encoding="latin-1"), "a¦b\n1¦é\n", [[1, "é"]]),
        (CsvFormat(quote="'"), "a,b\n1,'x,''\ny'\n", [[1, "x,'\ny"]]),
        (CsvFormat(quote=None), 'a,b\n1,"x\n2,y"\n', [[1, '"x'], [2, 'y"']]),
        (CsvFormat(escape="\\"), 'a,b\n1,"x\\"\ny"\n2,z\\,z\n', [[1, 'x"\ny'], [2, "z,z"]]),
        (CsvFormat(comment="#"), '# "\na,b\n#,\n1,"#x\n#y"\n#', [[1, "#x\n#y"]]),
        (CsvFormat(trim=True), 'a , b\n 1 , "x " \n2,y z\t\n3, \n', [[1, "x "], [2, "y z"], [3, None]]),
        (CsvFormat(nulls=["NA", ""]), 'a,b\nNA,NA\n1,"NA"\n', [[None, None], [1, "NA"]]),
        (CsvFormat(skip_lines=2), 'by "us\n\na,b\n1,x\n', [[1, "x"]]),
        (CsvFormat(), "\ufeffa,b\r\n1,x\r\n\r\n2,\r\n", [[1, "x"], [2, None]]),
        (CsvFormat(encoding="utf-16"), 'a,b\n1,"é\n🙂"\n2,x\n', [[1, "é\n🙂"], [2, "x"]]),
        (CsvFormat(encoding="cp1252"), "a,b\n1,€\n", [[1, "€"]]),
        (CsvFormat(), "a,b\n1\n2,x,3\n,\n", [[1, None], [2, "x"], [None, None]]),
        (CsvFormat(), "a,b\nx,1\n\ufeff,2\n", [["x", 1], ["\ufeff", 2]]),
    ],
)
def test_dialects(file: Path, size: int | None, format: CsvFormat, text: str, rows: list[list[Any]]) -> None:
    assert read(file, text.encode(format.encoding), format, block_size=size) == lists(*rows, names="ab")


def test_without_a_header_a_row_is_a_list(file: Path) -> None:
    headerless = CsvFormat(header=False)
    assert read(file, "a,b\nc,d\n", headerless) == [{"columns": ["a", "b"]}, {"columns": ["c", "d"]}]
    assert read(file, '1,"x"\n\n2\n3,4,5\n', headerless) == [
        {"columns": ["1", "x"]},
        {"columns": ["2"]},
        {"columns": ["3", "4", "5"]},
    ]
    assert read(file, '1,"x"\n2,y\n', headerless, columns=["columns[1]"], block_size=3) == [
        {"columns[1]": "x"},
        {"columns[1]": "y"},
    ]


def test_the_array_is_there_with_a_header_too_which_is_left_out(file: Path) -> None:
    text = "a,b,c\n1,x\n2,y,z\n"
    found = read(file, text, CsvFormat(), columns=["columns[2]", "columns[0]", "filename"], block_size=5)
    assert found == [
        {"columns[2]": None, "columns[0]": "1", "filename": "f.csv"},
        {"columns[2]": "z", "columns[0]": "2", "filename": "f.csv"},
    ]
    both = read(file, text, CsvFormat(), columns=["columns", "columns[1]"])
    assert both == [{"columns": ["1", "x"], "columns[1]": "x"}, {"columns": ["2", "y", "z"], "columns[1]": "y"}]
    assert read(file, text, CsvFormat(header=False), columns=["*", "suffix"])[0] == {"columns": ["a", "b", "c"], "suffix": "csv"}
    file.write_text("")
    assert scan_table(ScanReader(CsvFormat(header=False)), file).schema == pa.schema([("columns", pa.list_(pa.string()))])


def test_without_a_header_a_schema_names_columns_by_position(file: Path) -> None:
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    found = read(file, "1,x\n2,y\n", CsvFormat(header=False), schema=schema, block_size=3)
    assert found == [{"n": 1, "s": "x"}, {"n": 2, "s": "y"}]


def test_columns_that_are_asked_for(file: Path) -> None:
    text = "a,b,c\n1,x,2.5\n2,y,3\n"
    assert read(file, text, CsvFormat(), columns=["c", "a"]) == [{"c": 2.5, "a": 1}, {"c": 3.0, "a": 2}]
    assert read(file, text, CsvFormat(), columns=["a", "block_offset"], block_size=4) == [
        {"a": 1, "block_offset": 6},
        {"a": 2, "block_offset": 14},
    ]
    assert scan_table(ScanReader(CsvFormat(), columns=[]), file, block_size=5).num_rows == 2
    with pytest.raises(ColumnUnknown):
        scan_table(ScanReader(CsvFormat()), file, columns=["nobody"])


def test_types_are_told(file: Path) -> None:
    text = "i,f,b,d,t,code,big,s,n\n1,1.5,true,2026-01-02,2026-01-02 03:04:05,007,12345678901234567890,x,\n-2,,false,,,,,1,\n"
    path_table = read(file, text, CsvFormat())
    assert path_table[0] == {
        "i": 1,
        "f": 1.5,
        "b": True,
        "d": datetime.date(2026, 1, 2),
        "t": datetime.datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001  # the text names no zone
        "code": "007",
        "big": "12345678901234567890",
        "s": "x",
        "n": None,
    }
    assert read(file, text)[0]["i"] == "1"


def test_quoted_nothing_is_text_without_characters_or_null(file: Path) -> None:
    assert read(file, 'a,b\n"",""\n"1",\n', CsvFormat()) == [{"a": None, "b": ""}, {"a": 1, "b": None}]


def test_compressed_files_are_read_as_one(file: Path) -> None:
    data = gzip.compress(b'a,b\n1,"x\ny"\n2,z\n')
    assert read(file, data, CsvFormat(), block_size=11) == lists([1, "x\ny"], [2, "z"], names="ab")


def test_columns_are_parsed_as_the_user_says(file: Path) -> None:
    schema = {"d": Column("date32", format="%Y-%d-%m"), "n": Column("int64", blank="zero")}
    found = read(file, "d,n\n2026-03-02, \n2026-31-12,5\n", CsvFormat(), schema=schema)
    assert found == [{"d": datetime.date(2026, 2, 3), "n": 0}, {"d": datetime.date(2026, 12, 31), "n": 5}]


# Bad rows


def bad_rows(path: Path, data: bytes | str, format: CsvFormat | None = None, **options: Any) -> tuple[Table, list[Any]]:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    reader = ScanReader(format or CsvFormat(), on_bad_row="route", **options)
    found = run_operator(reader, {"blocks_metadata_input": blocks_of(str(path), 25)})
    return found["batches"], found["errors"]


INTS = pa.schema([("a", pa.int64()), ("b", pa.string())])


def test_values_that_do_not_parse_are_named(file: Path) -> None:
    rows, bad = bad_rows(file, 'a,b\n1,x\n"two\n2",y\n3,z\n4.5,z\n', schema=INTS)
    assert [row["a"] for row in rows] == [1, 3]
    assert [(row.position, row.line, row.column, row.raw) for row in bad] == [(8, 3, "a", '"two\n2",y'), (22, 6, "a", "4.5,z")]


def test_whole_numbers_may_have_a_sign_and_may_be_hexadecimal(file: Path) -> None:
    good, bad = bad_rows(file, "n\n+5\n0x1F\n-7\n+\n", CsvFormat(), schema="n: int8")
    assert ([row["n"] for row in good], [row.raw for row in bad]) == ([5, 31, -7], ["+"])


def test_numbers_that_are_too_large_are_bad(file: Path) -> None:
    good, bad = bad_rows(file, "n,s\n1e400,a\ninf,b\n1.5,c\n", CsvFormat(), schema="n: float64, s: string")
    assert ([row["s"] for row in good], [row.reason for row in bad]) == (["b", "c"], ["'1e400' is not a valid float64"])


def test_one_bad_time_takes_no_others_with_it(file: Path) -> None:
    good, bad = bad_rows(file, "id,t\n" + "1,12:30:00\n" * 40 + "2,noon\n", CsvFormat(), schema="id: int8, t: time32[s]")
    assert (len(good), [(row.line, row.reason) for row in bad]) == (40, [(42, "'noon' is not a valid time32[s]")])


def test_rows_of_too_few_fields_may_be_no_text(file: Path) -> None:
    rows, bad = bad_rows(file, b"a,b\n1,x\n\xff\n3,y,z\xff\n", schema={"a": "string", "b": "string"})
    assert rows == lists(["1", "x"], ["3", "y"], names="ab")
    assert [row.reason for row in bad] == ["byte 8 (0xff) is not utf-8"]


def test_bad_utf8_is_named_by_its_position(file: Path) -> None:
    rows, bad = bad_rows(file, b"a,b\n1,x\n2,y\xff\n3,\xc3\xa9\n4,\xe9\n", schema=INTS)
    assert [row["b"] for row in rows] == ["x", "é"]
    assert [(row.position, row.line, row.column) for row in bad] == [(8, 3, "b"), (18, 5, "b")]
    assert "byte 11 (0xff) is not utf-8" in bad[0].reason
    assert "byte 20 (0xe9) is not utf-8" in bad[1].reason


def test_bytes_outside_of_a_single_byte_encoding_are_named(file: Path) -> None:
    rows, bad = bad_rows(file, b"a,b\n1,\x80\n2,\x81\n", CsvFormat(encoding="cp1252"), schema=INTS)
    assert [row["b"] for row in rows] == ["€"]
    assert [(row.position, row.line, row.reason) for row in bad] == [(8, 3, "byte 10 (0x81) is not cp1252")]


@pytest.mark.parametrize("size", [None, 5, 9])
def test_a_quote_that_is_never_closed_is_named_where_it_opened(file: Path, size: int | None) -> None:
    with pytest.raises(BadRowFound, match=r"the quote at byte 10 \(line 3\) is never closed"):
        read(file, 'a,b\n1,x\n2,"y\n3,z\n', CsvFormat(), block_size=size)
    assert read(file, 'a,b\n1,x\n2,"y\n3,z\n', CsvFormat(), block_size=size, on_bad_row="drop") == lists([1, "x"], names="ab")


def test_rows_of_other_lengths_are_bad_if_the_user_says_so(file: Path) -> None:
    strict = CsvFormat(extra_fields="bad", missing_fields="bad")
    rows, bad = bad_rows(file, "a,b\n1\n2,x\n3,y,z\n", strict)
    assert [row["a"] for row in rows] == [2]
    assert [(row.position, row.line, row.reason) for row in bad] == [
        (4, 2, "has 1 fields instead of 2"),
        (10, 4, "has 3 fields instead of 2"),
    ]


def test_nul_bytes_are_text_and_no_number(file: Path) -> None:
    rows, bad = bad_rows(file, b"a,b\n1,x\0y\n\0,z\n", schema=INTS)
    assert [row["b"] for row in rows] == ["x\0y"]
    assert [(row.position, row.column) for row in bad] == [(10, "a")]


# Bad files


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"\n\r\n"])
def test_an_empty_file_has_no_rows_and_no_columns(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    table = scan_table(ScanReader(CsvFormat()), file)
    assert (table.num_rows, table.num_columns) == (0, 0)
    table = scan_table(ScanReader(CsvFormat(), schema=INTS), file)
    assert (table.num_rows, table.schema.names) == (0, ["a", "b"])


@pytest.mark.parametrize("data", [b"a,b", b"a,b\n", b"a,b\r\n\r\n"])
def test_a_header_alone_gives_columns_without_rows(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    table = scan_table(ScanReader(CsvFormat()), file)
    assert (table.num_rows, table.schema.names) == (0, ["a", "b"])


def test_text_of_16_bits_is_told(file: Path) -> None:
    file.write_bytes("a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(NotDelimited, match="encoding='utf-16'"):
        scan_table(ScanReader(CsvFormat()), file)
    file.write_bytes("a,b\n1,2\n".encode("utf-16-le"))
    with pytest.raises(HeaderBad, match="utf-16-le"):
        scan_table(ScanReader(CsvFormat()), file)


def test_a_header_in_another_encoding_is_told(file: Path) -> None:
    file.write_bytes("naïve,b\n1,2\n".encode("latin-1"))
    with pytest.raises(HeaderBad, match="not utf-8"):
        scan_table(ScanReader(CsvFormat()), file)


def test_a_record_without_an_end_takes_no_more_memory_than_it_may(file: Path) -> None:
    import tracemalloc

    limit = 1 << 20
    limits = BatchLimits(max_record_bytes=limit)
    with file.open("wb") as out:
        out.write(b"a,b\n1,x\n2,")
        for _ in range(64):
            out.write(b"y" * (1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(RowTooLarge) as error:
            scan_table(ScanReader(CsvFormat(), limits=limits), file)
        assert tracemalloc.get_traced_memory()[1] < 12 * limit
    finally:
        tracemalloc.stop()
    assert (error.value.position, error.value.reader) == (8, "reader")
    file.write_bytes(b'a,b\n1,x\n2,"' + b"y\n" * limit)
    with pytest.raises(QuoteLeftOpen, match="byte 10, in column 'b' of the record that starts at byte 8"):
        scan_table(ScanReader(CsvFormat(), limits=limits), file, block_size=limit)


def test_files_that_disagree_on_types_have_the_wider_one(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("b,a\n2.5,x\n")
    table = scan_table(ScanReader(CsvFormat()), [tmp_path / "1.csv", tmp_path / "2.csv"])
    assert table.to_pylist() == [{"a": "1", "b": 2.0}, {"a": "x", "b": 2.5}]


def test_a_file_cut_short_between_planning_and_reading_is_told(file: Path) -> None:
    file.write_text("a,b\n1,x\n2,y\n")
    blocks = blocks_of(str(file), None)
    file.write_text("a,b\n1,")
    with pytest.raises((FileChanged, FileShortened)):
        run_operator(ScanReader(CsvFormat()), {"blocks_metadata_input": blocks})


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": ""},
        {"delimiter": '"'},
        {"delimiter": "a\n"},
        {"quote": "ab"},
        {"quote": "é"},
        {"escape": ","},
        {"comment": "\n"},
        {"encoding": "klingon"},
        {"delimiter": "日", "encoding": "latin-1"},
        {"skip_lines": -1},
    ],
)
def test_dialects_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        CsvFormat(**options)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "shift-jis"])
@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_lines_of_bad_rows_are_told_also_where_nobody_can_go_back(
    file: Path, packed: Any, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operators.formats.delimited.reader.PIECE_BYTES", 1_000)
    monkeypatch.setattr("operators.formats.text.lines.ODD_BYTES", 100)
    rows = ["x,1" if n % 70 == 7 else f'{n},"two\nlines"' for n in range(3000)]
    text = 'no part\n\n"a",b\n' + "\n".join(rows) + "\n"
    file.write_bytes(packed((text + '5,"open').encode(encoding)))
    reader = ScanReader(CsvFormat(skip_lines=1, encoding=encoding), schema="a: int64, b: string", on_bad_row="route")
    found = [bad.line for bad in run_operator(reader, {"blocks_metadata_input": blocks_of(str(file), None)})["errors"]]
    lines = text.split("\n")
    assert found == [number for number, line in enumerate(lines, 1) if line == "x,1"] + [len(lines)]


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (["order date"], ["order date"]),
        (["order_date", "order date"], ["order_date", "order date"]),
        (["9a", "`a.b`"], ["9a", "a.b"]),
        (["order date", "*"], ["order date", "a_b", "col_9a"]),
    ],
)
def test_columns_may_be_asked_for_as_the_header_writes_them(file: Path, columns: list[str], names: list[str]) -> None:
    file.write_text("order date,a.b,9a\nx,y,z\n")
    table = scan_table(ScanReader(CsvFormat(), columns=columns), file)
    assert table.schema.names == names
    values = {"order date": "x", "order_date": "x", "a.b": "y", "a_b": "y", "9a": "z", "col_9a": "z"}
    assert table.to_pylist() == [{name: values[name] for name in names}]


@pytest.mark.parametrize(("options", "column"), [({"clean_header": False}, "order_date"), ({}, "+"), ({}, "order  date")])
def test_a_column_that_nobody_has_is_refused_all_the_same(file: Path, options: Any, column: str) -> None:
    file.write_text("order date,b\nx,y\n")
    with pytest.raises(ColumnUnknown):
        scan_table(ScanReader(CsvFormat(**options), columns=[column]), file)


# The first line that Excel takes for the name of the delimiter


@pytest.mark.parametrize("size", [None, 1, 3, 6, 9])
@pytest.mark.parametrize(
    ("format", "text"),
    [
        (CsvFormat(delimiter=";"), "sep=;\r\na;b\r\n1;x\r\n"),
        (CsvFormat(delimiter=";"), '\ufeff"sep=;"\na;b\n1;x'),
        (CsvFormat(delimiter="\t", encoding="utf-16"), "SEP=\t\na\tb\n1\tx\n"),
        (CsvFormat(delimiter=";", skip_lines=1), "sep=;\na;b\n1;x\n"),
        (CsvFormat(), "sep=,\ra,b\r1,x\r"),
    ],
)
def test_the_line_that_names_the_delimiter_is_not_a_record(file: Path, size: int | None, format: CsvFormat, text: str) -> None:
    assert read(file, text.encode(format.encoding), format, block_size=size) == lists([1, "x"], names="ab")


def test_without_a_header_the_line_that_names_the_delimiter_is_not_a_record_either(file: Path) -> None:
    assert read(file, "sep=;\n1;x\n", CsvFormat(delimiter=";", header=False), schema="a: int64, b: string") == lists(
        [1, "x"], names="ab"
    )


def test_a_line_that_names_another_delimiter_is_refused(file: Path) -> None:
    with pytest.raises(HeaderBad) as caught:
        read(file, "sep=;\na;b\n1;x\n")
    assert "the header, at byte 0, says that the delimiter is ';', as Excel does, but it is read with ','" in str(caught.value)
    assert "Say so: delimiter=';'" in str(caught.value)


def test_a_column_may_be_called_sep(file: Path) -> None:
    assert read(file, "sep=,b\n1,x\n", CsvFormat(clean_header=False)) == [{"sep=": 1, "b": "x"}]


def test_two_columns_of_one_name_do_not_take_the_name_of_a_third(file: Path) -> None:
    assert read(file, "a,a,a_2,A\n1,2,3,4\n", CsvFormat()) == [{"a": 1, "a_3": 2, "a_2": 3, "A_4": 4}]


# Names that differ only in case


def opened(path: str) -> Any:
    return io.BytesIO(Path(path).read_bytes())


def test_a_header_in_another_case_is_warned_of(tmp_path: Path) -> None:
    warnings: list[str] = []
    paths = [tmp_path / f"{number}.csv" for number in range(4)]
    for path, name in zip(paths, ["id", "Id", "id", "Id"], strict=True):
        path.write_text(f"{name},n\n1,2\n")
    files = {str(path): path.stat().st_size for path in paths}
    agree(CsvFormat(), ScanSettings(), files, opened, warn=warnings.append)
    (warning,) = warnings
    assert warning.startswith(f"{paths[1]}: the column 'Id' differs from 'id' of {paths[0]} only in case")
    assert "write 'id' there" in warning
    warnings.clear()
    given = ScanSettings(schema=TableSchema.of("ID: int64"))
    agree(CsvFormat(), given, files, opened, warn=warnings.append)
    assert [text.partition(" only")[0] for text in warnings] == [
        f"{paths[0]}: the column 'id' differs from 'ID' of the schema",
        f"{paths[1]}: the column 'Id' differs from 'ID' of the schema",
    ]


def test_a_launch_warns_of_a_header_in_another_case(tmp_path: Path) -> None:
    for name, header in (("a", "PLZ;Ort"), ("b", "plz;Ort")):
        (tmp_path / f"{name}.csv").write_text(f"{header}\n01067;Dresden\n")

    def populate_dag(dag: DAG, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput(str(tmp_path)))
        reader = dag.add_operator("reader", ScanReader[Any](CsvFormat(delimiter=";")))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, dag.add_operator("seen", Collector[Any]()).input)

    (warning,) = run_dag(populate_dag).warnings
    assert warning.startswith(f"operator 'reader': {tmp_path}/b.csv: the column 'plz' differs from 'PLZ' of {tmp_path}/a.csv")


@attrs.frozen
class Priced:
    price: Decimal


def test_a_class_with_a_field_that_no_column_has_is_refused_by_its_field() -> None:
    with pytest.raises(ValueError, match=r"field 'price' of class Priced is a Decimal, which no column has"):
        ScanReader[Priced](CsvFormat()).check()


def test_a_file_may_have_both_spellings(tmp_path: Path) -> None:
    warnings: list[str] = []
    (tmp_path / "a.jsonl").write_text('{"id": 1, "Id": 2}\n')
    files = {str(tmp_path / "a.jsonl"): 19}
    agree(JsonLinesFormat(), ScanSettings(), files, opened, warn=warnings.append)
    assert warnings == []


def test_a_file_behind_the_sample_with_a_header_in_another_case_is_counted_and_told(tmp_path: Path) -> None:
    paths = [tmp_path / "1.csv", tmp_path / "2.csv"]
    paths[0].write_text("id,n\n1,2\n")
    paths[1].write_text("Id,n\n1,2\n")
    with pytest.raises(ColumnExtra, match="'Id' differs from 'id' only in case: names are compared as written"):
        scan_table(ScanReader(CsvFormat(), sample_files=1), paths)
    reader = ScanReader(CsvFormat(), schema=TableSchema.of("id: int64", strict=True))
    blocks = [block for path in paths for block in blocks_of(str(path))]
    assert run_operator(reader, {"blocks_metadata_input": blocks}).counters["columns_in_another_case"] == 1


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_column_that_may_not_be_null_names_its_other_spelling(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    if suffix == "csv":
        path.write_text("Id,n\n1,2\n")
    else:
        pq.write_table(pa.table({"Id": [1], "n": [2]}), path)
    reader = ScanReader(CsvFormat() if suffix == "csv" else ParquetFormat(), schema={"id": Column("int64", nullable=False)})
    with pytest.raises(
        BadRowFound, match=r"must have a value: the file has 'Id', in another case\n(?s:.*)help: name the column 'Id' in"
    ):
        scan_table(reader, path)


# A class and formats of its columns


@attrs.frozen
class Sale:
    id: int
    day: datetime.date
    price: float | None


def test_a_class_gives_types_and_a_schema_says_how_text_is_read(file: Path) -> None:
    schema = {"day": Column(format="%d.%m.%Y"), "price": Column("float64", decimal=",", thousands=".")}
    text = 'price,day,other,id\n"1.234,5",31.12.2020,x,007\n,01.01.2021,y,8\n'
    file.write_text(text)
    table = scan_table(ScanReader[Sale](CsvFormat(), schema=schema), file)
    days = [datetime.date(2020, 12, 31), datetime.date(2021, 1, 1)]
    assert table.to_pydict() == {"id": [7, 8], "day": days, "price": [1234.5, None]}
    file.write_text("id,day,price\n1,,2\n2,01.01.2021,3\n")
    reader = ScanReader[Sale](CsvFormat(), schema=schema, on_bad_row="drop")
    assert scan_table(reader, file)["id"].to_pylist() == [2]
    given = {"day": Column(format="%d.%m.%Y", default="31.12.2020"), "id": Column(default=0)}
    assert ScanReader[Sale](CsvFormat(), schema=given).check() is None


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"schema": {"days": Column(format="%d")}}, "the column 'days', which is not a field of Sale. Did you mean 'day'?"),
        ({"schema": "day: timestamp[us]"}, "column 'day' is timestamp[us] in schema, and date32 in class Sale"),
        ({"columns": ["day"]}, "columns are the fields of Sale: leave them out, or the class"),
    ],
)
def test_what_contradicts_a_class_is_refused(properties: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as caught:
        ScanReader[Sale](CsvFormat(), **properties).check()
    assert " and schema" not in str(caught.value)


def test_a_column_without_a_type_needs_a_class() -> None:
    with pytest.raises(ValueError, match="column 'day' of schema has no type"):
        ScanReader(CsvFormat(), schema={"day": Column(format="%d")}).check()


@pytest.mark.parametrize("column", ["filename.a", "dir0[1]", "fqn.x.y"])
def test_a_part_of_a_column_of_paths_is_refused_by_name(file: Path, column: str) -> None:
    root = re.split("[.[]", column)[0]
    with pytest.raises(ColumnNoSuchPart, match=re.escape(f"column {column!r} is selected, but {root} is string")):
        read(file, "a\n1\n", columns=[column])
