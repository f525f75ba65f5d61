"""Launches with two outputs, killed between the steps of roll-forward: both ledgers catch up, each on its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.chaos
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize(
    ("stride", "pairs"), [(3, 10), pytest.param(1, 500, marks=[pytest.mark.nightly, pytest.mark.timeout(1800)])]
)
def test_two_ledgers_catch_up_after_a_kill_at_any_step(tmp_path: Path, stride: int, pairs: int) -> None:
    command = [sys.executable, "-m", "tests.chaos.points", str(tmp_path), str(stride), str(pairs)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout.splitlines()[-1])
    assert result["wrong"] == [], ran.stderr
    assert len(result["points"]) == 9
    assert min(result["points"].values()) >= 3 // stride, "each step is made in each of three windows"
    assert result["points"]["after an entry"] >= 12 // stride, "each ledger has one for each window, and begins with three"
    assert result["twice"] > pairs // 4
