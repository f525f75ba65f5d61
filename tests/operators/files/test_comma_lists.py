"""Several paths in one text, and paths with commas."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagflow import launch
from dagflow.launching.build import build
from dagflow.storage import file_system
from operators import FileSplitterInput
from operators.files.errors import InputMissing
from operators.files.scanner import TimeBasedDirectoryScanner


@pytest.mark.parametrize("key", ["operator.files.files", "operator.files.scanner.files"])
def test_a_setting_with_commas(tmp_path: Path, key: str) -> None:
    def populate_dag(dag, conf):
        dag.add_operator("files", FileSplitterInput())

    given = rf"{key}={tmp_path}/a, {tmp_path}/b,{tmp_path}/c\,d"
    made = build(populate_dag, definitions=(given,), environment={}).dag.operators["files"].operator
    assert (made.files or made.scanner.files) == [f"{tmp_path}/{name}" for name in ("a", "b", "c,d")]
    splitter = FileSplitterInput(rf"{tmp_path}/a, {tmp_path}/b,{tmp_path}/c\,d")
    assert splitter.files == [f"{tmp_path}/{name}" for name in ("a", "b", "c,d")]
    assert FileSplitterInput([f"{tmp_path}/c,d"]).files == [f"{tmp_path}/c,d"]
    assert FileSplitterInput(tmp_path / "c,d").files == [f"{tmp_path}/c,d"]


def test_a_path_with_a_comma_that_exists_is_named(tmp_path: Path) -> None:
    (tmp_path / "a,b.txt").write_text("x")

    def populate_dag(dag, conf):
        dag.add_operator("files", FileSplitterInput(conf["input"]))

    with pytest.raises(InputMissing) as caught:
        launch(populate_dag, {"input": f"{tmp_path}/a,b.txt"}, runner="local")
    text = str(caught.value)
    assert "commas separate paths" in text
    assert rf"""-D 'KEY=["{tmp_path}/a,b.txt"]'""" in text


def test_schemes_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    for scheme in ("FILE", "File", "file"):
        scanner = TimeBasedDirectoryScanner(f"{scheme}://{tmp_path}")
        assert [status.path for visit in scanner.scan_once() for status in visit.found] == [f"{tmp_path}/a"]
        assert file_system(f"{scheme}://{tmp_path}/a").status(f"{scheme}://{tmp_path}/a").length == 1
    with file_system("Memory://any-case/a").create("MEMORY://any-case/a") as file:
        file.write(b"xy")
    scanner = TimeBasedDirectoryScanner("Memory://any-case")
    assert [status.path for visit in scanner.scan_once() for status in visit.found] == ["memory://any-case/a"]
    file_system("memory://any-case").remove_tree("memory://any-case")
