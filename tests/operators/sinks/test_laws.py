"""The laws of operators, for all sinks that write files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import strategies as st

from dagflow.testing import check_operator
from operators import CsvWriter, JsonLinesWriter, ParquetWriter, RecordWriter


@attrs.frozen
class Row:
    key: str
    n: int | None


ROWS = st.builds(Row, st.sampled_from(["a", "b", "c/d"]), st.none() | st.integers(-5, 5))
WRITERS: dict[str, Any] = {
    "parquet": lambda path: ParquetWriter(path, partition_columns=["key"], max_file_rows=3),
    "csv": lambda path: CsvWriter(path, partition_columns=["key"], max_file_rows=2, null="-"),
    "json": lambda path: JsonLinesWriter(path, max_file_bytes=30, compression="gzip"),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_writers_of_tables(kind: str, tmp_path: Path) -> None:
    check_operator(WRITERS[kind](str(tmp_path)), ROWS, max_examples=10)


@pytest.mark.parametrize("compression", ["none", "bgzf", "zstd"])
def test_the_writer_of_records(compression: str, tmp_path: Path) -> None:
    writer = RecordWriter[str](str(tmp_path), max_file_rows=3, max_file_bytes=5, compression=compression)
    check_operator(writer, st.text(max_size=3), max_examples=10)
