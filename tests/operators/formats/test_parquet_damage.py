"""Arrow aborts the process for some footers: all is done in another one, which has to live."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dagflow.errors import DagflowError
from dagflow.testing import scan_table
from operators import ParquetFormat, ScanReader

ROOT = Path(__file__).parents[3]


def damaged(data: bytes) -> Iterator[bytes]:
    """The file with one byte of the footer changed, each in turn."""
    end = len(data) - 8
    for at in range(end - int.from_bytes(data[-8:-4], "little"), end):
        for byte in (data[at] ^ 1, data[at] ^ 2, data[at] ^ 64, 255):
            yield data[:at] + bytes([byte]) + data[at + 1 :]


def outcomes(path: Path, part: int, parts: int) -> dict[str, int]:
    """How many of these files are read, and of how many an error tells the name."""
    data, found = path.read_bytes(), {"read": 0, "told": 0}
    for number, each in enumerate(damaged(data)):
        if number % parts == part:
            path.write_bytes(each)
            for where in ([], [("n", ">", 1), ("m.x", "<", 5)]):
                try:
                    scan_table(ScanReader(ParquetFormat(where=where)), path)
                    found["read"] += 1
                except DagflowError as error:
                    found["told"] += str(path) in str(error) or "no file has" in str(error)
    return found


@pytest.mark.full
@pytest.mark.parametrize(("part", "parts"), [(1, 9), pytest.param(0, 1, marks=pytest.mark.nightly)])
def test_no_byte_of_a_footer_ends_the_process(tmp_path: Path, part: int, parts: int) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"n": [1, 2, 3], "m": [{"x": 1}, None, {"x": 3}]})
    pq.write_table(table, path, store_schema=False, row_group_size=2, compression="none")
    program = f"from {__name__} import outcomes, Path; print(outcomes(Path({str(path)!r}), {part}, {parts}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=250, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert min(ast.literal_eval(done.stdout).values()) > 20, done.stdout
