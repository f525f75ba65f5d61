"""`python -m tests.durations quick.xml full.xml`: a table of the time that the tests of each folder take, by tier, with budgets.

The files are made by `pytest --junit-xml=quick.xml`. CI prints the table.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

DEPTH = 2
"""The number of folders below the root that a row of the table stands for."""

BUDGET = {
    "tests/operators": 1400,
    "tests/conformance": 1400,
    "tests/laws": 1300,
    "tests/testing": 250,
    "tests/cli": 250,
    "tests/spark": 250,
    "tests/cluster": 180,
    "tests/benchmarks": 200,
    "tests/chaos": 150,
    "tests/logs": 150,
    "tests/docs": 150,
    "tests/runtime": 200,
    "tests/local": 100,
    "tests/project": 100,
    "tests/lineage": 90,
    "tests/state": 80,
}
"""The seconds that the tests of a folder may take in all of CI, on two quiet cores, summed over its workers; others: `OTHERS`."""
OTHERS = 60


def seconds_by_folder(report: Path) -> tuple[Counter[str], dict[str, float]]:
    """Return the number of tests and their seconds by folder, from pytest's JUnit file. Raises ParseError, OSError."""
    counts: Counter[str] = Counter()
    seconds: dict[str, float] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        modules = case.get("classname", "").split(".")
        folder = "/".join(part for part in modules[:DEPTH] if not part.startswith("test_"))
        counts[folder] += 1
        seconds[folder] = seconds.get(folder, 0.0) + float(case.get("time", 0))
    return counts, seconds


def table(reports: dict[str, Path]) -> list[str]:
    """Return the lines of a Markdown table: a row for each folder, two columns for each report, the slowest folder first."""
    measured = {title: seconds_by_folder(path) for title, path in reports.items()}
    folders = sorted({folder for counts, _ in measured.values() for folder in counts})
    folders.sort(key=lambda folder: -sum(seconds.get(folder, 0.0) for _, seconds in measured.values()))
    lines = [
        "| folder | " + " | ".join(f"{title}: tests | s" for title in measured) + " | s of all | budget | |",
        "| --- |" + " --: | --: |" * len(measured) + " --: | --: | --- |",
    ]
    for folder in folders:
        cells = [f"{counts[folder]:,} | {seconds.get(folder, 0.0):,.0f}" for counts, seconds in measured.values()]
        whole, budget = sum(seconds.get(folder, 0.0) for _, seconds in measured.values()), BUDGET.get(folder, OTHERS)
        lines.append(f"| {folder} | {' | '.join(cells)} | {whole:,.0f} | {budget:,} | {'OVER' if whole > budget else ''} |")
    totals = [f"{counts.total():,} | {sum(seconds.values()):,.0f}" for counts, seconds in measured.values()]
    whole = sum(sum(seconds.values()) for _, seconds in measured.values())
    return [*lines, f"| all | {' | '.join(totals)} | {whole:,.0f} | | |"]


if __name__ == "__main__":
    print("\n".join(table({Path(name).stem: Path(name) for name in sys.argv[1:]})))
