"""Words in the wrong place of a command line, and paths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dagflow import DAG
from dagflow.cli.group import expanded_value
from dagflow.render.views import graph
from dagflow.runtime.run_report import RunReport
from operators import Console, FileSplitterInput
from tests.cli.conftest import LINE_FILTER, Answer

Dagflow = Callable[..., Answer]


@pytest.mark.parametrize("word", ["./nope", LINE_FILTER, "app.py"])
def test_a_path_in_the_place_of_a_command(dagflow: Dagflow, word: str) -> None:
    answer = dagflow(word, "-D", "input=.")
    assert answer.code == 2
    assert f"{word!r} stands where the command goes: dagflow launch {word}. Commands: launch, " in answer.err


@pytest.mark.parametrize("words", [("--prefix", "a b"), ("--prefix=a b",)])
def test_a_setting_that_is_given_as_an_option(dagflow: Dagflow, words: tuple[str, ...]) -> None:
    answer = dagflow("launch", LINE_FILTER, *words)
    assert answer.code == 2
    assert "There is no option --prefix; it is a setting of the application: -D 'prefix=a b'" in answer.err


def test_an_option_that_is_no_setting_either(dagflow: Dagflow) -> None:
    answer = dagflow("launch", LINE_FILTER, "--limit", "5")
    assert answer.code == 2
    assert "setting of the application" not in answer.err


def test_a_tilde_is_the_home_folder(dagflow: Dagflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "in.txt").write_text("a\n")
    launched = dagflow("launch", LINE_FILTER, "-D", "input=~/in.txt", "-D", "output=~/out", "--runner", "local")
    assert launched.code == 0
    for command in ("report", "show", "log", "verify"):
        assert dagflow(command, "~/out").code == 0
    assert dagflow("init", "~/mine").code == 0
    assert dagflow("validate", "~/mine", "-D", "input=~/in.txt", "-D", "output=~/out2").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "mine", "out"]


def test_other_tildes_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/me")
    assert [expanded_value(text) for text in ("a=~", "a=~/b", "a=~b/c", "a=b~/c", "a", "~/a=b")] == [
        "a=/me",
        "a=/me/b",
        "a=~b/c",
        "a=b~/c",
        "a",
        "~/a=b",
    ]


def test_what_a_python_shell_shows() -> None:
    def populate_dag(dag: DAG, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
        dag.add_stream("found", files.files_metadata_output, dag.add_operator("show", Console()).input)

    view = graph(populate_dag)
    assert repr(view) == "<GraphOfApplication populate_dag, staged: 2 operators, 1 stream>"
    assert str(view).startswith("● files")
    report = RunReport(application="demo", status="done", windows=1, files=2, seconds=0.5)
    assert repr(report) == "<RunReport demo: done, 1 window, 2 files, 0.5 s>"
    assert str(report).startswith("demo: done\n  windows  1 ")
    assert repr(DAG("demo")) == "<DAG demo: 0 operators, 0 streams>"
