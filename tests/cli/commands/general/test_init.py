"""`dagflow init`: its templates are applications that work as they are, and nothing is overwritten."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from dagflow.cli.commands.general.init import TEMPLATES, command_line, files_of, templates
from tests.cli.conftest import Answer
from tests.tiers import mostly_nightly

Dagflow = Callable[..., Answer]
NAMES = sorted(templates())


@pytest.mark.parametrize("template", NAMES)
def test_the_folder_is_the_template(dagflow: Dagflow, template: str) -> None:
    answer = dagflow("init", "my_app", "--template", template)
    assert (answer.code, answer.err) == (0, "")
    assert {"app.py", "test_app.py", "settings.toml", "README.md"} < {path.name for path in Path("my_app").iterdir()}
    for name in files_of(template):
        assert Path("my_app", name).read_bytes() == (TEMPLATES / template / name).read_bytes()
        assert f"  {name}\n" in answer.out


@pytest.mark.parametrize("template", NAMES)
def test_the_tests_of_a_template_pass(dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, template: str) -> None:
    assert dagflow("init", "my_app", "--template", template).code == 0
    monkeypatch.syspath_prepend(tmp_path / "my_app")
    for name in ("app", "test_app"):  # of another application; monkeypatch brings it back
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        del sys.modules[name]
    tests = [(name, test) for name, test in vars(importlib.import_module("test_app")).items() if name.startswith("test_")]
    assert len(tests) >= 2
    for name, test in tests:
        folder = tmp_path / name
        folder.mkdir()
        test(*[folder] * ("tmp_path" in test.__annotations__))


@pytest.mark.parametrize("template", NAMES)
def test_the_settings_file_and_the_sample_fit_the_application(
    dagflow: Dagflow, monkeypatch: pytest.MonkeyPatch, template: str
) -> None:
    assert dagflow("init", "my_app", "--template", template).code == 0
    monkeypatch.chdir("my_app")
    answer = dagflow("launch", ".", "--conf", "settings.toml", "--runner", "local", "--progress", "none")
    assert (answer.code, answer.err) == (0, "")
    assert "my_app: done" in answer.out


@pytest.mark.parametrize("template", NAMES)
def test_a_template_has_an_operator_of_its_own(template: str) -> None:
    tree = ast.parse((TEMPLATES / template / "app.py").read_text(encoding="utf-8"))
    bases = [base.id for each in tree.body if isinstance(each, ast.ClassDef) for base in each.bases if isinstance(base, ast.Name)]
    assert "Operator" in bases


def test_the_next_commands_name_the_folder_from_anywhere(dagflow: Dagflow, tmp_path: Path) -> None:
    answer = dagflow("init", "below/my_app")
    assert f"  cd {tmp_path / 'below' / 'my_app'}\n" in answer.out
    assert answer.out.splitlines()[-1].endswith("dagflow show out")


def test_an_empty_folder_is_taken(dagflow: Dagflow) -> None:
    Path("my_app").mkdir()
    assert dagflow("init", "my_app").code == 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("random", "'random' is a module of Python, which the folder could hide. Try 'random_app'."),
        ("operators", "'operators' is a module of dagflow"),
        ("3x", "'3x' is not a name"),
        ("my app", "'my app' is not a name"),
        ("größe", "'größe' is not a name"),
        ("taken", "taken has files, and nothing is overwritten"),
        ("file", "file is a file, and nothing is overwritten"),
    ],
)
def test_names_that_are_refused(dagflow: Dagflow, name: str, reason: str) -> None:
    Path("taken").mkdir()
    Path("taken", "app.py").touch()
    Path("file").touch()
    answer = dagflow("init", name)
    assert (answer.code, answer.out) == (2, "")
    assert reason in answer.err
    assert sorted(path.name for path in Path().iterdir()) == ["file", "taken"]


def test_an_unknown_template_is_refused(dagflow: Dagflow) -> None:
    answer = dagflow("init", "my_app", "--template", "nothing")
    assert answer.code == 2
    assert "'csv-to-parquet'" in answer.err


def test_a_command_that_the_shell_finds_is_named_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    (tmp_path / "dagflow").touch(mode=0o755)
    monkeypatch.setenv("PATH", "")
    assert command_line("dagflow") == str(tmp_path / "dagflow")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command_line("dagflow") == "dagflow"


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("template", mostly_nightly(NAMES, "lines"))
def test_the_printed_commands_work_in_another_folder_and_on_spark(tmp_path: Path, template: str) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def shell(script: str, folder: Path) -> str:
        done = subprocess.run(
            ["bash", "-eu", "-c", script], check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    commands = shell(f"dagflow init my_app --template {template}", tmp_path).partition("Next:\n")[2]
    on_spark = "dagflow launch . --conf settings.toml -D output=spark_out"
    printed = shell(f"{commands}\n{on_spark}", Path("/"))
    assert "3 passed" in printed
    assert printed.count("my_app: done") == 2
