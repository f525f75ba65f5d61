"""Write orders from CSV files whose columns change to a Delta table, an Iceberg table and a database, all in the same windows."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Any

import attrs
import pyarrow.compute

from dagflow import DAG
from dagflow.config import Bytes, MiB, Secret
from dagflow.scan import Drift
from operators import (
    CsvFormat,
    DeltaWriter,
    Expect,
    FileSplitterInput,
    IcebergWriter,
    JsonLinesWriter,
    ParquetWriter,
    PostgresWriter,
    ScanReader,
    SqlWriter,
    TopN,
)

pc: Any = pyarrow.compute

COLUMNS = "order_id: int64, updated: timestamp[us, UTC], amount: decimal128(12, 2)"
"""The columns that each order has. The types of others come from the files."""

IS_ORDER = (pc.field("order_id") > 0) & (pc.field("amount") >= pc.scalar(Decimal(0))) & pc.is_valid(pc.field("updated"))


@attrs.define
class Settings:
    """Write orders to tables and a database; rows that fail the checks are kept beside them."""

    input: list[str]  # files or folders
    output: str  # a folder, which gets `delta`, `iceberg`, `failed`, `rejects`, and where they are not set, the two below
    database: Secret = attrs.field(default="", repr=False)  # postgresql://… or sqlite:///…; "": OUTPUT/orders.db
    catalog: Secret = attrs.field(default="", repr=False)  # the database of the Iceberg catalog; "": OUTPUT/catalog.db
    max_share: float = 0.05  # of orders that fail the check; with more, the run ends before the window is committed
    block_size: Bytes = 64 * MiB


def database_writer(url: str) -> SqlWriter[Any] | PostgresWriter[Any]:
    """Return the sink of the newest state of each order."""
    if url.startswith("sqlite:"):
        return SqlWriter(url, "orders", mode="upsert", keys=["order_id"], on_schema_change="evolve")
    return PostgresWriter(url, "orders", mode="upsert", keys=["order_id"], on_schema_change="evolve")


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect rows → check → Delta, Iceberg; newest row of each order → database; failed and unreadable rows → files."""
    output = conf.output if "://" in conf.output else os.path.abspath(conf.output)
    if "://" in output and not (conf.catalog and conf.database):
        raise ValueError("output is in an object store: set `catalog` and `database` too, whose defaults are files beside it")
    iceberg = {"type": "sql", "uri": conf.catalog or f"sqlite:///{output}/catalog.db", "warehouse": f"{output}/iceberg"}
    drift = Drift(missing="null", extra="widen", changed="error")

    splitter = dag.add_operator("splitter", FileSplitterInput(files=conf.input, block_size=conf.block_size))
    scan = ScanReader(CsvFormat(infer_types=False), schema=COLUMNS, drift=drift, on_bad_row="route")
    reader = dag.add_operator("reader", scan)
    check = dag.add_operator("check", Expect(IS_ORDER, max_share=conf.max_share, name="an order has an id, a time, an amount"))
    delta = dag.add_operator("delta", DeltaWriter(f"{output}/delta", on_schema_change="evolve"))
    iceberg_writer = dag.add_operator("iceberg", IcebergWriter("shop.orders", iceberg, on_schema_change="evolve"))
    newest = dag.add_operator("newest", TopN(1, "updated", by="order_id"))
    database = dag.add_operator("database", database_writer(conf.database or f"sqlite:///{output}/orders.db"))
    failed = dag.add_operator("failed", ParquetWriter(f"{output}/failed", on_schema_change="new_file"))
    rejects = dag.add_operator("rejects", JsonLinesWriter(f"{output}/rejects"))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("rows", reader.batches, check.input)
    dag.add_stream("orders", check.output, delta.input, iceberg_writer.input, newest.input)
    dag.add_stream("newest orders", newest.output, database.input)
    dag.add_stream("failed orders", check.failed, failed.input)
    dag.add_stream("bad rows", reader.errors, rejects.input)
