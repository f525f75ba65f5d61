"""The files of the writers of tables, read by the formats of scans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow.testing import scan_table
from operators import CsvFormat, CsvWriter, JsonLinesFormat, JsonLinesWriter, ParquetFormat, ParquetWriter, ScanReader
from tests.operators.sinks.tables import ROWS, SCHEMA, cut, written
from tests.tiers import examples

reusing_folders = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(40))
KINDS: dict[str, tuple[Any, Any]] = {
    "csv": (CsvWriter("out"), CsvFormat()),
    "csv with other marks": (CsvWriter("out", delimiter=";", quote="'", terminator="\r\n"), CsvFormat(delimiter=";", quote="'")),
    "csv, all quoted and packed": (CsvWriter("out", quoting="all", compression="bgzf"), CsvFormat()),
    "json": (JsonLinesWriter("out"), JsonLinesFormat()),
    "parquet": (ParquetWriter("out", row_group_rows=3), ParquetFormat()),
}


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@reusing_folders
@given(rows=ROWS, at=st.integers(1, 5), block_size=st.none() | st.integers(1, 200))
def test_rows_come_back_as_they_were(
    tmp_path: Path, kind: str, rows: list[dict[str, Any]], at: int, block_size: int | None
) -> None:
    writer, format_ = KINDS[kind]
    files = written(writer, *cut(rows, at))
    assert len(files) == bool(rows)
    for name, data in files.items():
        path = tmp_path / name
        path.write_bytes(data)
        table: pa.Table = scan_table(ScanReader(format_, schema=SCHEMA), path, block_size=block_size)
        assert table.schema == SCHEMA
        assert table.to_pylist() == rows
