"""The benchmarks run: the cheapest of them, small, without Spark. How fast they are is no matter for tests."""

from __future__ import annotations

import re

import pytest

from benchmarks.lines.__main__ import START, STOP, main
from benchmarks.lines.rounds import Case, Contestant, DifferentOutput, Goal, Limit, compete
from benchmarks.lines.table import figures_table, goals_table

SILENT = lambda text: None  # noqa: E731


def test_the_scanner_runs_and_its_tables_are_written_between_the_marks(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n{START}\nold figures\n{STOP}\nafter\n")
    assert main(["--quick", "--only", "scanner", "--disk", str(tmp_path), "--markdown", str(page)]) == 0
    assert "| a launch that finds nothing new |" in capsys.readouterr().out
    text = page.read_text()
    assert text.startswith("# Before\n")
    assert text.endswith("after\n")
    assert "old figures" not in text
    assert re.search(r"2,000 files found, filtered, planned: at most 5 s \| [\d.]+ s \| ", text)
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.md"], "inputs and outputs are removed"


def test_contestants_run_in_turn_and_only_rounds_after_the_warm_up_count():
    ran = []
    one = [Contestant(name, lambda n=name: ran.append(n) or float(len(ran))) for name in ("peer", "ours")]
    result = compete(Case("case", "a case", one), 2, SILENT)
    assert ran == ["peer", "ours"] * 3
    assert result.figures["peer"].values == (3.0, 5.0)
    assert result.figures["ours"].values == (4.0, 6.0)


def test_goals_are_judged_by_seconds_for_each_byte():
    peer = Contestant("peer", lambda: 6.0, size=300)
    ours = Contestant("ours", lambda: 1.0, size=100)
    goals = [
        Goal("ours", "peer", 2),
        Goal("ours", "peer", 2.5),
        Goal("ours", "peer", most=0.6),
        Limit("ours", 0.5),
        Goal("ours", "nobody", 2),
    ]
    result = compete(Case("case", "a case", [peer, ours], goals), 1, SILENT)
    assert [result.outcome(goal) for goal in goals] == [("2.00", True), ("2.00", False), ("0.50", True), ("1 s", False), None]
    assert goals_table([result]).count("**no**") == 2
    assert "| 2.00 |" in figures_table(result)


def test_different_outputs_are_refused():
    one = [Contestant(name, lambda: 1.0, check=lambda n=name: n) for name in ("peer", "ours")]
    with pytest.raises(DifferentOutput, match="ours"):
        compete(Case("case", "a case", one), 1, SILENT)
