from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dagflow.testing import run_operator, scan_table
from dagflow.testing.files import blocks_of
from operators import CsvFormat, ParquetFormat, ScanReader


@pytest.mark.parametrize(
    ("first", "later", "found"),
    [
        ("1", "1.5", [1.0, 1.5]),
        ("1", "12345678901234567890", ["1", "12345678901234567890"]),
        ("9007199254740993", "1.5", ["9007199254740993", "1.5"]),
        ("2024-01-01", "2024-01-01T12:00:00", [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)]),  # noqa: DTZ001
        ("12:30:00", "12:30:00.5", [datetime.time(12, 30), datetime.time(12, 30, 0, 500_000)]),
        ("1", "x", ["1", "x"]),
    ],
)
def test_columns_widen_to_what_loses_nothing(tmp_path: Path, first: str, later: str, found: list[Any]) -> None:
    files = [tmp_path / "1.csv", tmp_path / "2.csv"]
    for file, value in zip(files, (first, later), strict=True):
        file.write_text(f"h\n{value}\n")
    table = scan_table(ScanReader(CsvFormat(), drift={"changed": "widen"}, sample_files=1), files)
    assert table["h"].to_pylist() == found


@pytest.mark.parametrize("changed", ["error", "widen"])
def test_bytes_that_are_no_text_are_a_bad_row(tmp_path: Path, changed: str) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"v": [b"7", b"\xff"]}), path)
    reader = ScanReader(ParquetFormat(), schema="v: int64", drift={"changed": changed}, on_bad_row="route")
    found = run_operator(reader, {"blocks_metadata_input": blocks_of(str(path))})
    assert [str(row["v"]) for row in found["batches"]] == ["7"]
    assert [(row.raw, row.reason.split(" is not a valid ")[0]) for row in found["errors"]] == [("\\xff", "'\\\\xff'")]
