"""Rows that are taken back leave a table of a database: upserts of changing streams, against a dict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow import DAG
from dagflow.errors import ChangesRefused, KeysNotUnique, RowsRefused, RowsShareKeys
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import run_dag
from operators import Map
from tests.conformance.orders import Newest, Order, Signed, doubled
from tests.conformance.windows import InWindows
from tests.operators.databases import Database
from tests.tiers import examples


def application(windows: list[list[Order]], writer: Any) -> Callable[[DAG, object], None]:
    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Order](windows))
        newest = dag.add_operator("newest", Newest())
        double = dag.add_operator("double", Map(doubled))
        dag.add_operator("table", writer)
        dag.set_attributes(newest, partitioner=StatelessPartitioner(2))
        dag.add_stream("all", source.output, newest.input)
        dag.add_stream("current", newest.output, double.input)
        dag.add_stream("rows", double.output, writer.input)

    return populate_dag


def expected(windows: list[list[Order]]) -> list[Any]:
    newest = {order.number: order for window in windows for order in window}
    return sorted((n, o.customer, 2 * o.worth) for n, o in newest.items() if o.customer is not None)


ORDERS = [
    [Order(n, "abc"[n % 3], n / 2) for n in range(6)],
    [Order(3, "b", 1.0), Order(4, None, 0.0), Order(5, "c", 9.0), Order(5, "a", 8.0)],
    [Order(4, "d", 7.5), Order(0, None, 0.0)],
    [Order(number, None, 0.0) for number in range(6)],
]
MADE = st.builds(Order, st.integers(0, 3), st.sampled_from(["a", "b", None]), st.sampled_from([0.0, -0.0, 1.5]))


def check(database: Database, table: str, windows: list[list[Order]], folder: Path) -> None:
    for launch in range(1, len(windows) + 1):
        writer = database.writer(table, mode="upsert", keys=["number"])
        run_dag(application(windows[:launch], writer), run_folder=str(folder))
        is_there = (
            bool(database.run(f"SELECT 1 FROM sqlite_master WHERE name = '{table}'")) if database.kind == "sqlite" else True
        )
        assert (database.rows(table) if is_there else []) == expected(windows[:launch])


def sqlite(folder: Path) -> Database:
    return Database("sqlite", f"sqlite:///{folder}/test.db")


def test_rows_that_are_taken_back_are_deleted(tmp_path: Path) -> None:
    check(sqlite(tmp_path), "orders", ORDERS, tmp_path / "run")
    assert sqlite(tmp_path).rows("orders") == [], "a table can become empty"


@pytest.mark.full
def test_rows_that_are_taken_back_are_deleted_in_postgres(postgres: Database, tmp_path: Path) -> None:
    check(postgres, "orders", ORDERS, tmp_path / "run")


@given(st.lists(st.lists(MADE, min_size=1, max_size=6), min_size=1, max_size=3))
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_changes(tmp_path_factory: pytest.TempPathFactory, windows: list[list[Order]]) -> None:
    folder = tmp_path_factory.mktemp("changes")
    check(sqlite(folder), "orders", windows, folder / "run")


def test_a_table_that_was_there_before_keeps_its_rules(tmp_path: Path) -> None:
    database = sqlite(tmp_path)
    database.run("CREATE TABLE orders (number INTEGER PRIMARY KEY, customer TEXT NOT NULL UNIQUE, worth REAL)")
    swapped = [[Order(1, "a", 1.0), Order(2, "b", 2.0)], [Order(1, "b", 1.0), Order(2, "a", 2.0)]]
    check(database, "orders", swapped, tmp_path / "run")


def test_keys_that_do_not_identify_a_row_are_refused_before_the_decision(tmp_path: Path) -> None:
    writer = sqlite(tmp_path).writer("orders", mode="upsert", keys=["customer"])
    with pytest.raises(RowsShareKeys, match="2 rows stand with the same customer, by which the sink would find them"):
        run_dag(application(ORDERS[:1], writer), run_folder=str(tmp_path / "run"))
    run_dag(
        application(ORDERS[:1], sqlite(tmp_path).writer("orders", mode="upsert", keys=["number"])),
        run_folder=str(tmp_path / "run"),
    )
    assert sqlite(tmp_path).rows("orders") == expected(ORDERS[:1])


def test_a_table_that_only_takes_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChangesRefused, match="use a sink of files or tables without a mode"):
        run_dag(application(ORDERS, sqlite(tmp_path).writer("orders", mode="append")))


def test_what_a_table_refuses_is_found_before_the_decision(tmp_path: Path) -> None:
    database = sqlite(tmp_path)
    database.run("CREATE TABLE orders (number INTEGER PRIMARY KEY, customer TEXT UNIQUE, worth REAL)")
    windows = [[Order(1, "a", 1.0)], [Order(2, "a", 1.0)], [Order(1, "b", 1.0)]]
    with pytest.raises(RowsRefused, match="UNIQUE constraint failed"):
        check(database, "orders", windows[:2], tmp_path / "run")
    assert database.rows("orders") == expected(windows[:1])


def signed(windows: list[list[Order]], writer: Any, folder: Path) -> None:
    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Order](windows))
        sign = dag.add_operator("sign", Signed())
        dag.add_operator("table", writer)
        dag.add_stream("all", source.output, sign.input)
        dag.add_stream("rows", sign.output, writer.input)

    run_dag(populate_dag, run_folder=str(folder))


@pytest.mark.parametrize(
    ("rows", "error"),
    [([Order(1, "a", 1.0)] * 2, RowsShareKeys), ([Order(1, "A", 1.0), Order(2, "a", 1.0)], KeysNotUnique)],
)
def test_equal_rows_and_keys_that_are_equal_in_the_table_do_not_identify_a_row(
    tmp_path: Path, rows: list[Order], error: type[Exception]
) -> None:
    database = sqlite(tmp_path)
    database.run("CREATE TABLE orders (number INTEGER, customer TEXT COLLATE NOCASE PRIMARY KEY, worth REAL)")
    writer = database.writer("orders", mode="upsert", keys=["customer"])
    with pytest.raises(error, match=r"rows (stand with|have) the same customer"):
        signed([rows], writer, tmp_path / "run")
    signed([rows[:1], [attrs.evolve(rows[0], worth=-1.0), rows[-1]]], writer, tmp_path / "again")
    assert database.rows("orders") == [(rows[-1].number, rows[-1].customer, 1.0)]
