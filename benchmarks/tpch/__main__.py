"""`python -m benchmarks.tpch`: queries of TPC-H by operators, beside DuckDB and PySpark with the same rows; prints the tables."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks import report
from benchmarks.lines.peers import Spark as Session
from benchmarks.rounds import Case, Contestant, Goal
from benchmarks.scan.peers import is_there
from benchmarks.tpch.peers import Ours, duckdb_over, make_data, spark_over
from benchmarks.tpch.queries import QUERIES

MARK = "tpch measured"
OURS, DUCKDB, SPARK = "dagflow, local runner", "DuckDB", "Spark script"


def cases(data: Path, output: Path, names: Sequence[str], slots: int, session: Session | None) -> Iterator[Case]:
    """Yield a case for each query. All contestants have to give the same rows."""
    ours, duckdb = Ours(data, output, slots), duckdb_over(data)
    spark = None if session is None else spark_over(session.session, data)
    for name in names:
        contestants = [
            Contestant(DUCKDB, partial(duckdb.run, name), duckdb.rows),
            Contestant(OURS, partial(ours.run, name), ours.rows, ours.clean),
        ]
        if spark is not None:
            contestants.append(Contestant(SPARK, partial(spark.run, name), spark.rows))
        title = (QUERIES[name].by_operators.__doc__ or "").rstrip(".")
        yield Case(name, f"{name}: {title}", contestants, [Goal(OURS, DUCKDB, most=6.0)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases. 1 when a goal is missed (never with --quick), else 0."""
    parser = report.parser("tpch", "Queries of TPC-H over Parquet files, by operators. No start of a process counts.")
    parser.add_argument("--scale", type=float, default=1, help="the scale factor: 1 are 6,000,000 lines (1)")
    parser.add_argument("--slots", type=int, default=1, help="slots of the local runner (1)")
    parser.add_argument("--data", type=Path, help="a folder for the tables, which stay there (one that is removed)")
    parser.add_argument("--query", action="append", choices=list(QUERIES), help="only this one; may be repeated")
    parser.add_argument("--spark", action="store_true", help="beside a script with PySpark, too")
    given = parser.parse_args(arguments)
    told = report.Report(given, MARK, report.typed("tpch", arguments))
    if not is_there("duckdb"):
        print("DuckDB is not installed: pip install 'dagflow[bench]'")
        return 1
    session = Session() if given.spark else None
    with tempfile.TemporaryDirectory(prefix="dagflow-bench-", dir=given.disk) as folder:
        data = make_data(given.data or Path(folder), 0.01 if given.quick else given.scale)
        for case in cases(data, Path(folder) / "result", given.query or list(QUERIES), given.slots, session):
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


if __name__ == "__main__":
    report.leave_in_order()
    sys.exit(main())
