"""Those who read JSON lines: Spark, DuckDB, Polars, pyarrow; the columns and their types are given to all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.scan.inputs import JSON_TYPES
from benchmarks.scan.peers import DUCKDB_TYPES, SLOTS, SPARK_TYPES, Work


def spark(session: Any) -> Work:
    """read.json → write.parquet."""

    def work(source: Path, target: Path, columns: Sequence[str] | None) -> None:
        schema = ", ".join(f"{name} {SPARK_TYPES[kind]}" for name, kind in JSON_TYPES.items())
        frame = session.read.json(str(source), schema=schema)
        chosen = frame if columns is None else frame.select(*columns)
        chosen.write.option("compression", "snappy").parquet(str(target))

    return work


def duckdb(source: Path, target: Path, columns: Sequence[str] | None) -> None:
    """COPY (SELECT … FROM read_json(…)) TO …, two threads, a file for each."""
    import duckdb as engine

    kinds = ", ".join(f"'{name}': '{DUCKDB_TYPES[kind]}'" for name, kind in JSON_TYPES.items())
    reading = f"read_json('{source}', format='newline_delimited', columns={{{kinds}}})"
    with engine.connect() as connection:
        connection.execute(f"SET threads = {SLOTS}; SET preserve_insertion_order = false")
        chosen = "*" if columns is None else ", ".join(columns)
        options = "FORMAT parquet, COMPRESSION snappy, PER_THREAD_OUTPUT"
        connection.execute(f"COPY (SELECT {chosen} FROM {reading}) TO '{target}' ({options})")


def polars(source: Path, target: Path, columns: Sequence[str] | None) -> None:
    """scan_ndjson → sink_parquet, streaming, with as many threads as there are cores."""
    import polars as engine

    kinds: dict[str, Any] = {"int64": engine.Int64, "float64": engine.Float64, "string": engine.String}
    frame = engine.scan_ndjson(source, schema={name: kinds[kind] for name, kind in JSON_TYPES.items()})
    target.mkdir(parents=True)
    (frame if columns is None else frame.select(columns)).sink_parquet(target / "part.parquet", compression="snappy")


def pyarrow(source: Path, target: Path, columns: Sequence[str] | None) -> None:
    """json.open_json → ParquetWriter, one process with two threads."""
    import pyarrow as pa
    import pyarrow.json as arrow_json
    import pyarrow.parquet as pq

    from dagflow.scan import TableSchema

    whole = TableSchema.of(JSON_TYPES).arrow
    schema = whole if columns is None else pa.schema([whole.field(name) for name in columns])
    parse = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    target.mkdir(parents=True)
    with (
        arrow_json.open_json(source, parse_options=parse) as reader,
        pq.ParquetWriter(target / "part.parquet", schema, compression="snappy") as writer,
    ):
        for batch in reader:
            writer.write_table(pa.Table.from_batches([batch], schema=schema))
