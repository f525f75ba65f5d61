"""The Pythons that the project names: the same ones everywhere, and README's commands pass on each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NAMED = [name[1] for each in PROJECT["project"]["classifiers"] if (name := re.fullmatch(r".* Python :: (3\.\d+)", each))]
OURS = f"3.{sys.version_info.minor}"


def test_the_oldest_is_the_one_that_the_tools_check_for() -> None:
    oldest = NAMED[0]
    assert PROJECT["project"]["requires-python"] == f">={oldest}"
    assert PROJECT["tool"]["mypy"]["python_version"] == PROJECT["tool"]["pyright"]["pythonVersion"] == oldest
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    native = tomllib.loads((ROOT / "native" / "pyproject.toml").read_text(encoding="utf-8"))
    assert native["project"]["requires-python"] == f">={oldest}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/tutorial/index.md"])
def test_pages_name_them(page: str) -> None:
    assert f"You need Python {', '.join(NAMED[:-1])} or {NAMED[-1]}" in (ROOT / page).read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with our script that names the running Python and one that there is not."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    lines = [f'  "Programming Language :: Python :: {version}",' for version in ("3.99", OURS)]
    (folder / "pyproject.toml").write_text("\n".join(["classifiers = [", *lines, "]", ""]))
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def pythons(project: Path, test: str, *versions: str) -> subprocess.CompletedProcess[str]:
    run = "mkdir out && python3 --version > out/a"
    (project / "README.md").write_text(f"<!-- run -->\n```sh\n{run}\n```\n<!-- test -->\n```sh\n{test} # .venv/bin/pytest\n```\n")
    own = project / "own"  # this Python, wherever it is
    own.mkdir()
    (own / f"python{OURS}").symlink_to(os.path.realpath(sys.executable))
    path = {**os.environ, "PATH": f"{own}:{os.environ['PATH']}"}
    return subprocess.run([project / ".ci" / "pythons", *versions], capture_output=True, text=True, check=False, env=path)


def test_each_python_prints_one_line_and_absent_ones_are_skipped_by_name(project: Path) -> None:
    ran = pythons(project, f"python3 -c 'import sys; assert sys.version_info[1] == {OURS[2:]}' && echo 3 passed in 0.10s")
    here, absent = ran.stdout.splitlines()
    assert re.fullmatch(rf"Python {re.escape(OURS)}: passed after \d+ s: 3 passed in 0\.10s \(/.+\)", here), ran
    assert absent == "Python 3.99: skipped, it is neither on PATH nor in pyenv"
    assert ran.returncode == 0


def test_a_python_that_fails_fails_them_all_and_shows_why(project: Path) -> None:
    ran = pythons(project, "echo the reason && echo 1 failed, 2 passed in 0.10s && false", OURS)
    assert re.match(rf"Python {re.escape(OURS)}: FAILED after \d+ s: 1 failed, 2 passed in 0\.10s", ran.stdout), ran
    assert "    the reason\n" in ran.stdout
    assert ran.returncode == 1


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("version", NAMED)
def test_the_commands_of_the_readme_pass(version: str) -> None:
    ran = subprocess.run([ROOT / ".ci" / "pythons", version], capture_output=True, text=True, check=False)
    if ": skipped" in ran.stdout:
        pytest.skip(ran.stdout.strip())
    assert ran.returncode == 0, ran.stdout + ran.stderr
