"""Suites of queries: by operators and as SQL; the programs that run them over the same Parquet files; their command line."""

from __future__ import annotations

import argparse
import decimal
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.dataset as ds

from benchmarks import report
from benchmarks.lines.peers import Spark as Session
from benchmarks.rounds import Case, Contestant, Goal
from benchmarks.scan.peers import is_there
from dagflow import launch
from dagflow.ledger import read_dataset
from operators import Join, ParquetWriter

OURS, DUCKDB, SPARK = "dagflow, local runner", "DuckDB", "Spark script"

Tables = Callable[[str], Any]
"""Return the port with the rows of a table, by its name."""

Rows = tuple[tuple[object, ...], ...]


@attrs.frozen
class Query:
    """A query by operators, from the tables to the port with its rows, and as SQL."""

    by_operators: Callable[[Tables], Any]
    sql: str


@attrs.frozen
class Suite:
    """Queries by name, over tables, each a folder of Parquet files."""

    name: str
    tables: Sequence[str]
    queries: Mapping[str, Query]

    def application(self, query: str, data: Path, output: Path) -> Callable[[Any, Any], None]:
        """Return the `populate_dag` of a query: it keeps the query's result in a folder."""
        by_operators = self.queries[query].by_operators

        def populate_dag(dag: Any, conf: Any) -> None:
            def table(name: str) -> Any:
                return dag.read(data / name, "parquet", name=name)

            by_operators(table).to(ParquetWriter(output), name="result")

        return populate_dag


def joined(left: Any, right: Any, on: Any, how: Any = "inner", **properties: Any) -> Any:
    """Return the port with the rows of two ports that have equal keys."""
    join = Join(on, how, **properties)
    left.to(join.left)
    right.to(join.right)
    return join.output


@attrs.frozen
class Program:
    """A program that runs queries.

    Attributes:
        run: runs a query, by its name, and leaves its rows in `output`.
        output: a folder of Parquet files.
        opened: opens the folder as a dataset.
    """

    run: Callable[[str], None]
    output: Path
    opened: Callable[[str], ds.Dataset]

    def rows(self) -> Rows:
        """Return the rows of the last query, in an order of their own."""
        return tuple(sorted(self._rows(), key=repr))

    def digest(self) -> tuple[int, int]:
        """Return the number of these rows, and a sum of their hashes: a result of a million rows need not be kept."""
        hashes = [int.from_bytes(blake2b(repr(row).encode(), digest_size=8).digest(), "big") for row in self._rows()]
        return len(hashes), sum(hashes)

    def clean(self) -> None:
        """Remove the rows."""
        shutil.rmtree(self.output, ignore_errors=True)

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for batch in self.opened(str(self.output)).to_batches():
            yield from comparable(batch)


def comparable(batch: pa.RecordBatch) -> Iterable[tuple[object, ...]]:
    """Return rows as texts: columns by name, floats to twelve digits, decimals without zeros at the end."""
    return zip(*(map(_plain, batch.column(name).to_pylist()) for name in sorted(batch.schema.names)), strict=True)


def _plain(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.12g}"
    return f"{value.normalize():f}" if isinstance(value, decimal.Decimal) else str(value)


def ours(suite: Suite, data: Path, output: Path, settings: Mapping[str, Any], *, final: bool = True) -> Program:
    """Return dagflow's local runner: each query is a launch over all files, which keeps nothing if it is `final`."""

    def run(query: str) -> None:
        launch(suite.application(query, data, output), dict(settings), runner="local", final=final).wait()

    return Program(run, output, read_dataset)


def duckdb_over(suite: Suite, data: Path, output: Path) -> Program:
    """Return DuckDB in this process, with two threads."""
    import duckdb

    database = duckdb.connect(config={"threads": 2})
    for name in suite.tables:
        database.execute(f"create view {name} as from '{data / name}/*.parquet'")

    def run(query: str) -> None:
        output.mkdir(parents=True, exist_ok=True)
        database.execute(f"copy ({suite.queries[query].sql}) to '{output / 'rows.parquet'}'")

    return Program(run, output, ds.dataset)


def spark_over(session: Any, suite: Suite, data: Path, output: Path) -> Program:
    """Return a script with PySpark, in a session that is open already."""
    for name in suite.tables:
        session.read.parquet(str(data / name)).createOrReplaceTempView(name)

    def run(query: str) -> None:
        session.sql(suite.queries[query].sql).write.mode("overwrite").parquet(str(output))

    return Program(run, output, ds.dataset)


def cases(suite: Suite, programs: Mapping[str, Program], names: Iterable[str]) -> Iterator[Case]:
    """Yield a case for each query. All programs have to give the same rows."""
    for name in names:
        contestants = [Contestant(who, partial(each.run, name), each.digest, each.clean) for who, each in programs.items()]
        title = (suite.queries[name].by_operators.__doc__ or "").partition("\n")[0].rstrip(".")
        yield Case(name, f"{name}: {title}", contestants, [Goal(OURS, DUCKDB, most=6.0)])


def parser(suite: Suite, description: str) -> argparse.ArgumentParser:
    """Return a command line with what all suites are told."""
    made = report.parser(suite.name, description)
    made.add_argument("--slots", type=int, default=1, help="slots of the local runner (1)")
    made.add_argument("--data", type=Path, help="a folder for the tables, which stay there (one that is removed)")
    made.add_argument("--query", action="append", choices=list(suite.queries), help="only this one; may be repeated")
    made.add_argument("--spark", action="store_true", help="beside a script with PySpark, too")
    return made


def run(suite: Suite, given: argparse.Namespace, arguments: Sequence[str] | None, make: Callable[[Path], Path]) -> int:
    """Run the cases over the tables that `make` makes below a folder. 1 when a goal is missed (never with --quick), else 0."""
    told = report.Report(given, f"{suite.name} measured", report.typed(suite.name, arguments))
    if not is_there("duckdb"):
        print("DuckDB is not installed: pip install 'dagflow[bench]'")
        return 1
    session = Session() if given.spark else None
    with tempfile.TemporaryDirectory(prefix="dagflow-bench-", dir=given.disk) as folder:
        data, results = make(given.data or Path(folder)), Path(folder, "results")
        programs = {
            DUCKDB: duckdb_over(suite, data, results / "duckdb"),
            OURS: ours(suite, data, results / "ours", {"slots": given.slots}),
        }
        if session is not None:
            programs[SPARK] = spark_over(session.session, suite, data, results / "spark")
        for case in cases(suite, programs, given.query or suite.queries):
            told.run(case)
    if session is not None:
        session.close()
    shares = [
        (result.figures[OURS].processor or 0) / (result.figures[DUCKDB].processor or 1)
        for result in told.results
        if result.figures[DUCKDB].processor
    ]
    if shares:
        print(
            f"\nprocessor seconds beside DuckDB: geometric mean {statistics.geometric_mean(shares):.2f}, most {max(shares):.2f}"
        )
    return told.end()
