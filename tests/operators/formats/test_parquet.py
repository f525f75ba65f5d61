from __future__ import annotations

import datetime
import gc
import gzip
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow.errors import ColumnNoSuchPart, ColumnTwice, ColumnUnknown, ProjectionError
from dagflow.testing import assert_reader_is_splittable, run_operator, scan_reader_of, scan_table
from dagflow.testing.files import blocks_of
from dagflow.testing.readers import CountedFiles
from operators import ParquetFormat, ScanReader
from operators.formats import parquet
from operators.formats.binary.arrow_file import ArrowFile
from operators.formats.errors import FileCutShort, FileDamaged, FormatUnsupported, NotOfFormat, ValueMisfit
from operators.formats.predicates import Predicate
from operators.sinks.files.partitions import NO_VALUE
from tests.tiers import examples

DAY = datetime.date(2026, 1, 1)
TABLE = pa.table(
    {
        "n": range(100),
        "text": [None if n % 7 == 0 else f"text {n}" for n in range(100)],
        "day": [DAY + datetime.timedelta(days=n // 10) for n in range(100)],
        "of": [{"a": n, "b": [n] * (n % 3)} for n in range(100)],
        "real": [float("nan") if n == 55 else n / 2 for n in range(100)],
    }
)
reusing_folders = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(40))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=10)
    return tmp_path / "a.parquet"


def read(
    path: Path, columns: Any = None, block_size: int | None = None, where: Any = (), **properties: Any
) -> list[dict[str, Any]]:
    reader = ScanReader(ParquetFormat(where=where), **properties)
    rows: list[dict[str, Any]] = scan_table(reader, path, columns=columns, block_size=block_size).to_pylist()
    return rows


def counted(path: Path, where: Any = (), block_size: int | None = None, **properties: Any) -> Any:
    return run_operator(
        ScanReader(ParquetFormat(where=where), **properties), {"blocks_metadata_input": blocks_of(str(path), block_size)}
    )


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()])
def test_values_that_repeat_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: pa.DataType) -> None:
    """Whatever the type, rows are the same, and a batch of long values comes in pieces."""
    values = [None if n % 10 == 0 else f"value {n % 3}" for n in range(1000)]
    column = pa.array([value and value.encode() for value in values] if pa.types.is_binary(kind) else values, kind)
    pq.write_table(pa.table({"a": column, "n": range(1000)}), tmp_path / "a.parquet", row_group_size=500)
    monkeypatch.setattr("operators.formats.parquet.DECODED_BYTES", 700)
    opened, asked = parquet._opened, []

    def noted(*given: Any) -> Any:
        asked.append(given[3:])
        return opened(*given)

    monkeypatch.setattr(parquet, "_opened", noted)
    table = scan_table(ScanReader(ParquetFormat()), tmp_path / "a.parquet")
    assert table.column("a").to_pylist() == column.to_pylist()
    assert table.schema.field("a").type == (pa.string() if kind == pa.string_view() else kind)
    assert ((["a"],) in asked) == (kind != pa.large_string())


def test_all_of_a_file(path: Path) -> None:
    table = scan_table(ScanReader(ParquetFormat()), path)
    assert table.drop(["real"]).equals(TABLE.drop(["real"]))
    assert table.schema.equals(TABLE.schema)


@reusing_folders
@given(size=st.integers(100, 4_000))
def test_any_cut_gives_each_row_once(path: Path, size: int) -> None:
    assert read(path, ["n"], size) == [{"n": n} for n in range(100)]


def test_it_is_splittable_anywhere(path: Path) -> None:
    assert_reader_is_splittable(scan_reader_of(ScanReader(ParquetFormat(), columns=["n", "text"])), path, effort=0.3)


def test_a_row_group_belongs_to_the_block_in_which_its_first_byte_lies(path: Path) -> None:
    metadata = pq.ParquetFile(path).metadata
    begin = metadata.row_group(1).column(0).dictionary_page_offset
    assert [row["n"] for row in read(path, ["n"], begin)][:20] == list(range(20))
    first, second = (counted(path, columns=["n"], block_size=size).counters["records"] for size in (begin, begin + 1))
    assert first == second == 100
    blocks = blocks_of(str(path), begin)
    for block, rows in ((blocks[0], list(range(10))), (blocks_of(str(path), begin + 1)[0], list(range(20)))):
        found = run_operator(ScanReader(ParquetFormat(), columns=["n"]), {"blocks_metadata_input": [block]})
        assert [row["n"] for row in found["batches"]] == rows


def test_columns_that_are_not_wanted_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({f"c{n}": [f"{n} {row}" for row in range(20_000)] for n in range(10)}), path, compression="none")
    length = path.stat().st_size
    taken = {}
    for columns in (["*"], ["c3"], []):
        files = CountedFiles()
        found = list(scan_reader_of(ScanReader(ParquetFormat(), columns=columns), files=files)(str(path), tracker(length)))
        assert len(found) == 20_000
        taken[len(columns) and columns[0]] = files.bytes_read
    assert taken["*"] > length
    assert taken["c3"] < length / 5
    assert taken[0] < 70_000, "Arrow reads the last 64 KiB"


def tracker(length: int) -> Any:
    from dagflow.ranges import OffsetRangeTracker

    return OffsetRangeTracker(0, length)


def test_nothing_of_a_file_stays_in_memory(path: Path) -> None:
    """Arrow holds files where the garbage collector does not look."""
    assert scan_table(ScanReader(ParquetFormat()), path).num_rows
    gc.collect()
    assert not [each for each in gc.get_objects() if type(each) is ArrowFile]


def test_rows_are_counted_by_metadata_alone(path: Path) -> None:
    data = bytearray(path.read_bytes())
    end = pq.ParquetFile(path).metadata.row_group(9).column(5).data_page_offset
    data[4:end] = b"x" * (end - 4)
    path.write_bytes(data)
    assert scan_table(ScanReader(ParquetFormat()), path, columns=[], block_size=700).num_rows == 100


def test_nested_columns(path: Path) -> None:
    assert read(path, ["of.a", "of.b"])[5] == {"of.a": 5, "of.b": [5, 5]}


WHERE: list[tuple[Any, Any]] = [
    ([("n", ">=", 25), ("n", "<", 31)], range(25, 31)),
    ([("n", "=", 5)], [5]),
    ([("n", "in", [5, 95])], [5, 95]),
    ([("n", "not in", range(99))], [99]),
    ([("day", ">", "2026-01-09"), ("n", "!=", 95)], [n for n in range(90, 100) if n != 95]),
    ([("day", "in", ["2026-01-01", DAY])], range(10)),
    ([("text", "is null")], range(0, 100, 7)),
    ([("text", "is not null"), ("n", "<", 9)], [1, 2, 3, 4, 5, 6, 8]),
    ([("text", "!=", "text 1"), ("n", "<", 9)], [2, 3, 4, 5, 6, 8]),
    ([("text", "not in", ["text 1"]), ("n", "<", 9)], [2, 3, 4, 5, 6, 8]),
    ([("real", "!=", 0.0), ("n", ">", 53), ("n", "<", 57)], [54, 55, 56]),
    ([("real", "<=", 27.0), ("n", ">", 53)], [54]),
    ([("of.a", ">", 97)], [98, 99]),
    ([("of.`a`", "is null")], []),
]


@pytest.mark.parametrize(("where", "expected"), WHERE)
@pytest.mark.parametrize("block_size", [None, 900])
def test_conditions(path: Path, where: Any, expected: Any, block_size: int | None) -> None:
    assert [row["n"] for row in read(path, ["n"], block_size, where)] == list(expected)
    assert [row["text"] for row in read(path, ["text"], block_size, where)] == [TABLE["text"][n].as_py() for n in expected]
    assert scan_table(ScanReader(ParquetFormat(where=where)), path, columns=[], block_size=block_size).num_rows == len(expected)


PRUNED: list[Any] = [
    ([("n", ">=", 25), ("n", "<", 31)], 8),
    ([("text", "=", "zzz")], 10),
    ([("text", "in", ["a", "text 55"])], 8),
    ([("n", "!=", 5)], 0),
    ([("n", "<=", 9), ("n", ">", 8)], 9),
    ([("text", "is null")], 0),
    ([("n", "is null")], 10),
    ([("day", "not in", [DAY, "2026-01-02"])], 2),
    ([("day", "!=", DAY)], 1),
    ([("real", ">", 1e9)], 10),
    ([("of.a", "<", 10)], 9),
]


@pytest.mark.parametrize(("where", "pruned"), PRUNED)
def test_row_groups_without_such_rows_are_not_read(path: Path, where: Any, pruned: int) -> None:
    assert counted(path, where).counters["row_groups_pruned"] == pruned
    assert counted(path, where, block_size=1_000).counters["row_groups_pruned"] == pruned


def test_a_condition_on_a_column_that_a_file_lacks_is_counted(path: Path, tmp_path: Path) -> None:
    schema = "nowhere: int64"
    assert counted(path, [("nowhere", "=", 1)], schema=schema).counters["files_lacking_where"] == 1
    assert read(path, where=[("nowhere", "=", 1)], schema=schema) == []
    assert [row["n"] for row in read(path, ["n"], where=[("nowhere", "is null"), ("n", ">", 97)], schema=schema)] == [98, 99]
    pq.write_table(pa.table({"n": [7], "new": [1]}), tmp_path / "b.parquet")
    both = scan_table(ScanReader(ParquetFormat(where=[("new", "=", 1)]), columns=["n"]), [path, tmp_path / "b.parquet"])
    assert both.to_pylist() == [{"n": 7}]


@pytest.mark.parametrize(
    ("column", "error", "told"),
    [
        ("N", ColumnUnknown, "no file has a column 'N'; 1 sampled file has: n, text, day, of, real\n  help: did you mean 'n'"),
        ("of.c", ColumnNoSuchPart, "a struct without a field 'c'"),
        ("of.b[0]", ProjectionError, "'of.b[0]' has a condition on an element of a list"),
    ],
)
def test_a_condition_on_a_column_that_no_file_has_is_refused(path: Path, column: str, error: Any, told: str) -> None:
    with pytest.raises(error) as caught:
        read(path, ["n"], where=[(column, "is null")])
    assert told in str(caught.value)


def test_columns_of_one_name_are_refused_only_where_they_matter(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4]), pa.array([5, 6])], names=["a", "a", "z"])
    pq.write_table(table, tmp_path / "a.parquet")
    for columns, where in ((["a"], ()), (None, ()), (["z"], [("a", "=", 1)])):
        with pytest.raises(ColumnTwice, match="the file has several columns 'a'"):
            read(tmp_path / "a.parquet", columns, where=where)
    assert read(tmp_path / "a.parquet", ["z"], where=[("z", ">", 5)]) == [{"z": 6}]


@pytest.mark.parametrize(
    ("column", "operator", "value", "told"),
    [
        ("n", "~", 1, "operator '~' of column 'n' is not one of"),
        ("n", "=", None, "'n' = None: give one value; no value is 'is null'"),
        ("n", "in", 3, "'n' in 3: give a list of values, none of them None"),
        ("n", "is null", 3, "'n' is null 3: there is nothing to compare with"),
    ],
)
def test_conditions_that_are_none(column: str, operator: str, value: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Predicate(column, operator, value)


def test_a_condition_of_another_type(path: Path) -> None:
    with pytest.raises(ValueMisfit) as caught:
        read(path, where=[("n", ">", "x")])
    assert str(caught.value).startswith(f"{path}: where = ('n', '>', 'x'): column 'n' is of type int64 there: ")


def test_files_that_differ_are_put_together_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"c": [True], "b": ["y"], "a": pa.array([2], pa.int64())}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"b": ["z"]}), tmp_path / "3.parquet")
    paths = [tmp_path / f"{n}.parquet" for n in (1, 2, 3)]
    assert scan_table(ScanReader(ParquetFormat()), paths).to_pylist() == [
        {"a": 1, "b": "x", "c": None},
        {"a": 2, "b": "y", "c": True},
        {"a": None, "b": "z", "c": None},
    ]


def test_names_with_dots(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a.b": [1], "a": [2], "c": [{"b": 3}]}), path)
    assert read(path) == [{"a.b": 1, "a": 2, "c": {"b": 3}}]
    assert read(path, ["a"]) == [{"a": 2}]


def test_rows_that_take_much_come_in_small_batches(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"{n:06}" * 10_000 for n in range(1_000)]}), path)
    batches = scan_table(ScanReader(ParquetFormat()), path).to_batches()
    assert len(batches) > 5
    assert max(batch.nbytes for batch in batches) < 17 << 20


def test_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE.slice(0, 0), path)
    assert scan_table(ScanReader(ParquetFormat()), path).schema.equals(TABLE.schema)
    (tmp_path / "empty.parquet").write_bytes(b"")
    assert scan_table(ScanReader(ParquetFormat()), tmp_path / "empty.parquet").num_rows == 0


def whole() -> bytes:
    target = io.BytesIO()
    pq.write_table(TABLE, target, row_group_size=10)
    return target.getvalue()


@pytest.mark.parametrize(
    ("data", "error", "told"),
    [
        (b"a,b\n1,2\n", NotOfFormat, "at byte 0: this is not a Parquet file: it begins with 61 2c 62 0a 31 2c 32 0a\n"),
        (b"\0" * 100, NotOfFormat, "at byte 0: this is not a Parquet file: it begins with 00 00 00 00 00 00 00 00\n"),
        (
            gzip.compress(whole(), mtime=0),
            NotOfFormat,
            "this is not a Parquet file: it begins with 1f 8b 08 00 00 00 00 00, which is gzip",
        ),
        (
            b"PARE" + whole()[4:],
            FormatUnsupported,
            "the footer of the Parquet file, at byte 0, is not supported: it is encrypted",
        ),
        (whole()[:-1], FileCutShort, f"the Parquet file ends at byte {len(whole()) - 1}, without its footer: it is incomplete"),
        (whole()[:700], FileCutShort, "the Parquet file ends at byte 700, without its footer"),
        (b"PAR1", FileCutShort, "the Parquet file ends at byte 4, without its footer"),
        (b"PAR1\xff\xff\0\0PAR1", FileDamaged, "the footer of the Parquet file, at byte 4, cannot be read: it says that it is"),
        (whole()[:-40] + b"\xff" * 32 + whole()[-8:], FileDamaged, "the footer of the Parquet file, at byte "),
    ],
)
def test_files_that_are_none(tmp_path: Path, data: bytes, error: type[Exception], told: str) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    with pytest.raises(error) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert told in str(caught.value)


def test_a_row_group_that_is_damaged_is_named(path: Path) -> None:
    begin = pq.ParquetFile(path).metadata.row_group(3).column(0).dictionary_page_offset
    data = bytearray(path.read_bytes())
    data[begin : begin + 40] = b"\xff" * 40
    path.write_bytes(data)
    with pytest.raises(FileDamaged) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: row group 3 of the Parquet file, at byte {begin}, cannot be read: ")
    assert read(path, ["text"]) == TABLE.select(["text"]).to_pylist(), "what is not read cannot be damaged"


def test_where_rows_lie(path: Path) -> None:
    metadata = pq.ParquetFile(path).metadata
    begins = [metadata.row_group(n).column(0).dictionary_page_offset for n in range(10)]
    expected = [begin for begin in begins for _ in range(10)]
    for columns in (["block_offset"], ["block_offset", "n"]):
        assert [row["block_offset"] for row in read(path, columns, 700)] == expected


def test_text_that_is_no_utf_8_is_told(path: Path) -> None:
    pq.write_table(TABLE, path, row_group_size=10, compression="none")
    data = path.read_bytes()
    begin = pq.ParquetFile(path).metadata.row_group(1).column(0).dictionary_page_offset
    path.write_bytes(data[:begin] + data[begin:].replace(b"text 12", b"text \xff2", 1))
    with pytest.raises(FileDamaged, match=f"row group 1 of the Parquet file, at byte {begin}, cannot be read: .*UTF8"):
        read(path)
    assert len(read(path, ["n"])) == 100


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ([("year", "=", 2025)], [1]),
        ([("year", ">=", 2025), ("country", "!=", "s/e")], [2]),
        ([("country", "in", ["s/e", "dk"])], [0, 1]),
        ([("country", "not in", ["s/e"])], [2]),
        ([("country", "is null")], [3]),
        ([("country", "is not null"), ("n", ">", 0)], [1, 2]),
        ([("year", "<", "2025")], [0]),
        ([("year", "=", "x")], []),
        ([("year", "=", datetime.date(2025, 1, 1))], []),
    ],
)
def test_conditions_on_folders(tmp_path: Path, where: Any, expected: list[int]) -> None:
    folders = ["year=2024/country=s%2Fe", "year=2025/country=s%2Fe", "year=2026/country=no", f"year=2027/country={NO_VALUE}"]
    paths = [tmp_path / folder / "a.parquet" for folder in folders]
    for n, path in enumerate(paths):
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"n": [n]}), path)
    assert scan_table(ScanReader(ParquetFormat(where=where)), paths, columns=["n"])["n"].to_pylist() == expected


@pytest.mark.parametrize("where", [[], [("n", ">", 0)]])
def test_layouts_of_plain_types_are_read_as_these(tmp_path: Path, where: Any) -> None:
    words = pa.array(["a", None, "b"])
    columns = {
        "n": pa.array([0, 1, 2]),
        "word": words.dictionary_encode(),
        "view": words.cast(pa.string_view()),
        "pair": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)),
        "small": pa.array([1, None, 2], pa.decimal32(5, 2)),
        "id": pa.array([b"a" * 16, None, b"b" * 16], pa.uuid()),
        "json": pa.array(["{}", None, "[]"], pa.json_()),
        "parts": pa.StructArray.from_arrays([words.dictionary_encode()], ["word"]),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    table = scan_table(ScanReader(ParquetFormat(where=where)), tmp_path / "a.parquet")
    kinds = ["int64", "string", "string", "list<item: int64>", "decimal128(5, 2)", "fixed_size_binary[16]", "string"]
    assert [str(kind) for kind in table.schema.types] == [*kinds, "struct<word: string>"]
    rows = pa.table({**columns, "id": pa.array([b"a" * 16, None, b"b" * 16])}).to_pylist()
    assert table.to_pylist() == rows[len(where) :]


def test_conditions_on_layouts_of_plain_types(tmp_path: Path) -> None:
    words = pa.array(["a", None, "b"])
    pq.write_table(pa.table({"word": words.dictionary_encode(), "view": words.cast(pa.string_view())}), tmp_path / "a.parquet")
    for column in ("word", "view"):
        assert read(tmp_path / "a.parquet", [column], where=[(column, ">=", "b")]) == [{column: "b"}]
