"""Other readers of a table of PostgreSQL, to Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

FETCHED = 10_000
"""Rows of an answer of the server: by default, psycopg and JDBC ask for all rows at once."""


def cursor(dsn: str, schema: pa.Schema, output: Path) -> None:
    """psycopg: a server-side cursor, in one process."""
    import psycopg

    output.mkdir()
    with (
        psycopg.connect(dsn) as connection,
        connection.cursor(name="sales") as rows,
        pq.ParquetWriter(output / "part-0.parquet", schema, compression="snappy") as writer,
    ):
        rows.execute(f"SELECT {', '.join(schema.names)} FROM sales".encode())
        while fetched := rows.fetchmany(FETCHED):
            columns = zip(*fetched, strict=True)
            arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


@attrs.define
class Jdbc:
    """Spark's JDBC reader: two connections, each with half of the keys, in a session that is there before it is measured.

    `jar`: PostgreSQL's driver.
    """

    port: int
    database: str
    rows: int
    jar: Path
    _spark: Any = attrs.field(default=None, init=False)

    def __call__(self, output: Path) -> None:
        """Read the table, and write it."""
        how = {
            "url": f"jdbc:postgresql://127.0.0.1:{self.port}/{self.database}",
            "dbtable": "sales",
            "user": "postgres",
            "driver": "org.postgresql.Driver",
            "fetchsize": str(FETCHED),
            "partitionColumn": "id",
            "lowerBound": "0",
            "upperBound": str(self.rows),
            "numPartitions": "2",
        }
        self.session.read.format("jdbc").options(**how).load().write.parquet(str(output), compression="snappy")

    @property
    def session(self) -> Any:
        """The session, with dagflow's settings: dagflow runs in it too."""
        if self._spark is None:
            from dagflow.spark.connection.session import open_session

            conf = {"spark.ui.enabled": "false", "spark.driver.extraClassPath": str(self.jar)}
            self._spark, _ = open_session("benchmarks", "local[2]", None, conf)
        return self._spark

    def close(self) -> None:
        """Stop the session."""
        if self._spark is not None:
            self._spark.stop()
