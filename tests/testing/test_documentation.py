"""The examples of docs/how-to/test_an_application.md that stand on their own."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import dagflow.testing
from dagflow.testing import FakeClock, OperatorTask, Window, check_operator, read_file, run_dag, run_operator
from operators import BlockReader, FileSplitterInput

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "test_an_application.md").read_text(encoding="utf-8")
EXAMPLES = [block for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if "..." not in block]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample.log").write_text("one\ntwo\n\nthree")
    names: dict[str, Any] = {"MyReader": BlockReader}  # stands for the reader's own
    (tmp_path / "own").mkdir()
    fixtures = {"tmp_path": tmp_path / "own", "runner": "local"}
    exec(example, names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test(**{name: fixtures[name] for name in inspect.signature(test).parameters if name in fixtures})


def test_all_that_it_offers_is_explained() -> None:
    assert len(EXAMPLES) == 7
    names = set(dagflow.testing.__all__) - {"Emitted"}
    assert {name for name in names if name not in TEXT} == set()


def test_arguments_in_the_table_exist() -> None:
    known = {
        *inspect.signature(run_operator).parameters,
        *inspect.signature(OperatorTask).parameters,
        *inspect.signature(FileSplitterInput).parameters,
    }
    rows = [line for line in TEXT.splitlines() if line.startswith("| ")]
    named = {name for row in rows for name in re.findall(r"(\w+)=", row)}
    assert named - known == set()
    assert named
    for tool in (check_operator, read_file, run_dag, FakeClock, OperatorTask, Window):
        assert inspect.getdoc(tool)
