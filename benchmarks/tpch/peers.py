"""Programs that run the queries: ours, DuckDB, Polars and Spark. Each returns its rows, made comparable."""

from __future__ import annotations

import decimal
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from benchmarks.tpch.queries import QUERIES, application
from dagflow import launch
from dagflow.ledger import read_dataset

TABLES = ("customer", "lineitem", "nation", "orders", "part", "region", "supplier")
Rows = tuple[tuple[object, ...], ...]


def make_data(folder: Path, scale: float, parts: int = 1) -> Path:
    """Make the tables, a folder of Parquet files each; those that are there stay. Raises CalledProcessError."""
    program = shutil.which("tpchgen-cli", path=Path(sys.executable).parent) or shutil.which("tpchgen-cli") or "tpchgen-cli"
    made = folder / f"scale-{scale:g}-{parts}"
    if not made.exists():
        begun = folder / f"{made.name}-begun"
        for name in TABLES:
            size = ["--parts", str(parts)] if name in ("customer", "lineitem", "orders") else ["--parts", "1"]
            command = [program, "parquet", "-s", f"{scale:g}", "--tables", name, *size, "-o", str(begun), "--overwrite"]
            subprocess.run(command, check=True, capture_output=True)
        begun.rename(made)
    return made


def comparable(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Return rows in an order of their own: columns by name, floats to twelve digits, decimals without zeros at the end."""
    return tuple(sorted((tuple(_plain(row[name]) for name in sorted(row)) for row in rows), key=repr))


def _plain(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.12g}"
    return f"{value.normalize():f}" if isinstance(value, decimal.Decimal) else str(value)


@attrs.frozen
class Ours:
    """dagflow's local runner: a launch over all files, which keeps nothing if it is `final`."""

    data: Path
    output: Path
    slots: int
    final: bool = True

    def run(self, query: str) -> None:
        """Run a query in a launch of its own."""
        launch(application(query, self.data, self.output), {"slots": self.slots}, runner="local", final=self.final).wait()

    def rows(self) -> Rows:
        """Return the rows of the last launch."""
        return comparable(read_dataset(str(self.output)).to_table().to_pylist())

    def clean(self) -> None:
        """Remove the result."""
        shutil.rmtree(self.output, ignore_errors=True)


@attrs.define
class Engine:
    """A peer that runs the SQL over the same files. `ask` returns the rows of a query; `last` are those of the last one."""

    ask: Callable[[str], Iterable[Mapping[str, Any]]]
    last: Rows = ()

    def run(self, query: str) -> None:
        """Run a query."""
        self.last = comparable(self.ask(QUERIES[query].sql))

    def rows(self) -> Rows:
        """Return the rows of the last query."""
        return self.last


def duckdb_over(data: Path) -> Engine:
    """Return DuckDB in this process, with two threads."""
    import duckdb

    database = duckdb.connect(config={"threads": 2})
    for name in TABLES:
        database.execute(f"create view {name} as from '{data / name}/*.parquet'")
    return Engine(lambda text: database.sql(text).to_arrow_table().to_pylist())


def spark_over(session: Any, data: Path) -> Engine:
    """Return a script with PySpark, in a session that is open already."""
    for name in TABLES:
        session.read.parquet(str(data / name)).createOrReplaceTempView(name)
    return Engine(lambda text: [row.asDict() for row in session.sql(text).collect()])
