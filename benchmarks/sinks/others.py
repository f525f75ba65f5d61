"""Other writers of rows into PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq


def dlt(dsn: str, given: Sequence[pa.RecordBatch]) -> None:
    """Write the rows with dlt, which makes files of them and loads these by COPY."""
    import dlt as package

    with tempfile.TemporaryDirectory() as folder, tcp(dsn) as (port, database):
        os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
        destination = package.destinations.postgres(credentials=f"postgresql://postgres:none@127.0.0.1:{port}/{database}")
        pipeline = package.pipeline("benchmark", pipelines_dir=folder, destination=destination, dataset_name="public")
        pipeline.run(pa.Table.from_batches(given), table_name="sales", write_disposition="append", loader_file_format="csv")


@attrs.define
class Jdbc:
    """Spark's JDBC writer, on two slots of a session that is there before it is measured. `jar`: the driver."""

    dsn: str
    given: Sequence[pa.RecordBatch]
    jar: Path
    _spark: Any = attrs.field(default=None, init=False)

    def __call__(self) -> None:
        """Write the rows: each of two tasks its own part."""
        if self._spark is None:
            self._spark = self._session()
        with tempfile.TemporaryDirectory() as folder, tcp(self.dsn) as (port, database):
            for number in range(2):
                pq.write_table(pa.Table.from_batches(self.given[number::2]), f"{folder}/{number}.parquet")
            properties = {
                "user": "postgres",
                "driver": "org.postgresql.Driver",
                "batchsize": "10000",
                "reWriteBatchedInserts": "true",
            }
            frame = self._spark.read.parquet(folder)
            frame.write.jdbc(f"jdbc:postgresql://127.0.0.1:{port}/{database}", "sales", mode="append", properties=properties)

    def _session(self) -> Any:
        from pyspark.sql import SparkSession

        builder: Any = SparkSession.builder
        builder = builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
        return builder.config("spark.driver.extraClassPath", str(self.jar)).getOrCreate()


@contextlib.contextmanager
def tcp(dsn: str) -> Iterator[tuple[int, str]]:
    """Forward a port to the socket of a server: JDBC knows no sockets of Unix. Yields the port, and the database."""
    from psycopg.conninfo import conninfo_to_dict

    known = conninfo_to_dict(dsn)
    path = f"{known['host']}/.s.PGSQL.5432"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_accept, args=(listening, path), daemon=True).start()
        try:
            yield listening.getsockname()[1], str(known["dbname"])
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket, path: str) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = listening.accept()
            threading.Thread(target=_relay, args=(client, path), daemon=True).start()


def _relay(client: socket.socket, path: str) -> None:
    with client, socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        answers = threading.Thread(target=_pump, args=(server, client), daemon=True)
        answers.start()
        _pump(client, server)
        answers.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 18):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
