"""apps/orders: orders of drifting files are in two tables and a database, in the same windows, with rejects beside them."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from apps.orders import sample
from dagflow.errors import DagflowError
from dagflow.testing import run_dag
from tests.chaos import oracle, tables

APP = str(Path(__file__).parents[2] / "apps" / "orders")

pytestmark = pytest.mark.full  # the packages of the tables take seconds to import


def launch(tmp_path: Path, runner: str = "local", **settings: Any) -> Any:
    return run_dag(APP, {"input": str(tmp_path / "in"), "output": str(tmp_path / "out"), **settings}, runner=runner)


def test_all_sinks_have_the_orders_of_drifting_files(runner: str, tmp_path: Path) -> None:
    sample.write(tmp_path / "in", files=4, count=60)
    expected = tables.expected((tmp_path / "in").iterdir())
    launch(tmp_path, runner, block_size=1000)
    assert list(tables.wrong(tmp_path / "out", expected)) == []
    assert tables.failed(tmp_path / "out" / "failed") == expected.failed
    assert oracle.rejected(tmp_path / "out" / "rejects") == expected.rejected
    assert min(map(len, (expected.accepted, expected.failed, expected.rejected))) > 0


def test_tables_get_the_columns_that_come_later(tmp_path: Path) -> None:
    """Rows before them have null there. A late row that is older than that in the database does not take its place."""
    import deltalake

    source = tmp_path / "in"
    source.mkdir()
    newer = "updated,order_id,amount,status\n2026-03-02T00:00:00Z,1,5.00,paid\n2026-03-02T00:00:01Z,2,7.50,new\n"
    older = "order_id,updated,amount,coupon\n1,2026-03-01T00:00:00Z,4.00,007\n3,2026-03-01T00:00:00Z,9.00,\n"
    (source / "1.csv").write_text(newer)
    launch(tmp_path)
    (source / "2.csv").write_text(older)
    launch(tmp_path)
    expected = tables.expected([source / "1.csv", source / "2.csv"])
    out = tmp_path / "out"
    assert list(tables.wrong(out, expected)) == []
    names = ["order_id", "updated", "amount", "status", "coupon"]
    assert [field.name for field in deltalake.DeltaTable(out / "delta").schema().fields] == names
    assert [field.name for field in tables.iceberg_table(out).schema().fields] == names
    newest = {row[0]: row for row in tables.database(out).rows}
    assert newest["1"][tables.NAMES.index("status")] == "paid"
    coupons = {row[0]: row[tables.NAMES.index("coupon")] for row in tables.delta(out)[1]}
    assert coupons == {"1": "007", "3": ""}, "other columns are text"


def test_too_many_bad_orders_end_the_run_before_any_sink_has_them(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "1.csv").write_text("order_id,updated,amount\n1,2026-03-01T00:00:00Z,-4.00\n2,2026-03-01T00:00:00Z,4.00\n")
    with pytest.raises(DagflowError, match="an order has an id"):
        launch(tmp_path)
    out = tmp_path / "out"
    assert (tables.delta(out), tables.iceberg(out), tables.database(out).window) == ({}, {}, -1)
    assert oracle.visible(out / "failed") == []
    launch(tmp_path, max_share=0.5)
    assert list(tables.wrong(out, tables.expected([source / "1.csv"]))) == []


def test_the_sample_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        sample.write(tmp_path / name, files=2, count=5)
    assert oracle.files(tmp_path / "one") == oracle.files(tmp_path / "two")


def test_lost_and_doubled_rows_are_seen(tmp_path: Path) -> None:
    """The judge of the kills in tests/chaos does not pass them."""
    import deltalake
    import pyarrow as pa

    sample.write(tmp_path / "in", files=1, count=30)
    expected, out = tables.expected((tmp_path / "in").iterdir()), tmp_path / "out"
    launch(tmp_path, max_share=1)
    assert list(tables.wrong(out, expected)) == []
    with contextlib.closing(sqlite3.connect(out / "orders.db")) as connection, connection:
        connection.execute("DELETE FROM orders WHERE order_id = (SELECT max(order_id) FROM orders)")
    assert [problem.partition(":")[0] for problem in tables.wrong(out, expected)] == ["database"]
    table = tables.iceberg_table(out)
    table.append(table.scan(limit=1).to_arrow(), snapshot_properties={"dagflow.window": "1"})
    problems = {problem.partition(":")[0] for problem in tables.wrong(out, expected)}
    assert {"iceberg", "windows of delta are [0], those of iceberg [0, 1]"} <= problems
    rows = pa.Table.from_batches(deltalake.DeltaTable(out / "delta").to_pyarrow_table().slice(0, 1).to_batches())
    deltalake.write_deltalake(out / "delta", rows, mode="append")
    with pytest.raises(AssertionError, match="names no window"):
        list(tables.wrong(out, expected))
