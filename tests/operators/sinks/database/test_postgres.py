"""PostgreSQL itself: lost connections, locks, permissions, types, passwords. On a real server."""

from __future__ import annotations

import datetime
import decimal
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from hypothesis import given, settings

import dagflow
from dagflow import SinkLaunch, StagedWindow
from dagflow.errors import (
    DatabaseBusy,
    DatabaseRefused,
    RuleBroken,
    TableRefused,
    TypeNotWritable,
    ValueNotWritable,
)
from dagflow.storage import is_transient
from dagflow.testing import run_dag, run_operator
from operators import PostgresWriter
from tests.operators.databases import Database
from tests.operators.sinks import tables
from tests.operators.sinks.database.kills import LINES, populate
from tests.operators.sinks.database.proxy import proxy
from tests.operators.sinks.database.test_windows import Sale, staged
from tests.tiers import examples

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.full


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    return tmp_path


# ------------------------------------------------------------------------------------------------------- lost and refused


@pytest.mark.parametrize("loses", ["statement", "answer"])
def test_a_commit_whose_outcome_is_unknown_is_looked_up(postgres: Database, loses: Any) -> None:
    window = staged(postgres.writer(), Sale("pen", 1))
    postgres.writer().publish(staged(postgres.writer(), Sale("first", 1), application="other"))
    with proxy(postgres, loses, 0) as (between, behind):
        with pytest.raises(DatabaseBusy) as lost:
            behind.writer().publish(window)
        assert is_transient(lost.value)
        assert postgres.writer().is_published(window) == (loses == "answer")
        behind.writer().publish(window)
        assert between.seen == 2
    assert postgres.rows() == [("first", 1), ("pen", 1)]


@pytest.mark.parametrize("loses", ["statement", "answer"])
def test_a_run_whose_connections_are_lost_loses_and_doubles_nothing(postgres: Database, lines: Path, loses: Any) -> None:
    with proxy(postgres, loses, 2, 5, 11, 12, 18, 23, 29, 30, 37) as (between, behind):
        options = {"run_folder": str(lines / "run"), "window_attempts": 10, "retry_delay": 0.01}
        report = run_dag(populate(lines, behind), **options)
        assert between.seen > 10
    assert report.retries
    for table in ("appended", "upserted"):
        assert postgres.rows(table) == sorted(((line, len(line)) for line in LINES), key=str)


def test_a_server_that_is_down_is_retried_and_named(tmp_path: Path) -> None:
    writer = PostgresWriter(f"postgresql://ada:secret@/shop?host={tmp_path}", "sales")
    with pytest.raises(DatabaseBusy, match=rf"{tmp_path}:5432/shop: the database is not available \(connection.* failed") as down:
        run_operator(writer, {"input": ["a"]})
    assert is_transient(down.value)
    assert "secret" not in str(down.value)


def test_a_role_or_a_database_that_does_not_exist_is_refused_at_once(postgres: Database) -> None:
    for wrong in (postgres.address.replace("postgres:@", "eve:@"), urlsplit(postgres.address)._replace(path="/nowhere").geturl()):
        with pytest.raises(DatabaseRefused, match="does not exist"):
            run_operator(PostgresWriter(wrong, "sales"), {"input": ["a"]})


def test_a_role_without_permission_is_refused(postgres: Database) -> None:
    role = f"weak_{time.monotonic_ns()}"
    postgres.run(f"CREATE ROLE {role} LOGIN")
    writer = PostgresWriter(postgres.address.replace("postgres:@", f"{role}:@"), "sales")
    with pytest.raises(DatabaseRefused, match="permission denied for schema public"):
        run_operator(writer, {"input": ["a"]})


# -------------------------------------------------------------------------------------------------------- other sessions


def blocked(database: Database, lock: str, action: Callable[[], Any], release: Callable[[Any], None]) -> list[Any]:
    """Run an action while another session holds a lock, which lets go once the action waits. Its result, or its error."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(action())
        except Exception as error:  # noqa: BLE001  # the test looks at it
            results.append(error)

    waiting = "SELECT pid FROM pg_stat_activity WHERE application_name = 'dagflow' AND wait_event_type = 'Lock'"
    with psycopg.connect(database.address) as other:
        other.execute(lock)
        thread = threading.Thread(target=run)
        thread.start()
        for _ in range(200):
            if database.run(waiting) or results:
                break
            time.sleep(0.02)
        release(other)
    thread.join(30)
    return results


def test_a_locked_table_is_waited_for_and_then_retried(postgres: Database) -> None:
    postgres.writer().publish(staged(postgres.writer(), Sale("pen", 1)))
    window = staged(postgres.writer(), Sale("ink", 1), number=1)
    with psycopg.connect(postgres.address) as other:
        other.execute("LOCK TABLE sales IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(DatabaseBusy, match="canceling statement due to lock timeout") as busy:
            postgres.writer(lock_timeout=2.0).publish(window)
        assert is_transient(busy.value)
    postgres.writer().publish(window)
    assert postgres.rows() == [("ink", 1), ("pen", 1)]


def test_two_launches_that_publish_a_window_at_once_publish_it_once(postgres: Database) -> None:
    postgres.writer().publish(staged(postgres.writer(), Sale("pen", 1)))
    window = staged(postgres.writer(), Sale("ink", 1), number=1)
    threads = [threading.Thread(target=postgres.writer().publish, args=(window,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert postgres.rows() == [("ink", 1), ("pen", 1)]


def test_a_session_whose_driver_is_gone_does_not_hold_the_record_for_ever(postgres: Database) -> None:
    window = staged(postgres.writer(), Sale("pen", 1))
    writer = postgres.writer(lock_timeout=4.0)
    publisher = writer._publisher()
    publisher.publish(StagedWindow("another", 0, (), "sink"))

    def stand_still() -> None:
        with publisher._session(window, "standing still") as session:
            publisher._claim(session, window)
            writer.publish(window)  # waits until the server has ended the other session
            session.select("SELECT 1")

    with pytest.raises(DatabaseBusy, match="idle"):
        stand_still()
    assert postgres.rows() == [("pen", 1)]


def test_a_serialization_failure_is_retried(postgres: Database) -> None:
    postgres.writer().publish(staged(postgres.writer(), Sale("pen", 1)))
    postgres.run(
        f"ALTER DATABASE {psycopg.conninfo.conninfo_to_dict(postgres.address)['dbname']}"
        " SET default_transaction_isolation = 'serializable'"
    )
    window = staged(postgres.writer(), Sale("ink", 1), number=1)
    touch = "UPDATE _dagflow_windows SET table_name = table_name"
    [error] = blocked(postgres, touch, lambda: postgres.writer().publish(window), lambda other: other.commit())
    assert isinstance(error, DatabaseBusy)
    assert "could not serialize access" in str(error)
    postgres.writer().publish(window)
    assert postgres.rows() == [("ink", 1), ("pen", 1)]


def test_a_server_that_ends_the_session_is_retried(postgres: Database) -> None:
    postgres.writer().publish(staged(postgres.writer(), Sale("pen", 1)))
    window = staged(postgres.writer(), Sale("ink", 1), number=1)

    def end(other: Any) -> None:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dagflow'")
        time.sleep(0.2)

    [error] = blocked(postgres, "LOCK TABLE sales", lambda: postgres.writer().publish(window), end)
    assert isinstance(error, DatabaseBusy)
    assert postgres.rows() == [("pen", 1)]
    postgres.writer().publish(window)
    assert postgres.rows() == [("ink", 1), ("pen", 1)]


def test_readers_see_the_old_rows_until_the_new_ones_are_there(postgres: Database) -> None:
    writer = postgres.writer(mode="replace")
    writer.publish(staged(postgres.writer(mode="replace"), Sale("old", 1)))
    window = staged(postgres.writer(mode="replace"), Sale("new", 1), number=1)
    seen: list[Any] = []
    release = lambda other: (seen.append(postgres.rows()), other.rollback())  # noqa: E731
    # the trigger holds the transaction at its last statement
    postgres.run(
        "CREATE FUNCTION wait() RETURNS trigger AS 'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN new; END' LANGUAGE plpgsql"
    )
    postgres.run("CREATE TRIGGER wait BEFORE UPDATE ON _dagflow_windows FOR EACH ROW EXECUTE FUNCTION wait()")
    assert blocked(postgres, "SELECT pg_advisory_xact_lock(7)", lambda: writer.publish(window), release) == [None]
    assert seen == [[("old", 1)]]
    assert postgres.rows() == [("new", 1)]


# ------------------------------------------------------------------------------------------------------ tables and columns


def test_schemas_are_named_before_the_table(postgres: Database) -> None:
    postgres.run('CREATE SCHEMA "my shop"')
    run_operator(postgres.writer("my shop.sales"), {"input": ["a"]})
    assert postgres.run('SELECT value FROM "my shop".sales') == [("a",)]
    assert postgres.run("SELECT schemaname FROM pg_tables WHERE tablename = '_dagflow_windows'") == [("my shop",)]


def test_wider_numbers_are_refused_or_evolve_the_table(postgres: Database) -> None:
    postgres.run("CREATE TABLE sales (a integer, b integer, c numeric(5,2))")
    batch = pa.record_batch({"a": [2**40], "b": [0.5], "c": pa.array([decimal.Decimal("1.0001")], pa.decimal128(9, 4))})
    with pytest.raises(TableRefused, match=r"(?s)column 'b' is integer.*and double.*; column 'c' is numeric\(5,2\).*\(9,4\)"):
        run_operator(postgres.writer(), {"input": [batch]})
    with pytest.raises(ValueNotWritable, match=r"column 'a' has 1,099,511,627,776, (?s:.*)the column takes -2,147,483,648 to"):
        run_operator(postgres.writer(), {"input": [batch.select(["a"])]})
    run_operator(postgres.writer(on_schema_change="evolve"), {"input": [batch]})
    assert postgres.rows() == [(2**40, 0.5, decimal.Decimal("1.0001"))]


def test_text_goes_into_columns_of_other_types(postgres: Database) -> None:
    postgres.run("CREATE TABLE sales (id uuid, data jsonb, at timestamptz, code varchar(3), n integer)")
    row = {
        "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "data": '{"a": 1}',
        "at": "2026-01-31T12:00:00+01:00",
        "code": "abc",
        "n": 1,
    }
    run_operator(postgres.writer(), {"input": [pa.RecordBatch.from_pylist([row])]})
    assert postgres.run("SELECT id::text, data->'a', at = '2026-01-31 11:00Z', code, n FROM sales") == [
        (row["id"], 1, True, "abc", 1)
    ]
    with pytest.raises(ValueNotWritable, match=r"column 'code' has a text of 4 characters, (?s:.*)the column takes 3 characters"):
        run_operator(postgres.writer(), {"input": [pa.RecordBatch.from_pylist([{**row, "code": "abcd"}])]})


@pytest.mark.parametrize("kind", ["varchar(3)", "char(3)"])
@pytest.mark.parametrize(
    "column", [pa.array(["abc", "abc "]), pa.array(["abc", "abc "]).dictionary_encode()], ids=["text", "dictionary"]
)
def test_blanks_beyond_the_limit_of_a_column_are_not_cut(postgres: Database, kind: str, column: Any) -> None:
    postgres.run(f"CREATE TABLE sales (code {kind})")
    batch = pa.RecordBatch.from_arrays([column], ["code"])
    with pytest.raises(ValueNotWritable, match=r"column 'code' has a text of 4 characters, (?s:.*)the column takes 3 characters"):
        run_operator(postgres.writer(), {"input": [batch]})
    run_operator(postgres.writer(on_error="skip"), {"input": [batch]})
    assert postgres.rows() == [("abc",)]


def test_columns_of_each_type(postgres: Database) -> None:
    utc = datetime.UTC
    row = {
        "list": ['a "b" \\ {},', None, "", "NULL"],
        "numbers": [1, None],
        "blob": b"\x00\xff\\",
        "nested": {"x": 1, "y": ["q", 'quo"te\n']},
        "pause": datetime.timedelta(days=-3, microseconds=5),
        "at": datetime.datetime(2026, 1, 31, 12, tzinfo=utc),
        "big": 2**64 - 1,
        "exact": decimal.Decimal("-12345678901234567890.0123456789"),
        "nothing": None,
    }
    schema = pa.schema(
        {
            "list": pa.list_(pa.string()),
            "numbers": pa.list_(pa.int64()),
            "blob": pa.binary(),
            "nested": pa.struct({"x": pa.int64(), "y": pa.list_(pa.string())}),
            "pause": pa.duration("us"),
            "at": pa.timestamp("ns", "Europe/Stockholm"),
            "big": pa.uint64(),
            "exact": pa.decimal128(38, 10),
            "nothing": pa.null(),
        }
    )
    nulls = dict.fromkeys(row)
    run_operator(postgres.writer(), {"input": [pa.RecordBatch.from_pylist([row, nulls], schema)]})
    first, second = postgres.run("SELECT * FROM sales ORDER BY big")
    assert dict(zip(row, first, strict=True)) == row
    assert set(second) == {None}


@settings(max_examples=examples(20))
@given(rows=tables.ROWS)
def test_values_come_back(server: Any, rows: list[dict[str, Any]]) -> None:
    database = Database("postgres", server.get_uri())
    database.run("DROP TABLE IF EXISTS sales")
    numbered = [{**row, "id": number} for number, row in enumerate(rows)]
    schema = tables.SCHEMA.append(pa.field("id", pa.int64()))
    run_operator(database.writer(nul_replacement="<NUL>"), {"input": [pa.RecordBatch.from_pylist(numbered, schema)]})
    if rows:
        expected = [{**row, "text": row["text"] and row["text"].replace("\0", "<NUL>")} for row in numbered]
        stored = database.run("SELECT * FROM sales ORDER BY id")
        assert [dict(zip(schema.names, row, strict=True)) for row in stored] == expected


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (["a\0b"], pa.string(), "'a' has the character NUL, which PostgreSQL does not support\n  help: set nul_replacement"),
        ([{"x": "\0"}], pa.struct({"x": pa.string()}), "'a' has the character NUL"),
        ([[["\0"]]], pa.list_(pa.list_(pa.string())), "'a' has the character NUL"),
        ([1], pa.timestamp("ns"), "'a' has nanoseconds, which PostgreSQL does not support"),
        ([None, 1], pa.time64("ns"), "'a' has nanoseconds"),
    ],
)
def test_values_that_postgres_has_no_form_for_are_refused(postgres: Database, values: Any, kind: Any, message: str) -> None:
    with pytest.raises(ValueNotWritable, match=message):
        run_operator(postgres.writer(), {"input": [pa.record_batch({"a": pa.array(values, kind)})]})


def test_values_out_of_range_are_bad_rows(postgres: Database) -> None:
    far = pa.array([10**13], pa.timestamp("s"))  # the year 318857
    with pytest.raises(ValueNotWritable, match="outside of the years 1 to 9999"):
        run_operator(postgres.writer(), {"input": [pa.record_batch({"a": far})]})
    assert run_operator(postgres.writer(on_error="skip"), {"input": [pa.record_batch({"a": far})]}).skipped == 1
    assert postgres.staged() == []


def test_a_backslash_before_u0000_is_not_a_nul(postgres: Database) -> None:
    run_operator(postgres.writer(), {"input": [pa.RecordBatch.from_pylist([{"a": {"x": "\\u0000"}}])]})
    assert postgres.rows() == [({"x": "\\u0000"},)]


def test_types_and_names_that_postgres_does_not_have(postgres: Database) -> None:
    union = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    with pytest.raises(TypeNotWritable, match="which PostgreSQL does not support"):
        run_operator(postgres.writer(), {"input": [pa.record_batch({"a": union})]})
    with pytest.raises(TableRefused, match="cannot be written: it is longer than 63 bytes"):
        run_operator(postgres.writer(), {"input": [pa.record_batch({"ä" * 32: [1]})]})


# ------------------------------------------------------------------------------------------------------------- passwords


def test_the_password_is_kept_and_shown_nowhere(postgres: Database, lines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = Database("postgres", postgres.address.replace("postgres:@", "postgres:hunter2 with%20space@".replace(" ", "")))
    run_dag(populate(lines, secret), run_folder=str(lines / "run"))
    text = str(dagflow.plan(populate(lines, secret), {})) + repr(secret.writer()) + capsys.readouterr().out
    kept = [path for path in (lines / "run").rglob("*") if path.is_file()]
    assert len(kept) > 5
    assert not [path for path in kept if b"hunter2" in path.read_bytes()]
    assert "hunter2" not in text


@pytest.mark.spark
def test_windows_on_spark(postgres: Database, sqlite: Database, lines: Path, tmp_path: Path) -> None:
    for database in (postgres, sqlite):
        run_dag(populate(lines, database), run_folder=str(tmp_path / f"run {database.kind}"), runner="spark")
        for table in ("appended", "upserted"):
            assert database.rows(table) == sorted(((line, len(line)) for line in LINES), key=str)
        assert database.staged() == []


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("char(5)", ["a", "a "]),
        ("int", ["1", "01"]),
        ("numeric", ["1", "1.0"]),
        ("float8", [-0.0, 0.0]),
        ("float8", [float("nan"), float("nan")]),
        ("date", ["2026-01-02", "20260102"]),
    ],
)
def test_keys_that_are_equal_in_the_server_are_one_key(kind: str, keys: list[Any], postgres: Database) -> None:
    postgres.run(f"CREATE TABLE sales (k {kind} PRIMARY KEY, v bigint)")
    run_operator(postgres.writer(mode="upsert", keys=["k"]), {"input": [pa.record_batch({"k": keys, "v": [1, 2]})]})
    assert postgres.run("SELECT v FROM sales") == [(2,)]
    postgres.run("DROP TABLE sales")


SERIAL = "id serial PRIMARY KEY, n int"
KEYED = "n int PRIMARY KEY, v int"
ONE, TWO = {"n": 1}, [{"n": 1}, {"n": 1}]
UPSERT: dict[str, Any] = {"mode": "upsert", "keys": ["n"]}


@pytest.mark.parametrize(
    ("columns", "then", "rows", "properties"),
    [
        ("n int, v int", "CREATE UNIQUE INDEX ON sales (n) WHERE v > 0; INSERT INTO sales VALUES (1, 1)", [{"n": 1, "v": 1}], {}),
        ("n text", "CREATE UNIQUE INDEX ON sales (lower(n)); INSERT INTO sales VALUES ('A')", [{"n": "a"}], {}),
        ("n int, v int, UNIQUE NULLS NOT DISTINCT (n)", "INSERT INTO sales VALUES (NULL)", [{"n": None, "v": 1}], {}),
        ("n int, g int GENERATED ALWAYS AS (n % 2) STORED UNIQUE", "INSERT INTO sales VALUES (1)", [{"n": 3}], {}),
        ("n int, EXCLUDE USING btree (n WITH =)", "INSERT INTO sales VALUES (1)", [ONE], {}),
        ("n int UNIQUE DEFERRABLE INITIALLY DEFERRED", "", TWO, {}),
        ("n int UNIQUE", "ALTER TABLE sales ADD CHECK (n > 5) NOT VALID; INSERT INTO sales VALUES (9)", [{"n": 9}], {}),
        (f"{SERIAL} UNIQUE", "", TWO, {}),
        (f"{SERIAL} UNIQUE", "", TWO, {"mode": "replace"}),
        (SERIAL, "CREATE INDEX ON sales ((1 / n))", [{"n": 0}], {}),
        ("id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int UNIQUE", "INSERT INTO sales (n) VALUES (1)", [ONE], {}),
        ("n int, v int DEFAULT 7, UNIQUE (n, v)", "INSERT INTO sales VALUES (1, 7)", [ONE], {}),
        ("n int, v int DEFAULT 7 CHECK (v < 5)", "", [ONE], {}),
        (f"{KEYED} UNIQUE", "", [{"n": 1, "v": 1}, {"n": 2, "v": 1}], UPSERT),
        (f"{KEYED} UNIQUE", "INSERT INTO sales VALUES (9, 1)", [{"n": 1, "v": 1}], UPSERT),
        (f"{KEYED}, w int, CHECK (v < w)", "INSERT INTO sales VALUES (1, 1, 5)", [{"n": 1, "v": 7}], UPSERT),
        ("n text", "CREATE INDEX ON sales (n)", [{"n": os.urandom(5_000).hex()}], {}),
        ("n int UNIQUE", "", [{"n": 1, "v": 1}, {"n": 1, "v": 2}], {"on_schema_change": "evolve"}),
        ("", "CREATE TABLE t (n int) PARTITION BY LIST (n); CREATE TABLE sales PARTITION OF t FOR VALUES IN (2)", [ONE], {}),
    ],
)
def test_rules_are_tried_before_the_decision(
    columns: str, then: str, rows: list[Any], properties: dict[str, Any], postgres: Database
) -> None:
    postgres.run((f"CREATE TABLE sales ({columns});" if columns else "") + then)
    before = postgres.rows()
    with pytest.raises(RuleBroken) as refused:
        run_operator(postgres.writer(**properties), {"input": [pa.RecordBatch.from_pylist(rows)]})
    assert "_dagflow" not in str(refused.value)
    assert postgres.rows() == before


@pytest.mark.parametrize(
    ("columns", "then", "rows", "properties", "after"),
    [
        (SERIAL, "", TWO, {}, [(1, 1), (2, 1)]),  # no number of the sequence is used up
        ("n int, v int, UNIQUE (v)", "INSERT INTO sales VALUES (1)", [ONE], {}, [(1, None), (1, None)]),
        ("n int UNIQUE", "INSERT INTO sales VALUES (1)", [ONE], {"mode": "replace"}, [(1,)]),
        (f"{KEYED} UNIQUE", "INSERT INTO sales VALUES (1, 1)", [{"n": 1, "v": 1}], UPSERT, [(1, 1)]),
        (f"{KEYED} UNIQUE", "INSERT INTO sales VALUES (1, 1)", [{"n": 1, "v": 2}, {"n": 2, "v": 1}], UPSERT, [(1, 2), (2, 1)]),
        (f"{KEYED} UNIQUE", "", [{"n": 1, "v": 1}, {"n": 1, "v": 2}, {"n": 2, "v": 1}], UPSERT, [(1, 2), (2, 1)]),
        (f"{KEYED} CHECK (v > 0)", "", [{"n": 1, "v": None}], UPSERT, [(1, None)]),
        (KEYED, "ALTER TABLE sales ADD CHECK (v > 5) NOT VALID", [{"n": 2, "v": 9}], UPSERT, [(2, 9)]),
    ],
)
def test_rows_that_keep_the_rules_go_in(
    columns: str, then: str, rows: list[Any], properties: dict[str, Any], after: list[Any], postgres: Database
) -> None:
    postgres.run(f"CREATE TABLE sales ({columns}); {then}")
    run_operator(postgres.writer(**properties), {"input": [pa.RecordBatch.from_pylist(rows)]})
    assert postgres.rows() == after


def test_a_table_whose_triggers_give_rows_their_values_takes_them(postgres: Database) -> None:
    postgres.run("CREATE TABLE sales (item text NOT NULL CHECK (item <> ''), units bigint, day date NOT NULL)")
    body = "BEGIN NEW.day = '2026-01-31'; NEW.item = coalesce(NEW.item, 'none'); RETURN NEW; END"
    postgres.run(f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $${body}$$")
    postgres.run("CREATE TRIGGER t BEFORE INSERT ON sales FOR EACH ROW EXECUTE FUNCTION f()")
    columns = [("item", "string"), ("units", "int64")]
    (warning,) = postgres.writer().check_store(SinkLaunch(name="app", sink="sink", columns=columns))
    assert "the table has the trigger t" in warning
    run_operator(postgres.writer(), {"input": [Sale("pen", 1), Sale(None, 2)]})
    day = datetime.date(2026, 1, 31)
    assert postgres.rows() == [("none", 2, day), ("pen", 1, day)]


def test_what_no_task_can_foresee_is_said_at_launch(postgres: Database) -> None:
    postgres.run("CREATE TABLE IF NOT EXISTS shops (id int PRIMARY KEY); CREATE TABLE sales (shop int REFERENCES shops)")
    (warning,) = postgres.writer().check_store(SinkLaunch(name="app", sink="sink"))
    assert "the foreign key sales_shop_fkey" in warning
    assert "--reject-window" in warning
    postgres.run("DROP TABLE sales; DROP TABLE shops")
