"""Follows docs/tutorial/application.md as a newcomer would: its files are written, its commands run, its output compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "application.md"
FENCE = re.compile(r"^```(\w+)(?: title=\"([\w.]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.full
@pytest.mark.spark
def test_the_tutorial_from_top_to_bottom(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    printed, commands = "", 0
    for language, title, text in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
        elif language == "sh":
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],
                check=False,
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            printed, commands = done.stdout, commands + 1
        elif language != "console":  # output that differs from run to run
            assert (language, printed) == ("text", text)
    assert commands >= 10
