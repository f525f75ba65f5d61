from __future__ import annotations

import datetime
import json
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.testing import OperatorTask, run_operator
from operators import JsonLinesWriter
from operators.sinks.errors import TypeNotWritable, ValueNotWritable
from tests.operators.sinks.tables import ROWS, TEXTS, cut, written

NAME = "part-000000-0000.jsonl"
NESTED = pa.schema(
    {
        "lists": pa.list_(pa.list_(pa.float64())),
        "of": pa.struct({"text": pa.string(), "within": pa.struct({"n": pa.list_(pa.int64())})}),
        "map": pa.map_(pa.string(), pa.list_(pa.string())),
        "pair": pa.list_(pa.int64(), 2),
    }
)
REALS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
NESTED_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "lists": st.none() | st.lists(st.none() | st.lists(REALS, max_size=3), max_size=3),
            "of": st.none()
            | st.fixed_dictionaries(
                {
                    "text": TEXTS,
                    "within": st.none() | st.fixed_dictionaries({"n": st.none() | st.lists(st.integers(-9, 9), max_size=3)}),
                }
            ),
            "map": st.none() | st.dictionaries(st.text(max_size=3), st.none() | st.lists(TEXTS, max_size=2), max_size=3),
            "pair": st.none() | st.lists(st.none() | st.integers(-9, 9), min_size=2, max_size=2),
        }
    ),
    max_size=8,
)


def objects(files: dict[str, bytes]) -> list[Any]:
    def constant(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    return [json.loads(line, parse_constant=constant) for data in files.values() for line in data.decode().split("\n")[:-1]]


def shown(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.isoformat("T", "microseconds")
    return value.isoformat() if isinstance(value, datetime.date) else value


@given(ROWS, st.integers(1, 5))
def test_python_reads_it_back(rows: list[dict[str, Any]], at: int) -> None:
    found = objects(written(JsonLinesWriter("out"), *cut(rows, at)))
    assert found == [{name: shown(value) for name, value in row.items()} for row in rows]
    assert all(isinstance(row["real"], float | None) for row in found)


@given(NESTED_ROWS, st.integers(1, 5))
def test_lists_structs_and_maps(rows: list[dict[str, Any]], at: int) -> None:
    pairs = [{**row, "map": None if row["map"] is None else list(row["map"].items())} for row in rows]
    assert objects(written(JsonLinesWriter("out"), *cut(pairs, at, NESTED))) == rows


def test_lines_as_they_are() -> None:
    batch = pa.record_batch(
        {
            'a "b"': ["é\u2028", None],
            "at": pa.array([datetime.datetime(2026, 1, 31, 11, tzinfo=datetime.UTC), None], pa.timestamp("s", "Asia/Tokyo")),
            "price": pa.array([3, None], pa.int32()).cast(pa.decimal128(12, 2)),
            "span": pa.array([2, None], pa.duration("ms")),
            "real": [1e300, 2.0],
            "none": pa.nulls(2),
        }
    )
    assert written(JsonLinesWriter("out"), batch)[NAME].decode().split("\n") == [
        '{"a \\"b\\"":"é\u2028","at":"2026-01-31T11:00:00Z","price":3.00,"span":2,"real":1e+300,"none":null}',
        '{"a \\"b\\"":null,"at":null,"price":null,"span":null,"real":2.0,"none":null}',
        "",
    ]


def test_rows_without_columns() -> None:
    batch = pa.record_batch({"a": pa.array([{}, None], pa.struct([]))})
    assert written(JsonLinesWriter("out"), batch)[NAME] == b'{"a":{}}\n{"a":null}\n'


def test_full_files_and_folders() -> None:
    batch = pa.record_batch({"a": ["x", "y", "x"], "n": [1, 2, 3]})
    assert written(JsonLinesWriter("out", partition_columns=["a"], max_file_rows=1), batch) == {
        f"a=x/{NAME}": b'{"n":1}\n',
        "a=x/part-000000-0000_000001.jsonl": b'{"n":3}\n',
        f"a=y/{NAME}": b'{"n":2}\n',
    }


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_numbers_that_are_none(value: str) -> None:
    batch = pa.record_batch({"a": [1, 2], "of": [{"b": [0.5]}, {"b": [None, float(value)]}]})
    writer = JsonLinesWriter[Any]("out")
    with OperatorTask(writer) as task:
        task.begin_window()
        with pytest.raises(ValueNotWritable) as caught:
            writer.write_batch(batch)
    assert str(caught.value).startswith(f"JsonLinesWriter: column 'of.b[]' has {value}, which JSON does not support")
    assert task.files.files == {}


def test_a_row_without_a_form_can_be_left_out(tmp_path: Any) -> None:
    found = run_operator(JsonLinesWriter(str(tmp_path), on_error="skip"), {"input": [1.0, float("nan"), 2.5]})
    assert found.skipped == 1
    assert [file.read_text() for file in tmp_path.glob("*.jsonl")] == ['{"value":1.0}\n{"value":2.5}\n']


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        (pa.binary(), "binary"),
        (pa.list_(pa.struct({"a": pa.binary(2)})), "fixed_size_binary[2]"),
        (pa.map_(pa.int8(), pa.int8()), "map<int8, int8>"),
        (pa.map_(pa.string(), pa.binary()), "binary"),
    ],
)
def test_types_without_a_form(kind: pa.DataType, part: str) -> None:
    batch = pa.record_batch({"a": [1], "b": pa.nulls(1, kind)})
    with OperatorTask(JsonLinesWriter("out")) as task, pytest.raises(TypeNotWritable, match=re.escape(f"'b' is of type {part}")):
        task.give("input", batch, "batch")
    assert task.files.files == {}
