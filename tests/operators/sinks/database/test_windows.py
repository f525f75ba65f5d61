"""Windows in tables of databases: modes, tables that change, repeated publishing. Judged by reading the database."""

from __future__ import annotations

from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import StagedWindow
from dagflow.errors import (
    ForeignChange,
    OperatorFailed,
    RowsRefused,
    RuleBroken,
    StagedRowsMissing,
    TableRefused,
    TableReplaced,
    ValueNotWritable,
)
from dagflow.testing import OperatorTask, Window, run_operator
from tests.operators.databases import Database


@attrs.frozen
class Sale:
    item: str | None
    units: int


@attrs.frozen
class Named:
    item: str
    units: str


def windows(*rows: Any) -> dict[str, list[Any]]:
    return {"input": [Window(list(each)) for each in rows]}


def staged(writer: Any, *rows: Any, number: int = 0, application: str = "app") -> StagedWindow:
    """A window of one task as the driver gets it."""
    with OperatorTask(writer, name="sink", window=number) as task:
        task.context.application = application
        task.give("input", pa.RecordBatch.from_pylist([attrs.asdict(row) for row in rows]))
        task.end_window()
        return StagedWindow(application, number, (writer.stage(),), "sink")


# ---------------------------------------------------------------------------------------------------------------- modes


def test_append_adds_rows(database: Database) -> None:
    run_operator(database.writer(), windows([Sale("pen", 1), Sale("ink", 2)], [], [Sale("pen", 1)]))
    assert database.rows() == [("ink", 2), ("pen", 1), ("pen", 1)]
    assert database.staged() == []


def test_upsert_puts_rows_in_the_place_of_those_with_the_same_keys(database: Database) -> None:
    writer = database.writer(mode="upsert", keys=["item"])
    run_operator(writer, windows([Sale("pen", 1), Sale("ink", 2)], [Sale("pen", 5), Sale("cap", 1), Sale("pen", 6)]))
    assert database.rows() == [("cap", 1), ("ink", 2), ("pen", 6)]


def test_upsert_needs_no_columns_beside_the_keys(database: Database) -> None:
    run_operator(
        database.writer(mode="upsert", keys=["item", "units"]), windows([Sale("pen", 1)], [Sale("pen", 1), Sale("pen", 2)])
    )
    assert database.rows() == [("pen", 1), ("pen", 2)]


def test_replace_puts_the_rows_of_a_window_in_the_place_of_all(database: Database) -> None:
    run_operator(database.writer(mode="replace"), windows([Sale("pen", 1), Sale("ink", 2)], [Sale("cap", 3)], []))
    assert database.rows() == [("cap", 3)]  # a window without rows changes nothing


def test_rows_are_loaded_in_parts(database: Database) -> None:
    rows = [Sale(f"item {n}", n) for n in range(1_000)]
    batches = [pa.RecordBatch.from_pylist([attrs.asdict(row) for row in rows[at : at + 100]]) for at in range(0, 1_000, 100)]
    run_operator(database.writer(buffer_bytes=2_000), {"input": batches})
    assert sorted(row[1] for row in database.rows()) == list(range(1_000))


def test_identifiers_are_quoted(database: Database) -> None:
    batch = pa.record_batch({'a"; DROP TABLE sales; --': ["x"], "select": [1], "Größe %s ?": [2.5]})
    run_operator(database.writer('the "table" %s', mode="upsert", keys=["select"]), {"input": [Window([batch]), Window([batch])]})
    assert database.run('SELECT * FROM "the ""table"" %s"') == [("x", 1, 2.5)]


# ------------------------------------------------------------------------------------------------------- once, and no more


def test_a_window_is_published_once(database: Database) -> None:
    writer = database.writer()
    first = staged(writer, Sale("pen", 1))
    assert not writer.is_published(first)
    for _ in range(3):
        writer.publish(first)
        assert writer.is_published(first)
    second = staged(database.writer(), Sale("ink", 2), number=1)
    assert not writer.is_published(second)
    writer.publish(second)
    writer.publish(first)  # of a launch that believes that it is still at work
    assert database.rows() == [("ink", 2), ("pen", 1)]


def test_applications_and_sinks_share_a_database(database: Database) -> None:
    for application in ("one", "two"):
        for sink in ("a", "b"):
            window = staged(database.writer(), Sale(f"{application} {sink}", 1), application=application)
            database.writer().publish(attrs.evolve(window, sink=sink))
    assert [row[0] for row in database.rows()] == ["one a", "one b", "two a", "two b"]


def test_what_attempts_that_do_not_count_have_staged_is_swept(database: Database) -> None:
    counts, other = staged(database.writer(), Sale("pen", 1)), staged(database.writer(), Sale("dead attempt", 1))
    later = staged(database.writer(), Sale("later", 1), number=1)
    foreign = staged(database.writer(), Sale("foreign", 1), application="another")
    database.writer().publish(counts)
    assert len(database.staged()) == 3
    database.writer().sweep(counts)
    assert sorted(database.staged()) == sorted(each.staged[0][0]["table"] for each in (later, foreign))
    assert other.staged[0][0]["table"] not in database.staged()
    assert database.rows() == [("pen", 1)]


def test_an_error_leaves_nothing_of_a_window(database: Database) -> None:
    window = staged(database.writer(), Sale("pen", 1), Sale("ink", 5))
    database.run('CREATE TABLE "sales" ("item" TEXT NOT NULL, "units" INTEGER CHECK ("units" < 3))')
    with pytest.raises(RowsRefused, match=r"refuses rows of window 0: .*(?i:check).*\n  help: the window is decided"):
        database.writer().publish(window)
    assert database.rows() == []
    assert not database.writer().is_published(window)
    database.run('UPDATE "sales" SET "units" = 0')
    database.run('DROP TABLE "sales"')
    database.writer().publish(window)  # its rows are still staged
    assert database.rows() == [("ink", 5), ("pen", 1)]


@pytest.mark.parametrize("mode", ["append", "upsert", "replace"])
def test_a_row_that_a_rule_of_the_table_refuses_is_a_bad_row(database: Database, mode: str) -> None:
    properties: Any = {"mode": mode, "keys": ["item"] if mode == "upsert" else []}
    database.run('CREATE TABLE "sales" ("item" TEXT PRIMARY KEY, "units" INTEGER CHECK ("units" < 3))')
    rows = [Sale("pen", 1), Sale("ink", 5), Sale("cap", 2)]
    with pytest.raises(RuleBroken, match=r"(?i)the table sales refuses rows: .*check"):
        run_operator(database.writer(**properties), {"input": rows})
    assert run_operator(database.writer(**properties, on_error="skip"), {"input": rows}).skipped == 1
    assert database.rows() == [("cap", 2), ("pen", 1)]


def test_rows_of_several_tasks_or_batches_are_compared_before_the_decision(database: Database) -> None:
    database.run('CREATE TABLE "sales" ("item" TEXT UNIQUE, "units" INTEGER)')
    with OperatorTask(writer := database.writer(), name="sink", window=0) as task:
        task.context.application = "app"
        for items in (["ink"], [f"item {n}" for n in range(500)], ["cap"], ["ink"]):  # more than a page of PostgreSQL
            task.give("input", pa.RecordBatch.from_pylist([{"item": item, "units": 1} for item in items]))
        task.end_window()
        batches = StagedWindow("app", 0, (writer.stage(),), "sink")
    one, other = (staged(database.writer(), Sale("pen", units)) for units in (1, 2))
    for window in (batches, attrs.evolve(one, staged=(*one.staged, *other.staged))):
        with pytest.raises(RowsRefused, match=r"(?i)unique.*\n  help: the window is not decided"):
            database.writer().check_window(window)
    database.writer().check_window(one)
    database.writer().publish(one)
    assert database.rows() == [("pen", 1)]


def test_columns_of_other_types_in_other_tasks_are_refused_before_the_decision(database: Database) -> None:
    one, other = (staged(database.writer(), row) for row in (Sale("pen", 1), Named("pen", "many")))
    window = attrs.evolve(one, staged=(*one.staged, *other.staged))
    if database.kind == "sqlite":  # its columns take values of all types
        database.writer().check_window(window)
        return
    with pytest.raises(TableRefused, match="column 'units' is bigint in some rows, and text in others"):
        database.writer().check_window(window)


# ------------------------------------------------------------------------------------------------------ tables that change


def test_a_table_that_was_created_before_is_written_to(database: Database) -> None:
    database.run('CREATE TABLE "sales" ("note" TEXT DEFAULT \'-\', "item" TEXT, "units" INTEGER)')
    run_operator(database.writer(), windows([Sale("pen", 1)]))
    assert database.rows() == [("-", "pen", 1)]


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_table_that_was_created_again_is_noticed(database: Database, mode: str) -> None:
    properties: Any = {"mode": mode, "keys": ["item"] if mode == "upsert" else []}
    writer = database.writer(**properties)
    writer.publish(staged(database.writer(**properties), Sale("pen", 1)))
    database.run("DROP TABLE sales")
    second = staged(database.writer(**properties), Sale("ink", 1), number=1)
    with pytest.raises(TableReplaced, match="it was dropped, and is not there any more, since window 0"):
        writer.publish(second)
    database.run("CREATE TABLE sales (item TEXT PRIMARY KEY, units INTEGER)")
    with pytest.raises(TableReplaced, match="it was dropped, and is created again, since window 0") as refused:
        writer.publish(second)
    assert database.rows() == []
    database.run(refused.value.accept)
    writer.publish(second)
    assert database.rows() == [("ink", 1)]


def test_a_table_that_is_replaced_anyway_may_be_created_again(database: Database) -> None:
    writer = database.writer(mode="replace")
    writer.publish(staged(database.writer(mode="replace"), Sale("pen", 1)))
    database.run("DROP TABLE sales")
    writer.publish(staged(database.writer(mode="replace"), Sale("ink", 1), number=1))
    assert database.rows() == [("ink", 1)]


def refused_with(database: Database, rows: str) -> ForeignChange:
    """Window 1, which is not published while the table has rows of others."""
    before = database.rows()
    window = staged(database.writer(mode="replace"), Sale("ink", 1), number=1)
    with pytest.raises(ForeignChange, match=f"{rows}\n  help: move these rows to a table of their own") as refused:
        database.writer(mode="replace").publish(window)
    assert database.rows() == before
    return refused.value


def test_rows_of_others_are_not_replaced(database: Database) -> None:
    database.writer(mode="replace").publish(staged(database.writer(mode="replace"), Sale("pen", 1), Sale("ink", 2)))
    database.run("INSERT INTO sales VALUES ('cap', 3)")
    refused = refused_with(database, "it has 3 rows, and had 2 after the last window")
    assert "another writer has changed the table" in str(refused)
    database.run("DELETE FROM sales WHERE item = 'cap'")
    database.writer(mode="replace").publish(staged(database.writer(mode="replace"), Sale("ink", 1), number=1))
    assert database.rows() == [("ink", 1)]
    database.writer(mode="replace").publish(StagedWindow("app", 2, (), "sink"))  # no rows: the table stays as it is
    database.run("INSERT INTO sales VALUES ('cap', 3)")
    with pytest.raises(ForeignChange, match="it has 2 rows, and had 1 after the last window"):
        database.writer(mode="replace").publish(staged(database.writer(mode="replace"), Sale("pen", 1), number=3))


def test_rows_of_others_are_let_go_by_the_statement_that_is_named(database: Database) -> None:
    database.writer(mode="replace").publish(staged(database.writer(mode="replace"), Sale("pen", 1)))
    database.run("INSERT INTO sales VALUES ('cap', 3)")
    refused = refused_with(database, "it has 2 rows, and had 1 after the last window")
    database.run(refused.help[refused.help.index("UPDATE") :])
    database.writer(mode="replace").publish(staged(database.writer(mode="replace"), Sale("ink", 1), number=1))
    assert database.rows() == [("ink", 1)]


def test_rows_of_a_table_that_others_have_made_are_not_replaced(database: Database) -> None:
    database.writer(mode="replace").publish(staged(database.writer(mode="replace"), Sale("pen", 1), Sale("ink", 1)))
    database.run("DROP TABLE sales")
    database.run("CREATE TABLE sales (item TEXT, units BIGINT)")
    database.run("INSERT INTO sales VALUES ('cap', 3)")
    refused_with(database, "it was created again, with rows")


def test_a_record_of_an_earlier_release_gets_the_number_of_rows(database: Database) -> None:
    database.writer(mode="replace").publish(staged(database.writer(mode="replace"), Sale("pen", 1)))
    database.run("ALTER TABLE _dagflow_windows DROP COLUMN row_count")
    database.run("INSERT INTO sales VALUES ('cap', 3)")
    database.writer(mode="replace").publish(staged(database.writer(mode="replace"), Sale("ink", 1), number=1))
    assert database.rows() == [("ink", 1)]
    database.run("INSERT INTO sales VALUES ('cap', 3)")
    with pytest.raises(ForeignChange):
        database.writer(mode="replace").publish(staged(database.writer(mode="replace"), Sale("pen", 1), number=2))


def test_a_table_that_was_only_emptied_is_the_same(database: Database) -> None:
    database.writer().publish(staged(database.writer(), Sale("pen", 1)))
    database.run("DELETE FROM sales")
    database.run("VACUUM")
    database.writer().publish(staged(database.writer(), Sale("ink", 1), number=1))
    assert database.rows() == [("ink", 1)]


LOST = {
    "DELETE FROM _dagflow_windows": "the database has no record of windows 0 to 1, which were published",
    "DROP TABLE _dagflow_windows": "the database has no record of windows 0 to 1, which were published",
    "UPDATE _dagflow_windows SET window_number = 0": "ends with window 0, and window 1 was published",
}


@pytest.mark.parametrize("lost", LOST)
def test_an_older_copy_of_a_database_is_noticed(database: Database, lost: str) -> None:
    for number in range(2):
        database.writer().publish(staged(database.writer(), Sale("pen", number), number=number))
    database.run(lost)
    third = staged(database.writer(), Sale("pen", 2), number=2)
    with pytest.raises(TableReplaced, match=f"{LOST[lost]}; window 2 is decided, and not published") as refused:
        database.writer().publish(third)
    database.run(refused.value.accept)
    database.writer().publish(third)
    assert database.rows() == [("pen", 0), ("pen", 1), ("pen", 2)]


def test_staged_rows_that_are_gone_are_noticed(database: Database) -> None:
    window = staged(database.writer(), Sale("pen", 1), Sale("ink", 1))
    [table] = database.staged()
    database.run(f"DELETE FROM {table} WHERE item = 'ink'")
    with pytest.raises(StagedRowsMissing, match=f"the rows of window 0 for table 'sales' are not as .* in {table}"):
        database.writer().publish(window)
    database.run(f"DROP TABLE {table}")
    with pytest.raises(StagedRowsMissing):
        database.writer().publish(window)
    assert not database.writer().is_published(window)


def test_new_columns_are_refused_with_the_difference(database: Database) -> None:
    window = staged(database.writer(), Sale("pen", 1))
    database.run('CREATE TABLE "sales" ("item" TEXT)')
    message = r"does not fit window 0: column 'units' \((INTEGER|bigint)\) is not in the table\n  help: alter"
    with pytest.raises(TableRefused, match=message):
        staged(database.writer(), Sale("pen", 1))
    with pytest.raises(TableRefused, match=message):
        database.writer().publish(window)
    database.writer(on_schema_change="evolve").publish(window)
    assert database.rows() == [("pen", 1)]


def test_batches_with_other_columns_are_refused_or_staged_apart(database: Database) -> None:
    batches = [pa.record_batch({"a": [1]}), pa.record_batch({"b": ["x"], "a": [2]}), pa.record_batch({"a": [3], "b": ["y"]})]
    with pytest.raises(TableRefused, match=r"column 'b' \(string\) is new\n  help: give the reader a schema"):
        run_operator(database.writer(), {"input": batches})
    run_operator(database.writer(on_schema_change="evolve"), {"input": batches})
    assert database.run("SELECT a, b FROM sales ORDER BY a") == [(1, None), (2, "x"), (3, "y")]


def test_upsert_leaves_columns_that_rows_lack(database: Database) -> None:
    batches = [pa.record_batch({"k": [1, 2], "a": [1, 1], "b": [1, 1]}), pa.record_batch({"k": [1], "b": [5]})]
    writer = database.writer(mode="upsert", keys=["k"], on_schema_change="evolve")
    run_operator(writer, {"input": [Window([each]) for each in batches]})
    assert database.run("SELECT k, a, b FROM sales ORDER BY k") == [(1, 1, 5), (2, 1, 1)]


def test_upsert_needs_a_unique_index(database: Database) -> None:
    database.run('CREATE TABLE "sales" ("item" TEXT, "units" INTEGER)')
    with pytest.raises(TableRefused, match=r"(?i)unique"):
        run_operator(database.writer(mode="upsert", keys=["item"]), windows([Sale("pen", 1)]))
    assert database.rows() == []


# ------------------------------------------------------------------------------------------------------------------- rows


def test_keys_must_have_values(database: Database) -> None:
    with pytest.raises(ValueNotWritable, match="'item' has null, which a key does not support"):
        run_operator(database.writer(mode="upsert", keys=["item"]), windows([Sale(None, 1)]))


def test_keys_must_be_columns(database: Database) -> None:
    with pytest.raises(TableRefused, match="there is no column 'key' among item, units"):
        run_operator(database.writer(mode="upsert", keys=["key"]), {"input": [pa.record_batch({"item": ["x"], "units": [1]})]})


def test_names_of_columns_must_be_usable(database: Database) -> None:
    with pytest.raises(TableRefused, match="column '' cannot be written: it is empty"):
        run_operator(database.writer(), {"input": [pa.record_batch({"": [1]})]})
    with pytest.raises(TableRefused, match="column '_dagflow_row' cannot be written: it is dagflow's own"):
        run_operator(database.writer(), {"input": [pa.record_batch({"_dagflow_row": [1]})]})


def test_values_of_their_own_kind(database: Database) -> None:
    run_operator(database.writer(), {"input": ["a", "b"]})
    assert database.run("SELECT value FROM sales ORDER BY value") == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"mode": "upsert"}, "keys is empty"),
        ({"keys": ["a"]}, "keys is of no use with mode 'append'"),
        ({"table": ""}, "table is"),
        ({"table": "_dagflow_windows"}, "table is '_dagflow_windows': such names are reserved"),
    ],
)
def test_properties_that_contradict_each_other(database: Database, properties: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        attrs.evolve(database.writer(), **properties).check()


def test_records_that_cannot_be_written_are_skipped(database: Database) -> None:
    writer = database.writer(mode="upsert", keys=["item"], on_error="skip")
    assert run_operator(writer, windows([Sale("pen", 1), Sale(None, 2), Sale("ink", 3)])).skipped == 1
    assert database.rows() == [("ink", 3), ("pen", 1)]


def test_an_operator_without_a_database_says_so() -> None:
    from operators.sinks.database.writer import DatabaseWriter

    with pytest.raises(OperatorFailed, match=r"DatabaseWriter has no database: override dialect\(\)"):
        run_operator(DatabaseWriter(table="x"), {"input": ["a"]})
