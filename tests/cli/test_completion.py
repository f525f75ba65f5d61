"""Completion by the shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dagflow.cli.completion import table
from dagflow.cli.completion.answer import completions
from dagflow.cli.group import COMMANDS
from tests.cli.conftest import ROOT, Answer

Dagflow = Callable[..., Answer]
APP = """
import attrs
from typing import Literal
from dagflow import DAG, Operator
import operators
from operators import BlockReader, FileInput

raise SystemExit("a press of Tab runs no code of an application")

Level = Literal["low", "high"]


@attrs.define
class Settings:
    input: list[str]  # files
    level: Level = "low"
    count: int = 1


@attrs.define
class Mine(Operator):
    factor: int = 1
    kind: bool = True
    _hidden: int = attrs.field(init=False)


def populate_dag(dag: DAG, conf: "Settings") -> None:
    dag.add_operator("reader", BlockReader())
    dag.add_operator("mine", Mine())
    dag.add_operator("keep", operators.Filter[str](str))
    dag.add_module("files", FileInput(conf.input))
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp()))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("_DAGFLOW_COMPLETE", f"{shell}_source")
    answer = dagflow()
    assert (answer.code, answer.err) == (0, "")
    assert f"_DAGFLOW_COMPLETE={shell}_complete" in answer.out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("dagflow va", ["plain,validate"]),
        ("dagflow verify --re", ["plain,--replay"]),
        ("dagflow graph --format m", ["plain,mermaid"]),
        ("dagflow validate ap", ["file,ap"]),
        ("dagflow trace ou", ["file,ou"]),
        ("dagflow launch app --conf ba", ["file,ba"]),
        ("dagflow nothing", []),
    ],
)
def test_what_is_completed(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch, words: str, found: list[str]) -> None:
    monkeypatch.setenv("_DAGFLOW_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    answer = dagflow()
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.split() == found


@pytest.mark.parametrize(
    ("incomplete", "found"),
    [
        ("", ["input=", "level=", "count=", "operator."]),
        ("le", ["level="]),
        ("level=", ["level=low", "level=high"]),
        ("level=h", ["level=high"]),
        ("count=", []),
        ("operator.", ["operator.reader.", "operator.mine.", "operator.keep.", "operator.files."]),
        (
            "operator.mine.",
            ["operator.mine.factor=", "operator.mine.kind=", "operator.mine.on_error=", "operator.mine.max_rejects="],
        ),
        ("operator.mine.kind=", ["operator.mine.kind=true", "operator.mine.kind=false"]),
        ("operator.mine.on_error=s", ["operator.mine.on_error=skip"]),
        ("operator.keep.pred", ["operator.keep.predicate="]),
        ("operator.files.conv", ["operator.files.convert_to_record="]),
        ("operator.reader.max_readers", ["operator.reader.max_readers="]),
        ("nothing", []),
    ],
)
def test_settings_of_an_application(tmp_path: Path, incomplete: str, found: list[str]) -> None:
    (tmp_path / "app.py").write_text(APP)
    words = ["launch", "--once", "--conf", "a.toml", str(tmp_path), "-D"]
    assert [each.value for each in completions(words, incomplete)] == found


def test_the_path_of_a_setting_is_completed(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    (found,) = completions(["launch", f"{tmp_path}/app.py:populate_dag", "-D"], "input=da")
    assert (found.kind, found.value) == ("file", "da")


@pytest.mark.parametrize("text", ["def populate_dag(", "", "def populate_dag(dag): ...", "x = 1", "\0"])
def test_an_application_that_cannot_be_read_has_no_settings(tmp_path: Path, text: str) -> None:
    (tmp_path / "app.py").write_text(text)
    assert completions(["launch", str(tmp_path), "-D"], "") == []
    assert completions(["launch", "no/such", "-D"], "") == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("dagflow launch app -D level=h", ["plain,high"]),
        ("dagflow launch 'app' -D inp", ["plain,input="]),
        ("dagflow launch app -D 'lev", ["plain,level="]),
        ("dagflow launch app -D input=l", ["file,l"]),
        ("dagflow launch app --runner ", ["plain,spark", "plain,local"]),
        ("dagflow operators fil", ["plain,FileInput", "plain,FileSplitterBase", "plain,FileSplitterInput", "plain,Filter"]),
        ("dagflow completion z", ["plain,zsh"]),
        ("dagflow init a --template l", ["plain,lines"]),
    ],
)
def test_a_line_of_bash(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, found: list[str]) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "app.py").write_text(APP)
    monkeypatch.setenv("_DAGFLOW_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_LINE", line + " and more")
    monkeypatch.setenv("COMP_POINT", str(len(line)))
    answer = dagflow()
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines() == found


def test_nothing_is_ever_printed_on_standard_error(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_DAGFLOW_COMPLETE", "bash_complete")
    monkeypatch.delenv("COMP_WORDS", raising=False)
    assert dagflow() == Answer(1, "", "")
    monkeypatch.setenv("_DAGFLOW_COMPLETE", "tcsh_complete")
    assert dagflow() == Answer(1, "", "")


def test_the_table_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = table.table()
    monkeypatch.setattr(table, "make_table", lambda: pytest.fail("it is in the cache"))
    assert table.table() == made
    assert set(made) == set(COMMANDS)
    monkeypatch.setattr(table, "make_table", lambda: made)
    for broken in tmp_path.rglob("*.json"):
        broken.write_text("{")
    assert table.table() == made
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert table.table() == made


def test_an_answer_imports_no_command_and_no_click(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    code = (
        "import sys; from dagflow.cli.main import main; code = main(); "
        "loaded = [m for m in ('click', 'pyarrow', 'pyspark', 'dagflow.config', 'dagflow.launching.build') if m in sys.modules]; "
        "sys.exit(f'loaded: {loaded}' if loaded else code)"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(tmp_path),
        "_DAGFLOW_COMPLETE": "zsh_complete",
        "COMP_WORDS": f"dagflow launch {tmp_path} -D lev",
        "COMP_CWORD": "4",
    }
    for _ in range(2):  # the first one makes the table
        answer = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60, check=False
        )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == "plain\nlevel=\nLiteral['low', 'high']\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_command_prints_the_script_and_the_line_that_installs_it(dagflow: Dagflow, shell: str) -> None:
    answer = dagflow("completion", shell)
    assert (answer.code, answer.err) == (0, "")
    first, *script = answer.out.splitlines()
    assert first.startswith("# ")
    assert f"dagflow completion {shell}" in first
    assert f"_DAGFLOW_COMPLETE={shell}_complete" in "\n".join(script)


@pytest.fixture
def on_path(tmp_path: Path) -> dict[str, str]:
    """An environment in which `dagflow` is a command, and `app` an application."""
    command = tmp_path / "bin" / "dagflow"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dagflow "$@"\n')
    command.chmod(0o755)
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "app.py").write_text(APP)
    return {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


@pytest.mark.full
@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_in_fish(tmp_path: Path, on_path: dict[str, str]) -> None:
    script = "dagflow completion fish | source; complete -C 'dagflow tr'; complete -C 'dagflow launch app -D lev'"
    answer = subprocess.run(
        ["fish", "-c", script], capture_output=True, text=True, env=on_path, check=True, timeout=60, cwd=tmp_path
    )
    assert [line.split("\t")[0] for line in answer.stdout.splitlines()] == ["trace", "level="]


@pytest.mark.full
@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_in_zsh(tmp_path: Path, on_path: dict[str, str]) -> None:
    script = (
        f'autoload -Uz compinit; compinit -u -d {tmp_path}/dump; eval "$(dagflow completion zsh)"; echo ${{_comps[dagflow]}}; '
        "compadd() { echo compadd ${(P)@[-1]} }; words=(dagflow launch app -D lev); CURRENT=5; _dagflow_completion"
    )
    answer = subprocess.run(
        ["zsh", "-fc", script], capture_output=True, text=True, env=on_path, check=True, timeout=60, cwd=tmp_path
    )
    assert answer.stdout.splitlines() == ["_dagflow_completion", "compadd level="]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_in_bash(tmp_path: Path) -> None:
    command = tmp_path / "bin" / "dagflow"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dagflow "$@"\n')
    command.chmod(0o755)
    script = """
        eval "$(_DAGFLOW_COMPLETE=bash_source dagflow)"
        complete -p dagflow
        COMP_WORDS=(dagflow tr); COMP_CWORD=1; _dagflow_completion dagflow; echo "${COMPREPLY[@]}"
    """
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, check=True, timeout=60)
    assert answer.stderr == ""
    assert answer.stdout.splitlines() == ["complete -o nosort -F _dagflow_completion dagflow", "trace"]


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        (["peek", "app.py"], "mine.", ["mine.output"]),
        (["peek", "app.py"], "files.r", ["files.reader.blocks_metadata_output", "files.reader.messages"]),
        (["peek", "app.py"], "keep.o", ["keep.output"]),
        (["peek", "app.py", "keep.output"], "", []),
        (["explain"], "DF25", [f"DF25{n}" for n in range(1, 10)]),
        (["launch", "app.py"], "--runner=", ["--runner=spark", "--runner=local"]),
        (["launch", "app.py", "-D"], "runner=l", ["runner=local"]),
        (["launch", "app.py", "-D"], "level=", ["level=low", "level=high"]),
        (["launch", "app.py", "-D"], "run_f", ["run_folder="]),
    ],
)
def test_ports_codes_and_settings_of_the_run(tmp_path: Path, words: list[str], incomplete: str, expected: list[str]) -> None:
    with_ports = APP.replace(
        "    factor: int", "    input = operators.InputPort[str]()\n    output = OutputPort[str]()\n    factor: int"
    )
    (tmp_path / "app.py").write_text(with_ports)
    assert [each.value for each in completions(words, incomplete)] == expected
