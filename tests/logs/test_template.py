"""The template `message-log` of `dagflow init` reads a topic: each message once, over launches, bad ones left out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dagflow.ledger import read_dataset
from tests.logs.test_kafka import produce

pytestmark = pytest.mark.full


def dagflow(*arguments: str, folder: Path) -> str:
    command = [sys.executable, "-m", "dagflow", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_topic_in_two_launches(tansu: str, name: str, tmp_path: Path) -> None:
    dagflow("init", "clicks", "--template", "message-log", folder=tmp_path)
    settings = ["-D", f"servers={tansu}", "-D", f"topic={name}", "--conf", "settings.toml", "--runner", "local", "--once"]
    clicks = [json.dumps({"page": f"/{number}", "user": "ada"}) for number in range(6)]
    for values in ([*clicks[:3], "not JSON"], clicks[3:]):
        produce(tansu, name, values)
        report = dagflow("launch", ".", *settings, folder=tmp_path / "clicks")
        assert "clicks: done" in report
    rows = read_dataset(str(tmp_path / "clicks" / "out")).to_table().to_pylist()
    assert sorted((row["page"], row["position"]) for row in rows) == [
        *((f"/{number}", number) for number in range(3)),
        *((f"/{number}", number + 1) for number in range(3, 6)),
    ]
