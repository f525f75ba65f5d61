"""Properties of the operators, and connection strings. Without a server."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Any

import pytest

import dagflow
from dagflow import DAG, OperatorContext
from dagflow.errors import PackageMissing
from dagflow.scan import Drift
from dagflow.storage import is_transient
from operators import Console, PostgresInput, PostgresRanges, PostgresReader
from operators.database.errors import DatabaseBusy
from operators.sources.postgres.keys import KeyType
from operators.sources.postgres.source_table import SourceTable, TableName

pytest.importorskip("psycopg")

DSN = "postgresql://ada:hunter2@host/db"
NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"table": "a.b.c"}, "table is 'a.b.c', and must be a name, or schema.name"),
        ({"key": ""}, "table and key need names"),
        ({"lag": -1}, "lag is -1, and must be a duration, such as 5min"),
        ({"block_rows": 0}, "block_rows is 0, and must be at least 1"),
        ({"window_blocks": 0}, "window_blocks is 0, and must be at least 1"),
    ],
)
def test_properties_of_ranges(properties: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        PostgresRanges(**{"dsn": DSN, "table": "sales", "key": "id", **properties}).check()


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"columns": ["a::int; DROP TABLE sales"]}, "columns has 'a::int; DROP TABLE sales': write the name of a column"),
        ({"columns": ["a", "a::text"]}, "columns has 'a' twice"),
        ({"drift": Drift(extra="rescue")}, "drift.extra is 'rescue': of a table, it is error or ignore or widen"),
    ],
)
def test_properties_of_readers(properties: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        PostgresReader(**{"dsn": DSN, "table": "sales", "key": "id", **properties}).check()


@pytest.mark.parametrize("cast", ["text", "numeric(38,10)", "double precision", "timestamp(3) with time zone", "integer[]"])
def test_casts_that_are_taken(cast: str) -> None:
    PostgresReader(DSN, "sales", key="id", columns=[f"price::{cast}"]).check()


def test_a_lag_may_be_in_words() -> None:
    assert PostgresInput(DSN, "sales", key="updated_at", lag="5 minutes").lag == 300


class Standby:
    """The cursor of a standby: it has replayed commits until 12:00, and it is 13:00. All keys until then are there."""

    def __init__(self, replayed: datetime.datetime | None) -> None:
        self.replayed = replayed
        self.asked: list[str] = []

    def execute(self, statement: str) -> Standby:
        self.asked.append(statement)
        return self

    def fetchall(self) -> list[Any]:
        return [(NOON + datetime.timedelta(hours=1), self.replayed)] if "now()" in self.asked[-1] else [(NOON,)]


@pytest.mark.parametrize(("replayed", "is_asked"), [(NOON, True), (None, False)])
def test_the_lag_on_a_standby_counts_from_what_it_has_replayed(replayed: Any, is_asked: bool) -> None:
    table = SourceTable(
        name=TableName("ranges", "db", "sales", "at", has_lag=True),
        oid=1,
        schema="public",
        bare="sales",
        kind="r",
        key_type=KeyType("timestamp with time zone"),
        is_standby=True,
        is_filled=True,
        is_indexed=True,
        is_unique=True,
        parts=(1,),
        row_bytes=100,
    )
    cursor = Standby(replayed)
    found = table.newest_bound(cursor, None, 60)
    assert (found is not None) == is_asked
    assert ("11:59:00+00:00" in cursor.asked[-1]) == is_asked


@pytest.mark.parametrize("operator", [PostgresRanges, PostgresReader])
def test_a_connection_string_that_cannot_be_parsed_is_not_repeated(operator: Any) -> None:
    with pytest.raises(ValueError, match="dsn is not a connection string") as wrong:
        operator("postgresql://ada:hunter2%zz@host/db", "sales", key="id").check()
    assert "hunter2" not in str(wrong.value)


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(PackageMissing, match=r"PostgresRanges needs .*\n.*pip install 'dagflow\[postgres\]'"):
        PostgresRanges(DSN, "sales", key="id").check()


def test_a_server_that_is_away_is_named(tmp_path: Path) -> None:
    ranges = PostgresRanges(f"postgresql://ada:hunter2@/shop?host={tmp_path}&port=6543", "sales", key="id")
    message = rf"{tmp_path}:6543/shop: the database is not available .* looking at table 'sales'"
    with pytest.raises(DatabaseBusy, match=message) as away:
        ranges.check_inputs(OperatorContext(name="sales.ranges"))
    assert is_transient(away.value)
    assert "hunter2" not in str(away.value)


def test_a_plan_does_not_show_the_password() -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        sales = dag.add_module("sales", PostgresInput[Any](DSN, "sales", key="id", columns=["id", "item"]))
        dag.add_stream("rows", sales.batches, dag.add_operator("shown", Console()).input)

    text = str(dagflow.plan(populate_dag, {}))
    assert "hunter2" not in text + repr(PostgresInput(DSN, "sales", key="id"))
    assert "id, item of table sales" in text
