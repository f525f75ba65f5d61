"""Both type checkers refuse what is wrong, line by line, and accept what is right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FILES = ["tests/typing/accepted.py", "tests/typing/refused.py"]


@cache
def found_by(checker: str) -> dict[str, set[int]]:
    """The lines that a checker refuses, by file name; each checker runs once."""
    return mypy() if checker == "mypy" else pyright()


def mypy() -> dict[str, set[int]]:
    ran = run("mypy", "--strict", "--no-error-summary", *FILES)
    lines: dict[str, set[int]] = {}
    for line in ran.splitlines():
        if match := re.match(r"(.+?):(\d+): error: ", line):
            lines.setdefault(Path(match[1]).name, set()).add(int(match[2]))
    return lines


def pyright() -> dict[str, set[int]]:
    lines: dict[str, set[int]] = {}
    for found in json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable, *FILES))["generalDiagnostics"]:
        if found["severity"] == "error":
            lines.setdefault(Path(found["file"]).name, set()).add(found["range"]["start"]["line"] + 1)
    return lines


def run(checker: str, *arguments: str) -> str:
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed: pip install -e '.[dev]'")
    ran = subprocess.run([sys.executable, "-m", checker, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.full
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_every_wrong_line_is_refused_and_no_other(checker: str) -> None:
    lines = (HERE / "refused.py").read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# error")}
    assert len(wrong) > 20
    assert found_by(checker).get("refused.py", set()) == wrong


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_what_is_right_is_accepted(checker: str) -> None:
    found_by(checker)
    assert found_by(checker).get("accepted.py", set()) == set()


def test_the_check_of_the_dag_agrees() -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    from dagflow import DAG
    from dagflow.model.graph.checks import check

    spec = spec_from_file_location("accepted", HERE / "accepted.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["accepted"] = module
    try:
        spec.loader.exec_module(module)
        dag = DAG()
        module.populate_dag(dag)
        assert len(check(dag).nodes) == 37
    finally:
        del sys.modules["accepted"]
