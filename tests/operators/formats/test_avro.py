from __future__ import annotations

import datetime
import decimal
import io
import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow.errors import PackageMissing
from dagflow.ranges import OffsetRangeTracker
from dagflow.testing import assert_reader_is_splittable, run_operator, scan_reader_of, scan_table
from dagflow.testing.files import blocks_of
from dagflow.testing.readers import CountedFiles
from operators import AvroFormat, ScanReader
from operators.formats.avro import MAGIC, Header, _number
from operators.formats.errors import FileCutShort, FileDamaged, FormatUnsupported, NotOfFormat
from tests.tiers import examples

reusing_folders = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(40))


def record(*fields: tuple[str, Any], name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields]}


PLAIN = record(("n", "long"), ("text", ["null", "string"]))
ROWS = [{"n": n, "text": None if n % 7 == 0 else f"text {n} é" * (n % 5)} for n in range(200)]


def container(schema: Any, rows: list[Any], codec: str = "null", sync_interval: int = 200) -> bytes:
    target = io.BytesIO()
    fastavro.writer(target, schema, rows, codec=codec, sync_interval=sync_interval)
    return target.getvalue()


def read(path: Path, data: bytes, columns: Any = None, block_size: int | None = None) -> list[dict[str, Any]]:
    path.write_bytes(data)
    rows: list[dict[str, Any]] = scan_table(ScanReader(AvroFormat()), path, columns=columns, block_size=block_size).to_pylist()
    return rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.avro"


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "zstandard"])
@pytest.mark.parametrize("block_size", [None, 300])
def test_all_of_a_file(path: Path, codec: str, block_size: int | None) -> None:
    data = container(PLAIN, ROWS, codec)
    assert data.count(data[-16:]) > 10
    assert read(path, data, None, block_size) == ROWS
    assert read(path, data, ["text"], block_size) == [{"text": row["text"]} for row in ROWS]
    assert scan_table(ScanReader(AvroFormat()), path, columns=[], block_size=block_size).num_rows == 200


@reusing_folders
@given(size=st.integers(10, 2_000), interval=st.sampled_from([1, 60, 500, 10_000]))
def test_any_cut_gives_each_row_once(path: Path, size: int, interval: int) -> None:
    assert read(path, container(PLAIN, ROWS, sync_interval=interval), ["n"], size) == [{"n": n} for n in range(200)]


def test_it_is_splittable_anywhere(path: Path) -> None:
    rows = [{"n": n, "text": "x" * 3_000} for n in range(1_000)]
    path.write_bytes(container(PLAIN, rows, sync_interval=8_000))
    files = CountedFiles()
    make_reader = scan_reader_of(ScanReader(AvroFormat()), files=files)
    assert_reader_is_splittable(make_reader, path, effort=0.05, files=files, buffer_bytes=1 << 20)


def test_a_block_belongs_to_the_range_in_which_it_begins(path: Path) -> None:
    data = container(PLAIN, ROWS)
    path.write_bytes(data)
    sync = data[-16:]
    first = data.find(sync) + 16
    second = data.find(sync, first) + 16
    for size, expected in ((first, 0), (first + 1, 1), (second, 1), (second + 1, 2)):
        found = run_operator(ScanReader(AvroFormat(), columns=["n"]), {"blocks_metadata_input": [blocks_of(str(path), size)[0]]})
        ends = [0]
        for n in (1, 2):
            at = (first, second)[n - 1]
            ends.append(ends[-1] + rows_of(data, at))
        assert len(found["batches"]) == ends[expected]


def rows_of(data: bytes, at: int) -> int:
    return next(b.num_records for b in fastavro.block_reader(io.BytesIO(data)) if b.offset == at)


def test_rows_are_counted_by_the_heads_of_blocks(path: Path) -> None:
    path.write_bytes(container(PLAIN, [{"n": n, "text": "x" * 1_000} for n in range(1_000)], sync_interval=50_000))
    files = CountedFiles()
    found = list(scan_reader_of(ScanReader(AvroFormat(), columns=[]), files=files)(str(path), OffsetRangeTracker(0, 1 << 30)))
    assert len(found) == 1_000
    assert files.bytes_read < 70_000


SIMPLE: list[tuple[Any, list[Any], pa.DataType, list[Any]]] = [
    ("boolean", [True, False], pa.bool_(), [True, False]),
    ("int", [1, -(2**31)], pa.int32(), [1, -(2**31)]),
    ("long", [2**63 - 1, -(2**63)], pa.int64(), [2**63 - 1, -(2**63)]),
    ("float", [0.5], pa.float32(), [0.5]),
    ("double", [1e300], pa.float64(), [1e300]),
    ("bytes", [b"\0\xff"], pa.binary(), [b"\0\xff"]),
    ("string", ["é\0"], pa.string(), ["é\0"]),
    ("null", [None], pa.string(), [None]),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, ["B", "A"], pa.string(), ["B", "A"]),
    ({"type": "fixed", "name": "f", "size": 2}, [b"ab"], pa.binary(2), [b"ab"]),
    ({"type": "array", "items": ["null", "int"]}, [[1, None], []], pa.list_(pa.int32()), [[1, None], []]),
    ({"type": "map", "values": "long"}, [{"a": 1}, {}], pa.map_(pa.string(), pa.int64()), [[("a", 1)], []]),
    (["null", "int"], [1, None], pa.int32(), [1, None]),
    (["null"], [None], pa.string(), [None]),
    (["int", "long"], [1, 2**40], pa.int64(), [1, 2**40]),
    (["null", "long", "double"], [1, 2.5, None], pa.float64(), [1.0, 2.5, None]),
    (["string", "long", "null"], ["a", 1, None], pa.string(), ["a", "1", None]),
    ({"type": "int", "logicalType": "date"}, [datetime.date(2026, 1, 31)], pa.date32(), [datetime.date(2026, 1, 31)]),
    (
        {"type": "int", "logicalType": "time-millis"},
        [datetime.time(1, 2, 3, 4000)],
        pa.time32("ms"),
        [datetime.time(1, 2, 3, 4000)],
    ),
    ({"type": "long", "logicalType": "time-micros"}, [datetime.time(1, 2, 3, 4)], pa.time64("us"), [datetime.time(1, 2, 3, 4)]),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        [datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)],
        pa.timestamp("us", "UTC"),
        [datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)],
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        [decimal.Decimal("-1.50")],
        pa.decimal128(9, 2),
        [decimal.Decimal("-1.50")],
    ),
    (
        {"type": "fixed", "name": "d", "size": 20, "logicalType": "decimal", "precision": 40},
        [decimal.Decimal(10**39)],
        pa.decimal256(40, 0),
        [decimal.Decimal(10**39)],
    ),
    ({"type": "string", "logicalType": "uuid"}, [uuid.UUID(int=7)], pa.string(), [str(uuid.UUID(int=7))]),
    ({"type": "int", "logicalType": "of our own"}, [1], pa.int32(), [1]),
]


@pytest.mark.parametrize(("schema", "values", "kind", "expected"), SIMPLE, ids=[json.dumps(each[0]) for each in SIMPLE])
def test_types(path: Path, schema: Any, values: list[Any], kind: pa.DataType, expected: list[Any]) -> None:
    path.write_bytes(container(record(("a", schema)), [{"a": value} for value in values]))
    table = scan_table(ScanReader(AvroFormat()), path)
    assert table.schema == pa.schema({"a": kind})
    assert table.column("a").to_pylist() == expected


def test_records_in_records_and_names_that_are_used_again(path: Path) -> None:
    point = record(("x", "int"), ("y", ["null", "int"]), name="geo.Point")
    schema = {
        "type": "record",
        "name": "Line",
        "namespace": "geo",
        "fields": [
            {"name": "skipped", "type": ["null", point]},
            {"name": "begin", "type": "Point"},
            {"name": "rest", "type": {"type": "map", "values": {"type": "array", "items": ["null", "geo.Point"]}}},
        ],
    }
    row = {"skipped": None, "begin": {"x": 1, "y": None}, "rest": {"a": [{"x": 2, "y": 3}, None]}}
    data = container(schema, [row])
    expected = {"skipped": None, "begin": {"x": 1, "y": None}, "rest": [("a", [{"x": 2, "y": 3}, None])]}
    assert read(path, data) == [expected]
    assert read(path, data, ["rest", "begin.x"]) == [{"rest": expected["rest"], "begin.x": 1}]


def test_rows_that_are_no_records(path: Path) -> None:
    assert read(path, container({"type": "array", "items": "int"}, [[1], [2, 3]])) == [{"value": [1]}, {"value": [2, 3]}]


def test_files_that_differ_are_put_together_by_name(tmp_path: Path) -> None:
    one, two = tmp_path / "1.avro", tmp_path / "2.avro"
    one.write_bytes(container(record(("a", "int"), ("b", "string")), [{"a": 1, "b": "x"}]))
    two.write_bytes(container(record(("c", "boolean"), ("a", "long")), [{"c": True, "a": 2**40}]))
    assert scan_table(ScanReader(AvroFormat()), [one, two]).to_pylist() == [
        {"a": 1, "b": "x", "c": None},
        {"a": 2**40, "b": None, "c": True},
    ]


def test_no_rows(path: Path) -> None:
    path.write_bytes(container(PLAIN, []))
    assert scan_table(ScanReader(AvroFormat()), path).schema == pa.schema({"n": pa.int64(), "text": pa.string()})
    assert read(path, b"") == []


def test_a_header_that_is_long(path: Path) -> None:
    schema = record(*[(f"a_column_with_a_long_name_{n:06}", "int") for n in range(3_000)])
    data = container(schema, [{f"a_column_with_a_long_name_{n:06}": n for n in range(3_000)}])
    assert data.find(data[-16:]) > 100_000
    assert read(path, data, ["a_column_with_a_long_name_002999"], 50_000) == [{"a_column_with_a_long_name_002999": 2_999}]


WHOLE = container(PLAIN, ROWS)
FIRST = Header.of(io.BytesIO(WHOLE), "", len(WHOLE)).end


@pytest.mark.parametrize(
    ("data", "error", "told"),
    [
        (b"a,b\n1,2\n", NotOfFormat, "at byte 0: this is not an Avro file: it begins with 61 2c 62 0a 31 2c 32 0a"),
        (b"\0" * 99, NotOfFormat, "at byte 0: this is not an Avro file: it begins with 00 00 00 00 00 00 00 00"),
        (b"PAR1....", NotOfFormat, "which is Parquet"),
        (WHOLE[:4], FileCutShort, "the Avro file ends at byte 4, without the end of its header"),
        (WHOLE[: FIRST - 1], FileCutShort, f"the Avro file ends at byte {FIRST - 1}, without the end of its header"),
        (WHOLE[: FIRST + 1], FileCutShort, f"ends at byte {FIRST + 1}, without the end of the block at byte {FIRST}"),
        (WHOLE[: FIRST + 50], FileCutShort, f"ends at byte {FIRST + 50}, without the end of the block at byte {FIRST}"),
        (WHOLE[:-1], FileCutShort, f"ends at byte {len(WHOLE) - 1}, without the end of the block at byte "),
        (
            WHOLE + b"\0" * 40,
            FileDamaged,
            f"a block of the Avro file, at byte {len(WHOLE)}, cannot be read: it does not end with",
        ),
        (
            WHOLE[:FIRST] + b"\xff" * 40,
            FileDamaged,
            f"a block of the Avro file, at byte {FIRST}, cannot be read: its head is none",
        ),
        (WHOLE[:FIRST] + b"\x01" + WHOLE[FIRST:], FileDamaged, f"at byte {FIRST}, cannot be read: it would have -1 rows"),
        (
            WHOLE.replace(b"avro.schema", b"avro.scheme"),
            FileDamaged,
            "the header of the Avro file, at byte 0, cannot be read: it has no 'avro",
        ),
        (
            WHOLE.replace(b'{"type": "record"', b'{"type"= "record"'),
            FileDamaged,
            "the header of the Avro file, at byte 0, cannot be read",
        ),
        (WHOLE.replace(b'"long"', b'"lung"'), FileDamaged, "column 'n' cannot be read: nothing defines the type 'lung'"),
        (WHOLE.replace(b"\x08null", b"\x08lulu"), FormatUnsupported, "codec 'lulu' is not one of null, deflate, bzip2"),
    ],
)
def test_files_that_are_none(path: Path, data: bytes, error: type[Exception], told: str) -> None:
    with pytest.raises(error) as caught:
        read(path, data)
    assert str(caught.value).startswith(f"{path}: ")
    assert told in str(caught.value)


@pytest.mark.parametrize("end", range(5, len(WHOLE), 97))
def test_a_file_cut_short_anywhere_but_behind_a_block_says_what_to_do(path: Path, end: int) -> None:
    """Read as a whole, and in blocks."""
    blocks = [m.end() for m in re.finditer(re.escape(WHOLE[-16:]), WHOLE)]
    if end in blocks:
        return
    for block_size in (None, 50):
        with pytest.raises(FileCutShort, match=f"the Avro file ends at byte {end}, without .*: it is incomplete\n  help: fetch"):
            read(path, WHOLE[:end], block_size=block_size)


def test_a_block_that_is_damaged_is_named(path: Path) -> None:
    data = bytearray(container(PLAIN, ROWS, "deflate"))
    sync = bytes(data[-16:])
    second = data.find(sync, data.find(sync) + 16) + 16
    data[second + 6 : second + 30] = b"\xff" * 24
    with pytest.raises(FileDamaged) as caught:
        read(path, bytes(data))
    assert str(caught.value).startswith(f"{path}: a block of the Avro file, at byte {second}, cannot be read: ")


def test_a_record_that_holds_itself(path: Path) -> None:
    schema = record(("next", ["null", "r"]))
    told = "the header of the Avro file, at byte 0, is not supported: column 'next' cannot be read: the record 'r' holds itself"
    with pytest.raises(FormatUnsupported, match=told):
        read(path, container(schema, [{"next": {"next": None}}]))


def raw(schema: bytes, *blocks: tuple[int, bytes]) -> bytes:
    """A file as no writer of Avro makes it."""
    entries = b"".join(_number(len(part)) + part for part in (b"avro.schema", schema))
    head = MAGIC + _number(1) + entries + _number(0) + b"S" * 16
    return head + b"".join(_number(rows) + _number(len(data)) + data + b"S" * 16 for rows, data in blocks)


@pytest.mark.parametrize("block_size", [None, 30])
@pytest.mark.parametrize("columns", [None, []])
def test_a_record_without_fields_is_a_row(path: Path, columns: Any, block_size: int | None) -> None:
    data = raw(json.dumps(record()).encode(), (3, b""), (2, b""))
    path.write_bytes(data)
    table = scan_table(ScanReader(AvroFormat()), path, columns=columns, block_size=block_size)
    assert (table.num_rows, table.num_columns) == (5, 0)
    nested = raw(json.dumps(record(("e", record(name="e")), ("n", "long"))).encode(), (2, b"\x02\x04"))
    assert read(path, nested, columns=["e", "n"]) == [{"e": {}, "n": 1}, {"e": {}, "n": 2}]


@pytest.mark.parametrize(
    ("schema", "block", "told"),
    [
        (record(("n", "int")), (1, b"\x80\x80\x80\x80\x80\x80\x02"), r"a block .*: column 'n': .*too large"),
        (
            record(("d", {"type": "bytes", "logicalType": "decimal", "precision": 2})),
            (1, b"\x12" + b"\x7f" * 9),
            r"a block .*: column 'd'",
        ),
        (record(("n", "long")), (1, b"\x02\x04\x06"), "a block .*: .*it has more rows than it says"),
        (record(("n", "null")), (1 << 40, b""), "a block .*: it would have 1099511627776 rows"),
        (record(("n", "long"), ("n", "long")), (1, b"\x02\x04"), "the header .*: a record has the field 'n' twice"),
        (record(("n", {"type": "enum", "name": "e"})), (1, b"\0"), "the header .*: it has no 'symbols'"),
        (record(("n", {"type": "fixed", "name": "f", "size": 1 << 40})), (1, b"\0"), "the header .*: value too large"),
        (b'{"type":"array","items":' * 50_000 + b'"int"' + b"}" * 50_000, (1, b"\0"), "the header .*: maximum recursion"),
    ],
)
def test_what_stands_in_a_file_and_cannot(path: Path, schema: Any, block: tuple[int, bytes], told: str) -> None:
    with pytest.raises(FileDamaged, match=f"{told}.*\n  help: the file is damaged"):
        read(path, raw(schema if isinstance(schema, bytes) else json.dumps(schema).encode(), block))


def test_decimals_that_arrow_does_not_have(path: Path) -> None:
    schema = record(("d", {"type": "bytes", "logicalType": "decimal", "precision": 77}))
    with pytest.raises(FormatUnsupported, match="column 'd' cannot be read: decimals have at most 76 digits, but these have 77"):
        read(path, raw(json.dumps(schema).encode()))


def test_without_the_package_a_message_says_how_to_get_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(WHOLE)
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(PackageMissing, match=r"package fastavro, which is not installed\n.*pip install 'dagflow\[avro\]'"):
        scan_table(ScanReader(AvroFormat()), path)


def test_a_codec_whose_package_is_missing(path: Path) -> None:
    pytest.importorskip("fastavro")
    data = WHOLE.replace(b"avro.codec\x08null", b"avro.codec\x06lz4")
    with pytest.raises(PackageMissing, match=r"package lz4, which is not installed\n.*pip install lz4"):
        read(path, data)


def test_where_rows_lie(path: Path) -> None:
    found = read(path, WHOLE, ["block_offset"])
    assert [row["block_offset"] for row in found] == [row["block_offset"] for row in read(path, WHOLE, ["n", "block_offset"])]
    assert {row["block_offset"] for row in found} == {block.offset for block in fastavro.block_reader(io.BytesIO(WHOLE))}
