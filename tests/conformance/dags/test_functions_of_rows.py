"""Functions that select rows without a class: these keep their columns, whatever stands behind them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dagflow import DAG
from dagflow.errors import OperatorFailed
from dagflow.planning.steps import make_plan
from dagflow.testing import run_dag
from operators import Expect, Filter, GroupBy, Map, ParquetWriter, Split, agg


def large(row: dict[str, Any]) -> bool:
    return bool(row["n"] > 1)


def split(**options: Any) -> Callable[[Any], Any]:
    return lambda rows: (rows.to(made := Split({"large": large}, **options)), made.outputs["large"])[1]


SELECTIONS: dict[str, Callable[[Any], Any]] = {
    "Filter": lambda rows: rows.to(Filter(large)),
    "two of them": lambda rows: rows.to(Filter(large), "first").to(Filter(lambda row: row["n"] < 10), "second"),
    "Expect": lambda rows: rows.to(Expect(large, on_breach="warn", drop=True)),
    "Split": split(),
    "Split, all": split(matches="all"),
}


@pytest.mark.parametrize("schema", [None, "shop: string, n: int64, price: decimal128(9, 2)"])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_rows_keep_their_columns(selection: str, schema: str | None, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("shop,n,price\nx,1,0.10\nx,2,0.20\ny,3,\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        rows = SELECTIONS[selection](dag.read(tmp_path / "in.csv", schema=schema))
        rows.to(ParquetWriter[Any](str(tmp_path / "rows")), "rows")
        rows.to(GroupBy("shop", n=agg.sum("n")), "totals").to(ParquetWriter[Any](str(tmp_path / "totals")), "table")
        rows.to(Map(lambda row: row["n"] * 2)).to(ParquetWriter[Any](str(tmp_path / "doubles")), "doubles")

    run_dag(populate_dag, {})
    with duckdb.connect() as database:
        rows = database.execute(f"SELECT shop, n, price::VARCHAR FROM '{tmp_path}/rows/*.parquet' ORDER BY n").fetchall()
        assert rows == [("x", 2, "0.20" if schema else rows[0][2]), ("y", 3, None)]
        totals = database.execute(f"SELECT shop, n FROM '{tmp_path}/totals/current/*.parquet' ORDER BY n").fetchall()
        assert totals == [("x", 2), ("y", 3)]
        doubles = database.execute(f"SELECT value FROM '{tmp_path}/doubles/*.parquet' ORDER BY value").fetchall()
        assert doubles == [(4,), (6,)]


def test_records_stay_records_where_nothing_needs_their_columns(tmp_path: Path) -> None:
    dag = DAG()
    dag.read(tmp_path / "in.csv", "csv").to(Filter(large)).to(Map(lambda row: row["n"])).to(ParquetWriter[Any](str(tmp_path)))
    handled = {str(port): form for port, form in make_plan(dag).forms.handled.items()}
    assert handled["filter.input"] != "batch"


@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_a_row_for_which_the_function_raises_is_named_or_skipped(on_error: Any, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("shop,n\nx,1\nx,\ny,3\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.read(tmp_path / "in.csv").to(Filter(large, on_error=on_error)).to(ParquetWriter[Any](str(tmp_path / "rows")))

    if on_error == "fail":
        with pytest.raises(OperatorFailed, match=r"TypeError(.|\n)*'n': None"):
            run_dag(populate_dag, {})
        return
    report = run_dag(populate_dag, {})
    assert report.operators["filter"].errors == 1
    with duckdb.connect() as database:
        assert database.execute(f"SELECT n FROM '{tmp_path}/rows/*.parquet'").fetchall() == [(3,)]
