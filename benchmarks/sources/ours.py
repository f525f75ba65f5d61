"""Our side: a table of PostgreSQL to Parquet."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs

from dagflow import DAG, launch
from dagflow.config import Secret
from operators import ParquetWriter, PostgresInput


@attrs.define
class Settings:
    """The settings of the application below."""

    dsn: Secret
    output: str


def copy(dag: DAG, conf: Settings) -> None:
    """All rows of the table, in ranges of the key that tasks read in parallel."""
    sales = dag.add_module("sales", PostgresInput(conf.dsn, "sales", key="id"))
    writer = dag.add_operator("writer", ParquetWriter(path=conf.output, compression="snappy"))
    dag.add_stream("rows", sales.batches, writer.input)


def run(dsn: str, output: Path, runner: str) -> None:
    """Run it once, from the start of the table; without syncs, as the peers."""
    shutil.rmtree(output, ignore_errors=True)
    launch(copy, Settings(dsn, str(output)), runner=runner, slots=2, durability="process", progress="none")
