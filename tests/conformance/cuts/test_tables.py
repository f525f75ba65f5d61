"""Tables through a whole run, on both runners: from one format to another, by way of the ledger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, Operator
from dagflow.launching.launch import launch
from dagflow.ledger import Ledger, read_dataset
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator, trace
from dagflow.testing import run_dag
from operators import (
    BlockReader,
    CsvFormat,
    CsvWriter,
    DatasetInput,
    FileSplitterInput,
    JsonLinesFormat,
    JsonLinesWriter,
    ParquetFormat,
    ParquetWriter,
    ScanReader,
)
from tests.conformance.apps import left_over

ROWS = [
    {"id": n, "country": ["se", "no", "01"][n % 3], "price": n / 4 if n % 5 else None, "day": f"2026-01-{1 + n % 3:02}"}
    for n in range(120)
]
FORMATS: dict[str, tuple[Callable[[str], Operator], Any]] = {
    "parquet": (lambda path: ParquetWriter(path, partition_columns=["country", "day"], max_file_rows=10), ParquetFormat()),
    "csv": (
        lambda path: CsvWriter(path, partition_columns=["country"], delimiter=";", compression="gzip"),
        CsvFormat(delimiter=";"),
    ),
    "json": (lambda path: JsonLinesWriter(path, partition_columns=["country"], compression="bgzf"), JsonLinesFormat()),
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        rows = [",".join("" if v is None else str(v) for v in row.values()) for row in ROWS[number::3]]
        (folder / f"{number}.csv").write_text("\n".join(["id,country,price,day", *rows]) + "\n")
    return folder


def scanned(files: Operator, reader: ScanReader, sink: Operator) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        blocks: Any = dag.add_operator("files", files)
        rows = dag.add_operator("rows", reader)
        out: Any = dag.add_operator("out", sink)
        dag.add_stream("blocks", blocks.blocks_metadata_output, rows.blocks_metadata_input)
        dag.add_stream("batches", rows.batches, out.input)

    return populate_dag


def rows_of(folder: Path) -> list[dict[str, Any]]:
    table = read_dataset(str(folder)).to_table()
    assert table.num_rows == Ledger.open(str(folder)).resume().next_offset
    assert left_over(folder) == []
    shown: list[dict[str, Any]] = [{**row, "day": str(row["day"])} for row in table.to_pylist()]
    return sorted(shown, key=lambda row: row["id"])


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_written_is_read_again(runner: str, source: Path, tmp_path: Path, kind: str) -> None:
    make_sink, written = FORMATS[kind]
    first, second = tmp_path / "first", tmp_path / "second"
    splitter = FileSplitterInput([str(source)], blocks_threshold=2, block_size=700)
    run_dag(scanned(splitter, ScanReader(CsvFormat()), make_sink(str(first))), runner=runner)
    assert rows_of(first) == ROWS
    reader = ScanReader(written, columns=["id", "country", "price", "day"])
    run_dag(scanned(DatasetInput(str(first), block_size=500), reader, ParquetWriter(str(second))), runner=runner)
    assert rows_of(second) == ROWS


@attrs.define
class Settings:
    input: str
    output: str
    kind: str


def lines_as_tables(dag: DAG, conf: Settings) -> None:
    files = dag.add_operator("files", FileSplitterInput([conf.input], block_size=50, blocks_threshold=3))
    lines = dag.add_operator("lines", BlockReader())
    out: Any = dag.add_operator("out", SINKS[conf.kind](conf.output))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("rows", lines.messages, out.input)


def tables_as_tables(dag: DAG, conf: Settings) -> None:
    files = FileSplitterInput([conf.input], block_size=200, blocks_threshold=3)
    scanned(files, ScanReader(CsvFormat()), SINKS[conf.kind](conf.output))(dag, conf)


SINKS: dict[str, Callable[[str], Operator]] = {
    "parquet": lambda path: ParquetWriter(path, max_file_rows=3),
    "csv": lambda path: CsvWriter(path, max_file_bytes=100, compression="gzip"),
    "json": lambda path: JsonLinesWriter(path, max_file_bytes=100),
}


@pytest.mark.full
@pytest.mark.parametrize("kind", SINKS)
def test_every_row_leads_to_its_record(source: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    launch(lines_as_tables, {"input": str(source), "output": str(out), "kind": kind}, runner="local", durability="process")
    rows = read_dataset(str(out)).to_table().to_pylist()
    for offset in range(0, len(rows), 7):
        found = trace(str(out), offset, exact=True, locator=ApplicationLocator(trust=True))
        assert found.problem is None
        assert found.source is not None
        assert (found.source.position, found.source.data.decode()) == (rows[offset]["position"], rows[offset]["record"] + "\n")


@pytest.mark.full
@pytest.mark.parametrize("kind", SINKS)
@pytest.mark.parametrize("application", [lines_as_tables, tables_as_tables])
def test_windows_run_again_make_the_same_files(source: Path, tmp_path: Path, kind: str, application: Any) -> None:
    out = tmp_path / "out"
    launch(application, {"input": str(source), "output": str(out), "kind": kind}, runner="local", durability="process")
    report = replay(str(out), locator=ApplicationLocator(trust=True))
    assert (report.problems, report.left_out) == ((), ())
    assert report.rows == Ledger.open(str(out)).resume().next_offset
