"""DeltaInput: what it reads in which launch, and the tables and changes that it refuses."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import re
import shutil
import struct
import sys
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dagflow.errors import PackageMissing
from dagflow.testing import FakeClock, Window, run_operator
from operators import DeltaInput, DeltaWriter, ParquetFormat, ScanReader
from operators.tables import delta_history
from operators.tables.errors import (
    InputTableChanged,
    InputTableFileGone,
    InputTableHistoryGone,
    InputTableMissing,
    InputTableReplaced,
    InputTableRolledBack,
    InputTableUnsupported,
)
from tests.operators.tables.applications import copied, delta, files_in, numbers, plans, read_on, windows


def append(folder: Path, *values: int, **options: Any) -> None:
    rows = pa.table({"n": pa.array(values, pa.int64())})
    deltalake.write_deltalake(folder / "table", rows, **{"mode": "append", **options})


def opened(folder: Path) -> deltalake.DeltaTable:
    return deltalake.DeltaTable(folder / "table")


def log_of(folder: Path, version: int) -> Path:
    return folder / "table" / "_delta_log" / f"{version:020d}.json"


def actions(folder: Path, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log_of(folder, version).read_text().splitlines()]


def commit(folder: Path, version: int, *lines: dict[str, Any]) -> None:
    log_of(folder, version).parent.mkdir(parents=True, exist_ok=True)
    log_of(folder, version).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@attrs.frozen
class Sale:
    country: str
    n: int


# What is read


def test_the_rows_of_the_newest_version_then_those_that_are_appended(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    append(tmp_path, 3)
    read_on(delta(tmp_path), tmp_path)
    assert numbers(tmp_path) == [1, 2, 3]
    read_on(delta(tmp_path), tmp_path)
    assert windows(tmp_path) == 1
    append(tmp_path, 4)
    append(tmp_path, 5, 6)
    read_on(delta(tmp_path), tmp_path)
    assert numbers(tmp_path) == [1, 2, 3, 4, 5, 6]
    assert windows(tmp_path) == 2


def test_versions_that_only_rearrange_rows_are_skipped(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    read_on(delta(tmp_path), tmp_path)
    append(tmp_path, 3)
    opened(tmp_path).optimize.compact()
    opened(tmp_path).alter.set_table_properties({"delta.logRetentionDuration": "interval 90 days"})
    append(tmp_path, 4)
    opened(tmp_path).optimize.compact()
    read_on(delta(tmp_path), tmp_path)
    read_on(delta(tmp_path), tmp_path)
    assert numbers(tmp_path) == [1, 2, 3, 4]


def test_from_a_version(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    opened(tmp_path).delete("n = 1")
    append(tmp_path, 3)
    append(tmp_path, 4)
    read_on(delta(tmp_path, from_version=2), tmp_path)
    append(tmp_path, 5)
    read_on(delta(tmp_path, from_version=2), tmp_path)
    assert numbers(tmp_path) == [2, 3, 4, 5]


def test_a_window_ends_within_a_version_and_the_next_launch_continues_there(tmp_path: Path) -> None:
    for n in range(10):
        append(tmp_path, n)
    operator = delta(tmp_path, blocks_threshold=3)
    first = next(plans(operator))
    append(tmp_path, 10)
    second, third = itertools.islice(plans(operator, first), 2)
    opened(tmp_path).optimize.compact()
    append(tmp_path, 11)
    rest = list(plans(operator, third))
    files = [files_in(plan) for plan in (first, second, third, *rest)]
    assert [len(each) for each in files] == [3, 3, 3, 3]
    values = [n for path in itertools.chain.from_iterable(files) for n in pq.read_table(path).column("n").to_pylist()]
    assert values == list(range(12))


def test_a_version_of_many_files_is_not_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_history, "_MAX_KEPT", 3)
    append(tmp_path, 0)
    start = next(plans(delta(tmp_path)))
    for version in (1, 2):
        commit(tmp_path, version, *(added(tmp_path, f"{version}-{n}") for n in range(5)))
    operator = delta(tmp_path, blocks_threshold=3)
    first, *rest = plans(operator, start)
    assert files_in(first) == [str(tmp_path / "table" / f"1-{n}.parquet") for n in range(3)]
    resumed = list(plans(operator, first))
    names = [Path(path).name for plan in (first, *resumed) for path in files_in(plan)]
    assert names == [f"{version}-{n}.parquet" for version in (1, 2) for n in range(5)]
    assert [files_in(plan) for plan in rest] == [files_in(plan) for plan in resumed]


def test_an_empty_partition_value_is_null_as_the_protocol_says(tmp_path: Path) -> None:
    rows = pa.table({"n": [1, 2, 3], "p": ["", None, "x"]})
    deltalake.write_deltalake(tmp_path / "table", rows, partition_by=["p"])
    read_on(delta(tmp_path), tmp_path)
    expected = deltalake.DeltaTable(tmp_path / "table").to_pyarrow_table().sort_by("n").column("p").to_pylist()
    assert copied(tmp_path).sort_by("n").column("p").to_pylist() == expected == [None, None, "x"]


def test_partition_columns_come_from_the_folders_with_the_types_of_the_table(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "n": [1, 2, 3],
            "text": ["7", "å/%:= ", None],
            "day": [datetime.date(2026, 3, n) for n in (1, 2, 3)],
            "k": pa.array([7, 8, None], pa.int16()),
            "flag": [True, False, None],
            "price": pa.array([Decimal("1.50"), Decimal("2.00"), None], pa.decimal128(9, 2)),
        }
    )
    folder = tmp_path / "env=prod"  # above the table, it is not a column
    deltalake.write_deltalake(folder / "table", rows, partition_by=rows.column_names[1:])
    read_on(delta(folder), tmp_path)
    assert copied(tmp_path).select(rows.column_names).sort_by("n").to_pydict() == rows.to_pydict()
    assert copied(tmp_path).select(rows.column_names).schema.types == rows.schema.types
    assert copied(tmp_path).num_columns == 6
    deltalake.write_deltalake(folder / "table", rows.slice(0, 1), mode="append")
    read_on(delta(folder), tmp_path)
    assert copied(tmp_path).num_rows == 4


def test_what_our_writer_writes(tmp_path: Path) -> None:
    sales = [Sale(f"c{n % 3}", n) for n in range(30)]
    writer = DeltaWriter[Sale](str(tmp_path / "table"), partition_columns=["country"])
    run_operator(writer, {"input": [Window(sales[:10]), Window(sales[10:])]})
    read_on(delta(tmp_path, from_version=0), tmp_path)
    rows = sorted((row["n"], row["country"]) for row in copied(tmp_path).to_pylist())
    assert rows == [(sale.n, sale.country) for sale in sales]


def test_new_columns_follow_the_drift_of_the_reader(tmp_path: Path) -> None:
    append(tmp_path, 1)
    reader = ScanReader(ParquetFormat(), drift={"extra": "ignore"})
    read_on(delta(tmp_path), tmp_path, reader)
    wider = pa.table({"n": [2], "m": ["new"]})
    deltalake.write_deltalake(tmp_path / "table", wider, mode="append", schema_mode="merge")
    read_on(delta(tmp_path), tmp_path, reader)
    assert copied(tmp_path).to_pydict() == {"n": [1, 2]}


def test_a_merge_that_only_inserts_is_read(tmp_path: Path) -> None:
    append(tmp_path, 1)
    read_on(delta(tmp_path), tmp_path)
    merge = opened(tmp_path).merge(pa.table({"n": [2]}), "t.n = s.n", source_alias="s", target_alias="t")
    merge.when_not_matched_insert_all().execute()
    read_on(delta(tmp_path), tmp_path)
    assert numbers(tmp_path) == [1, 2]


def test_a_continuous_run_waits_for_the_table_and_for_versions(tmp_path: Path) -> None:
    clock, counts = FakeClock(), []
    windows = plans(delta(tmp_path, wait=True), clock=clock, continuous=True)
    changes: list[Callable[[], object]] = [lambda: 0, lambda: append(tmp_path, 1), lambda: append(tmp_path, 2), lambda: 0]
    for change in changes:
        change()
        clock.advance(1)
        counts.append(len(files_in(next(windows))))
    windows.close()  # type: ignore[attr-defined]
    assert counts == [0, 1, 1, 0]


# What is refused


def refusal(folder: Path, kind: type[Exception], operator: DeltaInput | None = None) -> str:
    """Launch, and return the text of the error; nothing was copied."""
    before = windows(folder) if (folder / "out").exists() else 0
    with pytest.raises(kind) as caught:
        read_on(delta(folder) if operator is None else operator, folder)
    assert (windows(folder) if (folder / "out").exists() else 0) == before
    return str(caught.value)


def update(folder: Path) -> None:
    opened(folder).update(updates={"n": "n + 1"}, predicate="n = 1")


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "delete": (lambda folder: opened(folder).delete("n = 1"), "DELETE at .* removed 1 file"),
    "update": (update, "UPDATE at .* removed 1 file"),
    "overwrite": (lambda folder: append(folder, 9, mode="overwrite"), "WRITE at .* removed 2 files"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_version_that_changes_rows_is_refused_and_the_run_resumes_when_it_is_undone(change: str, tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    read_on(delta(tmp_path), tmp_path)
    append(tmp_path, 3)
    do, phrase = CHANGES[change]
    version = opened(tmp_path).version() + 1
    if change == "overwrite":
        phrase = phrase.replace("2", "3")
    do(tmp_path)
    append(tmp_path, 4)
    text = refusal(tmp_path, InputTableChanged)
    assert re.search(f"(?s)version {version} of .*table did more than append rows: {phrase}.*back to version {version - 1}", text)
    opened(tmp_path).restore(version - 1)
    append(tmp_path, 5)
    read_on(delta(tmp_path), tmp_path)
    assert numbers(tmp_path) == [1, 2, 3, 5]


def test_a_version_that_restores_what_lies_before_the_position_is_refused(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    read_on(delta(tmp_path), tmp_path)
    opened(tmp_path).restore(0)
    text = refusal(tmp_path, InputTableRolledBack)
    assert "rolled back: version 2 restored version 0, and version 1 was read before" in text


def test_the_run_resumes_when_the_version_that_was_read_is_restored(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    read_on(delta(tmp_path), tmp_path)
    opened(tmp_path).restore(0)
    append(tmp_path, 3)
    assert "bring version 1 back, and launch again: the run resumes" in refusal(tmp_path, InputTableRolledBack)
    opened(tmp_path).restore(1)
    append(tmp_path, 4)
    read_on(delta(tmp_path), tmp_path)
    assert numbers(tmp_path) == [1, 2, 4]


def test_a_log_that_was_cut_is_refused(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    read_on(delta(tmp_path), tmp_path)
    log_of(tmp_path, 1).unlink()
    assert "it is at version 0, and version 1 was read before" in refusal(tmp_path, InputTableRolledBack)
    append(tmp_path, 3)
    append(tmp_path, 4)
    assert "its version 1 is another one now" in refusal(tmp_path, InputTableRolledBack)


def test_a_table_that_was_dropped_or_created_again_is_refused(tmp_path: Path) -> None:
    append(tmp_path, 1)
    read_on(delta(tmp_path), tmp_path)
    shutil.rmtree(tmp_path / "table")
    assert f"there is no table {tmp_path}/table: there is no such folder" in refusal(tmp_path, InputTableMissing)
    append(tmp_path, 1)
    append(tmp_path, 2)
    assert "it is another table than was read so far" in refusal(tmp_path, InputTableReplaced)


def test_history_that_is_gone_is_refused(tmp_path: Path) -> None:
    append(tmp_path, 1)
    read_on(delta(tmp_path), tmp_path)
    append(tmp_path, 2)
    append(tmp_path, 3)
    opened(tmp_path).create_checkpoint()
    log_of(tmp_path, 1).unlink()
    assert "was read up to version 0, and version 1 is no longer in its log" in refusal(tmp_path, InputTableHistoryGone)
    missing = refusal(tmp_path / "other", InputTableHistoryGone, delta(tmp_path, from_version=7))
    assert "version 7 cannot be opened" in missing


def test_files_that_were_cleaned_away_are_named(tmp_path: Path) -> None:
    append(tmp_path, 1)
    read_on(delta(tmp_path), tmp_path)
    append(tmp_path, 2)
    append(tmp_path, 3)
    opened(tmp_path).optimize.compact()
    opened(tmp_path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    text = refusal(tmp_path, InputTableFileGone)
    assert re.search(r"(?s)version 1, is lost: .*\.parquet: it is not there.*--fresh", text)


def test_a_file_of_another_length_is_named(tmp_path: Path) -> None:
    append(tmp_path, 1)
    [path] = opened(tmp_path).file_uris()
    with open(path, "ab") as file:
        file.write(b"x")
    assert "bytes, and the log of the table says" in refusal(tmp_path, InputTableFileGone)


def test_a_schema_that_loses_columns_is_refused(tmp_path: Path) -> None:
    append(tmp_path, 1)
    read_on(delta(tmp_path), tmp_path)
    metadata = next(each for each in actions(tmp_path, 0) if "metaData" in each)
    metadata["metaData"]["schemaString"] = metadata["metaData"]["schemaString"].replace('"n"', '"m"')
    commit(tmp_path, 1, {"commitInfo": {"operation": "WRITE"}}, metadata)
    assert "version 1 of" in (text := refusal(tmp_path, InputTableChanged))
    assert "WRITE changed its columns: 'n' is gone" in text


def added(folder: Path, name: str, **fields: Any) -> dict[str, Any]:
    """An action that adds a file, which is written."""
    path = folder / "table" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": [1]}), path)
    facts = {"path": f"{name}.parquet", "partitionValues": {}, "size": path.stat().st_size, "modificationTime": 1}
    return {"add": {**facts, "dataChange": True, **fields}}


def created(
    columns: str = '{"name":"n","type":"long","nullable":true,"metadata":{}}', features: Any = None, **fields: Any
) -> list[dict[str, Any]]:
    """The actions that create a table."""
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if features:
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    metadata = {
        "id": "0d1e",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": f'{{"type":"struct","fields":[{columns}]}}',
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1,
    }
    return [{"protocol": protocol}, {"metaData": {**metadata, **fields}}]


def vector_of(row: int) -> dict[str, Any]:
    """A deletion vector that marks one row, as Delta's protocol has it within the log."""
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    bitmap = struct.pack("<IIHHIH", 12346, 1, 0, 0, 16, row)
    data = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    words = struct.unpack(">9I", data.ljust(36, b"\0"))
    text = "".join(letters[word // 85**place % 85] for word in words for place in (4, 3, 2, 1, 0))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": 1}


def test_deletion_vectors_are_refused(tmp_path: Path) -> None:
    vector = {"deletionVector": vector_of(0), "stats": '{"numRecords": 1, "tightBounds": false}'}
    commit(tmp_path, 0, *created(features=["deletionVectors"]), added(tmp_path, "a"))
    read_on(delta(tmp_path), tmp_path)
    commit(tmp_path, 1, {"commitInfo": {"operation": "UPDATE"}}, added(tmp_path, "b", **vector))
    text = refusal(tmp_path, InputTableUnsupported)
    assert "table has deletion vectors, which is not supported: 1 file of version 1 has one" in text
    assert "1 file of version 1 has one" in refusal(tmp_path / "other", InputTableUnsupported, delta(tmp_path))


def test_column_mapping_is_refused(tmp_path: Path) -> None:
    mapped = (
        '{"name":"n","type":"long","nullable":true,'
        '"metadata":{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"col-1"}}'
    )
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    commit(tmp_path, 0, *created(mapped, ["columnMapping"], configuration=configuration), added(tmp_path, "a"))
    text = refusal(tmp_path, InputTableUnsupported)
    assert "column mapping, which is not supported: delta.columnMapping.mode is 'name' in version 0" in text


def test_partition_values_that_no_folder_has_are_refused(tmp_path: Path) -> None:
    columns = ",".join(f'{{"name":"{name}","type":"long","nullable":true,"metadata":{{}}}}' for name in "nk")
    file = added(tmp_path, "x7/a", partitionValues={"k": "1"})
    commit(tmp_path, 0, *created(columns, partitionColumns=["k"]), file)
    text = refusal(tmp_path, InputTableUnsupported)
    assert "a.parquet has no folder k=…" in text
    assert "delta.randomizeFilePrefixes" in text


def test_a_clone_names_files_elsewhere(tmp_path: Path) -> None:
    file = added(tmp_path / "of another", "a b%c")
    file["add"]["path"] = f"file://{tmp_path}/of%20another/table/a%20b%25c.parquet"
    commit(tmp_path, 0, *created(), file)
    read_on(delta(tmp_path), tmp_path)
    assert numbers(tmp_path) == [1]


def test_a_missing_table_and_package_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "table").mkdir()
    text = refusal(tmp_path, InputTableMissing)
    assert f"operator 'table': there is no table {tmp_path}/table: the folder has no _delta_log" in text
    (tmp_path / "table" / "_delta_log").mkdir()
    assert "its log has no version yet" in refusal(tmp_path, InputTableMissing)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    assert "DeltaInput needs the package deltalake" in refusal(tmp_path, PackageMissing)


def test_properties() -> None:
    with pytest.raises(ValueError, match=r"(?s)path is empty.*from_version is -1, and versions begin at 0"):
        DeltaInput("", from_version=-1).check()


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
def test_spark_reads_the_same_rows(tmp_path: Path) -> None:
    for n in range(6):
        append(tmp_path, n)
    read_on(delta(tmp_path, blocks_threshold=4), tmp_path, runner="spark")
    append(tmp_path, 6)
    read_on(delta(tmp_path), tmp_path, runner="spark")
    assert sorted(numbers(tmp_path)) == list(range(7))


@pytest.mark.nightly
def test_a_hundred_thousand_files_are_planned_in_bounded_windows(tmp_path: Path) -> None:
    """The driver holds one window, and of the rest of a version not more than Arrow's columns of paths and sizes."""

    def peak(count: int) -> int:
        folder = tmp_path / f"{count}"
        file = added(folder, "0")["add"]
        for n in range(1, count):
            first, path = folder / "table" / f"{n // 1000 * 1000}.parquet", folder / "table" / f"{n}.parquet"
            if first == path:
                shutil.copy(folder / "table" / "0.parquet", path)
            else:
                os.link(first, path)
        commit(folder, 0, *created())
        commit(folder, 1, *({"add": {**file, "path": f"{n}.parquet"}} for n in range(count)))
        total = 0
        tracemalloc.start()
        try:
            for plan in plans(delta(folder, from_version=0, blocks_threshold=1000)):
                total += len(files_in(plan))
            assert total == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = peak(20_000), peak(100_000)  # both above what is kept of a version, and the pieces that its log is read in
    assert many < 1.2 * few
