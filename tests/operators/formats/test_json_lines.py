from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dagflow.errors import BadRowFound, ColumnExtra, MissingUntold, RowTooLarge
from dagflow.scan import BatchLimits
from dagflow.testing import assert_reader_is_splittable, run_operator, scan_reader_of, scan_table
from dagflow.testing.files import blocks_of
from operators import JsonLinesFormat, ScanReader
from operators.formats import json_lines
from tests.tiers import examples

reusing_folders = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(40))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.jsonl"


def read(path: Path, text: str | bytes, block_size: int | None = None, **properties: Any) -> list[dict[str, Any]]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    rows: list[dict[str, Any]] = scan_table(ScanReader(JsonLinesFormat(), **properties), path, block_size=block_size).to_pylist()
    return rows


def routed(path: Path, text: str | bytes, block_size: int | None = None, **properties: Any) -> tuple[list[Any], list[Any]]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    reader = ScanReader(JsonLinesFormat(), on_bad_row="route", **properties)
    found = run_operator(reader, {"blocks_metadata_input": blocks_of(str(path), block_size)})
    return found["batches"], found.get("errors", [])


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        pytest.param(['{"a": 1}', '{"a": 2.5}'], [{"a": 1.0}, {"a": 2.5}], id="a fraction somewhere"),
        pytest.param(['{"a": 1}', '{"a": "x"}', '{"a": [1]}'], [{"a": "1"}, {"a": "x"}, {"a": "[1]"}], id="several kinds"),
        pytest.param(['{"a": null}', '{"a": null}'], [{"a": None}, {"a": None}], id="nulls only"),
        pytest.param(['{"a": "2024-01-01"}'], [{"a": "2024-01-01"}], id="text like a time"),
        pytest.param(['{"a": 1}', "", "  ", '{"b": true}'], [{"a": 1, "b": None}, {"a": None, "b": True}], id="blank lines"),
        pytest.param(["{}", "{}", "{}"], [{}, {}, {}], id="no members"),
        pytest.param(
            ['{"m": {"x": 1}}', '{"m": {"y": [1.5]}}'], [{"m": {"x": 1, "y": None}}, {"m": {"x": None, "y": [1.5]}}], id="nested"
        ),
        pytest.param(['{"a": 123456789012345678901234567890}'], [{"a": "123456789012345678901234567890"}], id="huge"),
        pytest.param([f'{{"a": {2**64 - n}}}' for n in (1, 2)], [{"a": str(2**64 - n)} for n in (1, 2)], id="beyond int64"),
        pytest.param(
            ['{"m": [9007199254740993]}', '{"m": [0.5]}'],
            [{"m": ["9007199254740993"]}, {"m": ["0.5"]}],
            id="integers beside fractions",
        ),
        pytest.param(
            ['{"a": [123456789012345678901234567890, 1]}', '{"a": [-9223372036854775809]}'],
            [{"a": ["123456789012345678901234567890", "1"]}, {"a": ["-9223372036854775809"]}],
            id="beyond int64 in lists",
        ),
        pytest.param(
            ['{"a": {"b": [18446744073709551615]}}', '{"a": {"b": [1]}}'],
            [{"a": {"b": ["18446744073709551615"]}}, {"a": {"b": ["1"]}}],
            id="beyond int64 in structs",
        ),
        pytest.param(
            ['{"a": 100000000000000000000}', '{"a": 0.5}'], [{"a": 1e20}, {"a": 0.5}], id="float64 as JavaScript has it"
        ),
        pytest.param(['{"a": NaN}'], [{"a": pytest.approx(float("nan"), nan_ok=True)}], id="NaN"),
        pytest.param(['{"a": "\\u00e9\\n"}'], [{"a": "é\n"}], id="escapes"),
    ],
)
def test_what_comes_of_what(path: Path, lines: list[str], rows: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(path, "\n".join(lines)) == rows
    monkeypatch.setattr(json_lines, "fast_parser", lambda types, is_open: None)
    assert read(path, "\r\n".join(lines) + "\r\n") == rows


def test_a_column_of_nulls_is_text_and_a_later_file_with_values_does_not_fail(tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text('{"a": null}\n')
    second.write_text('{"a": 1}\n{"a": {"b": 2}}\n')
    table = scan_table(ScanReader(JsonLinesFormat(), sample_files=1), [first, second])
    assert table.to_pylist() == [{"a": None}, {"a": "1"}, {"a": '{"b": 2}'}]


def test_large_whole_numbers_that_no_sample_had_are_kept(tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text('{"a": 1}\n')
    second.write_text('{"a": 2, "b": 18446744073709551615}\n')
    table = scan_table(ScanReader(JsonLinesFormat(), sample_files=1, drift={"extra": "rescue"}), [first, second])
    assert table["_rescued"].to_pylist() == [None, '{"b": "18446744073709551615"}']


def test_a_long_integer_in_a_column_that_is_not_asked_for_is_passed_over_beside_any_neighbours(path: Path) -> None:
    lines = '{"a": 1}\n{"a": 2, "b": %s}\n' % ("9" * 5_000)
    for neighbour in ("", "not JSON\n"):
        rows, bad = routed(path, lines + neighbour, columns=["a"], schema={"a": "int64", "b": "int64"})
        assert ([row["a"] for row in rows], len(bad)) == ([1, 2], bool(neighbour))


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        ('{"a": 1', None, "not JSON"),
        ("[1]", None, "JSON list"),
        ("3", None, "JSON number"),
        ('{"a": 1} {"a": 2}', None, "Extra data"),
        ('{"a": 1, "a": 2}', "a", "the key 'a' twice"),
        ('{"a": 1, "m": {"x": 1, "x": 2}}', "m", "the key 'x' twice"),
        ('{"a": "\\ud800"}', None, "surrogate"),
        ('{"a": 1e999}', None, "too big"),
        ("null", None, "JSON null"),
        ('{"a": ' + "9" * 5_000 + "}", "a", "an integer of 5000 digits is too long"),
        ('{"a": "x"}', "a", "'x' is not a valid int64"),
        ('{"a": 1.5}', "a", "'1.5' is not a valid int64"),
        ('{"a": Inf}', None, "not JSON"),
        ("[{}", None, "looks like a JSON array"),
        ("{", None, "an object over several lines: write each on a line of its own (jq -c)"),
        ('"name": "x",', None, "an object over several lines"),
        (
            '{"a": 1, "m": {"x": 1, "extra": 2}}',
            "m",
            "is not a valid struct<x: int64>, which has no field 'extra' (drift.extra = 'ignore'",
        ),
        ('{"a": 1, "m": {"x": 1.5}}', "m", "is not a valid struct<x: int64>"),
        ('{"a":' * 101 + "1" + "}" * 101, None, "nested more than 100 deep"),
        ('{"a":' + "[" * 1_000_000, None, "nested more than 100 deep"),
        ('{"a": 1, "b\x00": 1}', None, "Invalid control character"),
    ],
)
def test_bad_rows_are_told_with_their_place(path: Path, line: str, column: str | None, reason: str) -> None:
    text = '{"a": 1}\n' + line + '\n{"a": 3}\n'
    rows, bad = routed(path, text, schema={"a": "int64", "m": "struct<x: int64>"})
    assert [row["a"] for row in rows] == [1, 3]
    (row,) = bad
    assert (row.file_path, row.position, row.line, row.column, row.raw) == (str(path), 9, 2, column, line[:1000])
    assert reason in row.reason
    with pytest.raises(BadRowFound, match="line 2, byte 9"):
        read(path, text, schema={"a": "int64", "m": "struct<x: int64>"})


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(b"null", id="null"),
        pytest.param(b"\n \nnull", id="null behind blank lines"),
        pytest.param(b"\xef\xbb\xbfnull", id="null behind a byte order mark"),
        pytest.param(b"null null", id="nulls"),
        pytest.param(b'{"\xff": 1}', id="a name that is not UTF-8"),
        pytest.param(b'{"a":[\n' + b"[\n" * 100_000, id="depth over many lines"),
        pytest.param(b'{"a": ' + b"9" * 5_000 + b"}", id="digits"),
    ],
)
def test_a_sample_that_pyarrow_must_not_see(path: Path, first: bytes) -> None:
    assert read(path, first + b'\n{"a": 1}\n', on_bad_row="drop") == [{"a": 1}]


@pytest.mark.parametrize("kind", ["float32", "float64", "list<float32>", "list<float64>", "struct<x: float32>"])
@pytest.mark.parametrize("number", ["9" * 400, "1e400"])
def test_numbers_that_are_too_large_for_a_float_are_never_infinite(path: Path, kind: str, number: str) -> None:
    form = {"l": "[%s]", "s": '{"x": %s}'}.get(kind[0], "%s")
    text = "".join(f'{{"a": {form % value}}}\n' for value in ("1.5", number, "-Infinity"))
    rows, (bad,) = routed(path, text, schema=f"a: {kind}")
    assert [json.dumps(row["a"]) for row in rows] == [form % "1.5", form % "-Infinity"]
    assert bad.line == 2


def test_integers_beyond_int64_in_lists_are_decimals_and_floats_too(path: Path) -> None:
    text = '{"d": [18446744073709551616], "f": [18446744073709551616], "u": [18446744073709551615]}\n'
    (row,) = read(path, text, schema="d: list<decimal128(38, 0)>, f: list<float64>, u: list<uint64>")
    assert row == {"d": [Decimal(2**64)], "f": [2.0**64], "u": [2**64 - 1]}


def test_what_is_nested_a_hundred_deep_is_read(path: Path) -> None:
    (row,) = read(path, '{"a":' * 100 + "1" + "}" * 100)
    for _ in range(100):
        row = row["a"]
    assert row == 1


def test_bytes_that_are_no_utf8_are_named(path: Path) -> None:
    rows, (bad,) = routed(path, b'{"a": "x"}\n{"a": "\xff"}\n')
    assert rows == [{"a": "x"}]
    assert (bad.position, bad.reason) == (11, "byte 7 of the line (0xff) is not UTF-8")


def test_what_nobody_asks_for_may_be_anything_that_is_json(path: Path) -> None:
    text = '{"a": 1, "b": 1}\n{"b": "x", "a": 2}\n{"a": 3, "b": [], "b": 2}\n'
    assert read(path, text, columns=["a"]) == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_a_member_that_no_sample_had(path: Path) -> None:
    lines = ['{"a": 1}\n'] * 300_000 + ['{"a": 2, "b": 3}\n']  # the sample is 1 MiB
    with pytest.raises(ColumnExtra, match="b"):
        read(path, "".join(lines))
    assert read(path, "".join(lines), columns=["a"])[-1] == {"a": 2}
    assert read(path, "".join(lines), drift={"extra": "ignore"})[-1] == {"a": 2}
    assert read(path, "".join(lines), drift={"extra": "rescue"})[-1] == {"a": 2, "_rescued": '{"b": "3"}'}


def test_a_line_that_is_too_long_is_refused_without_reading_all_of_it(path: Path) -> None:
    with pytest.raises(RowTooLarge, match="byte 9: a row is larger than max_record_bytes = 300000"):
        read(
            path, '{"a": 1}\n{"a": "' + "x" * 3_000_000 + '"}\n', schema="a: string", limits=BatchLimits(max_record_bytes=300_000)
        )


def test_compressed_files(path: Path) -> None:
    text = "".join(f'{{"a": {n}}}\n' for n in range(1000))
    assert read(path, gzip.compress(text.encode()), block_size=100) == [{"a": n} for n in range(1000)]


def test_a_byte_order_mark_is_not_part_of_the_first_line(path: Path) -> None:
    assert read(path, b'\xef\xbb\xbf{"a": 1}\n{"a": 2}\n') == [{"a": 1}, {"a": 2}]


def test_types_that_json_has_no_form_for_are_read_from_text(path: Path) -> None:
    text = '{"d": "2024-02-29", "t": "2024-01-01T10:00:00", "n": 12.345, "m": {"x": 1}}\n'
    schema = {"d": "date32", "t": "timestamp[us]", "n": "decimal128(10, 2)", "m": "map<string, int64>"}
    (row,) = read(path, text, schema=schema)
    assert [str(row[name]) for name in ("d", "t", "n", "m")] == ["2024-02-29", "2024-01-01 10:00:00", "12.35", "[('x', 1)]"]


members = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-5, 2**70)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y"]), inner, max_size=2),
        max_leaves=3,
    ),
    max_size=3,
)
lines = st.one_of(
    members.map(lambda value: json.dumps(value).encode()),
    members.map(lambda value: json.dumps(value, ensure_ascii=False).encode()),
    st.sampled_from(
        [
            *(b"", b" ", b"{", b"}", b"{}", b"[1]", b'{"a":1}{"a":2}', b'{"a":', b"1}", b'{"a":1,"a":2}', b'{"b":"\xff"}', b"\r"),
            *(b"null", b'{"a":[%d]}' % 2**64, b'{"a":Infinity}', b'{"a":%d}' % 10**400, b"\0"),
        ]
    ),
)


@reusing_folders
@given(
    contents=st.lists(lines, max_size=8).map(b"\n".join),
    block_size=st.integers(1, 40),
    schema=st.sampled_from([None, "a: int64", "a: float64, b: string", "c: struct<x: int64>"]),
    columns=st.sampled_from([None, ["a"], ["c", "a"]]),
)
@example(contents=b'{"a":1}{"b":{}\n{"a":2}', block_size=3, schema=None, columns=None)
def test_cuts_and_the_way_of_parsing_do_not_matter(
    tmp_path: Path, contents: bytes, block_size: int, schema: str | None, columns: list[str] | None
) -> None:
    path = tmp_path / "any.jsonl"
    given_schema = (
        schema if columns is None else f"a: int64, c: struct<x: int64>{', ' + schema if schema and schema[0] == 'b' else ''}"
    )
    whole = routed(path, contents, schema=given_schema, columns=columns)
    cut = routed(path, contents, block_size, schema=given_schema, columns=columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "fast_parser", lambda types, is_open: None)
        slow = routed(path, contents, schema=given_schema, columns=columns)

    def without_lines(result: tuple[list[Any], list[Any]]) -> Any:
        return result[0], sorted((bad.position, bad.column or "", bad.reason, bad.raw) for bad in result[1])

    assert without_lines(cut) == without_lines(whole)
    assert without_lines(slow) == without_lines(whole)


def test_it_is_splittable(path: Path) -> None:
    path.write_text("".join(json.dumps({"n": n, "s": "x" * (n % 7)}) + "\n" * (1 + n % 2) for n in range(40)))
    assert_reader_is_splittable(scan_reader_of(ScanReader(JsonLinesFormat())), str(path))


def test_columns_come_as_arrow_has_them(path: Path) -> None:
    path.write_text('{"a": 1, "l": [1.5], "m": {"x": true}}\n')
    schema = scan_table(ScanReader(JsonLinesFormat()), path).schema
    assert schema == pa.schema([("a", pa.int64()), ("l", pa.list_(pa.float64())), ("m", pa.struct([("x", pa.bool_())]))])


def test_missing_columns_are_no_error_where_nobody_can_tell(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"b": 1}\n')
    with pytest.raises(MissingUntold, match="nullable=False"):
        scan_table(ScanReader(JsonLinesFormat(), schema="a: int64", drift={"missing": "error"}), tmp_path / "a.jsonl")
    counted = ScanReader(JsonLinesFormat(), columns=[], drift={"missing": "error"})
    assert scan_table(counted, tmp_path / "a.jsonl").num_rows == 2
