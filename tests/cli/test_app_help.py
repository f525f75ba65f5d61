"""The help pages of commands on applications: with an application, its settings and operators come first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import LINE_FILTER, Answer

Dagflow = Callable[..., Answer]

SETTINGS = """Settings of line_filter:
  Copy the lines that do not start with a prefix.

  -D input=…   Files or directories. [list[str]; required]
  -D output=…  [str; required]
  -D prefix=…  [str; default: .]
"""


@pytest.mark.parametrize("command", ["launch", "dev", "validate", "plan", "graph", "config", "peek"])
def test_settings_of_the_application(dagflow: Dagflow, command: str) -> None:
    answer = dagflow(command, LINE_FILTER, "--help")
    assert (answer.code, answer.err) == (0, "")
    assert SETTINGS in answer.out
    assert answer.out.index("Settings of") < answer.out.index("Options:")


def test_operators_once_the_required_settings_are_given(dagflow: Dagflow) -> None:
    assert "operator.keep" not in dagflow("launch", LINE_FILTER, "--help").out
    answer = dagflow("launch", LINE_FILTER, "-D", "input=logs", "-D", "output=out", "--help")
    assert "  operator.keep      Filter: predicate, only, on_error" in answer.out


def test_without_an_application_nothing_is_loaded(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagflow.launching.application.load_application", lambda spec: pytest.fail("loaded"))
    answer = dagflow("launch", "--help")
    assert answer.code == 0
    assert "Settings of" not in answer.out


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (None, "no application 'app.py': there is no file app.py"),
        ("import nothing_of_that_name", "No module named 'nothing_of_that_name'"),
        ("exit(3)", "it called sys.exit(3)"),
    ],
)
def test_an_application_that_cannot_be_loaded(dagflow: Dagflow, tmp_path: Path, code: str | None, reason: str) -> None:
    if code is not None:
        (tmp_path / "app.py").write_text(code)
    answer = dagflow("validate", "app.py", "--help")
    assert answer.code == 0
    assert reason in " ".join(answer.out.split())
    assert "Options:" in answer.out


def test_settings_of_any_shape(dagflow: Dagflow, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        """
import attrs
from dagflow.config import Secret, Seconds

@attrs.define
class Retry:
    attempts: int = 3  # how often

@attrs.define
class Settings:
    retry: Retry = attrs.field(factory=Retry)
    token: Secret = "x"
    wait: Seconds = attrs.field(default=60.0, metadata={"doc": "between two attempts"})
    name: str = attrs.field()

    @name.default
    def _name(self) -> str:
        return "n"

def populate_dag(dag, conf: Settings): ...
"""
    )
    out = dagflow("launch", "app.py", "--help").out
    assert "-D retry.attempts=…  How often. [int; default: 3]" in out
    assert "-D wait=…            Between two attempts. [Seconds; default: 1min]" in out
    assert "-D token=…           [Secret; default: ***]" in out
    assert "-D name=…            [str; has a default]" in out


def test_an_application_without_a_class_of_settings(dagflow: Dagflow, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def populate_dag(dag, conf): ...")
    assert "It takes any -D KEY=VALUE" in dagflow("launch", "app.py", "--help").out
