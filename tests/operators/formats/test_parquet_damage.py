"""Damaged files, and such that only look so. Arrow aborts the process for some footers: these are read in another one."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from dagflow.errors import DagflowError
from dagflow.testing import scan_table
from operators import ParquetFormat, ScanReader
from operators.formats.errors import FileDamaged, FormatUnsupported

ROOT = Path(__file__).parents[3]


def damaged(data: bytes) -> Iterator[bytes]:
    """The file with one byte of the footer changed, each in turn."""
    end = len(data) - 8
    for at in range(end - int.from_bytes(data[-8:-4], "little"), end):
        for byte in (data[at] ^ 1, data[at] ^ 2, data[at] ^ 64, 255):
            yield data[:at] + bytes([byte]) + data[at + 1 :]


def outcomes(path: Path, part: int, parts: int) -> dict[str, int]:
    """Count the files that are read, and those whose name an error tells."""
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


ROWS = [{"x": n, "y": n * n} for n in range(5)]


def of_five_rows(path: Path) -> bytes:
    """A file of five rows and two columns, a page of plain values each."""
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False), pa.field("y", pa.int64(), nullable=False)])
    table = pa.Table.from_pylist(ROWS, schema=schema)
    pq.write_table(table, path, use_dictionary=False, compression="none", write_statistics=False, store_schema=False)
    return path.read_bytes()


@pytest.mark.parametrize("rows", [0, 2, 7])
def test_columns_of_different_lengths_are_damage(tmp_path: Path, rows: int) -> None:
    """Counts of a page, of column chunks, of a row group and of the file, each wrong in turn: no row is lost or made up."""
    path = tmp_path / "a.parquet"
    data = of_five_rows(path)
    page, count = b"\x2c\x15%c", b"\x16%c"  # what stands before a number of values, and that twice as large
    refused = 0
    for form in (page, count):
        old, at = form % 10, -1
        while (at := data.find(old, at + 1)) >= 0:
            path.write_bytes(data[:at] + form % (2 * rows) + data[at + len(old) :])
            try:
                table = scan_table(ScanReader(ParquetFormat()), path)
                assert scan_table(ScanReader(ParquetFormat()), path, columns=[]).num_rows == len(ROWS)
            except FileDamaged:
                refused += 1
            else:
                assert table.to_pylist() == ROWS, at
    assert refused >= 4


@pytest.mark.parametrize("has_checksums", [True, False])
def test_a_page_that_does_not_have_its_checksum_is_damage(tmp_path: Path, has_checksums: bool) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"n": [258, 259]}),
        path,
        use_dictionary=False,
        write_statistics=False,
        compression="none",
        write_page_checksum=has_checksums,
    )
    value = (258).to_bytes(8, "little")
    data = path.read_bytes()
    at = data.index(value)
    path.write_bytes(data[:at] + b"\0" + data[at + 1 :])
    unverified = [{"n": 256}, {"n": 259}]
    assert scan_table(ScanReader(ParquetFormat(verify_checksums=False)), path).to_pylist() == unverified
    if has_checksums:
        with pytest.raises(FileDamaged, match=r"row group 0 of the Parquet file, at byte 4, cannot be read: .*CRC checksum"):
            scan_table(ScanReader(ParquetFormat()), path)
    else:
        assert scan_table(ScanReader(ParquetFormat()), path).to_pylist() == unverified


class Keys(pe.KmsClient):  # type: ignore[misc,unused-ignore]
    """Wraps keys by adding nothing to them."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        """The key as it is."""
        return key_bytes.hex().encode()

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        """The key again."""
        return bytes.fromhex(wrapped_key.decode())


@pytest.mark.parametrize(("has_plain_footer", "told"), [(True, "it has encrypted columns"), (False, "it is encrypted")])
def test_an_encrypted_file_is_not_called_damaged(tmp_path: Path, has_plain_footer: bool, told: str) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"open": [1, 2], "secret": [3, 4]})
    configuration = pe.EncryptionConfiguration(
        footer_key="foot", column_keys={"col": ["secret"]}, plaintext_footer=has_plain_footer
    )
    factory = pe.CryptoFactory(lambda connection: Keys())
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), configuration)
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    with pytest.raises(FormatUnsupported, match=f"the footer of the Parquet file, at byte .* is not supported: {told}"):
        scan_table(ScanReader(ParquetFormat()), path)
