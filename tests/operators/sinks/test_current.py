"""Sinks keep the current result of a changing stream: after each launch, what SQL says of all input."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dagflow import DAG, Window
from dagflow.errors import ChangesRefused, ColumnTypeChanged, PlanMismatch
from dagflow.launching.build import build
from dagflow.ledger import Ledger, read_dataset
from dagflow.planning.view import plan_view
from dagflow.testing import run_dag, run_operator
from operators import (
    CsvWriter,
    DeltaWriter,
    FileSplitterInput,
    Filter,
    GroupBy,
    IcebergWriter,
    JsonLinesFormat,
    JsonLinesWriter,
    Map,
    ParquetFormat,
    ParquetWriter,
    RecordWriter,
    ScanReader,
    SqlWriter,
    agg,
)
from operators.aggregate.current_rows import CurrentRows
from tests.tiers import examples

Row = tuple[str, int]


def csv_rows(home: Path) -> list[Any]:
    return duckdb.sql(f"FROM read_csv('{home}/out/current/**/*.csv', hive_partitioning=true, header=true)").fetchall()


def json_rows(home: Path) -> list[Any]:
    return [
        tuple(json.loads(line).values())
        for file in (home / "out/current").glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]


def parquet_rows(home: Path) -> list[Any]:
    return duckdb.sql(f"SELECT shop, sold, most FROM '{home}/out/current/**/*.parquet'").fetchall()


def database_rows(home: Path) -> list[Any]:
    with contextlib.closing(sqlite3.connect(home / "out.db")) as connection:
        return connection.execute("SELECT shop, sold, most FROM totals").fetchall()


def delta_rows(home: Path) -> list[Any]:
    import deltalake

    rows = deltalake.DeltaTable(home / "delta").to_pyarrow_table().to_pylist()
    return [(row["shop"], row["sold"], row["most"]) for row in rows]


def catalog(home: Path) -> dict[str, str]:
    (home / "warehouse").mkdir(exist_ok=True)
    return {"type": "sql", "uri": f"sqlite:///{home}/catalog.db", "warehouse": f"file://{home}/warehouse"}


def iceberg_rows(home: Path) -> list[Any]:
    from pyiceberg.catalog.sql import SqlCatalog

    tables = SqlCatalog("default", **catalog(home))
    try:
        rows = tables.load_table("sales.totals").scan().to_arrow().to_pylist()
    finally:
        tables.engine.dispose()
    return [(row["shop"], row["sold"], row["most"]) for row in rows]


SINKS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], list[Any]]]] = {
    "csv": (lambda home: CsvWriter(home / "out"), csv_rows),
    "csv in folders": (lambda home: CsvWriter(home / "out", partition_columns=["most"]), csv_rows),
    "json": (lambda home: JsonLinesWriter(home / "out"), json_rows),
    "parquet": (lambda home: ParquetWriter(home / "out", mode="replace"), parquet_rows),
    "delta": (lambda home: DeltaWriter(home / "delta"), delta_rows),
    "delta in folders": (lambda home: DeltaWriter(home / "delta", mode="replace", partition_columns=["shop"]), delta_rows),
    "iceberg": (lambda home: IcebergWriter("sales.totals", catalog(home)), iceberg_rows),
    "sqlite": (lambda home: SqlWriter(f"sqlite:///{home}/out.db", table="totals"), database_rows),
}


def populate(home: Path, sink: Any, least: int = 0, others: tuple[Any, ...] = ()) -> Callable[[DAG, object], None]:
    def populate_dag(dag: DAG, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput([str(home / "in")], block_size=30))
        reader = dag.add_operator("reader", ScanReader[Any](JsonLinesFormat(), schema="shop: string, price: int64"))
        totals = dag.add_operator("totals", GroupBy("shop", sold=agg.count(), most=agg.max("price")))
        dag.add_operator("sink", sink)
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, totals.input)
        result = totals.output
        if least:
            few = dag.add_operator("few", Filter[Any](pc.field("most") <= least))
            dag.add_stream("groups", totals.output, few.input)
            result = few.output
        dag.add_stream("result", result, dag.operators["sink"].operator.input, *others)

    return populate_dag


def write(home: Path, number: int, rows: list[Row]) -> None:
    (home / "in").mkdir(exist_ok=True)
    (home / "in" / f"{number}.jsonl").write_text("".join(json.dumps({"shop": s, "price": p}) + "\n" for s, p in rows))


def expected(files: list[list[Row]], least: int = 0) -> Counter[Any]:
    groups: dict[str, list[int]] = {}
    for shop, price in (row for rows in files for row in rows):
        groups.setdefault(shop, []).append(price)
    return Counter((shop, len(prices), max(prices)) for shop, prices in groups.items() if not least or max(prices) <= least)


@pytest.mark.parametrize("name", SINKS)
@settings(max_examples=examples(3), deadline=None, phases=[Phase.generate])
@given(files=st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), min_size=1), min_size=1, max_size=3))
def test_each_launch_leaves_the_current_result(
    name: str, files: list[list[Row]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("current")
    make, rows_of = SINKS[name]
    for number, rows in enumerate(files):
        write(home, number, rows)
        run_dag(populate(home, make(home)), run_folder=str(home / "run"))
        found = Counter(tuple(row) for row in rows_of(home))
        assert found == expected(files[: number + 1])


@pytest.mark.parametrize("name", SINKS)
def test_a_result_becomes_empty(name: str, tmp_path: Path) -> None:
    make, rows_of = SINKS[name]
    for number, (rows, left) in enumerate([([("a", 1)], 1), ([("b", 2)], 2), ([("a", 9), ("b", 9)], 0), ([("c", 3)], 1)]):
        write(tmp_path, number, rows)
        run_dag(populate(tmp_path, make(tmp_path), least=5), run_folder=str(tmp_path / "run"))
        assert len(rows_of(tmp_path)) == left
        if (tmp_path / "out").exists():
            assert read_dataset(tmp_path / "out").count_rows() == left


def added(populate_dag: Callable[[DAG, object], None]) -> list[str]:
    plan = plan_view(build(populate_dag).plan(), "current")
    return [operator.name for operator in plan.operators if "." in operator.name]


def test_a_result_that_a_sink_alone_gets_is_kept_once(tmp_path: Path) -> None:
    """`GroupBy` has all rows that stand, and gives them to the sink; behind others the sink keeps its own."""

    def with_another(dag: DAG, conf: object) -> None:
        shops = dag.add_operator("shops", GroupBy("most", n=agg.count()))
        populate(tmp_path, CsvWriter(tmp_path / "out"), others=(shops.input,))(dag, conf)
        lines = dag.add_operator("lines", CsvWriter(tmp_path / "shops"))
        dag.add_stream("of shops", shops.output, lines.input)

    assert added(populate(tmp_path, CsvWriter(tmp_path / "out"))) == []
    assert added(populate(tmp_path, CsvWriter(tmp_path / "out"), least=5)) == ["sink.current"]
    assert added(with_another) == ["sink.current"]


def test_a_result_that_is_kept_once_becomes_empty(tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: object) -> None:
        few = dag.read(tmp_path / "in", "json_lines").to(GroupBy("shop", most=agg.max("price"))).to(Filter(pc.field("most") < 5))
        few.to(GroupBy("most", shops=agg.count())).to(JsonLinesWriter(tmp_path / "out"))

    assert added(populate_dag) == []
    for number, (rows, left) in enumerate([([("a", 1), ("b", 1)], [(1, 2)]), ([("a", 9), ("b", 9)], []), ([("c", 2)], [(2, 1)])]):
        write(tmp_path, number, rows)
        run_dag(populate_dag, run_folder=str(tmp_path / "run"))
        assert json_rows(tmp_path) == left
        assert read_dataset(tmp_path / "out").count_rows() == len(left)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_result_becomes_wider(copies: int, tmp_path: Path) -> None:
    """The ledger has the types of the rows that it has now, whether they are kept once or before each sink."""

    def populate_dag(dag: DAG, conf: object) -> None:
        rows = dag.add_operator("rows", ScanReader[Any](ParquetFormat(), drift={"changed": "widen"}))
        files = dag.add_operator("files", FileSplitterInput(tmp_path / "in"))
        files.blocks_metadata_output.to(rows)
        lists = {"prices": agg.collect("price")} if copies == 1 else {}
        totals = rows.batches.to(GroupBy(keys=["shop"], aggregates={"sold": agg.sum("price"), **lists}))
        for copy in range(copies):
            totals.to(ParquetWriter(tmp_path / f"out{copy}"))

    (tmp_path / "in").mkdir()
    for number, prices in enumerate([pa.array([1, 2], pa.int64()), pa.array([0.5]), pa.array([1], pa.int32())]):
        pq.write_table(pa.table({"shop": ["a", "b"][: len(prices)], "price": prices}), tmp_path / "in" / f"{number}.parquet")
        run_dag(populate_dag, run_folder=str(tmp_path / "run"))
    for copy in range(copies):
        rows = read_dataset(tmp_path / f"out{copy}").to_table().sort_by("shop").to_pylist()
        assert [(row["shop"], row["sold"]) for row in rows] == [("a", 2.5), ("b", 2.0)]
        assert copies == 2 or [row["prices"] for row in rows] == [[0.5, 1.0, 1.0], [2.0]]
        assert not list(Ledger.open(str(tmp_path / f"out{copy}")).verify().problems)


def line(row: Any) -> str:
    return f"{row['shop']}: {row['sold']}"


@pytest.mark.full
def test_partitions_each_have_their_rows(tmp_path: Path) -> None:
    """A partition in which nothing has changed writes its rows again, and so does one that has none left."""
    files = [[(shop, 1) for shop in "abcdef"], [("a", 2)]]
    for number, rows in enumerate(files):
        write(tmp_path, number, rows)
        run_dag(populate(tmp_path, JsonLinesWriter(tmp_path / "out")), run_folder=str(tmp_path / "run"), slots=3)
    assert Counter(json_rows(tmp_path)) == expected(files)


def test_lines_of_text(tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: object) -> None:
        populate(tmp_path, Map[Any, str](line))(dag, conf)
        lines = dag.add_operator("lines", RecordWriter(tmp_path / "out"))
        dag.add_stream("text", dag.operators["sink"].operator.output, lines.input)

    files: list[list[Row]] = [[("a", 1), ("b", 1)], [("a", 2)]]
    for number, rows in enumerate(files):
        write(tmp_path, number, rows)
        run_dag(populate_dag, run_folder=str(tmp_path / "run"))
    lines = [line for file in (tmp_path / "out" / "current").iterdir() for line in file.read_text().splitlines()]
    assert sorted(lines) == ["a: 2", "b: 1"]


def test_rows_are_not_appended_that_may_be_taken_back(tmp_path: Path) -> None:
    with pytest.raises(ChangesRefused, match="CsvWriter would keep rows that are taken back"):
        run_dag(populate(tmp_path, CsvWriter(tmp_path / "out", mode="append")), run_folder=str(tmp_path / "run"))


def test_another_mode_is_refused_where_rows_may_be_taken_back(tmp_path: Path) -> None:
    """The rows that stand were not kept for it."""
    url = f"sqlite:///{tmp_path}/out.db"
    write(tmp_path, 0, [("a", 1)])
    run_dag(populate(tmp_path, SqlWriter(url, table="totals", mode="upsert", keys=["shop"])), run_folder=str(tmp_path / "run"))
    write(tmp_path, 1, [("b", 1)])
    with pytest.raises(PlanMismatch, match=r"sink\.mode = upsert"):
        run_dag(populate(tmp_path, SqlWriter(url, table="totals")), run_folder=str(tmp_path / "run"))
    assert database_rows(tmp_path) == [("a", 1, 1)]


def test_a_column_may_become_wider() -> None:
    windows = [Window([pa.record_batch({"n": pa.array([number], kind)})]) for number, kind in enumerate([pa.int32(), pa.int64()])]
    assert run_operator(CurrentRows(), {"input": windows})["output"] == [{"n": 0}, {"n": 0}, {"n": 1}]
    with pytest.raises(ColumnTypeChanged, match="the column 'n' is string, and was int32 before"):
        run_operator(CurrentRows(), {"input": [windows[0], Window([pa.record_batch({"n": ["1"]})])]})
