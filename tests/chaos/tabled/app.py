"""Writes the rows of CSV files to a Delta table, an Iceberg table and files, in the same windows."""

from __future__ import annotations

from typing import Literal

import attrs

from dagflow import DAG
from dagflow.config import Bytes, Secret
from operators import CsvFormat, DeltaWriter, FileSplitterInput, IcebergWriter, JsonLinesWriter, ScanReader


@attrs.define
class Settings:
    """Copy rows to tables."""

    input: str
    output: str  # the folder of the files, and of the run folder
    tables: str  # the folder of the tables
    catalog: Secret = attrs.field(repr=False)
    block_size: Bytes
    mode: Literal["append", "upsert"] = "append"


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect rows → Delta, Iceberg, files."""
    keys = ["id"] if conf.mode == "upsert" else []
    catalog = {"type": "sql", "uri": conf.catalog, "warehouse": f"{conf.tables}/iceberg"}
    splitter = dag.add_operator("splitter", FileSplitterInput(conf.input, block_size=conf.block_size, blocks_threshold=2))
    reader = dag.add_operator("reader", ScanReader(CsvFormat()))
    delta = dag.add_operator("delta", DeltaWriter(f"{conf.tables}/delta", conf.mode, keys=keys))
    iceberg = dag.add_operator("iceberg", IcebergWriter("shop.rows", catalog, conf.mode, keys=keys))
    files = dag.add_operator("files", JsonLinesWriter(conf.output))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("rows", reader.batches, delta.input, iceberg.input, files.input)
