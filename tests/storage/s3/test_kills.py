"""Kill a launch at any of its requests to S3: the launch after it gives the reference output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.s3.conftest import Bucket

ROOT = Path(__file__).parents[3]
CASES = [("filters", 4), ("keyed", 4)]
"""Applications of `tests.conformance.faults.crash`, and how many lines they write."""


@pytest.mark.full
@pytest.mark.parametrize(
    ("application", "lines", "stride"),
    [
        pytest.param(*CASES[0], 29, marks=pytest.mark.nightly),
        (*CASES[1], 67),
        *[pytest.param(*each, 1, marks=pytest.mark.nightly) for each in CASES],
    ],
)
def test_a_killed_launch_is_continued_from_any_request(bucket: Bucket, application: str, lines: int, stride: int) -> None:
    command = [sys.executable, "-m", "tests.storage.s3.crash", bucket.proxy.url, bucket.name, str(stride), application]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout.splitlines()[-1])
    assert result["wrong"] == [], ran.stderr
    assert result["lines"] == lines
    assert result["cases"] >= 90 // stride
