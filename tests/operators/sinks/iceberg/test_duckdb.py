"""DuckDB reads tables of `IcebergWriter` with its own extension: by the path of their metadata, and through a REST catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from operators import IcebergWriter
from tests.operators.sinks.iceberg.rest import WAREHOUSE, RestCatalog, serving
from tests.operators.sinks.tables import staged_window

pytestmark = pytest.mark.nightly  # extensions of DuckDB are as large as DuckDB, and fit one version of it


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[RestCatalog]:
    with serving(tmp_path) as catalog:
        yield catalog


@pytest.fixture
def duck() -> Iterator[Any]:
    """A connection with the extensions of packages, without a download by DuckDB itself."""
    with duckdb.connect() as connection:
        for name in ("avro", "httpfs", "iceberg"):
            package = pytest.importorskip(f"duckdb_extension_{name}", reason="pip install 'dagflow[nightly]'")
            [extension] = Path(package.__path__[0]).rglob(f"{name}.duckdb_extension")
            if extension.parent.name != f"v{duckdb.__version__}":
                pytest.skip(f"the extension {name} is for DuckDB {extension.parent.name}, and {duckdb.__version__} is installed")
            connection.load_extension(str(extension))
        yield connection


def publish(sink: IcebergWriter[Any], number: int, **columns: Any) -> None:
    sink.publish(staged_window(sink, number, pa.RecordBatch.from_pydict(columns)))


def rows(duck: Any, source: str) -> list[tuple[Any, ...]]:
    return sorted(duck.sql(f"FROM {source}").fetchall(), key=str)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("append", [(1, "a"), (2, "b c"), (2, "å"), (3, None)]),
        ("replace", [(2, "å"), (3, None)]),
        ("upsert", [(1, "a"), (2, "å"), (3, None)]),
    ],
)
def test_modes(mode: Any, expected: list[Any], rest: RestCatalog, duck: Any) -> None:
    keys = ["n"] if mode == "upsert" else []
    partitions = [] if mode == "upsert" else ["text"]
    sink = IcebergWriter[Any](
        "shop.rows", rest.properties, mode, keys=keys, partition_columns=partitions, staging=f"{rest.folder}/staging"
    )
    publish(sink, 0, n=[1, 2], text=["a", "b c"])
    duck.execute(f"ATTACH '{WAREHOUSE}' AS lake (TYPE iceberg, ENDPOINT '{rest.url}', AUTHORIZATION_TYPE 'none')")
    assert rows(duck, "lake.shop.rows") == [(1, "a"), (2, "b c")]
    publish(sink, 1, n=[2, 3], text=["å", None])
    opened = sink.open_table()
    assert opened is not None
    assert rows(duck, "lake.shop.rows") == sorted(expected, key=str)
    assert rows(duck, f"iceberg_scan('{opened.table.metadata_location}')") == sorted(expected, key=str)


def test_new_columns_and_wider_types(rest: RestCatalog, duck: Any) -> None:
    sink = IcebergWriter[Any]("shop.rows", rest.properties, on_schema_change="evolve", staging=f"{rest.folder}/staging")
    publish(sink, 0, n=pa.array([1], pa.int32()))
    publish(sink, 1, n=[1 << 40], text=["new"])
    opened = sink.open_table()
    assert opened is not None
    assert rows(duck, f"iceberg_scan('{opened.table.metadata_location}')") == [(1, None), (1 << 40, "new")]
