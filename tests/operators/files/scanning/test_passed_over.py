"""A first launch that finds no file says what its scan has passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG
from dagflow.testing import run_dag
from operators import BlockReader, FileSplitterInput, RecordWriter, TimeBasedDirectoryScanner


def warnings(tmp_path: Path, **scanner: Any) -> list[str]:
    def populate_dag(dag: DAG, conf: Any) -> None:
        found = TimeBasedDirectoryScanner(**scanner)
        files = dag.add_operator("files", FileSplitterInput(files=[str(tmp_path / "in")], scanner=found))
        lines = dag.add_operator("lines", BlockReader())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, dag.add_operator("out", RecordWriter(str(tmp_path / "out"))).input)

    return run_dag(populate_dag).warnings


@pytest.fixture(autouse=True)
def source(tmp_path: Path) -> Path:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for name in ("a.log", "b.log", ".hidden.txt", "sub/c.log"):
        (tmp_path / "in" / name).write_text("one\n")
    return tmp_path / "in"


def test_a_pattern_that_matches_nothing(tmp_path: Path, source: Path) -> None:
    (warning,) = warnings(tmp_path, file_pattern_regular_exp="[a-z][.]log")
    assert f"found no file to read in {source}; passed over: " in warning
    assert f"3 do not match file_pattern_regular_exp='[a-z][.]log', with their whole paths ({source}/a.log, …)" in warning
    assert f"1 of hidden files ({source}/.hidden.txt)" in warning


def test_one_that_refuses_all(tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path, ignore_file_pattern_regular_exp=".*")
    assert "3 match ignore_file_pattern_regular_exp='.*' (" in warning


def test_nothing_is_said_where_a_file_was_found_now_or_before(tmp_path: Path, source: Path) -> None:
    assert warnings(tmp_path, file_pattern_regular_exp=".*c[.]log") == []
    assert warnings(tmp_path, file_pattern_regular_exp=".*c[.]log") == []
    assert warnings(tmp_path, file_pattern_regular_exp=".*[.]txt") == []


def test_nothing_is_said_of_an_empty_folder(tmp_path: Path, source: Path) -> None:
    for path in [path for path in source.rglob("*") if path.is_file()]:
        path.unlink()
    assert warnings(tmp_path) == []
