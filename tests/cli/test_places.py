"""`validate` finds what is wrong with the folders that an application reads and writes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import LINE_FILTER, Answer

Dagflow = Callable[..., Answer]


@pytest.fixture
def validate(dagflow: Dagflow, tmp_path: Path) -> Callable[..., list[str]]:
    """The codes of the problems that are found with these settings."""
    (tmp_path / "logs").mkdir()

    def run(*settings: str, input: str = "logs", output: str = "out") -> list[str]:
        given = [each for text in (f"input={input}", f"output={output}", *settings) for each in ("-D", text)]
        before = sorted(os.walk(tmp_path))
        answer = dagflow("validate", LINE_FILTER, *given, "--json")
        assert sorted(os.walk(tmp_path)) == before, "nothing is made"
        assert answer.code == (0 if json.loads(answer.out)["ok"] else 2)
        return [problem["code"] for problem in json.loads(answer.out).get("problems", ())]

    return run


def test_all_is_well(validate: Callable[..., list[str]]) -> None:
    assert validate() == []


def test_what_is_wrong_is_found_together(validate: Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").touch()
    assert validate(input="nowhere") == ["DF264", "DF254"]
    assert validate("operator.reader.max_reader=2", input="nowhere")[1:] == ["DF264", "DF254"]
    (tmp_path / "out" / "_dagflow").mkdir()
    assert validate() == [], "the output of a run"


@pytest.mark.parametrize("output", ["logs", "logs/below/out", "alias/out"])
def test_output_in_input(validate: Callable[..., list[str]], tmp_path: Path, output: str) -> None:
    (tmp_path / "logs" / "a.txt").touch()
    (tmp_path / "alias").symlink_to("logs")
    assert validate(output=output) == ["DF259"]


def test_a_continuous_run_may_wait_for_its_input(dagflow: Dagflow) -> None:
    given = ["-D", "input=later", "-D", "output=out", "--continuous"]
    assert dagflow("validate", LINE_FILTER, *given).code == 2
    assert dagflow("validate", LINE_FILTER, *given, "-D", "operator.splitter.scanner.wait=true").code == 0


def test_a_path_with_a_comma_proposes_a_list(dagflow: Dagflow) -> None:
    answer = dagflow("validate", LINE_FILTER, "-D", 'input=["a,b"]', "-D", "output=out")
    assert answer.code == 2
    assert "this is one path, with a comma in it; several paths are a list" in answer.err
    assert "-D 'operator.splitter.files=[" in answer.err
