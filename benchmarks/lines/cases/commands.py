"""The time that the command line takes to answer."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.lines.place import Place
from benchmarks.rounds import Case, Contestant, Limit

ROOT = Path(__file__).parents[3]


def commands(place: Place) -> Iterator[Case]:
    """`dagflow --help` and `dagflow validate`."""
    beside = Path(sys.executable).with_name("dagflow")
    program = str(beside) if beside.exists() else shutil.which("dagflow")
    (place.disk / "in").mkdir(exist_ok=True)
    definitions = ["-D", f"input={place.disk / 'in'}", "-D", f"output={place.disk / 'out'}"]
    asked = {"dagflow --help": ["--help"], "dagflow validate": ["validate", str(ROOT / "apps" / "line_filter"), *definitions]}
    contestants, notes = [], []
    for name, arguments in asked.items():
        command = [program or "dagflow", *arguments]
        if program is None or subprocess.run(command, capture_output=True, check=False).returncode:
            notes.append(f"{name}: n/a (it fails)")
            continue
        contestants.append(Contestant(name, partial(_answer, command)))
    limits = [Limit("dagflow --help", 0.2), Limit("dagflow validate", 0.5)]
    yield Case("commands", "Commands that start nothing", contestants, limits, notes=notes, rounds=3 if place.quick else 9)


def _answer(command: list[str]) -> None:
    subprocess.run(command, capture_output=True, check=True)
