"""The same work as scripts: `python -m benchmarks.cold.peer NAME SOURCE TARGET`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def _session() -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def spark_lines(source: Path, target: Path) -> None:
    """Filter lines with Spark: read.text, filter, write.text."""
    from pyspark.sql import functions as f

    _session().read.text(str(source)).filter(~f.col("value").startswith(".")).write.text(str(target))


def spark_csv(source: Path, target: Path) -> None:
    """Convert CSV to Parquet with Spark."""
    from benchmarks.scan.peers import spark

    spark(_session())(source, target, None)


def spark_json(source: Path, target: Path) -> None:
    """Convert JSON lines to Parquet with Spark."""
    from benchmarks.scan.json_peers import spark

    spark(_session())(source, target, None)


def duckdb_csv(source: Path, target: Path) -> None:
    """Convert CSV to Parquet with DuckDB."""
    from benchmarks.scan.peers import duckdb

    duckdb(source, target, None)


def duckdb_json(source: Path, target: Path) -> None:
    """Convert JSON lines to Parquet with DuckDB."""
    from benchmarks.scan.json_peers import duckdb

    duckdb(source, target, None)


def polars_csv(source: Path, target: Path) -> None:
    """Convert CSV to Parquet with Polars."""
    from benchmarks.scan.peers import polars

    polars(source, target, None)


def polars_json(source: Path, target: Path) -> None:
    """Convert JSON lines to Parquet with Polars."""
    from benchmarks.scan.json_peers import polars

    polars(source, target, None)


PEERS: dict[str, Callable[[Path, Path], None]] = {
    peer.__name__: peer for peer in (spark_lines, spark_csv, spark_json, duckdb_csv, duckdb_json, polars_csv, polars_json)
}

if __name__ == "__main__":
    name, source, target = sys.argv[1:]
    PEERS[name](Path(source), Path(target))
