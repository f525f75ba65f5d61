"""apps/word_count: totals over windows and launches, beside a Counter, on both runners."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import Any

from dagflow.ledger import read_dataset
from dagflow.testing import run_dag

ROOT = Path(__file__).parents[2]
APP = str(ROOT / "apps" / "word_count")


def words_of(folder: Path) -> Counter[str]:
    return Counter(word for path in folder.iterdir() for word in re.findall(r"[^\W_]+", path.read_text(encoding="utf-8").lower()))


def totals_in(output: Path) -> dict[str, int]:
    """The current table, in which each word has one row; it is what the ledger names."""
    files = list((output / "current").glob("part-*"))
    rows = [row for path in files for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())]
    totals = {row["word"]: int(row["total"]) for row in rows}
    assert len(totals) == len(rows)
    table = read_dataset(output).to_table()
    assert dict(zip(table["word"].to_pylist(), table["total"].to_pylist(), strict=True)) == totals
    return totals


def launch(source: Path, output: Path, runner: str) -> Any:
    settings = {
        "input": str(source),
        "output": str(output),
        "block_size": "4KiB",
        "operator.lines.splitter.window_bytes": "16KiB",
    }
    return run_dag(APP, settings, runner=runner)


def test_totals_over_windows_and_launches(runner: str, tmp_path: Path) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "docs.md").write_bytes((ROOT / "docs" / "reference" / "operators.md").read_bytes())
    (source / "odd.txt").write_text("\n \nÄpfel äpfel, größer-größer _x_\n\n日本語 12 don't\r\n", encoding="utf-8")
    report = launch(source, output, runner)
    assert report.windows > 1
    assert report.jobs == report.windows
    assert totals_in(output) == words_of(source)
    assert report.exchanges["count.partials"].records < report.operators["words"].records_out
    (source / "more.md").write_bytes((ROOT / "docs" / "explanation" / "exchanges.md").read_bytes())
    launch(source, output, "local")
    assert totals_in(output) == words_of(source)
    assert launch(source, output, "local").windows == 0
