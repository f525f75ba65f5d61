"""Tables on S3: input, run folder and table.

Not through the proxy, which is a part of this process: the table packages keep Python from running during some of their requests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG
from dagflow.errors import BucketMissing, StoreRefused, TableUnreachable
from dagflow.ledger import Ledger, read_dataset
from dagflow.testing import run_dag
from operators import (
    CsvFormat,
    DeltaInput,
    DeltaWriter,
    FileSplitterInput,
    IcebergInput,
    IcebergWriter,
    ParquetFormat,
    ParquetWriter,
    ScanReader,
)
from tests.storage.s3 import oracle
from tests.storage.s3.conftest import Bucket
from tests.storage.s3.proxy import Fault

pytestmark = pytest.mark.full


KEYS = {"s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "us-east-1"}


def launch(bucket: Bucket, sink: Any, run_folder: str | None = None) -> None:
    """Read all CSV files, one a window, into a table."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(bucket.url("in"), blocks_threshold=1))
        reader = dag.add_operator("reader", ScanReader(CsvFormat()))
        dag.add_operator("sink", sink)
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, sink.input)

    run_dag(populate_dag, run_folder=run_folder or bucket.url("run"), retry_delay=0.01)


def copy(bucket: Bucket, table: Any) -> list[int]:
    """Copy the rows of a table that are new to a folder, and return the ids of all that are there."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("table", table)
        reader = dag.add_operator("reader", ScanReader(ParquetFormat()))
        writer = dag.add_operator("writer", ParquetWriter(bucket.url("copy")))
        dag.add_stream("blocks", source.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, writer.input)

    run_dag(populate_dag, run_folder=bucket.url("copy-run"), retry_delay=0.01)
    assert Ledger.open(bucket.url("copy")).verify().is_clean
    return sorted(read_dataset(bucket.url("copy")).to_table().column("id").to_pylist())


def put(bucket: Bucket, *days: int) -> None:
    for day in days:
        oracle.put(bucket.url(f"in/{day}.csv"), b"id,country\n%d,se\n%d,no\n" % (2 * day, 2 * day + 1))


@pytest.fixture
def direct(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> str:
    """The endpoint of the server itself, which the usual variables name."""
    from s3fs import S3FileSystem

    endpoint = f"http://{bucket.proxy.server}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")  # deltalake refuses it otherwise
    monkeypatch.setenv(
        "AWS_REQUEST_CHECKSUM_CALCULATION", "when_required"
    )  # SeaweedFS refuses checksums behind the parts of uploads
    S3FileSystem.clear_instance_cache()
    return endpoint


@pytest.mark.usefixtures("direct")
def test_delta(bucket: Bucket) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = bucket.url("table")
    put(bucket, 0, 1)
    launch(bucket, DeltaWriter(table, partition_columns=["country"]))
    put(bucket, 2)
    launch(bucket, DeltaWriter(table, partition_columns=["country"]))
    written = deltalake.DeltaTable(table)
    assert sorted(written.to_pyarrow_table().column("id").to_pylist()) == list(range(6))
    assert [each["dagflow.window"] for each in written.history()] == [2, 1, 0]
    assert copy(bucket, DeltaInput(table)) == list(range(6))
    put(bucket, 3)
    launch(bucket, DeltaWriter(table, partition_columns=["country"]))
    assert copy(bucket, DeltaInput(table)) == list(range(8))
    assert copy(bucket, DeltaInput(table)) == list(range(8))


@pytest.mark.parametrize("given", [{}, KEYS], ids=["by the usual variables", "by the properties of pyiceberg"])
def test_iceberg(bucket: Bucket, direct: str, tmp_path: Path, given: dict[str, str]) -> None:
    pytest.importorskip("pyiceberg")
    catalog = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": bucket.url("warehouse"),
        **({**given, "s3.endpoint": direct} if given else {}),
    }
    put(bucket, 0, 1)
    launch(bucket, IcebergWriter("shop.rows", catalog, partition_columns=["country"]))
    put(bucket, 2)
    writer = IcebergWriter("shop.rows", catalog, partition_columns=["country"])
    launch(bucket, writer)
    opened = writer.open_table()
    assert opened is not None
    assert sorted(opened.table.scan().to_arrow().column("id").to_pylist()) == list(range(6))
    assert len(opened.table.snapshots()) == 3
    assert copy(bucket, IcebergInput("shop.rows", catalog)) == list(range(6))
    put(bucket, 3)
    launch(bucket, IcebergWriter("shop.rows", catalog, partition_columns=["country"]))
    assert copy(bucket, IcebergInput("shop.rows", catalog)) == list(range(8))
    assert copy(bucket, IcebergInput("shop.rows", catalog)) == list(range(8))


def sinks_on(bucket: Bucket, catalog: Path) -> list[Any]:
    """A sink of each kind, whose package asks the server itself: not through the proxy."""
    pytest.importorskip("deltalake")
    pytest.importorskip("pyiceberg")
    endpoint = f"http://{bucket.proxy.server}"
    properties = {"type": "sql", "uri": f"sqlite:///{catalog}", "warehouse": bucket.url("warehouse"), "s3.endpoint": endpoint}
    table = bucket.url("table")
    return [DeltaWriter(table, storage_options={"AWS_ENDPOINT_URL": endpoint}), IcebergWriter("shop.rows", properties)]


def test_a_store_that_ignores_conditions_is_refused_for_tables(bucket: Bucket, tmp_path: Path) -> None:
    put(bucket, 0)
    bucket.proxy.schedule = lambda request: Fault.UNCONDITIONAL
    for number, sink in enumerate(sinks_on(bucket, tmp_path / "catalog.db")):
        with pytest.raises(StoreRefused, match="a second record of one name was not refused"):
            launch(bucket, sink, run_folder=str(tmp_path / f"run{number}"))
        assert [key for key in bucket.keys("") if not key.startswith("in/")] == []


def test_a_place_for_tables_that_cannot_be_written_ends_the_launch_before_it_begins(bucket: Bucket, tmp_path: Path) -> None:
    put(bucket, 0)
    missing = attrs.evolve(bucket, name=f"{bucket.name}-missing")
    for number, sink in enumerate(sinks_on(missing, tmp_path / "catalog.db")):
        with pytest.raises(BucketMissing, match=missing.name):
            launch(bucket, sink, run_folder=str(tmp_path / f"run{number}"))
        assert list((tmp_path / f"run{number}").rglob("plan*")) == []


@pytest.mark.usefixtures("direct")
def test_pyiceberg_itself_writes_to_the_warehouse_before_a_launch_begins(bucket: Bucket, tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    put(bucket, 0)
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": bucket.url("warehouse")}
    with pytest.raises(TableUnreachable, match=r"shop\.rows"):
        launch(bucket, IcebergWriter("shop.rows", {**catalog, "s3.endpoint": "http://127.0.0.1:1", "s3.connect-timeout": "1"}))
    launch(bucket, IcebergWriter("shop.rows", catalog))
