"""Launches that are hit at some of their calls: the short form of `make faults`, which hits all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults import shim
from tests.faults.applications import APPLICATIONS
from tests.faults.harness import FAULTS

ROOT = Path(__file__).parents[2]
SEED = 28

pytestmark = pytest.mark.skipif(bool(shim.unsupported()), reason=shim.unsupported())


def run(*arguments: str, status: int = 0) -> dict[str, Any]:
    """Run the command, and return its totals."""
    command = [sys.executable, "-m", "tests.faults", "--json", *arguments]
    ended = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == status, f"{ended.stdout}\n{ended.stderr}"
    return dict(json.loads(ended.stdout.splitlines()[-1]))


SHORT = {
    "files": ("RecordWriter-append", "ParquetWriter-replace", "state"),
    "tables": ("DeltaWriter-append", "IcebergWriter-append", "SqlWriter-upsert"),
    "changes": ("changes-join", "changes-left-join", "changes-changelog", "changes-partitions"),
}
"""The applications that CI takes, so that it takes a minute. The nightly run has all."""


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("names", SHORT.values(), ids=SHORT)
def test_some_calls_of_some_applications(names: tuple[str, ...]) -> None:
    options = [part for name in names for part in ("--application", name)]
    found = run(*options, "--durability", "machine", "--each", "1", "--seed", f"{SEED}")
    assert found["wrong"] == []
    assert all(count > 100 for count in found["calls"].values()), "the library does not see the launches' calls"
    assert len(found["calls"]) == len(names)
    assert found["faults"].keys() == FAULTS.keys()
    assert sum(found["faults"].values()) >= len(names) * len(FAULTS) - 3, "launches were not hit"
    assert found["survived"] < sum(found["faults"].values()) / 2


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_some_calls_of_each_application(name: str) -> None:
    assert run("--application", name, "--each", "5")["wrong"] == []
