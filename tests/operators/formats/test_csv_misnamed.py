"""Files of other kinds under the name of a CSV file."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dagflow.testing import scan_table
from operators import CsvFormat, ScanReader
from operators.compression import CompressionTruncated
from operators.formats.delimited.errors import NotDelimited


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "f.csv"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("ask", [{}, {"schema": "a: int64"}])
def test_what_is_told_of_parquet_says_where_and_what_to_do(
    file: Path, pack: Callable[[bytes], bytes], ask: dict[str, Any]
) -> None:
    """Also of a packed one, and where a schema makes it needless to look at the file before."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), sink)
    file.write_bytes(pack(sink.getvalue()))
    with pytest.raises(NotDelimited) as caught:
        scan_table(ScanReader(CsvFormat(), **ask), file)
    assert str(caught.value) == (
        f"{file}: this is no delimited text: its first bytes are those of Parquet.\nRead it with ParquetFormat."
    )


def test_a_gzip_under_the_name_of_a_csv_that_is_cut_short_is_told(file: Path) -> None:
    packed = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (n * n, n) for n in range(9_999)))
    file.write_bytes(packed[:-9])
    with pytest.raises(CompressionTruncated) as caught:
        scan_table(ScanReader(CsvFormat()), file)
    told = str(caught.value)
    assert told.startswith(f"{file}: the file ends at byte {len(packed) - 9}, within gzip data that begins at byte 0")
    assert "fetch or make it again" in told
