"""The application of a case: its DAG, its files, its launches, and the tables that come of them."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import itertools
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from dagflow import DAG
from dagflow.ledger import committed_files, read_dataset
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag
from operators import (
    CsvFormat,
    CsvWriter,
    DeltaWriter,
    FileSplitterInput,
    JsonLinesFormat,
    JsonLinesWriter,
    ParquetFormat,
    ParquetWriter,
    ScanReader,
    SqlWriter,
)
from tests.conformance.faults.dying import Deadly, dies
from tests.laws.cases import Case, Source, Target
from tests.laws.columns import Columns, Rows, as_rows, names_of, plain, table_of
from tests.laws.nodes import Stream
from tests.laws.registry import KINDS

FORMATS: dict[str, Any] = {"parquet": ParquetFormat, "json_lines": JsonLinesFormat, "csv": CsvFormat}
FOLDERS: dict[str, Any] = {"parquet": ParquetWriter, "json_lines": JsonLinesWriter, "csv": CsvWriter, "delta": DeltaWriter}


_TIMES: dict[str, Any] = {"day": dt.date, "time": dt.datetime, "zoned": dt.datetime, "clock": dt.time}


def results_of(case: Case, runner: str = "local") -> list[Rows]:
    """Launch a case over its cut, in a new folder, and return the rows of each sink."""
    with tempfile.TemporaryDirectory(prefix="dagflow-laws-") as folder:
        home = Path(folder)
        collectors = {number: Collector[Any]() for number, target in enumerate(case.targets) if target.kind == "collector"}
        populate_dag = _populating(case, home, collectors)
        for number in range(len(case.sources)):
            (home / f"s{number}").mkdir()
        options = {"run_folder": str(home / "run"), "runner": runner, "slots": case.slots}
        launched = functools.partial(run_dag, populate_dag, **options)
        for launch in range(case.launches):
            _add_files(case, home, launch)
            if launch in case.deaths:
                has_died = dies(launched, Deadly(folder, case.deaths[launch]))
                if has_died and not case.is_rerun and launch < case.launches - 1:
                    continue
            for _ in range(2 if case.windows_of_launch and not launch else 0):
                launched(max_windows=case.windows_of_launch)
            launched()
        streams = case.streams()
        return [
            _standing(target, streams[target.stream], home / f"out{number}", collectors.get(number))
            for number, target in enumerate(case.targets)
        ]


def _populating(case: Case, home: Path, collectors: dict[int, Collector[Any]]) -> Callable[[DAG, Any], None]:
    launches = itertools.count()

    def populate_dag(dag: DAG, conf: Any) -> None:
        launch = next(launches)
        outputs: dict[str, Any] = {}
        consumers: dict[str, list[Any]] = {}
        streams = case.streams()
        for number, source in enumerate(case.sources):
            outputs[f"s{number}"] = _reader(dag, f"s{number}", source, home)
        for number, node in enumerate(case.nodes):
            kind = KINDS[node.kind]
            operator: Any = dag.add_operator(f"n{number}", kind.operator(node, [streams[name] for name in node.inputs]))
            if node.partitions:
                partitions = 1 + (node.partitions - 1 + launch) % 3 if node.partitions > 1 else 1
                dag.set_attributes(operator, partitioner=StatelessPartitioner(partitions))
            for name, port in zip(node.inputs, kind.input_ports(node), strict=True):
                consumers.setdefault(name, []).append(getattr(operator, port))
            for name in streams:
                if name.startswith(f"n{number}."):
                    outputs[name] = getattr(operator, name.partition(".")[2])
        for number, target in enumerate(case.targets):
            sink = collectors[number] if number in collectors else _sink(target, streams[target.stream], home / f"out{number}")
            dag.add_operator(f"out{number}", sink)
            consumers.setdefault(target.stream, []).append(sink.input)
        for name, inputs in consumers.items():
            dag.add_stream(f"{name.replace('.', '_')}_rows", outputs[name], *inputs)

    return populate_dag


def _reader(dag: DAG, name: str, source: Source, home: Path) -> Any:
    splitter = FileSplitterInput([str(home / name)], block_size=source.block_size, blocks_threshold=source.blocks_threshold)
    found = dag.add_operator(f"{name}_files", splitter)
    schema = {column.name: column.of.text for column in source.columns}
    reader = dag.add_operator(f"{name}_reader", ScanReader[Any](FORMATS[source.format](), schema=schema))
    dag.add_stream(f"{name}_blocks", found.blocks_metadata_output, reader.blocks_metadata_input)
    return reader.batches


def _sink(target: Target, stream: Stream, folder: Path) -> Any:
    keys = {"keys": stream.unique} if target.mode == "upsert" else {}
    if target.kind == "sqlite":
        return SqlWriter[Any](f"sqlite:///{folder}.db", "rows", mode=target.mode, **keys)
    return FOLDERS[target.kind](str(folder), mode=target.mode, **keys)


def _add_files(case: Case, home: Path, launch: int) -> None:
    """Write the files that are new in a launch."""
    for number, source in enumerate(case.sources):
        for at, rows in enumerate(source.files):
            if source.launches[at] == launch:
                path = home / f"s{number}" / f"{at}.{source.format}"
                if source.format == "parquet":
                    pq.write_table(table_of(_as_counted(rows), source.columns), path, row_group_size=source.rows_of_group)
                else:
                    text = _json_lines(rows, source.columns) if source.format == "json_lines" else _csv(rows, source.columns)
                    path.write_bytes(text.encode())


def _as_counted(rows: tuple[Any, ...]) -> Any:
    return Rows(rows)


def _json_lines(rows: tuple[Any, ...], columns: Columns) -> str:
    def text(value: Any) -> str:
        return str(value) if isinstance(value, Decimal) else json.dumps(value, default=lambda value: value.isoformat())

    names = names_of(columns)
    return "".join(
        "{" + ", ".join(f"{json.dumps(name)}: {text(value)}" for name, value in zip(names, row, strict=True)) + "}\n"
        for row in rows
    )


def _csv(rows: tuple[Any, ...], columns: Columns) -> str:
    """Return rows as CSV: a missing value is nothing, and an empty text is quoted."""

    def field(value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return '"' + value.replace('"', '""') + '"'
        return value.isoformat() if hasattr(value, "isoformat") else str(value).lower() if isinstance(value, bool) else str(value)

    return "".join(",".join(map(field, row)) + "\n" for row in [names_of(columns), *rows])


def _standing(target: Target, stream: Stream, place: Path, collector: Collector[Any] | None) -> Rows:
    """Return the rows that a sink has."""
    if collector is not None:
        return as_rows(collector.records, stream.columns)
    if target.kind == "sqlite":
        return _of_database(Path(f"{place}.db"), stream.columns)
    if not place.exists():
        return Rows()
    if target.kind == "delta":
        import deltalake

        if not deltalake.DeltaTable.is_deltatable(str(place)):
            return Rows()
        return _of_table(pa.table(deltalake.DeltaTable(str(place)).to_pyarrow_table()), stream.columns)
    if target.kind == "parquet":
        return _of_table(read_dataset(str(place)).to_table(), stream.columns)
    rows = Rows()
    for path in committed_files(str(place)):
        read = _json_rows if target.kind == "json_lines" else _csv_rows
        rows.update(tuple(map(typed, row, kinds_of(stream.columns))) for row in read(path, names_of(stream.columns)))
    return rows


def kinds_of(columns: Columns) -> list[str]:
    """Return the types of columns."""
    return [column.kind for column in columns]


def _json_rows(path: str, names: tuple[str, ...]) -> Iterator[list[Any]]:
    for line in Path(path).read_text().split("\n")[:-1]:
        record = json.loads(line, parse_float=str)
        assert tuple(record) == names
        yield [*record.values()]


def _csv_rows(path: str, names: tuple[str, ...]) -> Iterator[list[Any]]:
    """Yield the texts of a file; None where there is nothing at all."""
    options = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = pa_csv.ParseOptions(newlines_in_values=True)
    for row in pa_csv.read_csv(path, convert_options=options, parse_options=parse).to_pylist():
        assert tuple(row) == names
        yield [*row.values()]


def _of_table(table: pa.Table, columns: Columns) -> Rows:
    return as_rows(table.to_pylist(), columns) if table.num_rows else Rows()


def _of_database(path: Path, columns: Columns) -> Rows:
    """Return the rows of a table of SQLite, with the types that it does not have."""
    if not path.exists():
        return Rows()
    with contextlib.closing(sqlite3.connect(path)) as database:
        if not database.execute("SELECT name FROM sqlite_master WHERE name = 'rows'").fetchall():
            return Rows()
        names = ", ".join(f'"{name}"' for name in names_of(columns))
        found = database.execute(f"SELECT {names} FROM rows").fetchall()
    return Rows(tuple(map(typed, row, kinds_of(columns))) for row in found)


def typed(value: Any, kind: str) -> Any:
    """Return a value of a format that has fewer types, or its text, as a column has it."""
    if value is None or isinstance(value, bytes):
        return value
    if kind == "bool":
        return {"true": True, "false": False}[value] if isinstance(value, str) else bool(value)
    if kind == "list":
        return plain(json.loads(value) if isinstance(value, str) else value)
    if kind in _TIMES:
        return _TIMES[kind].fromisoformat(value)
    if kind in ("decimal", "total"):
        return Decimal(value)
    if kind in ("float", "real"):
        return plain(float(value) if kind == "float" else float(np.float32(value)))
    return value if kind == "text" else int(value)
