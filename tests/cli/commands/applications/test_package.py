"""`dagflow package`, and `launch --package` where it has nothing to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dagflow.packaging.package as packaging
from dagflow.packaging.libraries import Library
from tests.cli.conftest import LINE_FILTER, Answer

Dagflow = Callable[..., Answer]
GIVEN = ["-D", "input=logs", "-D", "output=out"]


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One small library instead of those that are installed. Returns the calls that look for them."""
    (tmp_path / "six.py").write_text("x = 1\n")
    (tmp_path / "logs").mkdir()
    calls: list[Any] = []

    def libraries(*given: Any) -> list[Library]:
        calls.append(given)
        return [Library("six", "1.17", {"six.py": tmp_path / "six.py"})]

    monkeypatch.setattr(packaging, "_libraries_here", libraries)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return calls


def test_it_says_where_the_archive_is_and_how_to_submit_it(dagflow: Dagflow, tmp_path: Path) -> None:
    answer = dagflow("package", LINE_FILTER, *GIVEN)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0].startswith("line_filter: line_filter-")
    assert "made in" in lines[0]
    assert "  libraries  six 1.17" in lines
    assert sum(line.startswith("  spark-submit ") for line in lines) == 2
    assert "unchanged" in dagflow("package", LINE_FILTER, *GIVEN).out


def test_as_json(dagflow: Dagflow) -> None:
    answer = json.loads(dagflow("package", LINE_FILTER, *GIVEN, "--json").out)
    assert Path(answer["archive"]).is_file()
    assert (answer["name"], answer["libraries"], answer["is_new"]) == ("line_filter", {"six": "1.17"}, True)
    assert answer["spark"]["spark.archives"] == f"{answer['archive']}#environment"
    assert answer["submit"]["cluster"].endswith(" launch app:populate_dag")


def test_values_of_settings_are_not_printed(dagflow: Dagflow) -> None:
    assert "hunter2" not in dagflow("package", LINE_FILTER, *GIVEN, "-D", "prefix=hunter2").out


def test_mistakes_are_reported_as_elsewhere(dagflow: Dagflow) -> None:
    assert dagflow("package", LINE_FILTER).code == 2
    answer = dagflow("package", LINE_FILTER, *GIVEN, "--package-lock", "lock.txt")
    assert answer.code == 2
    assert "lock.txt is not usable as a lock file: it cannot be read" in answer.err


@pytest.mark.parametrize("runner", [["--runner", "local"], ["--master", "local[2]"]])
def test_tasks_on_this_machine_need_no_package(
    dagflow: Dagflow, small: list[Any], runner: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application that is launched is checked without starting it."""
    from dagflow.launching.build import build
    from dagflow.launching.launch import packaged

    options = {"runner": "local"} if "local" in runner else {"master": "local[2]"}
    built = build(LINE_FILTER, definitions=["input=logs", "output=out"], options={**options, "package": True})
    assert packaged(built, built.plan()) is None
    assert small == []


def test_a_package_and_a_python_of_your_own_contradict_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from dagflow.errors import ConflictingSettings
    from dagflow.launching.build import build
    from dagflow.launching.launch import packaged

    monkeypatch.setattr("dagflow.spark.connection.session.active_link", lambda: None)  # of another test
    definitions = ["input=logs", "output=out", "spark.pyspark.python=/opt/python"]
    built = build(LINE_FILTER, definitions=definitions, options={"master": "spark://boss:7077", "package": True})
    with pytest.raises(ConflictingSettings, match="brings its own Python"):
        packaged(built, built.plan())
