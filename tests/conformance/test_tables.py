"""Tables through a whole run, on both runners: from one format to another, by way of the ledger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG, Operator
from dagflow.ledger import Ledger, read_dataset
from dagflow.testing import run_dag
from operators import (
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
    "parquet": (lambda path: ParquetWriter(path, folders_by=["country", "day"], max_file_rows=10), ParquetFormat()),
    "csv": (lambda path: CsvWriter(path, folders_by=["country"], delimiter=";", compression="gzip"), CsvFormat(delimiter=";")),
    "json": (lambda path: JsonLinesWriter(path, folders_by=["country"], compression="bgzf"), JsonLinesFormat()),
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
