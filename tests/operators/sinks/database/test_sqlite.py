"""SQLite itself: types, locks, files that cannot be written."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dagflow.errors import ColumnNamesClash, DatabaseBusy, DatabaseRefused, RuleBroken, TypeNotWritable, ValueNotWritable
from dagflow.storage import is_transient
from dagflow.testing import run_operator
from operators import SqlWriter
from operators.sinks.database.sqlite import Sqlite
from tests.operators.databases import Database
from tests.operators.sinks.database.test_windows import Sale, staged
from tests.operators.sinks.synced import Synced


def test_columns_of_each_type(sqlite: Database) -> None:
    utc = datetime.UTC
    columns: dict[str, tuple[Any, Any, Any]] = {
        "flag": (True, pa.bool_(), 1),
        "n": (-(2**63), pa.int64(), -(2**63)),
        "big": (2**63 - 1, pa.uint64(), 2**63 - 1),
        "real": (float("inf"), pa.float64(), float("inf")),
        "exact": (decimal.Decimal("1.50"), pa.decimal128(9, 2), "1.50"),
        "text": ("a\0b", pa.string(), "a\0b"),
        "word": ("x", pa.dictionary(pa.int8(), pa.string()), "x"),
        "blob": (b"\x00\xff", pa.binary(), b"\x00\xff"),
        "day": (datetime.date(2026, 1, 31), pa.date32(), "2026-01-31"),
        "at": (datetime.datetime(2026, 1, 31, 12, tzinfo=utc), pa.timestamp("us", "Asia/Tokyo"), "2026-01-31 12:00:00.000000Z"),
        "pause": (datetime.timedelta(seconds=2), pa.duration("ms"), 2000),
        "list": ([1, None], pa.list_(pa.int64()), "[1,null]"),
        "nested": ({"x": "é"}, pa.struct({"x": pa.string()}), '{"x":"é"}'),
        "nothing": (None, pa.null(), None),
    }
    schema = pa.schema({name: kind for name, (_, kind, _) in columns.items()})
    rows = [{name: value for name, (value, _, _) in columns.items()}, dict.fromkeys(columns)]
    run_operator(sqlite.writer(), {"input": [pa.RecordBatch.from_pylist(rows, schema)]})
    first, second = sqlite.run("SELECT * FROM sales")
    assert dict(zip(columns, first, strict=True)) == {name: stored for name, (_, _, stored) in columns.items()}
    assert set(second) == {None}


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.0, float("nan")]), "'a' has nan, which SQLite does not support\n  help: SQLite would store NULL"),
        (pa.array([2**63], pa.uint64()), "'a' has 9223372036854775808, which SQLite"),
    ],
)
def test_values_that_sqlite_has_no_form_for_are_refused(sqlite: Database, column: Any, message: str) -> None:
    with pytest.raises(ValueNotWritable, match=message):
        run_operator(sqlite.writer(), {"input": [pa.record_batch({"a": column})]})


def test_types_that_sqlite_has_no_form_for_are_refused(sqlite: Database) -> None:
    with pytest.raises(TypeNotWritable, match="which SQLite does not support"):
        run_operator(sqlite.writer(), {"input": [pa.record_batch({"a": [[b"x"]]})]})


def test_names_that_differ_in_case_are_one_column(sqlite: Database) -> None:
    with pytest.raises(ColumnNamesClash, match="columns 'a' and 'A' are one column, for SQLite"):
        run_operator(sqlite.writer(), {"input": [pa.record_batch({"a": [1], "A": [2]})]})
    sqlite.run("CREATE TABLE sales (A INTEGER)")
    run_operator(sqlite.writer(), {"input": [pa.record_batch({"a": [1]})]})
    assert sqlite.rows() == [(1,)]


def test_a_locked_file_is_waited_for_and_then_retried(sqlite: Database) -> None:
    window = staged(sqlite.writer(), Sale("pen", 1))
    other = sqlite3.connect(sqlite.address.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseBusy, match="database is locked") as busy:
        sqlite.writer(lock_timeout=0.01).publish(window)
    assert is_transient(busy.value)
    other.close()
    sqlite.writer().publish(window)
    assert sqlite.rows() == [("pen", 1)]


def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no database " * 100)
    with pytest.raises(DatabaseRefused, match=r"a\.db refuses the connection or a statement, while staging.*not a database"):
        run_operator(SqlWriter(f"sqlite:///{tmp_path}/a.db", "t"), {"input": ["a"]})
    with pytest.raises(DatabaseRefused, match="unable to open database file"):
        run_operator(SqlWriter(f"sqlite:///{tmp_path}/missing/a.db", "t"), {"input": ["a"]})


def test_a_column_that_takes_no_nulls(sqlite: Database) -> None:
    sqlite.run("CREATE TABLE sales (value TEXT, n INTEGER NOT NULL)")
    with pytest.raises(ValueNotWritable, match="column 'n' has null, which table 'sales' does not support"):
        run_operator(sqlite.writer(), {"input": ["a"]})


@pytest.mark.parametrize(
    ("action", "message"),
    [("RAISE(ABORT, 'no ink')", "refuses rows: no ink"), ("RAISE(IGNORE)", "of 1 rows, the table took 0")],
)
def test_a_row_that_a_trigger_refuses_is_a_bad_row(action: str, message: str, sqlite: Database) -> None:
    sqlite.run("CREATE TABLE sales (item TEXT, units INTEGER)")
    sqlite.run(f"CREATE TRIGGER t BEFORE INSERT ON sales WHEN NEW.item = 'ink' BEGIN SELECT {action}; END")
    rows = [Sale("pen", 1), Sale("ink", 5), Sale("cap", 2)]
    with pytest.raises(RuleBroken, match=message):
        run_operator(sqlite.writer(), {"input": rows})
    assert run_operator(sqlite.writer(on_error="skip"), {"input": rows}).skipped == 1
    assert sqlite.rows() == [("cap", 2), ("pen", 1)]


@pytest.mark.parametrize(
    ("statement", "keys", "has_rules"),
    [
        ('CREATE TABLE sales ("n" INTEGER, "v" TEXT)', [], False),
        ('CREATE TABLE sales ("n" INTEGER NOT NULL, PRIMARY KEY ("n"))', ["N"], False),
        ('CREATE TABLE sales ("n" INTEGER, PRIMARY KEY ("n"))', [], True),
        ("CREATE TABLE sales (n INTEGER PRIMARY KEY)", ["n"], False),
        ("CREATE TABLE sales (n INTEGER PRIMARY KEY)", ["v"], True),
        ("CREATE TABLE sales (n INTEGER UNIQUE, v TEXT)", ["v"], True),
        ("CREATE TABLE sales (n INTEGER check (n > 0))", [], True),
        ("CREATE TABLE sales (n INTEGER) STRICT", [], True),
        ("CREATE TABLE sales (n INTEGER, v INTEGER AS (1/n))", [], True),
        ("CREATE TABLE sales (n INTEGER); CREATE INDEX i ON sales (json_extract(n, '$'))", [], True),
        ("CREATE TABLE t (n INTEGER); CREATE VIEW sales AS SELECT n FROM t", [], True),
    ],
)
def test_rows_are_tried_where_a_table_has_rules(statement: str, keys: list[str], has_rules: bool, sqlite: Database) -> None:
    for each in statement.split(";"):
        sqlite.run(each)
    with Sqlite(sqlite.address.removeprefix("sqlite:///")).session("a test") as session:
        if "VIEW" not in statement:
            session.identity("sales", create=True)  # its own mark is not a rule
        assert session.has_rules("SALES", keys) == has_rules


def test_paths_are_absolute_for_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert SqlWriter("sqlite:///a.db", "t").url == f"sqlite:///{tmp_path}/a.db"
    assert SqlWriter(f"sqlite:///{tmp_path}/b.db", "t").url == f"sqlite:///{tmp_path}/b.db"


@pytest.mark.parametrize(
    "url", ["a.db", "sqlite:///", "sqlite:///:memory:", "sqlite://", "sqlite:///a.db?mode=ro", "mysql://host/db"]
)
def test_urls_that_name_no_file_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="and must be that of a file"):
        SqlWriter(url, "t").check()


def test_the_url_of_a_server_belongs_to_another_sink() -> None:
    with pytest.raises(ValueError, match="use PostgresWriter") as wrong:
        SqlWriter("postgresql://ada:hunter2@host/db", "t").check()
    assert "hunter2" not in str(wrong.value)


def test_one_key_may_stand_alone() -> None:
    assert SqlWriter("sqlite:///a.db", "t", mode="upsert", keys="id").keys == ("id",)


def test_keys_that_are_equal_in_the_table_are_one_key(sqlite: Database) -> None:
    sqlite.run("CREATE TABLE sales (k TEXT COLLATE NOCASE PRIMARY KEY, v INTEGER)")
    run_operator(
        sqlite.writer(mode="upsert", keys=["k"]), {"input": [pa.record_batch({"k": ["b", "B", "a", "B"], "v": [4, 3, 2, 1]})]}
    )
    assert sqlite.run("SELECT v FROM sales ORDER BY k") == [(2,), (1,)]


def test_a_commit_survives_a_power_cut(tmp_path: Path) -> None:
    """With a rollback journal, FULL syncs the file, and not the folder that the journal is removed from."""
    with Sqlite(f"{tmp_path}/shop.db").session("looking") as session:
        assert session.select("PRAGMA synchronous") == [(3,)]


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_window_of_a_launch_that_has_died_is_synced_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str
) -> None:
    place = tmp_path / "data.db"
    writer = Database("sqlite", f"sqlite:///{place}").writer()
    with contextlib.closing(sqlite3.connect(place)) as reader:  # the last one that closes it removes the log
        reader.execute(f"PRAGMA journal_mode = {journal}").fetchall()
        reader.execute("SELECT * FROM sqlite_master").fetchall()
        window = staged(writer, Sale("pen", 1))
        writer.publish(window)
        synced = Synced.noted(monkeypatch)
        assert writer.is_published(window)
        assert synced.has(place, tmp_path, *tmp_path.glob("*-wal"))
        assert len(list(tmp_path.glob("*-wal"))) == (journal == "wal")
