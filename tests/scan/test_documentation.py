"""The examples of the pages about scans run, and the format that one of them writes is as short as it says."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG
from dagflow.errors import BadRowFound
from dagflow.testing import run_dag, scan_table
from operators import FileSplitterInput, JsonLinesFormat, ParquetWriter, ScanReader

DOCS = Path(__file__).parents[2] / "docs"
FORMATS, WRITE_A_FORMAT, SCANS = (
    (DOCS / page).read_text(encoding="utf-8")
    for page in ("reference/formats.md", "how-to/write_a_format.md", "explanation/scans.md")
)
NAMES = {
    "scan_table": scan_table,
    "ScanReader": ScanReader,
    "JsonLinesFormat": JsonLinesFormat,
    "FileSplitterInput": FileSplitterInput,
    "ParquetWriter": ParquetWriter,
    "DAG": DAG,
}


def blocks_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def run(blocks: list[str]) -> dict[str, Any]:
    names: dict[str, Any] = dict(NAMES)
    for block in blocks:
        exec(block, names)
    return names


def test_the_application_at_its_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in" / "year=2024"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text('{"id": 1, "stops": [{"name": "a"}]}\n')
    run_dag(run(blocks_of(FORMATS))["populate_dag"], {})
    (written,) = (tmp_path / "out").glob("*.parquet")
    import pyarrow.parquet as pq

    assert pq.read_table(written).to_pylist() == [{"id": 1, "stops[0].name": "a", "year": 2024, "filename": "a.jsonl"}]


def test_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "servers.ini").write_text("[web]\nport = 80\n[mail]\nhost = m\n")
    blocks = blocks_of(WRITE_A_FORMAT)
    names = run(blocks)
    assert len([line for line in blocks[0].splitlines() if line.strip()]) < 40
    reader = ScanReader(names["IniFormat"]())
    assert scan_table(reader, "servers.ini").to_pylist() == [
        {"section": "web", "port": "80", "host": None},
        {"section": "mail", "port": None, "host": "m"},
    ]
    (tmp_path / "broken.ini").write_text("no section = 1\n")
    with pytest.raises(BadRowFound, match=r"broken.ini: line 1: File contains no section headers"):
        scan_table(reader, "broken.ini")


def test_what_it_names_is_there() -> None:
    import dagflow.scan
    import operators.formats

    modules = [importlib.import_module(m.name) for m in pkgutil.walk_packages(operators.formats.__path__, "operators.formats.")]
    known = {*dir(dagflow.scan), *dir(operators), "FileBlockMetadata", "SetSchema", "InputPort", "OutputPort", "Any"}
    known.update(*map(dir, modules))
    named = set(re.findall(r"`([A-Z][a-z]+[A-Z][A-Za-z]+)\b", FORMATS + WRITE_A_FORMAT + SCANS)) - {"MyFormat", "IniFormat"}
    assert named - known == set()
