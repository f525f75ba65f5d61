"""`Sort` against DuckDB: any rows of any types, in any chunks, some of them taken back; and the order of what sinks write."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import DAG, Window
from dagflow.errors import ChangesRefused, NotSupported, ValueColumnRefused
from dagflow.ledger import committed_files
from dagflow.planning.steps import make_plan
from dagflow.testing import Collector, OperatorTask, check_operator, run_dag, run_operator
from operators import Console, CsvWriter, JsonLinesWriter, ParquetWriter, Sort
from operators.aggregate.sort import SortResult
from tests.tiers import examples


@attrs.frozen
class Item:
    a: float | None
    b: str


NAN = float("nan")
ROWS = st.fixed_dictionaries(
    {
        "a": st.sampled_from([0.0, 1.5, -2.5, NAN, float("inf"), None]),
        "b": st.sampled_from(["", "a", "B", "ß", None]),
        "c": st.integers(0, 3) | st.none(),
    }
)
SCHEMA = pa.schema([("a", pa.float64()), ("b", pa.string()), ("c", pa.int32())])
ORDERS = st.permutations(["a", "b", "c"]).flatmap(
    lambda names: st.tuples(*(st.sampled_from([name, f"-{name}"]) for name in names[: 1 + len(names) % 3 + 1]))
)


def batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def in_order(rows: list[dict[str, Any]], by: tuple[str, ...], limit: int | None, nulls: str) -> list[str]:
    """Return the rows in the order that DuckDB gives them; those that are equal in it by all columns."""
    names = [name.removeprefix("-") for name in by]
    terms = [f"{name.removeprefix('-')} {'DESC' if name[0] == '-' else 'ASC'} NULLS {nulls}" for name in by]
    for name in sorted({"a", "b", "c"} - {*names}):
        terms += [f"{name} IS NULL", f"{name} ASC"]
    table = pa.Table.from_batches([batch(rows)])
    with duckdb.connect() as connection:
        connection.register("rows", table)
        found = connection.sql(f"SELECT * FROM rows ORDER BY {', '.join(terms)} LIMIT {limit or len(rows) + 1}")
        return [str(row) for row in found.to_arrow_table().to_pylist()]


@given(
    st.lists(st.lists(ROWS, max_size=8), min_size=1, max_size=4),
    ORDERS,
    st.sampled_from([None, 1, 3]),
    st.sampled_from(["first", "last"]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
@settings(max_examples=examples(100), deadline=None)
def test_rows_stand_in_the_order_of_sql(
    windows: list[list[dict[str, Any]]], by: tuple[str, ...], limit: int | None, nulls: str, takes_back: bool, rng: Any
) -> None:
    operator: Any = SortResult(by, limit=limit, nulls=nulls)
    standing: list[dict[str, Any]] = []
    with OperatorTask(operator, in_batches=True) as task:
        operator.input.is_changing = takes_back
        for window in windows:
            standing += window
            task.give("input", batch(window), "batch")
            gone = [standing.pop(rng.randrange(len(standing))) for _ in range(min(2, len(standing)))] if takes_back else []
            if gone:
                task.give("input", batch(gone), "batch", retracts=True)
            emitted = task.end_window().get("output", [])
            assert [*map(str, emitted)] == in_order(standing, by, limit, nulls)


@given(st.lists(st.lists(ROWS, max_size=8), min_size=1, max_size=4), ORDERS, st.sampled_from([None, 1, 3]))
@settings(max_examples=examples(60), deadline=None)
def test_changes_come_to_the_rows_that_stand(windows: list[list[dict[str, Any]]], by: tuple[str, ...], limit: int | None) -> None:
    given_windows = [Window([batch(window)]) for window in windows]
    emitted = run_operator(Sort(by, limit=limit), {"input": given_windows}, form="batch")
    standing = Counter(map(str, emitted["output"]))
    standing.subtract(map(str, emitted.retracted.get("output", [])))
    wanted = in_order([row for window in windows for row in window], by, limit, "last")
    assert +standing == Counter(wanted)
    assert all(count >= 0 for count in standing.values())


@pytest.mark.parametrize("limit", [None, 2])
def test_the_laws_of_operators(limit: int | None) -> None:
    items = st.builds(Item, st.sampled_from([0.0, 1.5, None]), st.sampled_from(["", "a", "b"]))
    check_operator(Sort[Item](("-a", "b"), limit=limit), items, port="input", max_examples=examples(15))


def written(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(committed_files(str(folder))) for line in Path(path).read_text().splitlines()]


def sales(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    lines = [f"{(n * 7 + number) % 13},s{(n * 5) % 9}" for n in range(80)]
    (folder / f"{number}.csv").write_text("\n".join(["price,shop", *lines]) + "\n")


def wanted(folder: Path, limit: int | None) -> list[dict[str, Any]]:
    found = duckdb.sql(f"SELECT * FROM read_csv('{folder}/*.csv') ORDER BY price DESC, shop LIMIT {limit or 1 << 40}")
    return found.to_arrow_table().to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("limit", [None, 10])
def test_the_file_of_a_result_is_in_order_after_each_launch(runner: str, tmp_path: Path, limit: int | None) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.read(f"{tmp_path}/in/*.csv").to(Sort(["-price", "shop"], limit=limit)).to(JsonLinesWriter(f"{tmp_path}/out"))

    for number in range(2):
        sales(tmp_path / "in", number)
        run_dag(populate_dag, {"run_folder": f"{tmp_path}/run"}, runner=runner)
        assert written(tmp_path / "out") == wanted(tmp_path / "in", limit)


def test_files_by_name_are_in_order_where_there_are_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operators.aggregate.ranked_rows.ROWS_OF_A_BATCH", 16)

    def populate_dag(dag: DAG, conf: Any) -> None:
        rows = dag.read(f"{tmp_path}/in/*.csv").to(Sort(["-price", "shop"]))
        rows.to(JsonLinesWriter(f"{tmp_path}/out", max_file_bytes=500))

    sales(tmp_path / "in", 1)
    run_dag(populate_dag, {"run_folder": f"{tmp_path}/run"})
    assert len(committed_files(f"{tmp_path}/out")) > 3
    assert written(tmp_path / "out") == wanted(tmp_path / "in", None)


def test_each_of_several_sinks_has_the_order(tmp_path: Path) -> None:
    """Then the rows are kept once more before each sink, in their order."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        rows = dag.read(f"{tmp_path}/in/*.csv").to(Sort(["-price", "shop"], limit=7))
        rows.to(JsonLinesWriter(f"{tmp_path}/out"))
        rows.to(CsvWriter(f"{tmp_path}/csv"))
        rows.to(Collector[Any]())

    for number in range(2):
        sales(tmp_path / "in", number)
        run_dag(populate_dag, {"run_folder": f"{tmp_path}/run"})
        assert written(tmp_path / "out") == wanted(tmp_path / "in", 7)
        (path,) = committed_files(f"{tmp_path}/csv")
        lines = [f"{row['price']},{row['shop']}" for row in wanted(tmp_path / "in", 7)]
        assert Path(path).read_text().splitlines() == ["price,shop", *lines]


def sorted_into(sink: Any, tmp_path: Path) -> DAG:
    dag = DAG()
    dag.read(f"{tmp_path}/*.csv", schema="price: int64, shop: string").to(Sort("-price")).to(sink)
    return dag


def test_sinks_that_append_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ChangesRefused, match="'sort' takes back rows"):
        make_plan(sorted_into(ParquetWriter(str(tmp_path / "out"), mode="append"), tmp_path))


def test_partitions_that_are_kept_apart_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotSupported, match="cannot have the order of 'sort'"):
        make_plan(sorted_into(ParquetWriter(str(tmp_path / "out"), partition_columns=["shop"]), tmp_path))


def test_the_result_is_kept_once(tmp_path: Path) -> None:
    plan = make_plan(sorted_into(ParquetWriter(str(tmp_path / "out")), tmp_path))
    assert type(plan.dag.nodes["sort"].operator) is SortResult
    assert not [name for name in plan.dag.nodes if name.endswith(".current")]
    assert type(make_plan(sorted_into(Console(), tmp_path)).dag.nodes["sort"].operator) is Sort


@pytest.mark.parametrize(("by", "told"), [([], "must name columns"), (["-"], "must name columns"), (["a", "-a"], "'a' twice")])
def test_orders_that_say_nothing_are_refused(by: list[str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Sort(by).check()


def test_a_column_without_an_order_is_refused() -> None:
    with pytest.raises(ValueColumnRefused):
        run_operator(Sort("tags"), {"input": [pa.record_batch({"tags": [["a"], ["b"]]})]})
