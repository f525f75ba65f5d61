"""The common ground of tests of real processes: an application of several files, its input, and the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

APPLICATION = Path(__file__).parent / "application"


@attrs.frozen
class Place:
    """A working folder with relative input and output, which is none of Spark's working folders."""

    folder: Path
    application: Path = APPLICATION

    @property
    def output(self) -> Path:
        """The folder that applications write to."""
        return self.folder / "out"

    def fill(self, *extra: str) -> None:
        """Writes the input: three files of 40 lines, and one of `extra` lines."""
        source = self.folder / "in"
        source.mkdir(exist_ok=True)
        for name in "abc":
            (source / f"{name}.txt").write_text("".join(f"{'.' if n % 5 == 0 else ''}{name} {n}\n" for n in range(40)))
        if extra:
            (source / "extra.txt").write_text("".join(f"{line}\n" for line in extra))

    def expected(self, mark: str = "!") -> Counter[str]:
        """The rows that the application makes of the input."""
        lines = [line for file in (self.folder / "in").iterdir() for line in file.read_text().splitlines()]
        return Counter(f"{line.upper()}{mark}" for line in lines if not line.startswith("."))

    def found(self) -> Counter[str]:
        """The rows in the output."""
        files = [file for file in self.output.iterdir() if file.name[0] not in "._"] if self.output.exists() else []
        return Counter(line for file in files for line in file.read_text().splitlines())

    def left_over(self) -> list[str]:
        """Attempt files and reports that are still there."""
        folders = [self.output / "_dagflow" / name for name in ("staging", "probe")]
        return sorted(f"{folder.name}/{file.name}" for folder in folders if folder.exists() for file in folder.iterdir())

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The events of a kind, of all launches in their order."""
        files = sorted((self.output / "_dagflow" / "events").glob("*.jsonl"), key=os.path.getmtime)
        found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return [event for event in found if event["event"] == kind]

    def command(self, **settings: str) -> list[str]:
        """The command line that launches the application."""
        given = {"input": "in", "output": "out", **settings}
        definitions = [part for key, value in given.items() for part in ("-D", f"{key}={value}")]
        application = os.path.relpath(self.application, self.folder)
        return [sys.executable, "-m", "dagflow", "launch", application, "--progress", "none", *definitions]

    def launch(self, **settings: str) -> subprocess.CompletedProcess[str]:
        """Launches the application, and waits until it has ended."""
        return self.run(*self.command(**settings))

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command here."""
        return subprocess.run(command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False)

    def environment(self) -> dict[str, str]:
        """As a user has it: nothing that tells Spark which Python to use."""
        return {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder = tmp_path / "work"
    folder.mkdir()
    made = Place(folder)
    made.fill()
    return made


@pytest.fixture
def begin(place: Place) -> Any:
    """Begins commands in the place; ends what is left of them."""
    running: list[subprocess.Popen[str]] = []

    def begin(*command: str, cwd: Path = place.folder) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        running.append(subprocess.Popen(command, cwd=cwd, env=place.environment(), **pipes))  # type: ignore[call-overload]
        return running[-1]

    yield begin
    for one in running:
        if one.poll() is None:
            one.kill()
        one.communicate()


Begin = Callable[..., "subprocess.Popen[str]"]
