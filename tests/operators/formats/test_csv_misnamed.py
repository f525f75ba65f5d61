"""Files of other kinds under the name of a CSV file."""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dagflow.testing import scan_table
from operators import AvroFormat, CsvFormat, FixedWidthFormat, JsonLinesFormat, ParquetFormat, RegexFormat, ScanReader
from operators.compression import CompressionTruncated, CompressionUnsupported
from operators.formats.delimited.errors import NotDelimited
from operators.formats.errors import NotOfFormat


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
        f"{file}: this is not delimited text: its first bytes are those of Parquet.\nRead it with ParquetFormat."
    )


PACKED = {
    "lz4": b"\x04\x22\x4d\x18" + bytes(20),
    "lzma": lzma.compress(b"a,b\n1,2\n", lzma.FORMAT_ALONE),
    "framed snappy": b"\xff\x06\x00\x00sNaPpY" + bytes(20),
    "a zip archive": b"PK\x03\x04" + bytes(20),
    "a 7z archive": b"7z\xbc\xaf\x27\x1c" + bytes(20),
    "a tar archive": b"a.csv".ljust(257, b"\0") + b"ustar\x0000" + bytes(20),
}


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("format", [CsvFormat(), JsonLinesFormat(), FixedWidthFormat({"a": (0, 1)}), RegexFormat("(?P<a>.*)")])
def test_what_is_packed_otherwise_is_named(file: Path, kind: str, format: Any) -> None:
    file.write_bytes(PACKED[kind])
    with pytest.raises(
        CompressionUnsupported, match=f"at byte 0: the file begins with .*, which is {kind}.*: not decompressed here"
    ):
        scan_table(ScanReader(format), file)


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("format", [ParquetFormat(), AvroFormat()])
def test_what_is_packed_under_the_name_of_a_binary_format_is_named(file: Path, kind: str, format: Any) -> None:
    file.write_bytes(PACKED[kind])
    with pytest.raises(NotOfFormat, match="begins with .*" + (f", which is {kind}" if "tar" not in kind else "")):
        scan_table(ScanReader(format), file)


def test_a_gzip_under_the_name_of_a_csv_that_is_cut_short_is_told(file: Path) -> None:
    packed = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (n * n, n) for n in range(9_999)))
    file.write_bytes(packed[:-9])
    with pytest.raises(CompressionTruncated) as caught:
        scan_table(ScanReader(CsvFormat()), file)
    told = str(caught.value)
    assert told.startswith(f"{file}: the file ends at byte {len(packed) - 9}, within gzip data that begins at byte 0")
    assert "fetch or make it again" in told
