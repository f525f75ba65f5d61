"""The rows that stand in a sink: read from its files or its table, never through the sink."""

from __future__ import annotations

import atexit
import contextlib
import datetime as dt
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from dagflow.ledger import committed_files, read_dataset
from dagflow.testing import Collector
from tests.faults.servers import Servers
from tests.laws.cases import Target
from tests.laws.columns import Columns, Rows, as_rows, names_of, plain
from tests.laws.nodes import Stream

_TIMES: dict[str, Any] = {"day": dt.date, "time": dt.datetime, "nanos": dt.datetime, "zoned": dt.datetime, "clock": dt.time}
_CHANGE_TYPE = "_change_type"
_SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

SERVERS = Servers()
"""The server of PostgreSQL for those cases that need one. It ends with this process."""
atexit.register(SERVERS.__exit__)


def catalog_of(place: Path) -> dict[str, str]:
    """Return the properties of a catalog of Iceberg in a folder."""
    return {"type": "sql", "uri": f"sqlite:///{place}/catalog.db", "warehouse": f"file://{place}/warehouse"}


def standing(target: Target, stream: Stream, place: Path, collector: Collector[Any] | None, grows: bool) -> Rows:
    """Return the rows that a sink has: those of its table, or those that its changelog adds up to.

    `grows`: rows of the first launches may lack columns.
    """
    if collector is not None:
        return as_rows(_whole(collector.records, stream.columns, grows), stream.columns)
    if target.kind in _TABLES:
        table = _TABLES[target.kind](place, stream.columns)
        rows = table.to_pylist() if table is not None and table.num_rows else []
        return as_rows(_whole(rows, stream.columns, grows), stream.columns)
    if target.kind == "sqlite":
        return _of_database(Path(f"{place}.db"), stream.columns, grows)
    counts = Rows()
    for found in _whole(list(_in_files(target, place)) if place.exists() else [], stream.columns, grows):
        sign = _SIGNS[found.pop(_CHANGE_TYPE)] if target.mode == "changelog" else 1
        assert {*found} == {*names_of(stream.columns)}, (place.name, [*found])
        counts[tuple(typed(found[column.name], column.kind) for column in stream.columns)] += sign
    assert all(count >= 0 for count in counts.values()), f"{place.name}: rows are taken back that have not come"
    return +counts


def _whole(rows: list[Any], columns: Columns, grows: bool) -> list[Any]:
    """Return rows with nulls in the place of columns that they may lack."""
    nulls = dict.fromkeys(names_of(columns)) if grows else {}
    return [nulls | row if isinstance(row, dict) else row for row in rows]


def _in_files(target: Target, place: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dataset. Those of Parquet come by its ledger; the other formats have no types."""
    if target.kind == "parquet":
        yield from read_dataset(str(place)).to_table().to_pylist()
        return
    for path in committed_files(str(place)):
        folders = Path(path).relative_to(place).parts[:-1]
        named = dict(part.split("=", 1) for part in folders if "=" in part)
        assert {unquote(name) for name in named} == {*target.partition_columns}, path
        values = {unquote(name): None if value == _NO_VALUE else unquote(value) for name, value in named.items()}
        yield from (row | values for row in (_json_rows if target.kind == "json_lines" else _csv_rows)(path))


def _json_rows(path: str) -> Iterator[dict[str, Any]]:
    for line in Path(path).read_text().split("\n")[:-1]:
        yield json.loads(line, parse_float=str)


def _csv_rows(path: str) -> Iterator[dict[str, Any]]:
    """Yield the texts of a file; None where there is nothing at all."""
    parse = pa_csv.ParseOptions(newlines_in_values=True)
    names = pa_csv.read_csv(path, parse_options=parse).column_names
    options = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    yield from pa_csv.read_csv(path, convert_options=options, parse_options=parse).to_pylist()


def _of_delta(place: Path, columns: Columns) -> pa.Table | None:
    import deltalake

    if not deltalake.DeltaTable.is_deltatable(str(place)):
        return None
    return pa.table(deltalake.DeltaTable(str(place)).to_pyarrow_table())


def _of_iceberg(place: Path, columns: Columns) -> pa.Table | None:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("default", **catalog_of(place))
    try:
        return catalog.load_table("laws.rows").scan().to_arrow() if catalog.table_exists("laws.rows") else None
    finally:
        catalog.engine.dispose()


def postgres() -> str:
    """Return the address of a database."""
    if "XDG_RUNTIME_DIR" not in os.environ:
        os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="dagflow-laws-")
    return SERVERS.postgres("postgres")


def table_name(place: Path) -> str:
    """Return the name of the table of a sink in a database that all cases share."""
    return f"{place.parent.name}_{place.name}".replace("-", "_")


def _of_postgres(place: Path, columns: Columns) -> pa.Table | None:
    import psycopg

    with psycopg.connect(postgres(), autocommit=True) as connection:
        name = table_name(place)
        if not connection.execute("SELECT 1 FROM pg_tables WHERE tablename = %s", [name]).fetchall():
            return None
        fields = ", ".join(f'"{column.name}"' for column in columns)
        found = connection.execute(f'SELECT {fields} FROM "{name}"'.encode()).fetchall()
    names = names_of(columns)
    values = [dict(zip(names, row, strict=True)) for row in found]
    return pa.Table.from_pylist(values, pa.schema([(column.name, column.of.arrow) for column in columns]))


_TABLES: dict[str, Any] = {"delta": _of_delta, "iceberg": _of_iceberg, "postgres": _of_postgres}


def _of_database(path: Path, columns: Columns, grows: bool) -> Rows:
    """Return the rows of a table of SQLite, with the types that it does not have."""
    if not path.exists():
        return Rows()
    with contextlib.closing(sqlite3.connect(path)) as database:
        if not database.execute("SELECT name FROM sqlite_master WHERE name = 'rows'").fetchall():
            return Rows()
        there = [name for _, name, *_ in database.execute("PRAGMA table_info(rows)")]
        names = ", ".join(f'"{name}"' if name in there or not grows else "NULL" for name in names_of(columns))
        found = database.execute(f"SELECT {names} FROM rows").fetchall()
    return Rows(tuple(typed(value, column.kind) for value, column in zip(row, columns, strict=True)) for row in found)


def typed(value: Any, kind: str) -> Any:
    """Return a value of a format that has fewer types, its text, or the value itself, as a column has it."""
    if value is None or isinstance(value, bytes):
        return value
    if kind == "bool":
        return {"true": True, "false": False}[value] if isinstance(value, str) else bool(value)
    if kind in ("list", "struct"):
        return plain(json.loads(value) if isinstance(value, str) else value)
    if kind in _TIMES:
        return _TIMES[kind].fromisoformat(value) if isinstance(value, str) else value
    if kind in ("decimal", "total"):
        return Decimal(value)
    if kind in ("float", "real"):
        return plain(float(value) if kind == "float" else float(np.float32(value)))
    return value if kind == "text" else int(value)
