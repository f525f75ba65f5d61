"""Launches with several outputs, killed between the steps of roll-forward: all ledgers catch up, each on its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def found(folder: Path, stride: int, pairs: int, subject: str) -> dict[str, Any]:
    """Kill at points, and return what was found; nothing was wrong."""
    command = [sys.executable, "-m", "tests.chaos.points", str(folder), str(stride), str(pairs), subject]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    result: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    assert result["wrong"] == [], ran.stderr
    return result


@pytest.mark.chaos
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize(
    ("stride", "pairs"), [(3, 10), pytest.param(1, 500, marks=[pytest.mark.nightly, pytest.mark.timeout(1800)])]
)
def test_two_ledgers_catch_up_after_a_kill_at_any_step(tmp_path: Path, stride: int, pairs: int) -> None:
    result = found(tmp_path, stride, pairs, "lines")
    assert len(result["points"]) == 9
    assert min(result["points"].values()) >= 3 // stride, "each step is made in each of three windows"
    assert result["points"]["after an entry"] >= 12 // stride, "each ledger has one for each window, and begins with three"
    assert result["twice"] > pairs // 4


@pytest.mark.chaos
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize(
    ("stride", "pairs"), [(3, 3), pytest.param(1, 300, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)])]
)
def test_results_that_change_are_corrected_once_after_a_kill_at_any_step(tmp_path: Path, stride: int, pairs: int) -> None:
    result = found(tmp_path, stride, pairs, "joined")
    assert len(result["points"]) >= 8, "all steps are made"
    assert result["points"]["before the mark"] >= 2 // stride, "the launch has two windows"
    assert result["twice"] >= pairs // 4
