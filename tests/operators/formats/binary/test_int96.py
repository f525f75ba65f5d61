from __future__ import annotations

import datetime
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dagflow.testing import scan_table
from operators import ParquetFormat, ScanReader
from operators.formats.errors import FormatUnsupported

EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001  # as Spark writes them, without a zone
KNOWN = datetime.datetime(2020, 1, 1, 1, 2, 3, 456_789)  # noqa: DTZ001
JULIAN_EPOCH = 2_440_588


def int96(time: datetime.datetime, days: int = 0) -> bytes:
    """The 12 bytes of a timestamp: the nanoseconds of its day, and the Julian day."""
    since = time - EPOCH
    return struct.pack("<qi", (since.seconds * 1_000_000 + since.microseconds) * 1000, since.days + days + JULIAN_EPOCH)


def write(path: Path, column: Any, old: bytes, new: bytes) -> Path:
    """A file of one column with timestamps of INT96, `old` replaced by `new`, which pyarrow would not write."""
    table = pa.table({"t": column})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, use_dictionary=False, compression="none")
    data = path.read_bytes()
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))
    return path


@pytest.mark.parametrize(
    "time",
    [
        datetime.datetime(9999, 12, 31),  # noqa: DTZ001
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
        datetime.datetime(2262, 4, 12),  # noqa: DTZ001
        datetime.datetime(1600, 2, 29, 12),  # noqa: DTZ001
        datetime.datetime(1, 1, 1),  # noqa: DTZ001
    ],
)
def test_times_that_nanoseconds_do_not_reach(tmp_path: Path, time: datetime.datetime) -> None:
    path = write(tmp_path / "a.parquet", pa.array([KNOWN, None, EPOCH], pa.timestamp("ns")), int96(KNOWN), int96(time))
    table = scan_table(ScanReader(ParquetFormat()), path)
    assert table.schema.field("t").type == pa.timestamp("us")
    assert table["t"].to_pylist() == [time, None, EPOCH]
    later = ScanReader(ParquetFormat(where=[("t", ">", KNOWN)]))
    assert scan_table(later, path).num_rows == int(time > KNOWN)


KINDS = {"t": [KNOWN], "s": [{"x": KNOWN}], "l": [[None, KNOWN]], "m": [[("k", KNOWN)]]}
TYPES = {
    "t": pa.timestamp("ns"),
    "s": pa.struct([("x", pa.timestamp("ns"))]),
    "l": pa.list_(pa.timestamp("ns")),
    "m": pa.map_(pa.string(), pa.timestamp("ns")),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("days", [4_000_000, 2_000_000_000, -800_000])
def test_a_time_that_is_not_of_the_years_1_to_9999_is_refused(tmp_path: Path, kind: str, days: int) -> None:
    column = pa.array(KINDS[kind], TYPES[kind])
    path = write(tmp_path / "a.parquet", column, int96(KNOWN), int96(KNOWN, days))
    with pytest.raises(FormatUnsupported, match=r"row group 0 .* at byte 4, is not supported: column 't' has INT96 timestamps"):
        scan_table(ScanReader(ParquetFormat()), path)


def test_nested_times_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({name: pa.array(values, TYPES[name]) for name, values in KINDS.items()})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    (row,) = scan_table(ScanReader(ParquetFormat()), path).to_pylist()
    assert row == {name: values[0] for name, values in KINDS.items()}
