"""`Unnest` against DuckDB: lists of any kind, in any batches."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import StreamColumns
from dagflow.errors import ColumnNotThere, NotAList
from dagflow.testing import OperatorTask, run_operator
from operators import Unnest
from operators.transform import unnest

LISTS = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=4))
TYPES = [pa.list_(pa.int64()), pa.large_list(pa.int64())]


def batch_of(lists: list[Any], kind: pa.DataType = TYPES[0]) -> pa.RecordBatch:
    """Return rows with numbers, so that each is told from the others."""
    return pa.record_batch({"n": list(range(len(lists))), "x": pa.array(lists, kind), "z": ["z"] * len(lists)})


@given(st.lists(LISTS, max_size=8), st.booleans(), st.sampled_from(TYPES), st.integers(0, 3))
def test_rows_are_those_of_sql(lists: list[Any], outer: bool, kind: pa.DataType, offset: int) -> None:
    batch = batch_of([[7], *lists], kind).slice(min(offset, 1))
    given = "CASE WHEN coalesce(len(x), 0) = 0 THEN [NULL] ELSE x END" if outer else "x"
    with duckdb.connect() as connection:
        connection.register("rows", pa.Table.from_batches([batch]))
        wanted = connection.sql(f"SELECT n, unnest({given}) AS x, z FROM rows").fetchall()
    found = run_operator(Unnest("x", outer=outer), {"input": [batch]}).get("output", [])
    assert [tuple(row.values()) for row in found] == wanted


def test_fixed_sizes_and_structs() -> None:
    pairs = pa.array([[{"a": 1}, {"a": 2}], None], pa.list_(pa.struct([("a", pa.int8())]), 2))
    found = run_operator(Unnest("x", outer=True), {"input": [pa.record_batch({"x": pairs})]})["output"]
    assert found == [{"x": {"a": 1}}, {"x": {"a": 2}}, {"x": None}]


def test_rows_that_are_taken_back_take_back_theirs() -> None:
    with OperatorTask(Unnest("x")) as task:
        task.give("input", batch_of([[1, 2]]))
        task.give("input", batch_of([[1, 2]]), retracts=True)
    assert task.emitted["output"] == task.retracted["output"] == [{"n": 0, "x": 1, "z": "z"}, {"n": 0, "x": 2, "z": "z"}]


def test_batches_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unnest, "MAX_ROWS", 2)
    found = run_operator(Unnest("x"), {"input": [batch_of([[1, 2, 3], [4, 5]])]})["output"]
    assert [row["x"] for row in found] == [1, 2, 3, 4, 5]


def test_what_it_does_not_take() -> None:
    with pytest.raises(NotAList, match="the values of column 'z' are string, not lists"):
        run_operator(Unnest("z"), {"input": [batch_of([[1]])]})
    with pytest.raises(ColumnNotThere, match="'y'"):
        run_operator(Unnest("y"), {"input": [batch_of([[1]])]})


def test_columns_behind_it() -> None:
    before = StreamColumns({"n": "int64", "x": "list<item: string>", "y": None}, [["n"]])
    assert Unnest("x").result_columns("output", lambda port: before) == StreamColumns({"n": "int64", "x": "string", "y": None})
    assert Unnest("y").result_columns("output", lambda port: StreamColumns()) == StreamColumns()
