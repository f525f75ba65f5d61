"""Those who do the same: Spark, DuckDB, Polars, pyarrow; the columns and their types are given to all of them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.scan.inputs import TYPES

SPARK_TYPES = {"int64": "bigint", "float64": "double", "string": "string", "date32": "date", "timestamp[us]": "timestamp_ntz"}
DUCKDB_TYPES = {"int64": "BIGINT", "float64": "DOUBLE", "string": "VARCHAR", "date32": "DATE", "timestamp[us]": "TIMESTAMP"}
SLOTS = 2

Work = Callable[[Path, Path, Sequence[str] | None], None]


def is_there(package: str) -> bool:
    """Return whether a peer is installed."""
    return importlib.util.find_spec(package) is not None


def spark(session: Any, *, multi_line: bool = False) -> Work:
    """read.csv → write.parquet. `multi_line`: line ends in quotes, for which Spark reads a file by one task."""

    def work(source: Path, target: Path, columns: Sequence[str] | None) -> None:
        schema = ", ".join(f"{name} {SPARK_TYPES[kind]}" for name, kind in TYPES.items())
        frame = session.read.csv(str(source), schema=schema, header=True, multiLine=multi_line, escape='"')
        chosen = frame if columns is None else frame.select(*columns)
        chosen.write.option("compression", "snappy").parquet(str(target))

    return work


def duckdb(source: Path, target: Path, columns: Sequence[str] | None) -> None:
    """COPY (SELECT … FROM read_csv(…)) TO …, two threads, a file for each."""
    import duckdb as engine

    kinds = ", ".join(f"'{name}': '{DUCKDB_TYPES[kind]}'" for name, kind in TYPES.items())
    reading = f"read_csv('{source}', header=true, auto_detect=false, delim=',', quote='\"', escape='\"', columns={{{kinds}}})"
    with engine.connect() as connection:
        connection.execute(f"SET threads = {SLOTS}; SET preserve_insertion_order = false")
        chosen = "*" if columns is None else ", ".join(columns)
        options = "FORMAT parquet, COMPRESSION snappy, PER_THREAD_OUTPUT"
        connection.execute(f"COPY (SELECT {chosen} FROM {reading}) TO '{target}' ({options})")


def polars(source: Path, target: Path, columns: Sequence[str] | None) -> None:
    """scan_csv → sink_parquet, streaming, with as many threads as there are cores."""
    import polars as engine

    kinds: dict[str, Any] = {
        "int64": engine.Int64,
        "float64": engine.Float64,
        "string": engine.String,
        "date32": engine.Date,
        "timestamp[us]": engine.Datetime("us"),
    }
    frame = engine.scan_csv(source, schema={name: kinds[kind] for name, kind in TYPES.items()})
    target.mkdir(parents=True)
    (frame if columns is None else frame.select(columns)).sink_parquet(target / "part.parquet", compression="snappy")


def pyarrow(source: Path, target: Path, columns: Sequence[str] | None) -> None:
    """csv.open_csv → ParquetWriter, one process with two threads."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as pq

    from dagflow.scan import TableSchema

    schema = TableSchema.of(TYPES).arrow
    convert = arrow_csv.ConvertOptions(column_types=schema, include_columns=None if columns is None else list(columns))
    parse = arrow_csv.ParseOptions(newlines_in_values=True)
    target.mkdir(parents=True)
    with (
        arrow_csv.open_csv(source, parse_options=parse, convert_options=convert) as reader,
        pq.ParquetWriter(target / "part.parquet", reader.schema, compression="snappy") as writer,
    ):
        for batch in reader:
            writer.write_table(pa.Table.from_batches([batch]))
