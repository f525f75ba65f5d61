"""IcebergWriter: modes, columns, other writers, and tables that were changed between windows."""

from __future__ import annotations

import contextlib
import datetime
import gc
import json
import shutil
import sys
import types
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import attrs
import polars as pl
import pyarrow as pa
import pytest
import sqlalchemy

from dagflow import StagedWindow
from dagflow.errors import HistoriesDiffer, PackageMissing
from dagflow.storage import open_store, read_sealed, seal
from dagflow.testing import Window, run_operator
from operators import IcebergWriter
from operators.extras import tables
from operators.sinks.errors import TypeNotWritable
from operators.sinks.iceberg.snapshots import IcebergTable
from operators.sinks.table_formats.errors import (
    StagedFileGone,
    TableDropped,
    TableRecreated,
    TableRolledBack,
    TableSchemaDiffers,
)
from operators.sinks.tables.errors import ForeignChange
from tests.operators.sinks.iceberg.rest import serving
from tests.operators.sinks.tables import staged_window

pytestmark = pytest.mark.full  # each commit takes a tenth of a second

Make = Callable[..., IcebergWriter[Any]]


@attrs.frozen
class Row:
    key: str | None
    n: int


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Make a sink with a catalog in a file, or with one on a server."""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # its own planner is another package
    staging = {}
    with contextlib.ExitStack() as stack:
        if getattr(request, "param", "sql") == "rest":
            catalog, staging = stack.enter_context(serving(tmp_path)).properties, {"staging": f"{tmp_path}/staging"}
        else:
            catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
        yield lambda *arguments, **options: IcebergWriter("shop.rows", catalog, *arguments, **{**staging, **options})


both_catalogs = pytest.mark.parametrize("make", ["sql", "rest"], indirect=True)
"""For tests in which the catalog does the work, or refuses it."""


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def table_of(sink: IcebergWriter[Any]) -> Any:
    opened = sink.open_table()
    assert opened is not None
    return opened.table


def rows(sink: IcebergWriter[Any]) -> list[tuple[Any, ...]]:
    """The rows as pyiceberg reads them; Polars, from the metadata file alone, must see the same ones."""
    table = table_of(sink)
    found = sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=str)
    assert sorted(pl.scan_iceberg(table.metadata_location).collect().rows(), key=str) == found
    return found


def publish(sink: IcebergWriter[Any], number: int, *batches: pa.RecordBatch, run: bool = True) -> StagedWindow:
    """Stage a window in a task, and publish it on the driver."""
    task = IcebergWriter(sink.path, **{a.name: getattr(sink, a.name) for a in attrs.fields(type(sink)) if a.alias != "table"})
    window = staged_window(task, number, *batches)
    if run:
        sink.publish(window)
    return window


@pytest.mark.parametrize("partition_columns", [[], ["key"]])
@pytest.mark.parametrize(
    ("mode", "keys", "expected"),
    [
        ("append", [], [("a", 1), ("a", 1), ("b", 2), (None, 3)]),
        ("replace", [], [("a", 1), (None, 3)]),
        ("upsert", ["n"], [("a", 1), ("b", 2), (None, 3)]),
    ],
)
def test_modes(mode: str, keys: list[str], expected: list[Any], partition_columns: list[str], make: Make) -> None:
    sink = make(mode, keys=keys, partition_columns=partition_columns)
    run_operator(sink, {"input": [Window([Row("a", 1), Row("b", 2)]), Window([]), Window([Row(None, 3), Row("a", 1)])]})
    assert rows(sink) == sorted(expected, key=str)
    opened = sink.open_table()
    assert opened is not None
    assert opened.partition_columns == partition_columns


def test_partition_values_that_names_of_folders_encode(make: Make) -> None:
    sink = make(partition_columns=["key"])
    run_operator(sink, {"input": [Row("a b", 1), Row("å/%:=", 2)]})
    assert rows(sink) == [("a b", 1), ("å/%:=", 2)]


@both_catalogs
def test_a_window_is_one_commit_that_names_it(make: Make) -> None:
    sink = make(max_file_rows=1)
    publish(sink, 0, batch(n=[1, 2, 3]))
    publish(sink, 1)
    publish(sink, 2, batch(n=[4]))
    table = table_of(sink)
    assert [each.summary["dagflow.window"] for each in table.snapshots()] == ["0", "2"]
    assert table.properties["dagflow.window.app/sink"] == "2"
    assert len(list(table.scan().plan_files())) == 4


@both_catalogs
def test_publishing_again_changes_nothing(make: Make) -> None:
    sink = make()
    window = publish(sink, 0, batch(n=[1]), run=False)
    assert not sink.is_published(window)
    sink.publish(window)
    assert sink.is_published(window)
    sink.publish(window)
    assert rows(sink) == [(1,)]
    assert len(table_of(sink).snapshots()) == 1


def test_empty_windows_before_the_first_rows(make: Make) -> None:
    sink = make()
    assert sink.is_published(publish(sink, 0))
    publish(sink, 1, batch(n=[1]))
    assert rows(sink) == [(1,)]


@both_catalogs
def test_only_so_many_snapshots_are_kept(make: Make) -> None:
    sink = make(keep_snapshots=3)
    publish(sink, 0, batch(n=[0]))
    first = table_of(sink).current_snapshot().snapshot_id
    table_of(sink).manage_snapshots().create_tag(first, "first").commit()
    for number in range(1, 7):
        publish(sink, number, batch(n=[number]))
    table = table_of(sink)
    assert [each.summary["dagflow.window"] for each in table.snapshots()] == ["0", "4", "5", "6"], "a tag keeps its snapshot"
    assert rows(sink) == [(n,) for n in range(7)]


@both_catalogs
def test_snapshots_that_others_expire_at_the_same_time(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = make(keep_snapshots=2)
    for number in range(2):
        publish(sink, number, batch(n=[number]))
    for_commit = IcebergTable.for_commit

    def raced(table: IcebergTable, expiring: Collection[int] = ()) -> Any:
        if expiring:
            table_of(sink).maintenance.expire_snapshots().by_ids(list(expiring)).commit()
        return for_commit(table, expiring)

    monkeypatch.setattr(IcebergTable, "for_commit", raced)
    for number in range(2, 5):
        publish(sink, number, batch(n=[number]))
    assert [each.summary["dagflow.window"] for each in table_of(sink).snapshots()] == ["3", "4"]
    assert rows(sink) == [(n,) for n in range(5)]


@both_catalogs
def test_a_commit_copies_no_history(make: Make) -> None:
    """pyiceberg copies all metadata many times in a commit; what is left out stays in the table."""
    sink = make()
    for number in range(4):
        publish(sink, number, batch(n=[number]))
    opened = sink.open_table()
    assert opened is not None
    newest = opened.version
    stripped = opened.for_commit().metadata
    assert [each.snapshot_id for each in stripped.snapshots] == [newest]
    assert stripped.snapshot_log == stripped.metadata_log == []
    table = table_of(sink)
    assert [each.summary["dagflow.window"] for each in table.snapshots()] == ["0", "1", "2", "3"]
    assert len(table.metadata.metadata_log) >= 4
    assert "commit.retry.num-retries" not in table.properties


def test_old_metadata_files_are_removed(make: Make, tmp_path: Path) -> None:
    sink = make()
    publish(sink, 0, batch(n=[0]))
    with table_of(sink).transaction() as transaction:
        transaction.set_properties({"write.metadata.previous-versions-max": "2"})
    for number in range(1, 6):
        publish(sink, number, batch(n=[number]))
    assert len(list((tmp_path / "warehouse").rglob("*.metadata.json"))) == 3
    assert len(rows(sink)) == 6


def test_the_property_outlives_the_snapshots(make: Make) -> None:
    sink = make()
    publish(sink, 0, batch(n=[1]))
    window = publish(sink, 1, batch(n=[2]))
    table = table_of(sink)
    table.maintenance.expire_snapshots().by_id(table.snapshots()[0].snapshot_id).commit()
    assert len(table_of(sink).snapshots()) == 1
    assert sink.is_published(window)
    publish(sink, 2, batch(n=[3]))
    assert rows(sink) == [(1,), (2,), (3,)]


TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "int8": (pa.int8(), -4),
    "uint32": (pa.uint32(), 4_000_000_000),
    "uint64": (pa.uint64(), 18_000_000_000_000_000_000),
    "time": (pa.time32("s"), datetime.time(1, 2, 3)),
    "zone": (pa.timestamp("ns", "Europe/Oslo"), datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), "Å"),
    "fixed": (pa.binary(2), b"ab"),
    "decimal": (pa.decimal128(9, 2), 1),
    "list": (pa.large_list(pa.uint8()), [1, 255]),
    "struct": (pa.struct({"a": pa.uint16()}), {"a": 65_535}),
    "map": (pa.map_(pa.string(), pa.int32()), [("a", 1)]),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_keep_their_values(name: str, make: Make) -> None:
    kind, value = TYPES[name]
    sink = make()
    publish(sink, 0, pa.RecordBatch.from_arrays([pa.array([value, None], kind)], ["x"]))
    publish(sink, 1, pa.RecordBatch.from_arrays([pa.array([value], kind)], ["x"]))
    assert sorted(table_of(sink).scan().to_arrow().column("x").to_pylist(), key=str) == sorted([value, None, value], key=str)


def test_types_that_iceberg_does_not_have_are_named(make: Make) -> None:
    with pytest.raises(TypeNotWritable, match=r"column 'x' is of type duration\[s\], which Iceberg does not support"):
        publish(make(), 0, pa.RecordBatch.from_arrays([pa.nulls(1, pa.duration("s"))], ["x"]))


@both_catalogs
def test_new_columns_are_refused_or_added_and_types_promoted(make: Make) -> None:
    sink = make()
    narrow = pa.RecordBatch.from_arrays([pa.array([1], pa.int32()), pa.array([0.5], pa.float32())], ["n", "f"])
    publish(sink, 0, narrow)
    with pytest.raises(
        TableSchemaDiffers, match=r"column 'n' is int64, and the table has int32; column 'x' \(string\) is not in"
    ):
        publish(sink, 1, batch(n=[2], x=["a"]), run=False)
    evolves = make(on_schema_change="evolve")
    publish(evolves, 1, batch(x=["a"], n=[1 << 40], f=[0.25]))
    publish(evolves, 2, narrow)
    assert rows(sink) == [(1, 0.5, None), (1, 0.5, None), (1 << 40, 0.25, "a")]
    with pytest.raises(TableSchemaDiffers, match="column 'n' is string, and the table has int64"):
        publish(evolves, 3, batch(n=["a"]), run=False)


def meanwhile(monkeypatch: pytest.MonkeyPatch, write: Callable[[], object], times: int = 1) -> None:
    """Another writer commits just before our first commits."""
    commit, left = IcebergWriter.commit, [None] * times

    def late(sink: Any, *arguments: Any) -> Any:
        if left:
            left.pop()
            write()
        return commit(sink, *arguments)

    monkeypatch.setattr(IcebergWriter, "commit", late)


@both_catalogs
@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_rows_of_other_writers_stay(mode: str, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = make(mode, keys=["n"] if mode == "upsert" else [])
    publish(sink, 0, batch(n=[1]))
    meanwhile(monkeypatch, lambda: table_of(sink).append(pa.table({"n": [9]})), 2)
    publish(sink, 1, batch(n=[2]))
    assert rows(sink) == [(1,), (2,), (9,), (9,)]


@both_catalogs
def test_columns_of_another_writer_are_seen(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = make()
    publish(sink, 0, batch(n=[1]))

    def add_column() -> None:
        with table_of(sink).update_schema() as update:
            update.union_by_name(pa.schema({"x": pa.string()}))

    meanwhile(monkeypatch, add_column)
    publish(sink, 1, batch(n=[2]))
    assert rows(sink) == [(1, None), (2, None)]


@both_catalogs
def test_a_second_launch_that_publishes_the_same_window_adds_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = make()
    publish(sink, 0, batch(n=[1]))
    window = publish(sink, 1, batch(n=[2]), run=False)
    meanwhile(monkeypatch, lambda: sink.publish(window))
    sink.publish(window)
    assert rows(sink) == [(1,), (2,)]


def test_replace_refuses_to_remove_what_others_have_written(make: Make) -> None:
    sink = make("replace")
    publish(sink, 0, batch(n=[1]))
    good = table_of(sink).current_snapshot().snapshot_id
    table_of(sink).append(pa.table({"n": [9]}))
    with pytest.raises(ForeignChange, match=r"snapshot \d+: append at "):
        publish(sink, 1, batch(n=[2]))
    table_of(sink).manage_snapshots().rollback_to_snapshot(good).commit()
    publish(sink, 1, batch(n=[2]))
    assert rows(sink) == [(2,)]


@both_catalogs
def test_a_table_that_was_dropped_or_recreated_is_named(make: Make, tmp_path: Path) -> None:
    sink = make()
    publish(sink, 0, batch(n=[1]))
    tables.loaded_catalog("IcebergWriter", sink.catalog).drop_table("shop.rows")
    with pytest.raises(TableDropped, match="window 0 was published as snapshot"):
        publish(sink, 1, batch(n=[2]))
    sink.create_table(pa.schema({"n": pa.int64()}))
    with pytest.raises(TableRecreated, match="dropped and created again"):
        publish(sink, 1, batch(n=[2]))


def test_a_catalog_whose_file_was_made_anew_is_opened_anew(make: Make, tmp_path: Path) -> None:
    publish(make(), 0, batch(n=[1]))
    publish(make(), 1, batch(n=[2]))
    (tmp_path / "catalog.db").rename(tmp_path / "old.db")  # its number stays in use
    shutil.rmtree(tmp_path / "warehouse")
    publish(make(), 0, batch(n=[3]))
    assert rows(make()) == [(3,)]


@both_catalogs
def test_a_table_that_was_rolled_back_is_named_until_it_is_restored(make: Make) -> None:
    sink = make()
    publish(sink, 0, batch(n=[1]))
    publish(sink, 1, batch(n=[2]))
    first, second = (each.snapshot_id for each in table_of(sink).snapshots())
    table_of(sink).manage_snapshots().rollback_to_snapshot(first).commit()
    with pytest.raises(TableRolledBack, match=f"its newest snapshot is {first}, which does not build on .* snapshot {second}"):
        publish(sink, 2, batch(n=[3]))
    table_of(sink).append(pa.table({"n": [9]}))
    with pytest.raises(TableRolledBack):
        publish(sink, 2, batch(n=[3]))
    table_of(sink).manage_snapshots().set_current_snapshot(second).commit()
    publish(sink, 2, batch(n=[3]))
    assert rows(sink) == [(1,), (2,), (3,)]


def expire(sink: IcebergWriter[Any], *numbers: int) -> None:
    table_of(sink).maintenance.expire_snapshots().by_ids(list(numbers)).commit()


def test_an_upsert_adds_columns_to_rows_that_are_there(make: Make) -> None:
    sink = make("upsert", keys=["n"], on_schema_change="evolve")
    publish(sink, 0, batch(n=[1, 2]))
    publish(sink, 1, batch(n=[2, 3], v=["b", "c"]))
    assert rows(sink) == [(1, None), (2, "b"), (3, "c")]


@pytest.mark.parametrize("commits", [1, 2])
@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_run_resumes_after_its_snapshots_have_expired_behind_another_writer(make: Make, mode: str, commits: int) -> None:
    sink = make(mode, keys=["n"] if mode == "upsert" else [])
    publish(sink, 0, batch(n=[1]))
    for n in range(commits):
        table_of(sink).append(pa.table({"n": [8 + n]}))
    *others, _ = (each.snapshot_id for each in table_of(sink).snapshots())
    expire(sink, *others)
    [kept] = table_of(sink).snapshots()
    assert kept.parent_snapshot_id is None  # the table does not say that there were snapshots before
    publish(sink, 1, batch(n=[2]))
    assert rows(sink) == [(1,), (2,), *((8 + n,) for n in range(commits))]


def test_an_overwrite_by_another_writer_is_no_rollback(make: Make) -> None:
    sink = make()
    publish(sink, 0, batch(n=[1, 2, 3]))
    table_of(sink).delete("n < 3")
    before, _ = (each.snapshot_id for each in table_of(sink).snapshots())
    expire(sink, before)
    publish(sink, 1, batch(n=[4]))
    assert rows(sink) == [(3,), (4,)]


def test_a_rollback_is_named_where_the_lost_snapshot_has_expired(make: Make) -> None:
    sink = make()
    publish(sink, 0, batch(n=[1]))
    publish(sink, 1, batch(n=[2]))
    first, second = (each.snapshot_id for each in table_of(sink).snapshots())
    table_of(sink).manage_snapshots().rollback_to_snapshot(first).commit()
    expire(sink, second)
    with pytest.raises(TableRolledBack):
        publish(sink, 2, batch(n=[3]))
    table_of(sink).append(pa.table({"n": [9]}))
    expire(sink, first)
    with pytest.raises(TableRolledBack):
        publish(sink, 2, batch(n=[3]))


def test_notes_of_earlier_releases_have_no_facts(make: Make, tmp_path: Path) -> None:
    sink = make()
    publish(sink, 0, batch(n=[1]))
    [path] = tmp_path.glob("warehouse/shop.rows/_dagflow/tables/app/sink/published/*")
    fields = json.loads(read_sealed(open_store(str(path.parents[1])), f"published/{path.name}").body)
    del fields["facts"]
    path.write_bytes(seal(f"published/{path.name}", json.dumps(fields).encode()))
    publish(sink, 1, batch(n=[2]))
    assert rows(sink) == [(1,), (2,)]


def test_lost_files_and_old_run_folders_are_named(make: Make, tmp_path: Path) -> None:
    sink = make()
    publish(sink, 0, batch(n=[1]))
    with pytest.raises(HistoriesDiffer, match="has window 0 of this run, by another decision"):
        publish(sink, 0, batch(n=[2]))
    window = publish(sink, 1, batch(n=[2]), run=False)
    [lost] = tmp_path.glob("warehouse/shop.rows/_dagflow/tables/app/sink/staged/0000000001.*")
    lost.unlink()
    with pytest.raises(StagedFileGone, match="it is not there"):
        sink.publish(window)
    assert rows(sink) == [(1,)]


def test_what_is_wrong_with_properties(make: Make) -> None:
    with pytest.raises(ValueError, match="needs the columns that identify a row"):
        make("upsert").check()
    with pytest.raises(ValueError, match=r"table is 'rows', and must have a namespace: 'shop\.rows'"):
        IcebergWriter("rows").check()
    with pytest.raises(ValueError, match="the warehouse of the catalog is 'main', which is not a folder or URL: set staging"):
        IcebergWriter("shop.rows", {"type": "sql", "warehouse": "main"}).home()
    rest = {"type": "rest", "uri": "https://catalog", "warehouse": "prod/lake"}
    with pytest.raises(ValueError, match="catalog is 'prod/lake', which is not a folder or URL: set staging"):
        IcebergWriter("shop.rows", rest).home()
    assert IcebergWriter("shop.rows", rest, staging="s3://bucket/staged").home() == "s3://bucket/staged/shop.rows"


def test_a_missing_package_is_named_with_its_extra(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    with pytest.raises(PackageMissing, match=r"(?s)package pyiceberg.*pip install 'dagflow\[iceberg\]'"):
        publish(make(), 0, batch(n=[1]))


def test_tasks_that_create_the_tables_of_a_catalog_at_once_load_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    catalog = types.SimpleNamespace(properties={})

    def load_catalog(name: str | None, **properties: str) -> Any:
        loads.append(properties["uri"])
        if len(loads) < 3:
            raise sqlalchemy.exc.OperationalError("CREATE TABLE iceberg_tables", None, Exception("table already exists"))
        return catalog

    monkeypatch.setattr("pyiceberg.catalog.load_catalog", load_catalog)
    monkeypatch.setattr(tables, "_BETWEEN_LOADS", 0)
    assert tables.loaded_catalog("IcebergWriter", {"uri": f"sqlite:///{tmp_path}/of tasks.db"}) is catalog
    assert len(loads) == 3


@pytest.mark.parametrize("loads", [1, 2], ids=["of a new file", "kept"])
def test_connections_of_a_catalog_are_closed_with_its_last_use(tmp_path: Path, loads: int) -> None:
    given = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    catalog = [tables.loaded_catalog("IcebergWriter", given) for _ in range(loads)].pop()
    engine = catalog.engine
    assert engine.pool.checkedin() == 1
    tables._loaded.cache_clear()
    assert engine.pool.checkedin() == 1  # a table or a task may still use it
    del catalog
    gc.collect()
    assert engine.pool.checkedin() == 0


def test_endpoint_and_region_come_from_the_usual_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://general")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    given = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": "s3://shop"}
    found = tables.loaded_catalog("IcebergWriter", given).properties
    assert (found["s3.endpoint"], found["client.region"]) == ("http://general", "eu-north-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://of-s3")
    assert tables.loaded_catalog("IcebergWriter", given).properties["s3.endpoint"] == "http://of-s3"
    assert tables.loaded_catalog("IcebergWriter", {**given, "s3.endpoint": "http://x"}).properties["s3.endpoint"] == "http://x"


def test_a_catalog_that_cannot_be_loaded_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_BETWEEN_LOADS", 0)
    with pytest.raises(sqlalchemy.exc.OperationalError, match="unable to open"):
        tables.loaded_catalog(
            "IcebergWriter", {"type": "sql", "uri": f"sqlite:///{tmp_path}/absent/catalog.db", "warehouse": str(tmp_path)}
        )
