"""IcebergInput: what it reads in which launch, and the tables and changes that it refuses."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from dagflow.errors import PackageMissing
from dagflow.runtime.stage.failure import Abort
from dagflow.testing import FakeClock, Window, run_operator
from operators import IcebergInput, IcebergWriter, ParquetFormat, ScanReader
from operators.extras.errors import TableUnreachable
from operators.extras.tables import loaded_catalog
from operators.tables import iceberg_history
from operators.tables.errors import (
    InputTableChanged,
    InputTableFileGone,
    InputTableHistoryGone,
    InputTableMissing,
    InputTableReplaced,
    InputTableRolledBack,
    InputTableUnsupported,
)
from tests.operators.sinks.iceberg.rest import serving
from tests.operators.tables.applications import (
    ON_SERVERS,
    catalog_in,
    copied,
    files_in,
    iceberg,
    numbers,
    plans,
    read_on,
    windows,
)

pytestmark = pytest.mark.full  # each commit takes a tenth of a second
NAME = "shop.numbers"


@attrs.frozen
class Sale:
    country: str | None
    n: int


@pytest.fixture(params=["sql", "rest"])
def both_catalogs(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The catalog of the test is one in a file, then one on a server. For tests in which the catalog counts."""
    with contextlib.ExitStack() as stack:
        if request.param == "rest":
            monkeypatch.setitem(ON_SERVERS, tmp_path, stack.enter_context(serving(tmp_path)).properties)
        yield


def catalog(folder: Path) -> Catalog:
    return loaded_catalog("IcebergInput", catalog_in(folder))


def created(folder: Path, schema: Any = None, **options: Any) -> Table:
    catalog(folder).create_namespace_if_not_exists("shop")
    return catalog(folder).create_table(NAME, schema or pa.schema({"n": pa.int64()}), **options)


def opened(folder: Path) -> Table:
    return catalog(folder).load_table(NAME)


def append(folder: Path, *values: int) -> int:
    """Append rows, and return the id of the snapshot."""
    opened(folder).append(pa.table({"n": pa.array(values, pa.int64())}))
    return newest(folder)


def newest(folder: Path) -> int:
    snapshot = opened(folder).current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def refusal(folder: Path, kind: type[Exception], operator: IcebergInput | None = None) -> str:
    """Launch, and return the text of the error; nothing was copied."""
    before = windows(folder) if (folder / "out").exists() else 0
    with pytest.raises(kind) as caught:
        read_on(iceberg(folder) if operator is None else operator, folder)
    assert (windows(folder) if (folder / "out").exists() else 0) == before
    return str(caught.value)


def rewritten(folder: Path) -> None:
    """A snapshot whose files replace others, as compaction makes it: `pyiceberg` cannot compact."""
    append(folder, 99)
    location = Path(opened(folder).metadata_location.removeprefix("file://"))
    metadata = json.loads(location.read_text())
    metadata["snapshots"][-1]["summary"]["operation"] = "replace"
    location.write_text(json.dumps(metadata))


# What is read


@pytest.mark.usefixtures("both_catalogs")
def test_the_rows_of_the_newest_snapshot_then_those_that_are_appended(tmp_path: Path) -> None:
    created(tmp_path)
    read_on(iceberg(tmp_path), tmp_path)
    append(tmp_path, 1, 2)
    append(tmp_path, 3)
    read_on(iceberg(tmp_path), tmp_path)
    assert sorted(numbers(tmp_path)) == [1, 2, 3]
    read_on(iceberg(tmp_path), tmp_path)
    assert windows(tmp_path) == 1
    append(tmp_path, 4)
    append(tmp_path, 5, 6)
    read_on(iceberg(tmp_path), tmp_path)
    assert numbers(tmp_path)[3:] == [4, 5, 6]
    assert windows(tmp_path) == 2


def test_a_snapshot_that_only_rewrites_files_is_skipped(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1)
    read_on(iceberg(tmp_path), tmp_path)
    rewritten(tmp_path)
    append(tmp_path, 2)
    rewritten(tmp_path)
    read_on(iceberg(tmp_path), tmp_path)
    read_on(iceberg(tmp_path), tmp_path)
    assert numbers(tmp_path) == [1, 2]


def test_from_a_snapshot(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1)
    first = append(tmp_path, 2)
    append(tmp_path, 3)
    read_on(iceberg(tmp_path, from_snapshot=first), tmp_path)
    assert sorted(numbers(tmp_path)[:2]) == [1, 2]
    assert numbers(tmp_path)[2:] == [3]
    assert "it has no such snapshot" in refusal(tmp_path / "other", InputTableHistoryGone, iceberg(tmp_path, from_snapshot=7))


@pytest.mark.usefixtures("both_catalogs")
def test_merged_manifests_name_each_file_once(tmp_path: Path) -> None:
    """A merged manifest has the files of earlier snapshots beside the new ones."""
    created(tmp_path, properties={"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"})
    for n in range(4):
        append(tmp_path, n)
    assert len(opened(tmp_path).current_snapshot().manifests(opened(tmp_path).io)) < 4  # type: ignore[union-attr]
    read_on(iceberg(tmp_path), tmp_path)
    for n in range(4, 8):
        append(tmp_path, n)
    read_on(iceberg(tmp_path), tmp_path)
    assert sorted(numbers(tmp_path)) == list(range(8))


def test_a_window_ends_within_a_snapshot_and_the_next_launch_continues_there(tmp_path: Path) -> None:
    created(tmp_path)
    for n in range(5):
        append(tmp_path, n)
    operator = iceberg(tmp_path, blocks_threshold=2)
    first = next(plans(operator))
    append(tmp_path, 5)
    rest = list(plans(operator, first))
    files = [path for plan in (first, *rest) for path in files_in(plan)]
    assert len(rest) == 2
    assert sorted(n for path in files for n in pq.read_table(path).column("n").to_pylist()) == list(range(6))


def test_what_our_writer_writes(tmp_path: Path) -> None:
    sales = [Sale([None, "a b", "å/%:="][n % 3], n) for n in range(30)]
    writer = IcebergWriter[Sale](NAME, catalog_in(tmp_path), partition_columns=["country"])
    run_operator(writer, {"input": [Window(sales[:10]), Window(sales[10:])]})
    read_on(iceberg(tmp_path), tmp_path)
    rows = sorted((row["n"], row["country"]) for row in copied(tmp_path).to_pylist())
    assert rows == [(sale.n, sale.country) for sale in sales]


def test_folders_of_a_partition_by_a_function_are_not_columns(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "n", LongType()))
    spec = PartitionSpec(PartitionField(1, PARTITION_FIELD_ID_START, BucketTransform(4), "n_bucket"))
    created(tmp_path, schema, partition_spec=spec)
    (tmp_path / "n_bucket=3").mkdir()
    with_file(tmp_path, "n_bucket=3/rows.parquet", partition=Record(3))  # `pyiceberg` needs a package to write such files
    read_on(iceberg(tmp_path), tmp_path)
    assert copied(tmp_path).to_pydict() == {"n": [1]}


@pytest.mark.usefixtures("both_catalogs")
def test_a_continuous_run_waits_for_the_table_and_for_snapshots(tmp_path: Path) -> None:
    catalog(tmp_path)
    clock, counts = FakeClock(), []
    waiting = plans(iceberg(tmp_path, wait=True), clock=clock, continuous=True)
    changes: list[Callable[[], object]] = [lambda: 0, lambda: created(tmp_path), lambda: append(tmp_path, 1), lambda: 0]
    for change in changes:
        change()
        clock.advance(1)
        counts.append(len(files_in(next(waiting))))
    waiting.close()  # type: ignore[attr-defined]
    assert counts == [0, 0, 1, 0]


# What is refused


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "delete": (lambda folder: opened(folder).delete("n == 1"), r"delete at .*deleted-data-files 1"),
    "part of a file": (lambda folder: opened(folder).delete("n == 3"), r"overwrite at .*deleted-data-files 1"),
    "overwrite": (lambda folder: opened(folder).overwrite(pa.table({"n": [9]})), r"delete at .*deleted-data-files 2"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_that_changes_rows_is_refused_and_the_run_resumes_when_it_is_undone(change: str, tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1)
    read_on(iceberg(tmp_path), tmp_path)
    before = append(tmp_path, 2, 3)
    do, phrase = CHANGES[change]
    do(tmp_path)
    append(tmp_path, 4)
    text = refusal(tmp_path, InputTableChanged)
    assert re.search(rf"(?s)of shop.numbers did more than append rows: {phrase}.*back to snapshot {before}, and launch", text)
    opened(tmp_path).manage_snapshots().set_current_snapshot(snapshot_id=before).commit()
    append(tmp_path, 5)
    read_on(iceberg(tmp_path), tmp_path)
    assert numbers(tmp_path) == [1, 2, 3, 5]


@pytest.mark.usefixtures("both_catalogs")
def test_a_table_that_was_rolled_back_is_refused(tmp_path: Path) -> None:
    created(tmp_path)
    first = append(tmp_path, 1)
    second = append(tmp_path, 2)
    read_on(iceberg(tmp_path), tmp_path)
    opened(tmp_path).manage_snapshots().set_current_snapshot(snapshot_id=first).commit()
    text = refusal(tmp_path, InputTableRolledBack)
    assert f"its newest snapshot is {first}, which does not build on it, and snapshot {second} was read before" in text
    third = append(tmp_path, 3)
    assert f"its newest snapshot is {third}, which does not build on it" in refusal(tmp_path, InputTableRolledBack)


def test_expired_snapshots_that_are_needed_are_named(tmp_path: Path) -> None:
    created(tmp_path)
    read = append(tmp_path, 1)
    read_on(iceberg(tmp_path), tmp_path)
    needed, last = append(tmp_path, 2), append(tmp_path, 3)
    for number in (read, needed):
        opened(tmp_path).maintenance.expire_snapshots().by_id(number).commit()
    text = refusal(tmp_path, InputTableHistoryGone)
    assert f"was read up to snapshot {read}, and the snapshots before {last} have expired" in text


def test_a_snapshot_that_expired_behind_the_position_is_not_needed(tmp_path: Path) -> None:
    created(tmp_path)
    read = append(tmp_path, 1)
    read_on(iceberg(tmp_path), tmp_path)
    append(tmp_path, 2)
    opened(tmp_path).maintenance.expire_snapshots().by_id(read).commit()
    read_on(iceberg(tmp_path), tmp_path)
    assert numbers(tmp_path) == [1, 2]


@pytest.mark.parametrize(("expired", "kind"), [((0, 1), InputTableHistoryGone), ((0,), InputTableRolledBack)])
def test_a_rollback_whose_snapshots_have_expired_is_refused(
    expired: tuple[int, ...], kind: type[Exception], tmp_path: Path
) -> None:
    """The sequence number of the newest snapshot is the next one, and it has lost its parent."""
    created(tmp_path)
    snapshots = [append(tmp_path, 1), append(tmp_path, 2)]
    read_on(iceberg(tmp_path), tmp_path)
    opened(tmp_path).manage_snapshots().set_current_snapshot(snapshot_id=snapshots[0]).commit()
    append(tmp_path, 3, 4)
    opened(tmp_path).maintenance.expire_snapshots().by_ids([snapshots[n] for n in expired]).commit()
    refusal(tmp_path, kind)


def test_a_first_snapshot_that_expired_before_it_was_read_is_missed(tmp_path: Path) -> None:
    created(tmp_path)
    clock = FakeClock()
    waiting = plans(iceberg(tmp_path), clock=clock, continuous=True)
    assert next(waiting) is None
    first, _ = append(tmp_path, 1), append(tmp_path, 2)
    opened(tmp_path).maintenance.expire_snapshots().by_id(first).commit()
    clock.advance(1)
    with pytest.raises(Abort, match=r"was read up to its creation, and the snapshots before \d+ have expired"):
        next(waiting)


@pytest.mark.usefixtures("both_catalogs")
def test_a_table_that_was_dropped_or_created_again_is_refused(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1)
    read_on(iceberg(tmp_path), tmp_path)
    catalog(tmp_path).drop_table(NAME)
    assert "there is no table shop.numbers: the catalog has no such table" in refusal(tmp_path, InputTableMissing)
    created(tmp_path)
    append(tmp_path, 1)
    assert "it is another table than was read so far" in refusal(tmp_path, InputTableReplaced)


def test_a_lost_file_is_named(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1)
    [file] = (tmp_path / "warehouse").rglob("*.parquet")
    file.unlink()
    assert f"{file}: it is not there" in refusal(tmp_path, InputTableFileGone)


def with_file(folder: Path, name: str, **facts: Any) -> None:
    """Append a file, with facts in its manifest that `pyiceberg` itself does not write."""
    table, path = opened(folder), folder / name
    pq.write_table(pa.table({"n": [1]}), path)
    given = {"content": DataFileContent.DATA, "file_format": FileFormat.PARQUET, "partition": Record(), "record_count": 1}
    file = DataFile.from_args(
        **{**given, "file_path": f"file://{path}", "file_size_in_bytes": path.stat().st_size, "value_counts": {1: 1}, **facts}
    )
    file.spec_id = table.spec().spec_id
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as update:
        update.append_data_file(file)


def test_delete_files_are_refused(tmp_path: Path) -> None:
    created(tmp_path)
    with_file(tmp_path, "deletes.parquet", content=DataFileContent.POSITION_DELETES)
    text = refusal(tmp_path, InputTableUnsupported)
    assert "shop.numbers has merge-on-read delete files, which is not supported" in text
    assert f"{tmp_path}/deletes.parquet" in text


def test_files_of_other_formats_are_refused(tmp_path: Path) -> None:
    created(tmp_path)
    with_file(tmp_path, "rows.orc", file_format=FileFormat.ORC)
    assert "has files of the format ORC" in refusal(tmp_path, InputTableUnsupported)


def test_partition_values_that_neither_file_nor_folder_has_are_refused(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "n", LongType()), NestedField(2, "country", StringType()))
    spec = PartitionSpec(PartitionField(2, PARTITION_FIELD_ID_START, IdentityTransform(), "country"))
    created(tmp_path, schema, partition_spec=spec)
    (tmp_path / "country=se").mkdir()
    with_file(tmp_path, "country=se/rows.parquet", partition=Record("se"))
    read_on(iceberg(tmp_path), tmp_path)
    assert copied(tmp_path).to_pydict() == {"n": [1], "country": ["se"]}
    with_file(tmp_path, "rows.parquet", partition=Record("no"))
    assert f"{tmp_path}/rows.parquet has no folder country=…" in refusal(tmp_path, InputTableUnsupported)


def test_columns_that_files_have_under_other_names_are_refused(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1)
    with opened(tmp_path).update_schema() as update:
        update.rename_column("n", "m")
    assert "column 'm' was called 'n' before" in refusal(tmp_path, InputTableUnsupported)


def test_new_columns_follow_the_drift_of_the_reader(tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, 1)
    reader = ScanReader(ParquetFormat(), drift={"extra": "ignore"})
    read_on(iceberg(tmp_path), tmp_path, reader)
    with opened(tmp_path).update_schema() as update:
        update.add_column("m", StringType())
    opened(tmp_path).append(pa.table({"n": [2], "m": ["new"]}))
    read_on(iceberg(tmp_path), tmp_path, reader)
    assert copied(tmp_path).to_pydict() == {"n": [1, 2]}


def test_a_missing_table_and_package_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "there is no table shop.numbers: the catalog has no such table" in refusal(tmp_path, InputTableMissing)
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    with pytest.raises(PackageMissing, match="IcebergInput needs the package pyiceberg"):
        loaded_catalog("IcebergInput", catalog_in(tmp_path))


def test_a_catalog_that_does_not_answer_ends_the_launch_before_it_begins(tmp_path: Path) -> None:
    nowhere = {"type": "sql", "uri": f"sqlite:///{tmp_path}/nowhere/catalog.db", "warehouse": f"file://{tmp_path}"}
    text = refusal(tmp_path, TableUnreachable, IcebergInput(NAME, nowhere))
    assert re.search(r"table: shop.numbers cannot be opened: OperationalError: .*\n  help: start the catalog", text)
    assert not (tmp_path / "run").exists()


def test_the_look_at_a_catalog_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    created(tmp_path)
    append(tmp_path, 1)
    load, outages = iceberg_history.loaded_catalog, [1, 2]

    def loaded(*args: Any) -> Catalog:
        if outages:
            raise NoAnswer(f"outage {outages.pop()}")
        catalog: Catalog = load(*args)
        return catalog

    monkeypatch.setattr(iceberg_history, "loaded_catalog", loaded)  # not that of the check before the launch
    read_on(iceberg(tmp_path), tmp_path, retry_delay=0)
    assert not outages
    assert numbers(tmp_path) == [1]


class NoAnswer(Exception):
    """Stands for what a catalog's client raises."""


def test_properties() -> None:
    with pytest.raises(ValueError, match=r"table is 'sales', and must have a namespace: 'shop.sales'"):
        IcebergInput("sales").check()


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
def test_spark_reads_the_same_rows(tmp_path: Path) -> None:
    created(tmp_path)
    for n in range(3):
        append(tmp_path, n)
    read_on(iceberg(tmp_path), tmp_path, runner="spark")
    append(tmp_path, 3)
    read_on(iceberg(tmp_path), tmp_path, runner="spark")
    assert sorted(numbers(tmp_path)) == list(range(4))
