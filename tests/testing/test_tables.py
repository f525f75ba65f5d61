from __future__ import annotations

from pathlib import Path

import pytest

from dagflow.errors import NotSupported, PathMissing
from dagflow.testing import scan_table
from operators import CsvFormat, ScanReader


def test_bad_rows_are_not_lost_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("n\nx\n")
    with pytest.raises(NotSupported, match="a table has no place for bad rows"):
        scan_table(ScanReader(CsvFormat(), schema="n: int8", on_bad_row="route"), path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PathMissing, match=r"nope\.csv: no such file or folder"):
        scan_table(ScanReader(CsvFormat()), tmp_path / "nope.csv")
