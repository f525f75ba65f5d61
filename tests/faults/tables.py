"""The tables, files and logs of results that change: how they are written, and an independent look at them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq

from dagflow.ledger import Ledger, committed_files
from operators import CsvWriter, DeltaWriter, IcebergWriter, JsonLinesWriter, KafkaWriter, NatsWriter, ParquetWriter
from tests.chaos import oracle
from tests.faults.place import Place
from tests.logs.writer_kills import Stream, Target, Topic
from tests.operators.databases import Database


def files_of(folder: Path, mode: str) -> list[Path]:
    """Return the files that a dataset shows."""
    return sorted((folder / "current").iterdir()) if mode == "replace" else [folder / name for name in oracle.visible(folder)]


def csv_rows(path: Path) -> Iterator[Any]:
    """Yield the rows of a file as texts."""
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def json_rows(path: Path) -> Iterator[Any]:
    """Yield the rows of a file."""
    return map(json.loads, path.read_text().splitlines())


def parquet_rows(path: Path) -> Iterator[Any]:
    """Yield the rows of a file."""
    return iter(pq.ParquetFile(path).read().to_pylist())


def catalog_of(place: Place) -> dict[str, str]:
    """Return the properties of the catalog of Iceberg."""
    return {"type": "sql", "uri": f"sqlite:///{place.data}/catalog.db", "warehouse": f"file://{place.data}/warehouse"}


def database_of(place: Place, sink: str) -> Database:
    """Return the database of a sink."""
    if sink == "SqlWriter":
        return Database("sqlite", f"sqlite:///{place.data}/orders.db")
    return Database("postgres", place.servers.postgres(place.name))


def preparing_database(sink: str) -> Callable[[Place], None]:
    """Return what makes the database of a sink."""
    return lambda place: place.servers.create_database(place.name) if sink == "PostgresWriter" else None


@attrs.frozen
class Table:
    """A sink of changing results: how it is made, with which keys, and the rows that stand in it, as mappings."""

    sink: str
    make: Callable[[Place, str, Any], Any]
    rows: Callable[[Place, str, Any], Iterator[Any]]
    prepare: Callable[[Place], None] = lambda place: None


def _in_changelog(rows: Iterator[Any]) -> Iterator[Any]:
    """Yield the rows that changes add up to. Raises AssertionError for one that goes and has not come."""
    standing = Counter[tuple[Any, ...]]()
    for row in rows:
        kind = row.pop("_change_type")
        standing[tuple(row.items())] += 1 if kind in ("insert", "update_postimage") else -1
    assert all(count >= 0 for count in standing.values()), standing
    return map(dict, standing.elements())


def _of_files(place: Path, rows: Callable[[Path], Iterator[Any]]) -> Iterator[Any]:
    """Yield the rows of a dataset, whose ledger must hold. Folders are columns."""
    assert not (problems := Ledger.open(str(place)).verify().problems), problems
    for path in map(Path, committed_files(str(place))):
        folders = dict(part.split("=", 1) for part in path.relative_to(place).parts[:-1] if "=" in part)
        yield from (row | folders for row in rows(path))


def _of_delta(place: Path) -> Iterator[Any]:
    import deltalake

    return iter(deltalake.DeltaTable(place).to_pyarrow_table().to_pylist())


def _of_iceberg(place: Place, name: str) -> Iterator[Any]:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("default", **catalog_of(place))
    try:
        return iter(catalog.load_table(f"shop.{name}").scan().to_arrow().to_pylist())
    finally:
        catalog.engine.dispose()


def _of_database(place: Place, sink: str, name: str, columns: Any) -> Iterator[Any]:
    found = database_of(place, sink)
    assert not (staged := found.staged()), staged
    return (dict(zip(columns, row, strict=True)) for row in found.run(f"SELECT {', '.join(columns)} FROM {name}"))


def _upsert(keys: Any) -> dict[str, Any]:
    return {"mode": "upsert", "keys": keys}


def _changes(keys: Any) -> dict[str, Any]:
    return {"mode": "changelog", "keys": keys}


_LOGS: dict[str, Callable[[Place], Target]] = {
    "KafkaWriter": lambda place: Topic(place.servers.kafka(), place.name),
    "NatsWriter": lambda place: Stream(place.servers.nats(), place.name),
}


def _messages(place: Place, sink: str) -> Iterator[Any]:
    return _in_changelog(json.loads(each) for each in _LOGS[sink](place).values())


def _table_in_database(sink: str, options: Callable[[Any], dict[str, Any]]) -> Table:
    return Table(
        sink,
        lambda place, name, keys: database_of(place, sink).writer(name, **options(keys)),
        lambda place, name, columns: _of_database(place, sink, name, columns),
        preparing_database(sink),
    )


TABLES: dict[str, Table] = {
    "sqlite": _table_in_database("SqlWriter", _upsert),
    "sqlite, current": _table_in_database("SqlWriter", lambda keys: {}),
    "postgres": _table_in_database("PostgresWriter", _upsert),
    "postgres, current": _table_in_database("PostgresWriter", lambda keys: {}),
    "delta": Table(
        "DeltaWriter",
        lambda place, name, keys: DeltaWriter(str(place.data / name), **_upsert(keys)),
        lambda place, name, columns: _of_delta(place.data / name),
    ),
    "delta, current": Table(
        "DeltaWriter",
        lambda place, name, keys: DeltaWriter(str(place.data / name)),
        lambda place, name, columns: _of_delta(place.data / name),
    ),
    "iceberg": Table(
        "IcebergWriter",
        lambda place, name, keys: IcebergWriter(f"shop.{name}", catalog_of(place), **_upsert(keys)),
        lambda place, name, columns: _of_iceberg(place, name),
        lambda place: (place.data / "warehouse").mkdir(exist_ok=True),
    ),
    "csv, current": Table(
        "CsvWriter",
        lambda place, name, keys: CsvWriter(str(place.data / name)),
        lambda place, name, columns: (row for path in files_of(place.data / name, "replace") for row in csv_rows(path)),
    ),
    "parquet, partitions": Table(
        "ParquetWriter",
        lambda place, name, keys: ParquetWriter(str(place.data / name), partition_columns=["key"]),
        lambda place, name, columns: _of_files(place.data / name, parquet_rows),
    ),
    "json, changelog": Table(
        "JsonLinesWriter",
        lambda place, name, keys: JsonLinesWriter(str(place.data / name), **_changes(keys)),
        lambda place, name, columns: _in_changelog(_of_files(place.data / name, json_rows)),
    ),
    "kafka, changelog": Table(
        "KafkaWriter",
        lambda place, name, keys: KafkaWriter(place.servers.kafka(), place.name, settle=0.1, **_changes(keys)),
        lambda place, name, columns: _messages(place, "KafkaWriter"),
        lambda place: _LOGS["KafkaWriter"](place).create(),
    ),
    "nats, changelog": Table(
        "NatsWriter",
        lambda place, name, keys: NatsWriter(place.servers.nats(), place.name, place.name, settle=0.1, **_changes(keys)),
        lambda place, name, columns: _messages(place, "NatsWriter"),
        lambda place: _LOGS["NatsWriter"](place).create(),
    ),
}
"""The sinks of changing results."""
