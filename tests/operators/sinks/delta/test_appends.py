"""Versions of Delta tables that `DeltaWriter` writes itself, and where it leaves that to `deltalake`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pytest

from dagflow import StagedWindow
from operators import DeltaWriter
from operators.sinks.delta import log
from operators.sinks.delta.appends import may_append
from tests.operators.sinks.tables import staged_window


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def rows(path: Path) -> list[tuple[Any, ...]]:
    """The rows as Polars reads them; deltalake must see the same ones."""
    frame = pl.read_delta(str(path))
    assert deltalake.DeltaTable(path).to_pyarrow_table().num_rows == frame.height
    return sorted(frame.rows(), key=str)


def publish(sink: DeltaWriter[Any], number: int, *batches: pa.RecordBatch, run: bool = True) -> StagedWindow:
    window = staged_window(
        DeltaWriter(sink.path, sink.mode, keys=sink.keys, partition_columns=sink.partition_columns), number, *batches
    )
    if run:
        sink.publish(window)
    return window


def test_few_commits_have_to_be_read_since_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_INTERVAL", 10)
    sink = DeltaWriter(str(tmp_path))
    for number in range(22):
        publish(sink, number, batch(n=[number]))
    checkpoints = sorted(path.name[:20] for path in (tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    assert [int(each) for each in checkpoints] == [9, 19]
    assert rows(tmp_path) == sorted([(n,) for n in range(22)], key=str)


@pytest.mark.parametrize(("mode", "keys"), [("replace", []), ("upsert", ["n"])])
def test_sinks_that_open_a_table_for_each_window_write_more_checkpoints(mode: Any, keys: list[str], tmp_path: Path) -> None:
    publish(DeltaWriter(str(tmp_path), mode, keys=keys), 0, batch(n=[1]))
    assert deltalake.DeltaTable(tmp_path).metadata().configuration == {"delta.checkpointInterval": "10"}


def test_a_window_after_others_reads_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the list of versions, and not that of files: both grow with each window."""
    sink = DeltaWriter(str(tmp_path), partition_columns=["day"])
    for number in range(2):
        publish(sink, number, batch(day=["mon"], n=[number]))
    window = publish(sink, 2, batch(day=["tue", None], n=[2, 3]), run=False)
    with monkeypatch.context() as patch:
        patch.setattr(deltalake, "DeltaTable", None)
        sink.publish(window)
        assert sink.is_published(window)
    assert rows(tmp_path) == [("mon", 0), ("mon", 1), ("tue", 2), (None, 3)]
    assert deltalake.DeltaTable(tmp_path).transaction_version("app/sink") == 2


def test_a_table_with_features_of_its_own_is_written_by_its_package(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path))
    publish(sink, 0, batch(n=[0]))
    deltalake.DeltaTable(tmp_path).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    for number in (1, 2):
        publish(sink, number, batch(n=[number]))
    engines = [each["engineInfo"].partition(":")[0] for each in deltalake.DeltaTable(tmp_path).history(2)]
    assert engines == ["delta-rs", "delta-rs"]
    assert rows(tmp_path) == [(0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("path", "options", "version", "features", "expected"),
    [
        ("/data/sales", {}, 2, None, True),
        ("s3://shop/sales", {}, 7, ["appendOnly", "timestampNtz"], True),
        ("s3://shop/sales", {"aws_s3_locking_provider": "dynamodb"}, 2, None, False),
        ("gs://shop/sales", {}, 2, None, False),
        ("/data/sales", {}, 7, ["rowTracking", "appendOnly"], False),
        ("/data/sales", {}, 7, None, False),
        ("/data/sales", {}, 3, None, False),
    ],
)
def test_where_versions_are_written_without_the_package(
    path: str, options: dict[str, str], version: int, features: list[str] | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = SimpleNamespace(min_writer_version=version, writer_features=features)
    assert may_append(path, options, protocol) is expected
    monkeypatch.setenv("AWS_S3_LOCKING_PROVIDER", "dynamodb")
    assert not may_append(path, options, protocol)
