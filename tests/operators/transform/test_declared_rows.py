"""Rows of functions with declared columns: every value as it is, or an error that names the function."""

from __future__ import annotations

import dataclasses
import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG
from dagflow.errors import RecordsWithoutColumns, RowNotAsDeclared
from dagflow.ledger import read_dataset
from dagflow.planning.steps import make_plan
from dagflow.testing import check_operator, run_dag, run_operator
from operators import Count, FlatMap, Map, ParquetWriter, col
from tests.tiers import examples


class Typed(TypedDict):
    word: str
    n: int | None


class Named(NamedTuple):
    word: str
    n: int | None


@dataclasses.dataclass
class Data:
    word: str
    n: int | None


@attrs.frozen
class Row:
    word: str
    n: int | None


def typed(word: str) -> Typed:
    return {"word": word, "n": len(word)}


def several(word: str) -> list[Typed]:
    return [typed(word)] * 2


ROWS = [{"word": "a", "n": 1}, {"word": "bcd", "n": 3}]


@pytest.mark.parametrize("columns", ["word: string, n: int64", {"word": str, "n": int}, {"n": "int64", "word": str}, Typed, Row])
def test_columns_are_declared_in_any_spelling(columns: Any) -> None:
    found = run_operator(Map(lambda word: {"word": word, "n": len(word)}, columns=columns), {"input": ["a", "bcd"]})["output"]
    assert found == ROWS


@pytest.mark.parametrize("kind", [Named, Data, Row])
def test_objects_with_fields_are_rows(kind: Any) -> None:
    assert run_operator(Map(lambda word: kind(word, len(word)), columns=kind), {"input": ["a", "bcd"]})["output"] == ROWS


def test_the_annotation_of_a_typed_dict_declares_its_columns() -> None:
    assert Map(typed).emitted_forms("output", "stream") == {"batch"}
    assert run_operator(Map(typed), {"input": ["a", "bcd"]})["output"] == ROWS
    assert run_operator(FlatMap(several), {"input": ["a", "bcd"]})["output"] == [ROWS[0], ROWS[0], ROWS[1], ROWS[1]]
    assert Map(len).emitted_forms("output", "stream") == {"record"}


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"word": "a"}, "it lacks the column 'n'"),
        ({"word": "a", "n": 1, "m": 2}, "it has the column 'm', which is not declared"),
        ({"word": 1, "n": 1}, "word=1 is not of the type string"),
        ({"word": "a", "n": 1.0}, "n=1.0 is not of the type int64"),
        ({"word": "a", "n": True}, "n=True is not of the type int64"),
        ({"word": "a", "n": 1 << 63}, "is not of the type int64"),
        ({"word": "\ud800", "n": 1}, "is not of the type string"),
        (3, "it has no fields"),
        (None, "it has no fields"),
    ],
)
def test_another_row_is_a_bad_record_and_costs_no_other(result: Any, told: str) -> None:
    results = [{"word": "a", "n": None}, result, {"word": "b", "n": 2}]
    with pytest.raises(RowNotAsDeclared) as caught:
        run_operator(Map(lambda at: results[at], columns=Typed), {"input": [0, 1, 2]})
    assert told in str(caught.value)
    assert "test_declared_rows.py:" in str(caught.value)
    found = run_operator(Map(lambda at: results[at], columns=Typed, on_error="route"), {"input": [0, 1, 2]})
    assert found["output"] == [results[0], results[2]]
    assert [told in error.error for error in found["errors"]] == [True]


NOON = datetime.datetime(2026, 1, 1, 12)  # noqa: DTZ001  # as columns without a time zone have it
VALUES: list[tuple[str, list[Any], list[Any]]] = [
    ("int8", [-128, 127], [128, -129, "1", 1.0]),
    ("uint16", [0, 65535], [-1, 65536]),
    ("float64", [0.1, math.inf, 3, 1 << 53], [(1 << 53) + 1, "x", True, Decimal(1)]),
    ("float32", [0.5, 3], [0.1, (1 << 24) + 1]),
    ("bool", [True, False], [1, "true"]),
    ("binary", [b"x"], ["x"]),
    ("date32", [NOON.date()], [NOON, 3]),
    ("timestamp[us]", [NOON], [NOON.replace(tzinfo=datetime.UTC), NOON.date(), 5]),
    ("timestamp[us, tz=UTC]", [NOON.replace(tzinfo=datetime.UTC)], [NOON]),
    ("decimal128(5, 2)", [Decimal("1.5"), 3], [Decimal("1.234"), Decimal(10**5), 1.5]),
    ("list<int64>", [[1, 2], []], [["a"], 3]),
    ("string", ["", "ß"], [b"x", 1]),
]


@pytest.mark.parametrize(("kind", "right", "wrong"), VALUES, ids=[kind for kind, *_ in VALUES])
def test_a_column_gives_values_back_or_refuses_them(kind: str, right: list[Any], wrong: list[Any]) -> None:
    made = Map(lambda value: {"v": value}, columns={"v": kind}, on_error="skip")
    given_values = [*right, *wrong, None]
    assert [row["v"] for row in run_operator(made, {"input": given_values}).get("output", [])] == [*right, None]


@given(st.lists(st.integers(-(2**65), 2**65) | st.floats() | st.text() | st.none() | st.booleans()))
def test_no_value_becomes_another(values: list[Any]) -> None:
    for kind in ("int64", "float64", "string", "bool"):
        made = Map(lambda value: {"v": value}, columns={"v": kind}, on_error="skip")
        found = [row["v"] for row in run_operator(made, {"input": values}).get("output", [])]
        left = iter(values)
        assert all(any(value == each or (value != value and each != each) for each in left) for value in found)


def test_the_laws_of_operators() -> None:
    check_operator(Map(typed), st.text("ab", max_size=3), port="input", max_examples=examples(15))


def test_columns_of_an_expression_are_refused() -> None:
    with pytest.raises(ValueError, match="an expression has one column"):
        Map(col("a") + 1, columns="a: int64").check()
    with pytest.raises(ValueError, match="set"):
        Map(len, columns={"a": set})


def test_rows_reach_aggregates_and_writers_with_their_types(runner: str, tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        made = Map(lambda row: {"shop": row["shop"], "half": row["n"] / 2}, columns={"shop": str, "half": float})
        rows = dag.read(f"{tmp_path}/in.csv").to(made)
        rows.to(ParquetWriter(f"{tmp_path}/rows"))
        rows.to(Count(by=("shop", "half"))).to(ParquetWriter(f"{tmp_path}/counts"))

    (tmp_path / "in.csv").write_text("shop,n\na,1\nb,2\na,1\n")
    run_dag(populate_dag, {"run_folder": f"{tmp_path}/run"}, runner=runner)
    rows = read_dataset(f"{tmp_path}/rows").to_table()
    assert rows.schema.types == [pa.string(), pa.float64()]
    assert sorted(map(str, rows.to_pylist())) == sorted(
        map(str, [{"shop": "a", "half": 0.5}, {"shop": "b", "half": 1.0}, {"shop": "a", "half": 0.5}])
    )
    counts = read_dataset(f"{tmp_path}/counts").to_table().to_pylist()
    assert {(row["shop"], row["half"]): row["value"] for row in counts} == {("a", 0.5): 2, ("b", 1.0): 1}


def test_the_plan_knows_the_columns(tmp_path: Path) -> None:
    dag = DAG()
    dag.read(f"{tmp_path}/*.csv").to(Map(typed)).to(ParquetWriter(str(tmp_path / "out")))
    plan = make_plan(dag)
    (port,) = (each for each in plan.dag.types if str(each) == "map.output")
    assert plan.dag.columns().behind(port).types == {"word": "string", "n": "int64"}


def test_dicts_without_declared_columns_are_refused_with_the_line_to_write(tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.read(f"{tmp_path}/in.csv").to(Map(lambda row: {"n": 3, "tags": [1]})).to(ParquetWriter(f"{tmp_path}/rows"))

    (tmp_path / "in.csv").write_text("n\n3\n")
    with pytest.raises(RecordsWithoutColumns) as caught:
        run_dag(populate_dag, {"run_folder": f"{tmp_path}/run"})
    assert 'Map(function, columns="n: int, tags: …")' in str(caught.value)
    assert "test_declared_rows.py:" in str(caught.value)


def test_objects_of_a_class_need_no_annotation(tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.read(f"{tmp_path}/in.csv").to(Map(lambda row: Data("a", row["n"]))).to(ParquetWriter(f"{tmp_path}/rows"))

    (tmp_path / "in.csv").write_text("n\n3\n")
    run_dag(populate_dag, {"run_folder": f"{tmp_path}/run"})
    (row,) = read_dataset(f"{tmp_path}/rows").to_table().to_pylist()
    assert [*row.values()] == ["a", 3]
