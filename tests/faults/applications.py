"""A small application for each sink and mode, and an independent look at what it has written.

Input arrives as files of a few rows, each of which is a window. `OUTPUTS` has an entry for each sink of the library and each of
its modes; `test_registered.py` refuses a sink without one. Contents are read by the csv, json and sqlite3 modules, pyarrow,
deltalake, pyiceberg and the clients of the servers; never through dagflow, but for the ledger, which is verified as well.
"""

from __future__ import annotations

import contextlib
import importlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from dagflow import DAG
from dagflow.runtime.run_folder.verify import verify_run_folder
from operators import (
    BlockReader,
    Count,
    CsvFormat,
    CsvWriter,
    Deduplicate,
    DeltaWriter,
    FileSplitterInput,
    IcebergWriter,
    JsonLinesWriter,
    Map,
    ParquetWriter,
    RecordWriter,
    ScanReader,
)
from tests.chaos import oracle
from tests.chaos.tables import rows_of_parquet
from tests.faults.place import HEADER, Files, Place, Row, line_of, row_of
from tests.faults.results import RESULTS
from tests.faults.tables import TABLES, catalog_of, csv_rows, database_of, files_of, json_rows, parquet_rows, preparing_database
from tests.logs.writer_kills import Stream, Target, Topic
from tests.of_windows import OfWindows, every

# ------------------------------------------------------------------------------------------------------------- what is expected


def appended(files: Files) -> Counter[Row]:
    """All rows."""
    return Counter(row for rows in files for row in rows)


def upserted(files: Files) -> Counter[Row]:
    """The last row of each id."""
    return Counter({row[0]: row for rows in files for row in rows}.values())


def replaced(files: Files) -> Counter[Row]:
    """The rows of the last file."""
    return Counter(files[-1])


EXPECTED: dict[str, Callable[[Files], Counter[Row]]] = {"append": appended, "upsert": upserted, "replace": replaced, "": appended}
"""The rows that a sink has in the end, by its mode."""


def distinct(files: Files) -> Counter[Any]:
    """The keys, once each."""
    return Counter({(row[1],): 1 for rows in files for row in rows})


def complete(files: Files) -> Counter[Any]:
    """The totals of all keys."""
    return Counter(Counter(row[1] for rows in files for row in rows).items())


# ----------------------------------------------------------------------------------------------------------------------- sinks


@attrs.frozen
class Output:
    """A sink of an application.

    Attributes:
        sink: the name of its class.
        add: adds its operators to a DAG, and returns the port that takes the input.
        wrong: yields what is wrong with what the sink has written.
        lines: whether it takes the lines of files, not their rows.
        prepare: makes what the sink does not make by itself.
    """

    sink: str
    mode: str
    add: Callable[[DAG, Place], Any]
    wrong: Callable[[Place], Iterator[str]]
    lines: bool = False
    prepare: Callable[[Place], None] = lambda place: None

    @property
    def name(self) -> str:
        """The name of the application that has only this sink."""
        return f"{self.sink}-{self.mode}" if self.mode else self.sink


def _added(name: str, mode: str, make: Callable[[Place], Any]) -> Callable[[DAG, Place], Any]:
    def add(dag: DAG, place: Place) -> Any:
        sink = dag.add_operator(name, make(place))
        if mode != "replace":
            return sink.input
        windows = dag.add_operator(f"windows_{name}", OfWindows[Any](every))  # each replaces the one before
        dag.add_stream(f"windows_{name}", windows.output, sink.input)
        return windows.input

    return add


def _difference(found: Counter[Any], expected: Counter[Any]) -> Iterator[str]:
    if found != expected:
        yield f"the content differs: {oracle.difference(found, expected)}"


def _text(files: Files) -> list[str]:
    return [line for rows in files for line in (HEADER, *map(line_of, rows))]


_FILES: dict[str, tuple[Any, Callable[[Path], Iterator[Any]], Callable[[bytes], int]]] = {
    "CsvWriter": (CsvWriter, csv_rows, lambda data: data.count(b"\n") - 1),
    "JsonLinesWriter": (JsonLinesWriter, json_rows, lambda data: data.count(b"\n")),
    "ParquetWriter": (ParquetWriter, parquet_rows, rows_of_parquet),
}


def _in_files(sink: str, mode: str) -> Output:
    writer, rows, count = _FILES[sink]

    def wrong(place: Place) -> Iterator[str]:
        expected = EXPECTED[mode](place.files())
        yield from oracle.wrong(
            place.data / sink,
            lambda folder: Counter(row_of(row) for path in files_of(folder, mode) for row in rows(path)),
            expected,
            count,
        )

    return Output(sink, mode, _added(sink.lower(), mode, lambda place: writer(str(place.data / sink), mode=mode)), wrong)


def _in_text(mode: Any) -> Output:
    def wrong(place: Place) -> Iterator[str]:
        files = place.files()
        expected = Counter(_text(files[-1:] if mode == "replace" else files))
        yield from oracle.wrong(
            place.data / "text",
            lambda folder: Counter(line for path in files_of(folder, mode) for line in path.read_text().splitlines()),
            expected,
            lambda data: data.count(b"\n"),
        )

    add = _added("text", mode, lambda place: RecordWriter(str(place.data / "text"), mode=mode))
    return Output("RecordWriter", mode, add, wrong, lines=True)


def _keys(mode: str) -> dict[str, Any]:
    return {"mode": mode, "keys": ["id"]} if mode == "upsert" else {"mode": mode}


def _delta(mode: str) -> Output:
    def wrong(place: Place) -> Iterator[str]:
        import deltalake

        table = deltalake.DeltaTable(place.data / "delta")
        yield from _difference(Counter(map(row_of, table.to_pyarrow_table().to_pylist())), EXPECTED[mode](place.files()))
        windows = [each["dagflow.window"] for each in table.history() if "dagflow.window" in each]
        if len(set(windows)) < len(windows):
            yield f"the Delta table has the windows {windows}"

    add = _added("delta", mode, lambda place: DeltaWriter(str(place.data / "delta"), **_keys(mode)))
    return Output("DeltaWriter", mode, add, wrong)


def _iceberg(mode: str) -> Output:
    def wrong(place: Place) -> Iterator[str]:
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog("default", **catalog_of(place))
        try:
            rows = catalog.load_table("shop.orders").scan().to_arrow().to_pylist()
        finally:
            catalog.engine.dispose()
        yield from _difference(Counter(map(row_of, rows)), EXPECTED[mode](place.files()))
        yield from _sound(place.data / "catalog.db")

    def prepare(place: Place) -> None:
        (place.data / "warehouse").mkdir()

    add = _added("iceberg", mode, lambda place: IcebergWriter("shop.orders", catalog_of(place), **_keys(mode)))
    return Output("IcebergWriter", mode, add, wrong, prepare=prepare)


def _sound(path: Path) -> Iterator[str]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        [(said,)] = database.execute("PRAGMA integrity_check").fetchall()
    if said != "ok":
        yield f"{path.name}: {said}"


def _database(sink: str, mode: str) -> Output:
    def wrong(place: Place) -> Iterator[str]:
        found = database_of(place, sink)
        yield from _difference(Counter(found.run("SELECT id, key, val FROM orders")), EXPECTED[mode](place.files()))
        if staged := found.staged():
            yield f"there is still {staged}"
        if sink == "SqlWriter":
            yield from _sound(place.data / "orders.db")

    add = _added(sink.lower(), mode, lambda place: database_of(place, sink).writer("orders", **_keys(mode)))
    return Output(sink, mode, add, wrong, prepare=preparing_database(sink))


def _log(sink: str, target: Callable[[Place], Target]) -> Output:
    def wrong(place: Place) -> Iterator[str]:
        yield from _difference(Counter(each.decode() for each in target(place).values()), Counter(_text(place.files())))

    add = _added("log", "append", lambda place: target(place).writer())
    return Output(sink, "append", add, wrong, lines=True, prepare=lambda place: target(place).create())


def _keys_in(sink: str, mode: str, keep: Callable[[], Any], expected: Callable[[Files], Counter[Any]]) -> Output:
    """The results of an operator for the keys: state that is kept over windows."""

    def add(dag: DAG, place: Place) -> Any:
        keys = dag.add_operator("keys", Map[Any, str](lambda line: line.record.split(",")[1]))
        kept = dag.add_operator("kept", keep())
        writer = dag.add_operator("writer", CsvWriter(str(place.data / "keys")))
        dag.add_stream("keys", keys.output, kept.input)
        dag.add_stream("kept", kept.output, writer.input)
        return keys.input

    def wrong(place: Place) -> Iterator[str]:
        def content(folder: Path) -> Counter[Any]:
            rows = (tuple(row.values()) for path in files_of(folder, mode) for row in csv_rows(path))
            return Counter((key, *map(int, totals)) for key, *totals in rows if key != "key")  # of headers

        yield from oracle.wrong(place.data / "keys", content, expected(place.files()), lambda data: data.count(b"\n") - 1)

    return Output(sink, mode, add, wrong, lines=True)


# ------------------------------------------------------------------------------------------------------- results that change


def _changing(result: str, table: str) -> Output:
    """A result that changes with each file, in a table that follows: signs, and state that is kept over windows."""
    of, into = RESULTS[result], TABLES[table]
    name = f"{result}_{into.sink.lower()}"

    def add(dag: DAG, place: Place) -> Any:
        port, results = of.add(dag, name)
        writer = dag.add_operator(f"sink_{name}", into.make(place, name, of.keys))
        dag.add_stream(f"changes_{name}", results, writer.input)
        return port

    def wrong(place: Place) -> Iterator[str]:
        found = Counter(
            tuple(kind(row[column]) for column, kind in of.columns.items()) for row in into.rows(place, name, of.columns)
        )
        yield from _difference(found, of.expected(place.files()))

    return Output(into.sink, "", add, wrong, prepare=into.prepare)


OUTPUTS: tuple[Output, ...] = (
    *(_in_text(mode) for mode in ("append", "replace")),
    *(_in_files(sink, mode) for sink in _FILES for mode in ("append", "replace")),
    *(make(mode) for make in (_delta, _iceberg) for mode in ("append", "upsert", "replace")),
    *(_database(sink, mode) for sink in ("SqlWriter", "PostgresWriter") for mode in ("append", "upsert", "replace")),
    _log("KafkaWriter", lambda place: Topic(place.servers.kafka(), place.name)),
    _log("NatsWriter", lambda place: Stream(place.servers.nats(), place.name)),
)
"""The sinks of the library, in all of their modes."""

SAME_AS_APPEND = {"changelog": "rows are staged and published as with append; CHANGING has applications with their changes"}
"""The modes that have no case, with the reason."""
DISTINCT = _keys_in("Deduplicate", "append", Deduplicate, distinct)
KEEPS_NOTHING = {"Console": "prints rows, and promises nothing of them after a kill"}
"""The sinks that have no case, with the reason."""


# ----------------------------------------------------------------------------------------------------------------- applications


@attrs.frozen
class Application:
    """An application with its outputs. `slots`: of the local runner; more than one are processes of their own."""

    name: str
    outputs: tuple[Output, ...]
    slots: int = 1

    @property
    def sockets(self) -> bool:
        """True if the messages to its server are calls too."""
        return any(output.sink in ("PostgresWriter", "KafkaWriter", "NatsWriter") for output in self.outputs)

    def populate(self, place: Place) -> Callable[[DAG, Any], None]:
        """Return the function that fills the DAG: the files of the input, as rows or as lines, go to all outputs."""
        [lines] = {output.lines for output in self.outputs}

        def populate_dag(dag: DAG, conf: Any) -> None:
            files = dag.add_operator("files", FileSplitterInput(files=[str(place.input)], blocks_threshold=1))
            reader: Any = dag.add_operator("reader", BlockReader() if lines else ScanReader(CsvFormat()))
            dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
            inputs = [output.add(dag, place) for output in self.outputs]
            dag.add_stream("read", reader.messages if lines else reader.batches, *inputs)

        return populate_dag

    def settings(self, place: Place) -> dict[str, Any]:
        """Return the settings of launches."""
        return {
            "run_folder": str(place.data / "run"),
            "slots": self.slots,
            "windows_in_flight": 2,
            "retain_windows": 2,
            "retry_delay": 0.01,
        }

    def wrong(self, place: Place) -> Iterator[str]:
        """Yield what does not hold after a launch that has ended well."""
        for output in self.outputs:
            try:
                yield from (f"{output.name}: {each}" for each in output.wrong(place))
            except Exception as error:  # noqa: BLE001  # what cannot be read is wrong, too
                yield f"{output.name}: {type(error).__name__}: {str(error)[:300]}"
        yield from (f"run folder: {problem}" for problem in verify_run_folder(str(place.data / "run")).problems)


CHANGING: dict[str, tuple[Any, ...]] = {
    "changes": (1, ("totals", "sqlite")),
    "changes-current": (1, ("totals", "csv, current"), ("totals", "sqlite")),
    "changes-delta": (1, ("live", "delta")),
    "changes-delta-current": (1, ("totals_of_live", "delta, current")),
    "changes-iceberg": (1, ("live", "iceberg")),
    "changes-postgres": (1, ("live", "postgres")),
    "changes-postgres-current": (1, ("joined", "postgres, current")),
    "changes-changelog": (1, ("live", "json, changelog")),
    "changes-kafka": (1, ("live", "kafka, changelog")),
    "changes-nats": (1, ("totals_of_live", "nats, changelog")),
    "changes-partitions": (1, ("live", "parquet, partitions")),
    "changes-join": (1, ("joined", "sqlite")),
    "changes-left-join": (1, ("left_joined", "json, changelog"), ("left_joined", "sqlite")),
    "changes-top": (1, ("top", "sqlite, current")),
    "changes-several": (
        1,
        ("newest", "delta"),
        ("top", "csv, current"),
        ("joined", "json, changelog"),
        ("totals_of_live", "sqlite"),
    ),
    "changes-workers": (2, ("joined", "sqlite"), ("live", "parquet, partitions")),
}
"""The slots of applications whose results change, and their results, each with its sink."""


def _by_name(*names: str) -> tuple[Output, ...]:
    return tuple(output for name in names for output in OUTPUTS if output.name == name)


APPLICATIONS: dict[str, Application] = {
    application.name: application
    for application in (
        *(Application(output.name, (output,)) for output in OUTPUTS),
        Application("state", (DISTINCT,)),
        Application("state-replace", (_keys_in("Count", "replace", lambda: Count(by=str), complete),)),
        *(Application(name, tuple(_changing(*each) for each in results), slots) for name, (slots, *results) in CHANGING.items()),
        Application("several", _by_name("DeltaWriter-append", "SqlWriter-upsert", "ParquetWriter-append", "CsvWriter-replace")),
        Application("several-tables", _by_name("IcebergWriter-append", "DeltaWriter-upsert", "SqlWriter-append")),
        Application("workers", (*_by_name("RecordWriter-append"), DISTINCT), slots=2),
    )
}
"""One application for each output; running totals; results that change; several sinks in one; and worker processes."""


def import_all() -> None:
    """Import what launches use, so that the forks find it."""
    for name in ("deltalake", "pyarrow.compute", "pyarrow.csv", "pyarrow.dataset", "pyiceberg.catalog.sql"):
        importlib.import_module(name)
