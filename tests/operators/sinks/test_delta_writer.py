"""DeltaWriter: modes, columns, other writers, and tables that were changed between windows."""

from __future__ import annotations

import datetime
import shutil
import sys
from pathlib import Path
from typing import Any

import attrs
import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pytest

from dagflow import StagedWindow
from dagflow.config.values.conversion import holds_secret
from dagflow.config.values.hints import field_hint
from dagflow.errors import HistoriesDiffer, PackageMissing
from dagflow.testing import Window, run_operator
from operators import DeltaWriter, IcebergWriter
from operators.sinks.delta.appends import OwnVersion
from operators.sinks.errors import PartitionColumnRefused, TypeNotWritable, ValueNotWritable
from operators.sinks.table_formats import writer
from operators.sinks.table_formats.errors import (
    StagedFileGone,
    TableDropped,
    TableRecreated,
    TableRolledBack,
    TableSchemaDiffers,
)
from operators.sinks.tables.errors import ForeignChange
from tests.operators.sinks.synced import Synced
from tests.operators.sinks.tables import staged_window


@attrs.frozen
class Row:
    key: str | None
    n: int


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def rows(path: Path) -> list[tuple[Any, ...]]:
    """The rows as Polars reads them; deltalake, and DuckDB over its files, must see the same ones."""
    found = sorted(pl.read_delta(str(path)).rows(), key=str)
    table = deltalake.DeltaTable(path)
    names = pa.schema(table.schema().to_arrow()).names
    arrow = table.to_pyarrow_table().select(names)
    assert sorted(map(tuple, (row.values() for row in arrow.to_pylist())), key=str) == found
    assert duckdb.from_arrow(arrow).count("*").fetchall() == [(len(found),)]
    return found


def publish(sink: DeltaWriter[Any], number: int, *batches: pa.RecordBatch, run: bool = True) -> StagedWindow:
    """Stage a window in a task, and publish it on the driver."""
    task = DeltaWriter(**{a.name: getattr(sink, a.name) for a in attrs.fields(type(sink)) if a.init})
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
def test_modes(mode: Any, keys: list[str], expected: list[Any], partition_columns: list[str], tmp_path: Path) -> None:
    sink = DeltaWriter[Row](str(tmp_path), mode, keys=keys, partition_columns=partition_columns)
    windows = [Window([Row("a", 1), Row("b", 2)]), Window([]), Window([Row(None, 3), Row("a", 1)])]
    run_operator(sink, {"input": windows})
    assert rows(tmp_path) == sorted(expected, key=str)
    assert deltalake.DeltaTable(tmp_path).metadata().partition_columns == partition_columns
    assert list(tmp_path.glob("_dagflow/**/*.parquet")) == []


def test_a_window_is_one_version_that_names_it(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), max_file_rows=1)
    publish(sink, 0, batch(n=[1, 2, 3]))
    publish(sink, 1)
    publish(sink, 2, batch(n=[4]))
    table = deltalake.DeltaTable(tmp_path)
    assert [(each["version"], each["dagflow.window"]) for each in table.history()] == [(1, 2), (0, 0)]
    assert table.transaction_version("app/sink") == 2
    assert len(table.file_uris()) == 4


def test_publishing_again_changes_nothing(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path))
    window = publish(sink, 0, batch(n=[1]), run=False)
    assert not sink.is_published(window)
    sink.publish(window)
    assert sink.is_published(window)
    sink.publish(window)
    assert rows(tmp_path) == [(1,)]
    assert deltalake.DeltaTable(tmp_path).version() == 0


def test_a_commit_of_a_launch_that_has_died_is_synced_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = publish(DeltaWriter(str(tmp_path)), 0, batch(n=[1]))
    [notes] = tmp_path.glob("_dagflow/tables/*/*/published")
    shutil.rmtree(notes)  # it was not there yet
    OwnVersion.newest.clear()
    synced = Synced.noted(monkeypatch)
    assert DeltaWriter(str(tmp_path)).is_published(window)
    assert synced.has(tmp_path / "_delta_log", tmp_path / "_delta_log" / f"{0:020d}.json")


def test_an_empty_window_before_the_first_rows_counts_as_published(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path))
    window = publish(sink, 0)
    assert sink.is_published(window)
    publish(sink, 1, batch(n=[1]))
    assert rows(tmp_path) == [(1,)]


def test_sinks_and_applications_that_share_a_table_do_not_hide_each_others_windows(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path))
    window = publish(sink, 0, batch(n=[1]))
    for other in (attrs.evolve(window, application="other"), attrs.evolve(window, sink="other")):
        assert not sink.is_published(other)


def test_what_dead_attempts_have_staged_is_swept_and_later_windows_stay(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path))
    window = publish(sink, 0, batch(n=[1]))
    publish(sink, 0, batch(n=[7]), run=False)
    publish(sink, 1, batch(n=[8]), run=False)
    sink.sweep(window)
    staged = list(tmp_path.glob("_dagflow/tables/app/sink/staged/*"))
    assert [path.name[:10] for path in staged] == ["0000000001"]
    assert rows(tmp_path) == [(1,)]


def test_a_vacuum_leaves_what_is_staged(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path))
    publish(sink, 0, batch(n=[1]))
    window = publish(sink, 1, batch(n=[2]), run=False)
    table = deltalake.DeltaTable(tmp_path)
    assert table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True) == []
    sink.publish(window)
    assert rows(tmp_path) == [(1,), (2,)]


def test_partition_values_of_any_text(tmp_path: Path) -> None:
    keys = ["a/b", "50%", "a =é", "x:y?", "a+b", "q\"'#", None, "__HIVE_DEFAULT_PARTITION__"]
    publish(DeltaWriter(str(tmp_path), partition_columns=["key"]), 0, batch(key=keys, n=list(range(8))))
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().sort_by("n").column("key").to_pylist() == keys


TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "uint32": (pa.uint32(), 4_000_000_000),
    "uint64": (pa.uint64(), 18_000_000_000_000_000_000),
    "float16": (pa.float16(), 1.5),
    "date64": (pa.date64(), datetime.date(2026, 1, 2)),
    "timestamp": (pa.timestamp("ms"), datetime.datetime(2026, 1, 2, 3, 4, 5)),  # noqa: DTZ001  # without a zone
    "zone": (pa.timestamp("ns", "Europe/Oslo"), datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)),
    "string": (pa.large_string(), "Å"),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), "a"),
    "binary": (pa.binary(2), b"ab"),
    "decimal": (pa.decimal128(9, 2), 1),
    "list": (pa.large_list(pa.uint8()), [1, 255]),
    "struct": (pa.struct({"a": pa.uint16()}), {"a": 65_535}),
    "map": (pa.map_(pa.string(), pa.int32()), [("a", 1)]),
    "bool": (pa.bool_(), True),
}


@pytest.mark.full
@pytest.mark.parametrize("name", TYPES)
def test_types_keep_their_values(name: str, tmp_path: Path) -> None:
    kind, value = TYPES[name]
    publish(DeltaWriter(str(tmp_path)), 0, pa.RecordBatch.from_arrays([pa.array([value, None], kind)], ["x"]))
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().column("x").to_pylist() == [value, None]


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.duration("s"), pa.decimal256(50, 2), pa.list_(pa.null())])
def test_types_that_delta_does_not_have_are_named(kind: pa.DataType, tmp_path: Path) -> None:
    with pytest.raises(TypeNotWritable, match=r"column 'x' is of type .* which Delta does not support"):
        publish(DeltaWriter(str(tmp_path)), 0, pa.RecordBatch.from_arrays([pa.nulls(1, kind)], ["x"]))


def test_a_column_of_nulls_only_is_left_out(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), on_schema_change="evolve")
    publish(sink, 0, batch(n=[1], x=[None]))
    publish(sink, 1, batch(n=[2], x=["a"]))
    assert rows(tmp_path) == [(1, None), (2, "a")]


def test_columns_are_cast_missing_ones_are_null_and_their_order_does_not_matter(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path))
    publish(sink, 0, batch(n=[1], x=[1.5], s=["a"]))
    publish(sink, 1, pa.RecordBatch.from_arrays([pa.array([3], pa.int8()), pa.array([2], pa.int16())], ["x", "n"]))
    assert rows(tmp_path) == [(1, 1.5, "a"), (2, 3.0, None)]


def test_new_columns_are_refused_with_the_difference_before_the_window_is_decided(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path))
    publish(sink, 0, batch(n=[1]))
    with pytest.raises(TableSchemaDiffers, match=r"(?s)column 'x' \(string\) is not in the table.*on_schema_change='evolve'"):
        publish(sink, 1, batch(n=[1], x=["a"]), run=False)


def test_evolve_adds_columns(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), on_schema_change="evolve")
    publish(sink, 0, batch(n=[1]))
    publish(sink, 1, batch(x=["a"], n=[2]))
    publish(sink, 2, batch(n=[3]))
    assert rows(tmp_path) == [(1, None), (2, "a"), (3, None)]


def test_a_wider_type_is_refused_with_the_difference(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), on_schema_change="evolve")
    publish(sink, 0, batch(n=[1]))
    with pytest.raises(TableSchemaDiffers, match="column 'n' is string, and the table has int64"):
        publish(sink, 1, batch(n=["a"]), run=False)


def test_replace_may_change_all_columns(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), "replace", on_schema_change="evolve")
    publish(sink, 0, batch(n=[1]))
    publish(sink, 1, batch(n=["a"], x=[2]))
    assert rows(tmp_path) == [("a", 2)]


def test_tasks_that_disagree_before_there_is_a_table(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path))
    one = publish(sink, 0, pa.RecordBatch.from_arrays([pa.array([1], pa.int8())], ["n"]), run=False)
    two = publish(sink, 0, batch(n=[1.5], x=["a"]), run=False)
    sink.publish(attrs.evolve(one, staged=one.staged + two.staged))
    assert rows(tmp_path) == [(1.0, None), (1.5, "a")]


def test_a_first_window_appends_to_a_table_of_others(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"n": [0], "x": ["o"]}))
    publish(DeltaWriter(str(tmp_path)), 0, batch(n=[1]))
    assert rows(tmp_path) == [(0, "o"), (1, None)]


def test_another_partitioning_is_named(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"n": [0], "x": ["o"]}), partition_by=["x"])
    with pytest.raises(TableSchemaDiffers, match="partitioned by x, and partition_columns has no column"):
        publish(DeltaWriter(str(tmp_path)), 0, batch(n=[1]))


class Meanwhile:
    """Another writer commits just before our first commits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path, write: Any, times: int = 1) -> None:
        commit, left = DeltaWriter.commit, [None] * times

        def late(sink: Any, *arguments: Any) -> Any:
            if left:
                left.pop()
                write(path)
            return commit(sink, *arguments)

        monkeypatch.setattr(DeltaWriter, "commit", late)


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_rows_of_other_writers_stay(mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = DeltaWriter(str(tmp_path), mode, keys=["n"] if mode == "upsert" else [])
    publish(sink, 0, batch(n=[1]))
    Meanwhile(monkeypatch, tmp_path, lambda path: deltalake.write_deltalake(path, pa.table({"n": [9]}), mode="append"), 3)
    publish(sink, 1, batch(n=[2]))
    assert rows(tmp_path) == [(1,), (2,), (9,), (9,), (9,)]


def test_columns_of_another_writer_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = DeltaWriter(str(tmp_path))
    publish(sink, 0, batch(n=[1]))
    other = pa.table({"n": [9], "x": ["o"]})
    Meanwhile(monkeypatch, tmp_path, lambda p: deltalake.write_deltalake(p, other, mode="append", schema_mode="merge"))
    publish(sink, 1, batch(n=[2]))
    assert rows(tmp_path) == [(1, None), (2, None), (9, "o")]


def test_a_writer_that_always_comes_first_makes_the_table_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dagflow.storage import is_transient

    sink = DeltaWriter(str(tmp_path))
    publish(sink, 0, batch(n=[1]))
    monkeypatch.setattr(writer, "MAX_COMMITS", 2)
    Meanwhile(monkeypatch, tmp_path, lambda path: deltalake.write_deltalake(path, pa.table({"n": [9]}), mode="append"), 9)
    with pytest.raises(TimeoutError, match="other writers have committed 2 times before window 1") as caught:
        publish(sink, 1, batch(n=[2]))
    assert is_transient(caught.value)


def test_replace_refuses_to_remove_what_others_have_written(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), "replace")
    publish(sink, 0, batch(n=[1]))
    deltalake.write_deltalake(tmp_path, pa.table({"n": [9]}), mode="append")
    with pytest.raises(ForeignChange, match=r"version 1: WRITE at .* by delta-rs"):
        publish(sink, 1, batch(n=[2]))
    assert rows(tmp_path) == [(1,), (9,)]
    deltalake.DeltaTable(tmp_path).restore(0)
    publish(sink, 1, batch(n=[2]))
    assert rows(tmp_path) == [(2,)]


def test_replace_lets_others_compact(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), "replace", max_file_rows=1)
    publish(sink, 0, batch(n=[1, 2]))
    deltalake.DeltaTable(tmp_path).optimize.compact()
    publish(sink, 1, batch(n=[3]))
    assert rows(tmp_path) == [(3,)]


def test_the_first_replace_takes_over_a_table_of_others(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"n": [0]}))
    publish(DeltaWriter(str(tmp_path), "replace"), 0, batch(n=[1]))
    assert rows(tmp_path) == [(1,)]


def test_upsert_takes_the_last_row_of_a_key_and_refuses_nulls(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), "upsert", keys=["k", "n"])
    publish(sink, 0, batch(k=["a", "a", "b"], n=[1, 1, 1], v=[1, 2, 3]))
    publish(sink, 1, batch(k=["a", "c"], n=[1, 1], v=[4, 5]), batch(k=["c"], n=[1], v=[6]))
    assert rows(tmp_path) == [("a", 1, 4), ("b", 1, 3), ("c", 1, 6)]
    with pytest.raises(ValueNotWritable, match="column 'k' has null, which a key does not support"):
        publish(sink, 2, batch(k=["a", None], n=[1, 1], v=[1, 1]))


def test_names_that_sql_would_read_otherwise(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), "upsert", keys=["Order Id", "select"])
    publish(sink, 0, pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2]), pa.array(["a"])], ["Order Id", "select", "V"]))
    publish(sink, 1, pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2]), pa.array(["b"])], ["Order Id", "select", "V"]))
    assert rows(tmp_path) == [(1, 2, "b")]


def test_a_table_that_was_dropped_is_named(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path / "t"))
    publish(sink, 0, batch(n=[1]))
    shutil.rmtree(tmp_path / "t" / "_delta_log")
    with pytest.raises(TableDropped, match="window 0 was published as version 0; window 1 was not published"):
        publish(sink, 1, batch(n=[2]))
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(TableDropped, match="nothing is there that says that windows before 1 were published"):
        publish(sink, 1, batch(n=[2]))


def test_a_table_that_was_recreated_is_named(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path))
    publish(sink, 0, batch(n=[1]))
    shutil.rmtree(tmp_path / "_delta_log")
    deltalake.write_deltalake(tmp_path, pa.table({"n": [0]}))
    with pytest.raises(TableRecreated, match="dropped and created again"):
        publish(sink, 1, batch(n=[2]))


@pytest.mark.parametrize("mode", ["append", "upsert", "replace"])
def test_a_table_that_was_rolled_back_is_named_until_it_is_restored(mode: Any, tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), mode, keys=["n"] if mode == "upsert" else [])
    publish(sink, 0, batch(n=[1]))
    publish(sink, 1, batch(n=[2]))
    newest = deltalake.DeltaTable(tmp_path).version()
    deltalake.DeltaTable(tmp_path).restore(newest - 1)
    with pytest.raises(TableRolledBack, match=rf"version {newest + 1} restored version {newest - 1}"):
        publish(sink, 2, batch(n=[3]))
    deltalake.DeltaTable(tmp_path).restore(newest)
    publish(sink, 2, batch(n=[3]))
    assert (3,) in rows(tmp_path)


def test_a_log_that_was_cut_is_named(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path))
    publish(sink, 0, batch(n=[1]))
    publish(sink, 1, batch(n=[2]))
    (tmp_path / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(TableRolledBack, match="it is at version 0, and window 1 was published as version 1"):
        publish(sink, 2, batch(n=[3]))


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_staged_file_that_is_gone_is_named_and_nothing_is_published(mode: Any, tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), mode, keys=["n"] if mode == "upsert" else [], max_file_rows=1)
    publish(sink, 0, batch(n=[0]))
    version = deltalake.DeltaTable(tmp_path).version()
    window = publish(sink, 1, batch(n=[1, 2]), run=False)
    lost = sorted(tmp_path.glob("_dagflow/tables/app/sink/staged/0000000001.*"))[1]
    data = lost.read_bytes()
    lost.write_bytes(data[:-1])
    with pytest.raises(StagedFileGone, match=r"bytes, [\d,]+ were written"):
        sink.publish(window)
    lost.unlink()
    with pytest.raises(StagedFileGone, match="it is not there"):
        sink.publish(window)
    assert deltalake.DeltaTable(tmp_path).version() == version
    lost.write_bytes(data)
    sink.publish(window)
    assert rows(tmp_path) == [(0,), (1,), (2,)]


def test_an_old_run_folder_is_noticed(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path))
    publish(sink, 0, batch(n=[1]))
    with pytest.raises(HistoriesDiffer, match="has window 0 of this run, by another decision"):
        publish(sink, 0, batch(n=[2]))
    assert rows(tmp_path) == [(1,)]


def test_a_file_of_the_table_is_never_outside_of_it(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path / "t"))
    window = publish(sink, 0, batch(n=[1]), run=False)
    [[file]] = window.staged
    with pytest.raises(Exception, match=r"outside|leads out|\.\./x"):
        sink.publish(attrs.evolve(window, staged=([{**file, "name": "../x.parquet"}],)))
    assert not (tmp_path / "x.parquet").exists()


def test_a_partition_column_of_nulls_only(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), partition_columns=("p",))  # type: ignore[arg-type]  # tuples do as well
    publish(sink, 0, batch(p=[None], n=[1]))
    publish(sink, 1, batch(p=["a"], n=[2]))
    publish(sink, 2, batch(p=[None], n=[3]))
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().sort_by("n").column("p").to_pylist() == [None, "a", None]


def test_what_is_wrong_with_properties(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs the columns that identify a row"):
        DeltaWriter("t", "upsert").check()
    with pytest.raises(ValueError, match="of no use with mode 'append'"):
        DeltaWriter("t", keys=["a"]).check()
    with pytest.raises(ValueError, match="path is empty"):
        DeltaWriter("").check()
    with pytest.raises(ValueError, match="mode is 'merge'"):
        DeltaWriter("t", "merge")  # type: ignore[arg-type]


@pytest.mark.parametrize(("what", "error"), [("partition_columns", PartitionColumnRefused), ("keys", TableSchemaDiffers)])
def test_columns_that_are_missing_are_named(what: str, error: Any, tmp_path: Path) -> None:
    properties: dict[str, Any] = {"keys": ["n"], what: ["x"]}
    sink = DeltaWriter(str(tmp_path), "upsert", **properties)
    with pytest.raises((error, TableSchemaDiffers), match="'x'"):
        publish(sink, 0, batch(n=[1]))


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(PackageMissing, match=r"(?s)package deltalake.*pip install 'dagflow\[delta\]'"):
        publish(DeltaWriter(str(tmp_path)), 0, batch(n=[1]))


def test_a_path_is_that_of_the_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert DeltaWriter("t").path == str(tmp_path / "t")
    assert DeltaWriter("s3://bucket/t").path == "s3://bucket/t"


def test_storage_options_and_catalogs_are_secrets() -> None:
    for operator, name in (
        (DeltaWriter("t", storage_options={"key": "hunter2"}), "storage_options"),
        (catalog_sink(), "catalog"),
    ):
        cls: Any = type(operator)
        assert holds_secret(field_hint(cls, attrs.fields_dict(cls)[name]))  # so no command shows it, and no record has it
        assert "hunter2" not in repr(operator)


def catalog_sink() -> IcebergWriter[Any]:
    return IcebergWriter("shop.rows", {"uri": "postgresql://me:hunter2@host/db"})
