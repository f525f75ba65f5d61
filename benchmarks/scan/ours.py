"""Our side: a scan to Parquet."""

from __future__ import annotations

import attrs

from benchmarks.scan.inputs import JSON_TYPES, TYPES
from dagflow import DAG
from dagflow.config import Bytes, MiB
from operators import CsvFormat, FileSplitterInput, JsonLinesFormat, ParquetWriter, ScanReader


@attrs.define
class Settings:
    """The settings of the application below."""

    input: list[str]
    output: str
    columns: list[str] | None = None
    block_size: Bytes = 64 * MiB


def csv_to_parquet(dag: DAG, conf: Settings) -> None:
    """CSV, cut at 64 MiB wherever that is, to Parquet."""
    _to_parquet(dag, conf, ScanReader(CsvFormat(), columns=conf.columns, schema=TYPES))


def json_to_parquet(dag: DAG, conf: Settings) -> None:
    """JSON lines, cut at 64 MiB wherever that is, to Parquet."""
    _to_parquet(dag, conf, ScanReader(JsonLinesFormat(), columns=conf.columns, schema=JSON_TYPES))


def _to_parquet(dag: DAG, conf: Settings, scan: ScanReader) -> None:
    files = dag.add_operator("splitter", FileSplitterInput(files=conf.input, block_size=conf.block_size))
    reader = dag.add_operator("reader", scan)
    writer = dag.add_operator("writer", ParquetWriter(path=conf.output, compression="snappy"))
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("rows", reader.batches, writer.input)
