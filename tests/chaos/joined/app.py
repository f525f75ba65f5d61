"""Joins orders that are corrected with customers who move, and ranks and adds up what comes of it: results that change."""

from __future__ import annotations

import attrs

from dagflow import DAG
from dagflow.config import Bytes
from operators import (
    CsvFormat,
    Deduplicate,
    FileSplitterInput,
    Filter,
    GroupBy,
    HashJoin,
    JsonLinesWriter,
    ScanReader,
    SqlWriter,
    TopN,
    agg,
    col,
)

ORDERS = "id: int64, version: int64, customer: string, amount: int64"
CUSTOMERS = "customer: string, since: int64, town: string"


@attrs.define
class Settings:
    """Follow orders and customers with tables."""

    input: str  # a folder with the folders `orders` and `customers`
    output: str  # a folder, which gets `placed`, `top` and the database `towns.db`
    block_size: Bytes


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Newest orders and customers → joined → top orders and totals of each town; and → joined, or without a town → changes.

    An order of nothing is one that was cancelled.
    """
    rows = {}
    for name, schema, key, version in (("orders", ORDERS, "id", "version"), ("customers", CUSTOMERS, "customer", "since")):
        files = FileSplitterInput(f"{conf.input}/{name}", block_size=conf.block_size, blocks_threshold=2)
        splitter = dag.add_operator(f"{name}_splitter", files)
        reader = dag.add_operator(f"{name}_reader", ScanReader(CsvFormat(), schema=schema))
        newest = dag.add_operator(f"{name}_newest", Deduplicate(by=key, keep="last", order_by=version))
        dag.add_stream(f"{name} blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream(f"{name} rows", reader.batches, newest.input)
        rows[name] = newest.output
    ordered = dag.add_operator("ordered", Filter(col("amount") > 0))
    in_towns = dag.add_operator("in_towns", HashJoin("customer"))
    placed = dag.add_operator("placed", HashJoin("customer", how="left", right_columns=CUSTOMERS))
    top = dag.add_operator("top", TopN(3, "amount", by="town"))
    totals = dag.add_operator("totals", GroupBy("town", n=agg.count(), amount=agg.sum("amount"), most=agg.max("amount")))
    changes = dag.add_operator("changes", JsonLinesWriter(f"{conf.output}/placed", mode="changelog", keys=["id"]))
    current = dag.add_operator("current", JsonLinesWriter(f"{conf.output}/top"))
    database = SqlWriter(f"sqlite:///{conf.output}/towns.db", "towns", mode="upsert", keys=["town"])
    table = dag.add_operator("table", database)
    dag.add_stream("newest orders", rows["orders"], ordered.input)
    dag.add_stream("orders that stand", ordered.output, in_towns.left, placed.left)
    dag.add_stream("newest customers", rows["customers"], in_towns.right, placed.right)
    dag.add_stream("placed orders", placed.output, changes.input)
    dag.add_stream("orders in towns", in_towns.output, top.input, totals.input)
    dag.add_stream("top orders", top.output, current.input)
    dag.add_stream("totals of towns", totals.output, table.input)
