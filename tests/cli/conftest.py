from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from dagflow.cli.main import main
from tests.golden.compare import OPTION, Golden, add_option

ROOT = Path(__file__).parents[2]
LINE_FILTER = str(ROOT / "apps" / "line_filter")


def pytest_addoption(parser: pytest.Parser) -> None:
    add_option(parser)


@pytest.fixture
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    return Golden(
        request.config.getoption(OPTION, default=False), {str(tmp_path): "TMP", tmp_path.name: "FOLDER", str(ROOT): "ROOT"}
    )


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Commands put the application's folder on Python's path and load its modules: both are taken back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [n for n in os.environ if n.startswith("DAGFLOW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("dagflow.cli.commands.applications.launch.start_jvm_ahead", lambda *settings: None)  # most launch nothing
    monkeypatch.setattr("dagflow.cli.commands.applications.launch.available_cores", lambda: 1)  # in this process, on any machine
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@attrs.frozen
class Answer:
    """The exit code of a command, and its output."""

    code: int
    out: str
    err: str


@pytest.fixture
def dagflow(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Runs a command in this process."""

    def run(*arguments: str) -> Answer:
        capsys.readouterr()
        code = main(arguments)
        return Answer(code, *capsys.readouterr())

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., None]:
    """Writes a file of text below the test's folder."""

    def to(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")

    return to


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Begins a command as a process of its own; what is still there at the end of the test is killed."""
    begun: list[subprocess.Popen[str]] = []

    def popen(*arguments: str, **options: object) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        found = subprocess.Popen(  # type: ignore[call-overload]
            [sys.executable, "-m", "dagflow", *arguments],
            **{
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "text": True,
                "cwd": tmp_path,
                "env": environment,
                **options,
            },
        )
        begun.append(found)
        return found  # type: ignore[no-any-return]

    yield popen
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()
