"""Users who launch from a shell see nothing of Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

APPLICATION = """
from operators import BlockReader, FileSplitterInput, Map, RecordWriter

def halve(line):
    return str(int(line.record) // 2)

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    lines = dag.add_operator("lines", BlockReader())
    half = dag.add_operator("half", Map(halve))
    writer = dag.add_operator("writer", RecordWriter("out"))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, half.input)
    dag.add_stream("halves", half.output, writer.input)
"""


def launch(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    (folder / "logs").mkdir()
    (folder / "logs" / "a.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "app.py").write_text(APPLICATION)
    command = [sys.executable, "-m", "dagflow", "launch", ".", "--master", "local[2,4]", "--progress", "none"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_an_exception_in_user_code_shows_the_users_lines_only(tmp_path: Path) -> None:
    ran = launch(tmp_path, "2", "four", "6")
    assert ran.returncode == 1
    assert ran.stderr.splitlines() == [
        "error[DF301] operator 'half' failed in apply_all() of port 'input': "
        "ValueError: invalid literal for int() with base 10: 'four'",
        "  at app.py:5 in halve: return str(int(line.record) // 2)",
        "  window  0",
        f"  source  {tmp_path}/logs/a.txt, position 2",
        "  record  'four'",
        "  help: fix the line that is named and launch again, which resumes with this window; or let such records be skipped: "
        "-D operator.half.on_error=skip. Exceptions of operators are not retried",
    ]


def test_a_run_that_is_fine_says_nothing_on_standard_error(tmp_path: Path) -> None:
    ran = launch(tmp_path, "2", "4", "6")
    assert (ran.returncode, ran.stderr) == (0, "")
