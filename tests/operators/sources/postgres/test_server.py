"""A table of a real server, read window by window and launch by launch."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, OperatorContext
from dagflow.ledger import AddData, Ledger
from dagflow.lineage.trace import ApplicationLocator, trace
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.storage import open_store
from dagflow.testing import Collector, run_dag
from operators import Map, PostgresInput, PostgresRanges
from operators.database.errors import DatabaseRefused
from operators.sources.errors import (
    ColumnsNotReadable,
    KeyNull,
    RangeChanged,
    SourceColumnsChanged,
    SourceTableRefused,
    SourceTableReplaced,
    ValueNotReadable,
)
from operators.sources.postgres.range_reading import RangeReading
from operators.sources.postgres.source_table import SourceTable
from tests.operators.databases import Database
from tests.operators.sources.postgres.tables import SALES, Reading, kept_files, rows

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.full


@pytest.fixture
def sales(postgres: Database, tmp_path: Path) -> Reading:
    """A table without rows, and an application that reads it by `id`."""
    postgres.run(SALES)
    return Reading(postgres, tmp_path)


# ------------------------------------------------------------------------------------------------------------ increments


def test_each_launch_reads_the_rows_that_are_new(sales: Reading) -> None:
    assert sales.ids() == []
    sales.database.run(rows("pen", "ink"))
    assert [(row["id"], row["item"]) for row in sales.launch()[0]] == [(1, "pen"), (2, "ink")]
    assert sales.ids() == []
    sales.database.run(rows("cap"))
    assert sales.ids() == [3]


def test_windows_and_blocks_are_ranges_of_keys_that_the_plan_holds(sales: Reading) -> None:
    sales.database.run(rows(*range(25)))
    sales.database.run("DELETE FROM sales WHERE id BETWEEN 6 AND 15")
    small = attrs.evolve(sales, properties={"key": "id", "block_rows": 4})
    read, report = small.launch({"operator.sales.ranges.window_blocks": 2}, slots=2)
    assert sorted(row["id"] for row in read) == [*range(1, 6), *range(16, 26)]
    assert report.windows == 2
    plan = WindowLog(open_store(str(sales.folder / "run"), durable=False)).read_plan(0)
    assert plan is not None
    blocks = [item for _, item in plan.items["sales.reader"]]
    assert [(block["start"], block["stop"], block["rows"]) for block in blocks] == [(1, 5, 4), (5, 19, 4)]
    assert plan.states["sales.ranges"]["position"] == 19
    entries = Ledger.open(str(sales.folder / "out")).data_entries()  # the newest first
    positions = [entry.data.sources["sales.ranges"].value for entry in entries if isinstance(entry.data, AddData)]
    assert positions == ["public.sales: id < 26", "public.sales: id < 19"]


def test_rows_of_equal_keys_stay_together(sales: Reading) -> None:
    sales.database.run("CREATE TABLE ties (id integer NOT NULL, item text)")
    sales.database.run("INSERT INTO ties SELECT n / 10, n::text FROM generate_series(0, 99) AS n")
    ties = attrs.evolve(sales, table="ties", properties={"key": "id", "block_rows": 3})
    read, report = ties.launch({"operator.sales.ranges.window_blocks": 2})
    assert [row["item"] for row in read] == [str(n) for n in range(100)]
    assert any("has no index on 'id'" in text for text in report.warnings)


def test_negative_keys_and_views(sales: Reading) -> None:
    sales.database.run("INSERT INTO sales (id, item) VALUES (-5, 'a'), (-9223372036854775808, 'b'), (9223372036854775807, 'c')")
    sales.database.run('CREATE VIEW "my view" AS SELECT item, id FROM sales UNION ALL SELECT item, id FROM sales')
    assert sales.ids() == [-(2**63), -5, 2**63 - 1]
    other = attrs.evolve(sales, table="my view", folder=sales.folder / "other", properties={"key": "id", "block_rows": 1})
    assert other.ids() == [-(2**63), -(2**63), -5, -5, 2**63 - 1, 2**63 - 1]


def test_partitioned_tables(sales: Reading) -> None:
    sales.database.run("CREATE TABLE parts (id bigint NOT NULL, item text) PARTITION BY HASH (id)")
    for number in range(3):
        sales.database.run(f"CREATE TABLE part{number} PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER {number})")
    sales.database.run("INSERT INTO parts SELECT n, 'a' FROM generate_series(1, 50) AS n")
    assert attrs.evolve(sales, table="parts", properties={"key": "id", "block_rows": 7}).ids() == list(range(1, 51))


def test_names_are_quoted(sales: Reading) -> None:
    sales.database.run('CREATE SCHEMA "my shop"')
    sales.database.run('CREATE TABLE "my shop"."a""b %s" ("the ""key"" %s" int PRIMARY KEY, "x;" text)')
    sales.database.run('INSERT INTO "my shop"."a""b %s" VALUES (1, \'a\')')
    odd = attrs.evolve(sales, table='my shop.a"b %s', properties={"key": 'the "key" %s', "columns": ["x;"]})
    assert odd.launch()[0] == [{"x;": "a"}]


@attrs.frozen
class Sale:
    id: int
    item: str | None


def test_records_of_a_class_are_its_fields(sales: Reading) -> None:
    sales.database.run(rows("pen"))
    found = Collector[Sale]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_module("sales", PostgresInput[Sale](sales.database.address, "sales", key="id"))
        longer = dag.add_operator("longer", Map[Sale, Sale](lambda sale: Sale(sale.id, f"{sale.item}!")))
        dag.add_stream("rows", source.batches, longer.input)
        dag.add_stream("longer rows", longer.output, dag.add_operator("found", found).input)

    run_dag(populate_dag)
    assert found.records == [Sale(1, "pen!")]


# ------------------------------------------------------------------------------------------------- transactions and times


def test_a_transaction_that_commits_late_loses_no_row(sales: Reading) -> None:
    with psycopg.connect(sales.database.address) as late:
        late.execute(rows("late").encode())  # takes key 1
        sales.database.run(rows("early"))  # key 2 is committed first
        timer = threading.Timer(0.3, late.commit)
        timer.start()
        assert sales.ids() == [1, 2]
        timer.join()


def test_a_transaction_that_does_not_end_delays_rows_and_loses_none(sales: Reading) -> None:
    with psycopg.connect(sales.database.address) as late:
        late.execute(rows("late").encode())
        sales.database.run(rows("early"))
        read, report = sales.launch({"operator.sales.ranges.writers_timeout": "50ms"})
        assert read == []
        assert any("1 transactions have been writing" in text and "left for the next launch" in text for text in report.warnings)
        late.commit()
    assert sales.ids() == [1, 2]


def test_transactions_that_only_read_are_not_waited_for(sales: Reading) -> None:
    sales.database.run(rows("pen"))
    with psycopg.connect(sales.database.address) as reader:
        reader.execute("SELECT * FROM sales")
        assert sales.ids() == [1]


def test_a_lag_leaves_young_rows_for_later(sales: Reading) -> None:
    by_time = attrs.evolve(sales, properties={"key": "at", "lag": "1h", "block_rows": 2})
    add = "INSERT INTO sales (item, at)"
    sales.database.run(f"{add} SELECT n::text, now() - n * interval '20 min' FROM generate_series(0, 5) AS n")
    sales.database.run(f"{add} VALUES ('never', 'infinity'), ('never', '-infinity'), ('never', '0044-03-15 BC')")
    assert [row["item"] for row in by_time.launch()[0]] == ["5", "4", "3"]
    assert by_time.launch()[0] == []
    sales.database.run("UPDATE sales SET at = now() - interval '61 min' WHERE item = '0'")
    assert by_time.launch()[0] == []  # older than what was read: the lag was shorter than the change took
    late = attrs.evolve(by_time, properties={"key": "at", "lag": "10 min"})
    assert [row["item"] for row in late.launch()[0]] == ["2", "1"]


def test_rows_that_a_table_shows_late_are_read(sales: Reading) -> None:
    """As a view of a materialized view does, or a server that lags behind: rows that are old enough are not there yet."""
    sales.database.run("CREATE TABLE shown (until int)")
    sales.database.run("INSERT INTO shown VALUES (2)")
    sales.database.run("CREATE VIEW late AS SELECT sales.* FROM sales, shown WHERE id <= until")
    sales.database.run(
        "INSERT INTO sales (at) SELECT now() - interval '1 h' + n * interval '1 us' FROM generate_series(1, 4) AS n"
    )
    late = attrs.evolve(sales, table="late", properties={"key": "at", "lag": "1 min"})
    assert late.ids() == [1, 2]
    sales.database.run("UPDATE shown SET until = 4")
    assert late.ids() == [3, 4]


def test_times_without_a_zone_are_refused_and_can_be_converted(sales: Reading) -> None:
    sales.database.run("CREATE TABLE local (id int, at timestamp NOT NULL)")
    sales.database.run(
        "INSERT INTO local SELECT n, timestamp '2026-01-31 12:00' + n * interval '1 us' FROM generate_series(1, 9) AS n"
    )
    local = attrs.evolve(sales, table="local", properties={"key": "at", "lag": 1, "block_rows": 4, "columns": ["id"]})
    with pytest.raises(SourceTableRefused, match="'at' is a timestamp without time zone") as refused:
        local.launch()
    sales.database.run("CREATE VIEW zoned AS SELECT id, at AT TIME ZONE 'UTC' AS at FROM local")
    assert attrs.evolve(local, table="zoned", folder=sales.folder / "zoned").ids() == list(range(1, 10))
    sales.database.run("DROP VIEW zoned")
    sales.database.run("ALTER TABLE" + str(refused.value).split("ALTER TABLE")[1].split(";")[0])
    assert local.ids() == list(range(1, 10))


# -------------------------------------------------------------------------------------------------- connections that end

ENDED = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dagflow' AND datname = current_database()"
)


@pytest.mark.parametrize(("place", "name"), [(RangeReading, "_check_types"), (PostgresRanges, "_plan"), (SourceTable, "writers")])
def test_a_connection_that_ends_is_made_again(sales: Reading, monkeypatch: pytest.MonkeyPatch, place: Any, name: str) -> None:
    sales.database.run(rows(*range(10)))
    function, calls = getattr(place, name), iter([True, False, True])

    def after_the_end(*arguments: Any) -> Any:
        if next(calls, False):
            sales.database.run(ENDED)
        return function(*arguments)

    monkeypatch.setattr(place, name, after_the_end)
    small = attrs.evolve(sales, properties={"key": "id", "block_rows": 2})
    read, report = small.launch({"operator.sales.ranges.window_blocks": 2}, retry_delay=0.01)
    assert sorted(row["id"] for row in read) == list(range(1, 11))
    assert report.retries


# --------------------------------------------------------------------------------------------------- tables that change


def test_a_range_that_has_lost_rows_is_noticed(sales: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    sales.database.run(rows("a", "b", "c"))
    emit = PostgresRanges.emit_tuples

    def then_delete(self: PostgresRanges) -> None:
        emit(self)
        sales.database.run("DELETE FROM sales WHERE item = 'b'")

    monkeypatch.setattr(PostgresRanges, "emit_tuples", then_delete)
    with pytest.raises(
        RangeChanged, match=r"'public.sales' had 3 rows with id from 1 to 3 when the window was planned, and has 2 now"
    ):
        sales.launch()
    read, report = sales.launch({"operator.sales.reader.on_rows_changed": "count"})
    assert [row["id"] for row in read] == [1, 3]
    assert report.operators["sales.reader"].counters["rows_missing"] == 1


def test_a_table_that_was_created_again_is_noticed(sales: Reading) -> None:
    sales.database.run(rows("a", "b"))
    assert sales.ids() == [1, 2]
    sales.database.run("DROP TABLE sales")
    sales.database.run(SALES)
    sales.database.run(rows("new"))
    with pytest.raises(SourceTableReplaced, match="keys were read up to 2, and the newest one is 1 now"):
        sales.launch()
    sales.database.run(rows("b", "c"))
    read, report = sales.launch()
    assert [row["id"] for row in read] == [3]
    assert any("was created again since the last window" in text for text in report.warnings)


def test_a_table_that_was_emptied_is_told(sales: Reading) -> None:
    sales.database.run(rows("a", "b"))
    sales.ids()
    sales.database.run("TRUNCATE sales RESTART IDENTITY")
    sales.database.run(rows("new"))
    read, report = sales.launch()
    assert read == []
    assert any("the newest id is 1, and keys up to 2 were read" in text for text in report.warnings)


def test_columns_follow_the_policy_of_drift(sales: Reading) -> None:
    sales.database.run(rows("a"))
    sales.ids()
    sales.database.run("ALTER TABLE sales ADD vat numeric(5,2), DROP at")
    sales.database.run("INSERT INTO sales (item, vat) VALUES ('b', 0.25)")
    with pytest.raises(SourceColumnsChanged, match=r"column 'vat' \(numeric\(5,2\)\) is new"):
        sales.launch()
    [row] = sales.launch({"operator.sales.reader.drift.extra": "widen"})[0]
    assert {**row, "vat": str(row["vat"])} == {"id": 2, "item": "b", "at": None, "vat": "0.25"}


def test_a_sequence_with_a_cache_is_told(sales: Reading) -> None:
    sales.database.run("ALTER SEQUENCE sales_id_seq CACHE 20")
    assert any("gives each session 20 keys at once" in text for text in sales.launch()[1].warnings)


# ------------------------------------------------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("properties", "table", "message"),
    [
        ({"key": "id"}, "sale", "'sale' in .*: there is no such table"),
        ({"key": "idd"}, "sales", "it has no column 'idd'\n  help: the columns are id, item, at"),
        ({"key": "item"}, "sales", "the key 'item' is text, and must be an integer or a timestamp with time zone"),
        ({"key": "at"}, "sales", "the key 'at' is a timestamp with time zone, which needs a lag"),
        ({"key": "id", "lag": 1}, "sales", "the key 'id' is bigint: a lag is for timestamps"),
    ],
)
def test_tables_and_keys_that_cannot_be_read(sales: Reading, properties: Any, table: str, message: str) -> None:
    with pytest.raises(SourceTableRefused, match=message):
        attrs.evolve(sales, table=table, properties=properties).launch()
    assert not (sales.folder / "out").exists()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("CREATE MATERIALIZED VIEW odd AS SELECT * FROM sales", "it is a materialized view"),
        ("CREATE FOREIGN TABLE odd (id bigint) SERVER far", "it is a foreign table"),
        (
            "CREATE TABLE odd (id bigint) PARTITION BY RANGE (id);"
            "CREATE FOREIGN TABLE part PARTITION OF odd FOR VALUES FROM (0) TO (9) SERVER far",
            "it has a partition or a child that is a foreign table",
        ),
    ],
)
def test_tables_that_do_not_show_who_writes_are_refused(sales: Reading, made: str, message: str) -> None:
    sales.database.run("CREATE FOREIGN DATA WRAPPER wrapper")
    sales.database.run("CREATE SERVER far FOREIGN DATA WRAPPER wrapper")
    for statement in made.split(";"):
        sales.database.run(statement)
    with pytest.raises(SourceTableRefused, match=message):
        attrs.evolve(sales, table="odd").launch()


def test_keys_must_have_values(sales: Reading) -> None:
    sales.database.run("CREATE TABLE nulls (id int, item text)")
    sales.database.run("INSERT INTO nulls VALUES (1, 'a'), (NULL, 'b')")
    with pytest.raises(KeyNull, match=r"1 row has a null in the key 'id' of table 'public.nulls'"):
        attrs.evolve(sales, table="nulls").launch()


def test_a_role_that_may_not_read_is_refused(sales: Reading) -> None:
    role = f"weak_{sales.folder.name}".replace("-", "_")[:60]
    sales.database.run(f"CREATE ROLE {role} LOGIN")
    weak = attrs.evolve(sales.database, address=sales.database.address.replace("postgres:@", f"{role}:@"))
    with pytest.raises(DatabaseRefused, match=r"(?s)permission denied for table sales.*USAGE on the schema, and SELECT"):
        attrs.evolve(sales, database=weak).launch()


def test_types_that_are_not_read_are_named_with_a_cast(sales: Reading) -> None:
    sales.database.run("ALTER TABLE sales ADD price numeric, ADD pause interval")
    sales.database.run("INSERT INTO sales (price, pause) VALUES (1.5, '1 day')")
    with pytest.raises(ColumnsNotReadable, match=r"column 'price' is numeric; column 'pause' is interval") as refused:
        sales.launch()
    assert 'columns = ["price::numeric(38,10)", …]' in str(refused.value)
    cast = attrs.evolve(sales, properties={"key": "id", "columns": ["price::numeric(38,10)", "pause::text", "id"]})
    [row] = cast.launch()[0]
    assert {**row, "price": float(row["price"])} == {"price": 1.5, "pause": "1 day", "id": 1}


@pytest.mark.parametrize(
    ("kind", "value"),
    [("date", "infinity"), ("date", "10000-01-01"), ("date", "0001-01-01 BC"), ("numeric(5,2)", "NaN"), ("int[]", "{{1},{2}}")],
)
def test_values_that_arrow_does_not_have_are_named(sales: Reading, kind: str, value: str) -> None:
    sales.database.run(f"ALTER TABLE sales ADD odd {kind}")
    sales.database.run(f"INSERT INTO sales (odd) VALUES (NULL), ('{value}')")
    with pytest.raises(ValueNotReadable, match=r"table 'public.sales' .* in rows with id from 1 to 2: column 'odd': "):
        sales.launch()


# ---------------------------------------------------------------------------------------------------- lineage and secrets


@pytest.mark.parametrize("columns", [None, ["item"]])
def test_a_row_is_traced_to_table_and_key(sales: Reading, columns: Any) -> None:
    sales.database.run(rows(*range(10)))
    traced = attrs.evolve(sales, properties={"key": "id", "block_rows": 3, "columns": columns})
    run_dag(traced.populate(), run_folder=str(sales.folder / "run"))
    found = trace(str(sales.folder / "out"), 7, exact=True, locator=ApplicationLocator(application=traced.populate()))
    assert found.problem is None
    assert found.source is not None
    assert found.source.position == 8
    assert b'"id": 8' in found.source.data
    assert (found.items[0].value["table"], found.items[0].value["key"]) == ("public.sales", "id")


def test_the_password_is_kept_and_shown_nowhere(sales: Reading, capsys: pytest.CaptureFixture[str]) -> None:
    sales.database.run(rows("a"))
    secret = attrs.evolve(sales.database, address=sales.database.address.replace("postgres:@", "postgres:hunter2@"))
    hidden = attrs.evolve(sales, database=secret)
    assert hidden.ids() == [1]
    sales.database.run("ALTER TABLE sales DROP item")
    sales.database.run("INSERT INTO sales DEFAULT VALUES")
    with pytest.raises(SourceColumnsChanged) as failed:
        hidden.launch({"operator.sales.reader.drift.missing": "error"})
    kept = list(kept_files(sales.folder))
    assert len(kept) > 5
    assert not [path for path in kept if b"hunter2" in path.read_bytes()]
    assert "hunter2" not in str(failed.value) + capsys.readouterr().out


def test_check_inputs_finds_what_a_launch_would_find(sales: Reading) -> None:
    PostgresRanges(sales.database.address, "sales", key="id").check_inputs(OperatorContext())


@pytest.mark.spark
def test_tables_on_spark(sales: Reading) -> None:
    sales.database.run(rows(*range(30)))
    on_spark = attrs.evolve(sales, runner="spark", properties={"key": "id", "block_rows": 4, "min_readers": 2})
    assert sorted(on_spark.ids()) == list(range(1, 31))
    sales.database.run(rows("new"))
    assert on_spark.ids() == [31]
