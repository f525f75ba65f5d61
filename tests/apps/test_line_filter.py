"""apps/line_filter does what `sed` and `grep` do, on both runners."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from dagflow.testing import run_dag

APP = str(Path(__file__).parents[2] / "apps" / "line_filter")

FILES = {
    "crlf.txt": b"one\r\n.hidden\r\ntwo\r\n",
    "blank.txt": b"\n\n.\n\n",
    "open.txt": b"no newline at the end",
    "wide.txt": "größer\n.größer\n日本語\n".encode(),
    "empty.txt": b"",
    "deep/long.txt": b"x" * 5000 + b"\n.y\n" + b"z" * 3000,
}


def reference(folder: Path) -> Counter[str]:
    """The lines that `sed 's/\\r$//' | grep -v '^\\.'` leaves of all files, with their counts."""
    kept: Counter[str] = Counter()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        piped = subprocess.run(
            ["bash", "-c", "sed 's/\\r$//' \"$0\" | grep -v '^\\.'", str(path)], capture_output=True, check=False
        )
        kept.update(piped.stdout.decode().split("\n")[:-1])
    return kept


def written(folder: Path) -> Counter[str]:
    lines: Counter[str] = Counter()
    for path in folder.rglob("part-*"):
        lines.update(path.read_bytes().decode().split("\n")[:-1])
    return lines


def make(folder: Path) -> Path:
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.mark.smoke
def test_equals_sed_and_grep(runner: str, tmp_path: Path) -> None:
    source = make(tmp_path / "in")
    settings = {"input": str(source), "output": str(tmp_path / "out"), "operator.splitter.block_size": 7}
    report = run_dag(APP, settings, runner=runner)
    assert written(tmp_path / "out") == reference(source)
    assert report.status == "done"
    assert sum(figures.converted for figures in report.operators.values()) == 0


def test_a_second_launch_finds_nothing_new(runner: str, tmp_path: Path) -> None:
    source = make(tmp_path / "in")
    settings = {"input": str(source), "output": str(tmp_path / "out")}
    run_dag(APP, settings, runner=runner)
    before = sorted((tmp_path / "out").rglob("part-*"))
    again = run_dag(APP, settings, runner="local")
    assert again.windows == 0
    assert not any(each.records_in or each.records_out for each in again.operators.values())
    (source / "new.txt").write_text("new\n.not\n")
    run_dag(APP, settings, runner="local")
    new = [path for path in (tmp_path / "out").rglob("part-*") if path not in before]
    assert [path.read_text() for path in new] == ["new\n"]
