"""Launches of applications that write to tables: the store is tried first, reports name it, and `--fresh` doubles no rows."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, ReaderRecord
from dagflow.errors import DagflowError, PackageMissing
from dagflow.page.run.data import RunReader
from dagflow.page.run.report import run_report
from dagflow.render.report import report_json, report_text
from dagflow.runtime.events import Event, RunStarted, WindowStarted
from dagflow.scan import Drift
from dagflow.storage.records.errors import RecordDamaged
from dagflow.testing import run_dag
from operators import BlockReader, CsvFormat, DeltaWriter, FileSplitterInput, IcebergWriter, Map, ScanReader, SqlWriter
from operators.database.errors import DatabaseRefused
from operators.extras.errors import TableUnreachable
from operators.sinks.database.errors import TableRefused
from operators.sinks.database.staging import staged_prefix
from operators.sinks.table_formats.errors import TableSchemaDiffers
from operators.sinks.tables.errors import TableHasRows
from tests.operators.databases import Database


@attrs.frozen
class Line:
    name: str
    length: int


def line_of(record: ReaderRecord[str]) -> Line:
    return Line(record.record, len(record.record))


@attrs.frozen
class Shop:
    """An application that writes the lines of a folder to a table.

    Attributes:
        make: makes the sink, with `mode` and `keys`.
        names: reads the names in the table, sorted.
        empty: removes the rows of the table.
    """

    folder: Path
    make: Callable[..., Any]
    names: Callable[[], list[str]]
    empty: Callable[[], object]

    def deliver(self, name: str, *lines: str) -> None:
        (self.folder / "in").mkdir(exist_ok=True)
        (self.folder / "in" / name).write_text("".join(f"{line}\n" for line in lines))

    def populate(self, dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(self.folder / "in")]))
        lines = dag.add_operator("lines", BlockReader())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        made = dag.add_operator("made", Map[Any, Line](line_of))
        dag.add_stream("lines", lines.messages, made.input)
        dag.add_stream("made", made.output, dag.add_operator("table", self.make(**conf)).input)

    def launch(self, run: str = "run", properties: Any = None, **options: Any) -> Any:
        def populate_dag(dag: DAG, conf: Any) -> None:
            self.populate(dag, properties or {})

        return run_dag(populate_dag, {"run_folder": str(self.folder / run)}, **options)


UPSERT: dict[str, Any] = {"mode": "upsert", "keys": ["name"]}


def of_database(database: Database, folder: Path) -> Shop:
    def names() -> list[str]:
        return [name for name, _ in database.rows()]

    return Shop(folder, database.writer, names, lambda: database.run("DELETE FROM sales"))


def of_delta(folder: Path) -> Shop:
    import deltalake

    place = folder / "delta"
    return Shop(
        folder,
        lambda **properties: DeltaWriter(place, **properties),
        lambda: sorted(deltalake.DeltaTable(place).to_pyarrow_table().column("name").to_pylist()),
        lambda: deltalake.DeltaTable(place).delete(),
    )


def of_iceberg(folder: Path) -> Shop:
    catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}

    def table() -> Any:
        opened = IcebergWriter("shop.sales", catalog).open_table()
        assert opened is not None
        return opened.table

    return Shop(
        folder,
        lambda **properties: IcebergWriter("shop.sales", catalog, **properties),
        lambda: sorted(table().scan().to_arrow().column("name").to_pylist()),
        lambda: table().delete(),
    )


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.full),
        pytest.param("delta", marks=pytest.mark.full),
        pytest.param("iceberg", marks=pytest.mark.full),
    ]
)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    """The application on each kind of table."""
    if request.param in ("sqlite", "postgres"):
        made = of_database(request.getfixturevalue(request.param), tmp_path)
    else:
        made = {"delta": of_delta, "iceberg": of_iceberg}[request.param](tmp_path)
    made.deliver("a.txt", "ink", "pen")
    return made


# ----------------------------------------------------------------------------------------------------------- what is shown


def test_reports_name_the_tables_and_their_rows(shop: Shop) -> None:
    events: list[Event] = []
    report = shop.launch(subscribers=[events.append])
    destination = shop.make().destination()
    assert f"sink     table: 2 rows to {destination}" in report_text(report)
    assert report_json(report)["sinks"] == {"table": {"destination": destination, "rows": 2}}
    (started,) = (event for event in events if isinstance(event, RunStarted))
    assert started.sinks == {"table": destination}
    run = str(shop.folder / "run")
    assert f"sink     table: 2 rows to {destination}" in report_text(run_report(run))
    shop.deliver("b.txt", "cap")
    shop.launch()
    assert RunReader(run).data(rows=False)["run"]["sinks"] == [{"operator": "table", "destination": destination, "rows": 3}]


@pytest.mark.full
def test_no_password_is_shown(postgres: Database, tmp_path: Path) -> None:
    address = postgres.address.replace("postgres:@", "postgres:geheim@")
    assert "geheim" in address
    shop = of_database(attrs.evolve(postgres, address=address), tmp_path)
    shop.deliver("a.txt", "ink")
    report = shop.launch()
    assert "geheim" not in json.dumps(report_json(report)) + report_text(report)
    assert not any(b"geheim" in path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())


# ---------------------------------------------------------------------------------------------------- before anything runs


def nothing_was_planned(shop: Shop) -> bool:
    return not list((shop.folder / "run").rglob("plan/*"))


def test_a_database_that_cannot_be_opened_ends_the_launch_before_it_begins(tmp_path: Path) -> None:
    shop = Shop(tmp_path, lambda **_: SqlWriter(f"sqlite:///{tmp_path}/nowhere/shop.db", "sales"), list, lambda: None)
    shop.deliver("a.txt", "ink")
    with pytest.raises(DatabaseRefused, match=r"nowhere/shop\.db") as refused:
        shop.launch()
    assert refused.value.where_in_run["operator"] == "table"
    assert nothing_was_planned(shop)


@pytest.mark.full
def test_a_server_that_does_not_answer_ends_the_launch_before_it_begins(server: Any, tmp_path: Path) -> None:
    address = "postgresql://ada:geheim@127.0.0.1:1/shop"
    shop = of_database(Database("postgres", address), tmp_path)
    shop.deliver("a.txt", "ink")
    with pytest.raises(DagflowError) as down:
        shop.launch()
    text = "\n".join([str(down.value), *down.value.notes])
    assert text.startswith("127.0.0.1:1/shop: the database is not available")
    assert "\n  help: start the database" in text
    assert "geheim" not in text
    assert nothing_was_planned(shop)


@pytest.mark.full
def test_a_catalog_that_does_not_answer_ends_the_launch_before_it_begins(tmp_path: Path) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/nowhere/catalog.db", "warehouse": f"file://{tmp_path}"}
    shop = Shop(tmp_path, lambda **_: IcebergWriter("shop.sales", catalog), list, lambda: None)
    shop.deliver("a.txt", "ink")
    with pytest.raises(TableUnreachable, match=r"shop\.sales cannot be opened: OperationalError") as down:
        shop.launch()
    assert "\n  help: start the catalog" in str(down.value)
    assert nothing_was_planned(shop)


@pytest.mark.parametrize(("module", "make"), [("deltalake", DeltaWriter), ("pyiceberg", IcebergWriter)])
def test_a_missing_package_ends_the_launch_before_it_begins(
    module: str, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "table" / "_delta_log").mkdir(parents=True)
    monkeypatch.setitem(sys.modules, module, None)
    shop = Shop(tmp_path, lambda **_: make("shop.sales" if make is IcebergWriter else tmp_path / "table"), list, lambda: None)
    shop.deliver("a.txt", "ink")
    with pytest.raises(PackageMissing, match="pip install"):
        shop.launch()
    assert nothing_was_planned(shop)


def test_a_table_that_cannot_take_the_columns_ends_the_launch_before_it_begins(shop: Shop) -> None:
    @attrs.frozen
    class Longer(Line):
        colour: str

    shop.launch()
    before = shop.names()

    def longer(record: ReaderRecord[str]) -> Longer:
        return Longer(record.record, 1, "red")

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(shop.folder / "in")]))
        lines = dag.add_operator("lines", BlockReader())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        made = dag.add_operator("made", Map[Any, Longer](longer))
        dag.add_stream("lines", lines.messages, made.input)
        dag.add_stream("made", made.output, dag.add_operator("longer", shop.make()).input)

    with pytest.raises((TableRefused, TableSchemaDiffers), match="colour"):
        run_dag(populate_dag, {"run_folder": str(shop.folder / "other")})
    assert not list((shop.folder / "other").rglob("plan/*"))
    assert shop.names() == before


def test_columns_that_only_the_data_shows_are_tried_before_tasks_start(database: Database, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.csv").write_text("name,length\nink,3\n")
    begun: list[Event] = []

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)]))
        reader = dag.add_operator("reader", ScanReader(CsvFormat(), drift=Drift(extra="widen")))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, dag.add_operator("table", database.writer()).input)

    settings = {"run_folder": str(tmp_path / "run")}
    run_dag(populate_dag, settings)
    (source / "b.csv").write_text("name,length,colour\npen,3,red\n")
    with pytest.raises(TableRefused, match=r"'colour' \(text\) is not in the table|'colour' \(TEXT\) is not in the table"):
        run_dag(populate_dag, settings, subscribers=[begun.append])
    assert not any(isinstance(event, WindowStarted) for event in begun)
    database.run("ALTER TABLE sales ADD COLUMN colour TEXT")
    assert run_dag(populate_dag, settings).windows == 1
    assert database.rows() == [("ink", 3, None), ("pen", 3, "red")]


def test_an_upsert_without_a_unique_index_ends_the_launch_before_it_begins(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE sales (name TEXT, length BIGINT)")
    shop = of_database(database, tmp_path)
    shop.deliver("a.txt", "ink")
    with pytest.raises(TableRefused, match="ON CONFLICT") as refused:
        shop.launch(properties=UPSERT)
    assert "unique index" in str(refused.value)
    assert nothing_was_planned(shop)
    database.run("CREATE UNIQUE INDEX by_name ON sales (name)")
    shop.launch(properties=UPSERT)
    assert shop.names() == ["ink"]


def test_the_try_leaves_nothing_behind(sqlite: Database, tmp_path: Path) -> None:
    shop = of_database(sqlite, tmp_path)
    shop.deliver("a.txt", "ink")
    shop.launch()
    schema = sqlite.run("SELECT * FROM sqlite_master ORDER BY name")
    shop.launch()
    assert sqlite.run("SELECT * FROM sqlite_master ORDER BY name") == schema
    assert sqlite.staged() == []


# ----------------------------------------------------------------------------------------------- rows of the runs before


def test_fresh_is_refused_while_a_table_has_the_rows_of_the_run_before(shop: Shop) -> None:
    shop.launch()
    with pytest.raises(TableHasRows, match="they would be there twice") as refused:
        shop.launch(fresh=True)
    assert "empty the table" in str(refused.value)
    shop.deliver("b.txt", "cap")
    assert shop.launch().windows == 1, "nothing was removed: the run resumes"
    assert shop.names() == ["cap", "ink", "pen"]
    shop.empty()
    assert shop.launch(fresh=True).warnings == []
    assert shop.names() == ["cap", "ink", "pen"]


def test_fresh_is_refused_too_where_the_run_folder_no_longer_says_what_it_replaces(shop: Shop) -> None:
    shop.launch()
    record = shop.folder / "run" / "app-id"
    record.write_bytes(b"damaged")
    with pytest.raises(RecordDamaged, match="--fresh"):
        shop.launch()
    with pytest.raises(TableHasRows, match="those of a window of the runs before"):
        shop.launch(fresh=True)
    record.unlink()
    with pytest.raises(TableHasRows):
        shop.launch(fresh=True)
    assert shop.names() == ["ink", "pen"]
    shop.empty()
    assert shop.launch(fresh=True).warnings == []
    assert shop.names() == ["ink", "pen"]


def test_fresh_says_which_rows_an_upsert_leaves(shop: Shop) -> None:
    shop.launch(properties=UPSERT)
    (shop.folder / "in" / "a.txt").unlink()
    shop.deliver("b.txt", "cap", "ink")
    (warning,) = shop.launch(properties=UPSERT, fresh=True).warnings
    assert "those whose keys the new run does not write stay" in warning
    assert shop.names() == ["cap", "ink", "pen"]


def test_fresh_replaces_what_replace_has_written(shop: Shop) -> None:
    shop.launch(properties={"mode": "replace"})
    assert shop.launch(properties={"mode": "replace"}, fresh=True).warnings == []
    assert shop.names() == ["ink", "pen"]


def test_another_run_folder_is_warned_of_the_rows_that_are_there(shop: Shop) -> None:
    assert shop.launch().warnings == []
    (warning,) = shop.launch("another run").warnings
    assert "has a window of earlier runs of this application" in warning
    assert "there twice" in warning
    assert shop.names() == ["ink", "ink", "pen", "pen"]
    assert shop.launch("another run").warnings == [], "only the first launch of a run warns"


def test_fresh_removes_what_the_run_before_has_staged(sqlite: Database, tmp_path: Path) -> None:
    shop = of_database(sqlite, tmp_path)
    shop.deliver("a.txt", "ink")
    shop.launch(properties={"mode": "replace"})
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        ((application,),) = connection.execute("SELECT application FROM _dagflow_windows").fetchall()
        connection.execute(f'CREATE TABLE "{staged_prefix(application, "table")}0000000007_1f" (name TEXT)')
    shop.launch(properties={"mode": "replace"}, fresh=True)
    assert sqlite.staged() == []
