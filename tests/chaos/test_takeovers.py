"""A launch that is paused anywhere, taken over by one on another host, and continued: nothing is lost, doubled or changed."""

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
@pytest.mark.parametrize("subject", ["lines", "joined"])
@pytest.mark.parametrize("stride", [100, pytest.param(3, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)])])
def test_a_launch_that_was_taken_over_changes_nothing_and_says_so(tmp_path: Path, stride: int, subject: str) -> None:
    command = [sys.executable, "-m", "tests.chaos.takeovers", str(tmp_path), str(stride), subject]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout.splitlines()[-1])
    assert result["wrong"] == [], ran.stderr
    assert result["ends"]["not paused"] == 3, "each kind of case was run up to the last touch"
    assert result["ends"]["lost"] >= 600 // stride
    # a launch that was paused before it took the lock, or after its last look, has nothing to lose
    assert result["ends"].get("done", 0) <= result["ends"]["lost"] // 2
