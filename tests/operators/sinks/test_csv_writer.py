from __future__ import annotations

import csv
import datetime
import io
import re
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.testing import OperatorTask, run_operator
from operators import CsvWriter
from operators.sinks.errors import ColumnsChanged, TypeNotWritable, ValueNotWritable
from tests.operators.sinks.tables import ROWS, SCHEMA, cut, written

NAME = "part-000000-0000.csv"


def shown(value: Any, null: str) -> str:
    if value is None:
        return null
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ", "microseconds")
    return str(value)


@given(ROWS, st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["minimal", "all"]), st.booleans(), st.integers(1, 5))
def test_python_reads_it_back(rows: list[dict[str, Any]], delimiter: str, quoting: Any, crlf: bool, at: int) -> None:
    writer = CsvWriter[Any]("out", delimiter=delimiter, quoting=quoting, terminator="\r\n" if crlf else "\n")
    files = written(writer, *cut(rows, at))
    if not rows:
        assert files == {}
        return
    found = list(csv.reader(io.StringIO(files[NAME].decode(), newline=""), delimiter=delimiter, strict=True))
    assert found[0] == SCHEMA.names
    assert [[v for k, v in zip(SCHEMA.names, row, strict=True) if k != "real"] for row in found[1:]] == [
        [shown(row[k], "") for k in SCHEMA.names if k != "real"] for row in rows
    ]
    assert [None if row[2] == "" else float(row[2]) for row in found[1:]] == [row["real"] for row in rows]


@given(ROWS, st.integers(1, 5))
def test_arrow_tells_empty_texts_from_no_values(rows: list[dict[str, Any]], at: int) -> None:
    files = written(CsvWriter("out"), *cut(rows, at))
    if not rows:
        return
    table = pyarrow.csv.read_csv(
        io.BytesIO(files[NAME]),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=SCHEMA, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        ),
    )
    assert table.to_pylist() == rows


def test_quotes_only_where_they_must_be() -> None:
    batch = pa.record_batch({"a b": ["x y", "x,y", 'x"y', "x\ny", "", None, "#", "'"], "c;d,e": [1, 2, 3, 4, 5, 6, None, 8]})
    assert written(CsvWriter("out"), batch)[NAME].decode() == (
        'a b,"c;d,e"\nx y,1\n"x,y",2\n"x""y",3\n"x\ny",4\n"",5\n,6\n#,\n\',8\n'
    )


def test_all_are_quoted_but_no_value() -> None:
    batch = pa.record_batch({"a": ["x", None, ""], "n": [1, None, 3]})
    assert written(CsvWriter("out", quoting="all"), batch)[NAME] == b'"a","n"\n"x","1"\n,\n"","3"\n'


def test_another_quote_delimiter_null_and_no_header() -> None:
    batch = pa.record_batch({"a": ["it's", None, "NULL", "]^-\\"], "n": [1, None, 3, 4]})
    writer = CsvWriter[Any]("out", header=False, quote="'", delimiter="^", null="NULL", suffix=".txt")
    assert list(written(writer, batch).values()) == [b"'it''s'^1\nNULL^NULL\n'NULL'^3\n']^-\\'^4\n"]


def test_times_and_decimals() -> None:
    zoned = pa.array([datetime.datetime(2026, 1, 31, 11, tzinfo=datetime.UTC)], pa.timestamp("ms", "Europe/Stockholm"))
    batch = pa.record_batch(
        {
            "at": zoned,
            "time": pa.array([datetime.time(1, 2, 3)], pa.time32("s")),
            "span": pa.array([datetime.timedelta(seconds=2)], pa.duration("ms")),
            "price": pa.array([150], pa.int32()).cast(pa.decimal128(12, 2)),
            "kind": pa.array(["x"]).dictionary_encode(),
            "none": pa.nulls(1),
        }
    )
    rows = written(CsvWriter("out", header=False), batch)[NAME]
    assert rows == b"2026-01-31 11:00:00.000Z,01:02:03,2000,150.00,x,\n"


def test_each_file_has_a_header() -> None:
    batches = cut([{"n": n} for n in range(5)], 2, pa.schema({"n": pa.int64()}))
    assert written(CsvWriter("out", max_file_rows=3), *batches) == {
        NAME: b"n\n0\n1\n2\n",
        "part-000000-0000_000001.csv": b"n\n3\n4\n",
    }
    assert list(written(CsvWriter("out", max_file_bytes=5), *batches).values()) == [b"n\n0\n1\n", b"n\n2\n3\n", b"n\n4\n"]


def test_folders() -> None:
    batch = pa.record_batch({"a": ["x", "y", "x"], "n": [1, 2, 3]})
    with OperatorTask(CsvWriter("out", partition_columns=["a"], max_open_files=1)) as task:
        task.give("input", batch, "batch")
        task.give("input", batch, "batch")
    assert task.files.contents == {f"a=x/{NAME}": b"n\n1\n3\n1\n3\n", f"a=y/{NAME}": b"n\n2\n2\n"}
    assert task.files.most_open == 1


def test_columns_that_change() -> None:
    one, other = pa.record_batch({"a": [1]}), pa.record_batch({"a": [1], "b": [2]})
    with OperatorTask(CsvWriter("out")) as task:
        task.give("input", one, "batch")
        with pytest.raises(ColumnsChanged, match=re.escape("column 'b' (int64) is new")):
            task.give("input", other, "batch")
    assert written(CsvWriter("out", on_schema_change="new_file", max_file_rows=2), one, other, one, one, other) == {
        NAME: b"a\n1\n1\n",
        "part-000000-0000_000001.csv": b"a,b\n1,2\n1,2\n",
        "part-000000-0000_000002.csv": b"a\n1\n",
    }


@pytest.mark.parametrize("kind", [pa.binary(), pa.list_(pa.int8()), pa.struct({"a": pa.int8()})])
def test_types_without_a_form(kind: pa.DataType) -> None:
    batch = pa.record_batch({"a": [1], "b": pa.nulls(1, kind)})
    with (
        OperatorTask(CsvWriter("out")) as task,
        pytest.raises(TypeNotWritable, match=f"column 'b' is of type {re.escape(str(kind))}"),
    ):
        task.give("input", batch, "batch")
    assert task.files.files == {}


@pytest.mark.parametrize(
    ("properties", "values", "told"),
    [
        ({"quoting": "none"}, ["x", "a,b"], "column 'a' has 'a,b', which CSV without quotes does not support"),
        ({"quoting": "none"}, [""], "column 'a' has '', which CSV without quotes does not support"),
        ({}, ["x", None], "column 'a' has nothing in a row of its own, which CSV does not support"),
    ],
)
def test_values_without_a_form(properties: dict[str, Any], values: list[Any], told: str) -> None:
    writer = CsvWriter[Any]("out", **properties)
    with OperatorTask(writer) as task:
        task.begin_window()
        with pytest.raises(ValueNotWritable, match=re.escape(told)):
            writer.write_batch(pa.record_batch({"a": pa.array(values, pa.string())}))
    assert task.files.files == {}


def test_a_row_without_a_form_can_be_left_out(tmp_path: Any) -> None:
    found = run_operator(CsvWriter(str(tmp_path), quoting="none", on_error="skip"), {"input": ["x", "a,b", "y"]})
    assert found.skipped == 1
    assert [file.read_text() for file in tmp_path.glob("*.csv")] == ["value\nx\ny\n"]


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"delimiter": "||"}, "delimiter is '||', and must be one character that no number, date or line end has in it"),
        ({"quote": "1"}, "quote is '1', and must be one character that no number, date or line end has in it"),
        ({"delimiter": '"'}, "delimiter and quote are both '\"'"),
        ({"null": "a,b"}, "null is 'a,b': it cannot have a delimiter, quote or line end in it"),
    ],
)
def test_properties_that_do_not_fit(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CsvWriter(**{"path": "out", **properties}).check()
