"""Follows README, the tutorial and `dagflow init` as a newcomer would: blocks are pasted from the pages as they stand.

The first block of README, which installs dagflow and runs it, is a step of `.ci/run`. Here `.venv` is a link to the virtual
environment of the tests, and commands are found only as the pages' own lines make a shell find them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)(?: title=\"([\w.]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ACTIVATED = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
OTHERS = os.pathsep.join(place for place in os.environ["PATH"].split(os.pathsep) if not Path(place, "dagflow").exists())


def blocks(page: Path) -> Iterator[tuple[str, str, str]]:
    """Yield language, title and text of the blocks of a page."""
    yield from FENCE.findall(page.read_text(encoding="utf-8"))


def environment(path: str) -> dict[str, str]:
    """Return the environment of a new shell, without a virtual environment, with this PATH."""
    return {**{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}, "PATH": path}


def activation(page: Path, folder: Path) -> str:
    """Install dagflow into `.venv` of a folder. Return the line by which a page activates it."""
    (folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    (line,) = re.findall(r"^(?:source|\.) \.venv/bin/activate$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return str(line)


def pasted(text: str, folder: Path, path: str = ACTIVATED) -> str:
    """Paste text into a shell, and return what it prints."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], check=False, cwd=folder, env=environment(path), capture_output=True, text=True
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.full
@pytest.mark.spark
def test_the_tutorial_on_spark_from_top_to_bottom(tmp_path: Path) -> None:
    install = next(text for language, _, text in blocks(ROOT / "docs" / "tutorial" / "index.md") if language == "sh")
    active = activation(ROOT / "docs" / "tutorial" / "index.md", tmp_path)
    assert install.splitlines() == ["python3 -m venv .venv", ".venv/bin/pip install '.[test]'", active]
    printed, commands = "", 0
    for language, title, text in blocks(ROOT / "docs" / "tutorial" / "application.md"):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
        elif language == "sh":
            printed, commands = pasted(f"{active}\n{text}", tmp_path, OTHERS), commands + 1
        elif language != "console":  # output that differs from run to run
            assert (language, printed) == ("text", text)
    assert commands >= 10


@pytest.mark.full
def test_the_python_of_readme(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text("one\n.two\nthree\n")
    (tmp_path / "app.py").write_text("\n".join(python_of_readme()), encoding="utf-8")
    assert pasted("python app.py", tmp_path) == "2\n"


def python_of_readme() -> list[str]:
    """Return the application of README, and how it is launched."""
    found = [text for language, _, text in blocks(ROOT / "README.md") if language == "python" and ">>>" not in text]
    assert len(found) == 2
    return found


@pytest.mark.full
@pytest.mark.spark
def test_the_commands_of_readme_on_spark(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "apps", tmp_path / "apps")
    active = activation(ROOT / "README.md", tmp_path)
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = (text for language, _, text in blocks(ROOT / "README.md") if "\ndagflow validate" in text)
    assert page.index(active) < page.index("`dagflow init my_app`") < page.index(block)
    lines = block.splitlines()
    assert len(lines) >= 10
    for line in lines:
        if line.split()[1] == "dev":
            until_it_waits(line, tmp_path, active)
        else:
            printed = pasted(f"{active}\n{line}", tmp_path, OTHERS)
            assert printed or line.startswith("mkdir"), line
            if line.startswith("dagflow trace"):
                assert "line 17" in printed
    again = f"from apps.line_filter.app import populate_dag\n{python_of_readme()[1]}"
    (tmp_path / "again.py").write_text(again, encoding="utf-8")
    assert pasted("python again.py", tmp_path) == "0\n"


def until_it_waits(line: str, folder: Path, active: str) -> None:
    """Run a command that goes on for ever, until its output is there; then press Ctrl-C."""
    log, output = folder / "dev.txt", folder / "tmp" / "out"
    with log.open("w") as file:
        process = subprocess.Popen(
            ["bash", "-c", f"{active}\nexec {line}"], cwd=folder, env=environment(OTHERS), stdout=file, stderr=file
        )
    deadline = time.monotonic() + 100
    while not any(output.glob("part-*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130, log.read_text()
    assert any(output.glob("part-*"))


@pytest.mark.full
def test_an_application_from_init_its_test_and_a_file_of_ones_own(tmp_path: Path) -> None:
    (command,) = re.findall(r"`(dagflow init \w+)`", (ROOT / "README.md").read_text(encoding="utf-8"))
    printed = pasted(command, tmp_path)
    commands = printed.partition("Next:\n\n")[2]
    assert [line.split()[0].rpartition("/")[2] for line in commands.splitlines()] == ["cd", "pytest", "dagflow", "dagflow"]
    assert "took" in pasted(commands, tmp_path)
    app = tmp_path / "my_app" / "app.py"
    line, edited = "if int(millis) >= self.limit:", 'if int(millis) >= self.limit and path != "/health":'
    text = app.read_text(encoding="utf-8")
    assert text.count(line) == 1
    app.write_text(text.replace(line, edited), encoding="utf-8")
    (tmp_path / "my_app" / "my_logs").mkdir()
    (tmp_path / "my_app" / "my_logs" / "mine.log").write_text("GET /health 999\nGET /mine 777\nGET /fast 1\n")
    for language, _, block in blocks(tmp_path / "my_app" / "README.md"):
        if language == "sh":
            printed = pasted(block, app.parent)
    assert "1 passed" in printed or "my_app: done" in printed
    assert [part.read_text() for part in (app.parent / "slow").glob("part-*")] == ["/mine took 777 ms\n"]
