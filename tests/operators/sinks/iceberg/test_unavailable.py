"""Catalogs that are busy, or do not answer, before a launch and during one."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import botocore.exceptions
import pyarrow as pa
import pytest
import requests
import sqlalchemy.exc
from pyiceberg import exceptions

from dagflow import DAG
from dagflow.errors import TableUnreachable, WindowHeldUp
from dagflow.ledger import read_dataset
from dagflow.storage import is_transient
from dagflow.testing import run_dag
from operators import CsvFormat, FileSplitterInput, IcebergInput, IcebergWriter, ParquetFormat, ParquetWriter, ScanReader
from operators.extras import tables, unavailable
from operators.extras.unavailable import is_busy, is_unavailable
from tests.operators.sinks.iceberg.rest import Fault, RestCatalog, serving
from tests.operators.sinks.tables import staged_window

COMMIT, LOAD = "POST namespaces/shop/tables/rows", "GET namespaces/shop/tables/rows"


def locked(code: int = sqlite3.SQLITE_BUSY) -> Exception:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = code
    return sqlalchemy.exc.OperationalError("UPDATE iceberg_tables", None, error)


def of_server(state: str | None) -> Exception:
    error = Exception("as psycopg raises it")
    error.sqlstate = state  # type: ignore[attr-defined]
    return sqlalchemy.exc.OperationalError("UPDATE iceberg_tables", None, error)


def of_glue(code: str) -> Exception:
    return botocore.exceptions.ClientError({"Error": {"Code": code, "Message": ""}}, "GetTable")


ERRORS: list[tuple[Exception, bool, bool]] = [
    (exceptions.ServiceUnavailableError(), True, True),
    (exceptions.TooManyRequestsError(), True, True),
    (exceptions.ServerError(), False, True),
    (exceptions.CommitStateUnknownException(), False, True),
    (exceptions.ForbiddenError(), False, False),
    (exceptions.NoSuchTableError(), False, False),
    (requests.ReadTimeout(), False, True),
    (requests.ConnectionError(), False, True),
    (requests.exceptions.SSLError(), False, False),
    (requests.exceptions.InvalidURL(), False, False),
    (locked(), True, True),
    (locked(sqlite3.SQLITE_CANTOPEN), False, False),
    (of_server("53300"), True, True),
    (of_server(None), False, True),
    (of_server("28P01"), False, False),
    (of_glue("ThrottlingException"), True, True),
    (of_glue("AccessDeniedException"), False, False),
    (ValueError(), False, False),
]


@pytest.mark.parametrize(("error", "busy", "passes"), ERRORS, ids=lambda each: type(each).__name__)
def test_which_errors_of_catalogs_are_transient(error: Exception, busy: bool, passes: bool) -> None:
    assert (is_busy(error), is_unavailable(error)) == (busy, passes)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unavailable, "PAUSES", (0.0, 0.0, 0.0))


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[RestCatalog]:
    with serving(tmp_path) as catalog:
        yield catalog


def writer_of(rest: RestCatalog) -> IcebergWriter[Any]:
    return IcebergWriter("shop.rows", rest.properties, staging=f"{rest.folder}/staging")


def write(rest: RestCatalog, writer: IcebergWriter[Any], *days: int) -> None:
    """Write files of days, and launch an application that reads them into a table."""
    folder = rest.folder / "in"
    folder.mkdir(exist_ok=True)
    for day in days:
        (folder / f"{day}.csv").write_text(f"n\n{day}\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(folder, blocks_threshold=1))
        reader = dag.add_operator("reader", ScanReader(CsvFormat()))
        dag.add_operator("sink", writer)
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, writer.input)

    run_dag(populate_dag, run_folder=str(rest.folder / "run"), retry_delay=0.01)


def rows(rest: RestCatalog) -> list[int]:
    return sorted(rest.kept.load_table("shop.rows").scan().to_arrow().column("n").to_pylist())


def failing(fault: Fault, beginning: str, times: int) -> Callable[[str], Fault | None]:
    left = [times]

    def schedule(request: str) -> Fault | None:
        if not request.startswith(beginning) or not left[0]:
            return None
        left[0] -= 1
        return fault

    return schedule


@pytest.mark.full
def test_a_launch_outlives_outages(rest: RestCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window is published in three attempts; before a launch, reads of a busy catalog are tried four times."""
    writer = writer_of(rest)
    rest.schedule = failing(Fault.BUSY, "GET config", 3)
    write(rest, writer, 0)
    rest.schedule = failing(Fault.THROTTLED, LOAD, 3)
    write(rest, writer, 1)
    for number, fault in enumerate([Fault.BUSY, Fault.LOST, Fault.FAILED_AFTERWARDS], start=2):
        rest.schedule = failing(fault, COMMIT, 2)
        write(rest, writer, number)
    monkeypatch.setattr(unavailable, "REQUEST_TIMEOUT", (5.0, 1.5))
    tables._loaded.cache_clear()
    rest.schedule = failing(Fault.SLOW, COMMIT, 1)
    write(rest, writer, 5)
    assert rows(rest) == [0, 1, 2, 3, 4, 5]


@pytest.mark.full
def test_a_catalog_that_stays_busy_ends_the_launch_and_the_next_one_resumes(rest: RestCatalog) -> None:
    writer = writer_of(rest)
    write(rest, writer, 0)
    rest.schedule = failing(Fault.BUSY, COMMIT, 3)
    with pytest.raises(WindowHeldUp, match=r"shop\.rows cannot be written: ServiceUnavailableError: BUSY: try again later"):
        write(rest, writer, 1)
    rest.schedule = failing(Fault.LOST, LOAD, 1)
    with pytest.raises(TableUnreachable, match=r"sink: shop\.rows cannot be opened: ConnectionError"):
        write(rest, writer)
    write(rest, writer)
    assert rows(rest) == [0, 1]


@pytest.mark.full
def test_an_input_outlives_outages(rest: RestCatalog) -> None:
    write(rest, writer_of(rest), 0)

    def populate_dag(dag: DAG, conf: Any) -> None:
        table = dag.add_operator("table", IcebergInput("shop.rows", rest.properties))
        reader = dag.add_operator("reader", ScanReader(ParquetFormat()))
        sink = dag.add_operator("sink", ParquetWriter(str(rest.folder / "copy")))
        dag.add_stream("blocks", table.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, sink.input)

    for fault, expected in [(Fault.BUSY, 1), (Fault.THROTTLED, 1)]:
        rest.schedule = failing(fault, LOAD, 3)
        run_dag(populate_dag, run_folder=str(rest.folder / "run of copy"), retry_delay=0.01)
        assert read_dataset(rest.folder / "copy").to_table().num_rows == expected


@pytest.mark.full
def test_a_locked_catalog_in_sqlite_is_waited_for(tmp_path: Path) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db?timeout=0.01", "warehouse": f"file://{tmp_path}/warehouse"}
    writer = IcebergWriter[Any]("shop.rows", catalog)
    writer.publish(staged_window(writer, 0, pa.RecordBatch.from_pydict({"n": [1]})))
    window = staged_window(writer, 1, pa.RecordBatch.from_pydict({"n": [2]}))
    with contextlib.closing(sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TableUnreachable, match=r"cannot be written: OperationalError: .*database is locked") as caught:
            writer.publish(window)
        assert is_transient(caught.value)
        other.execute("COMMIT")
    writer.publish(window)
    opened = writer.open_table()
    assert opened is not None
    assert sorted(opened.table.scan().to_arrow().column("n").to_pylist()) == [1, 2]
