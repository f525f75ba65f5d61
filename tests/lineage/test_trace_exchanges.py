"""Rows that were written behind an exchange."""

from __future__ import annotations

from pathlib import Path

from dagflow.errors import BehindExchange
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator, trace
from tests.lineage import traced
from tests.lineage.test_trace import run


def test_a_row_behind_an_exchange_is_traced_to_its_window_and_no_further(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "a").write_text("one\ntwo\nthree\nfour\n")
    run(traced.dealt, source, out, block_size=5)
    found = trace(str(out), 0)
    assert (found.problem, found.written is not None and found.written.operator) == (None, "writer")
    assert [item.start for item in found.items] == [0, 5, 10, 15], "all that any task has read"
    assert found.remarks == ("it was written behind an exchange: any of these ranges may have a part in it",)
    exact = trace(str(out), 0, exact=True, locator=ApplicationLocator(trust=True))
    assert isinstance(exact.problem, BehindExchange)
    assert (exact.problem.operator, exact.source) == ("writer", None)
    report = replay(str(out), locator=ApplicationLocator(trust=True))
    assert (report.windows, report.rows, report.problems, report.left_out) == (1, 4, (), ())


def test_a_replay_deals_keys_as_the_window_did(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "a").write_text("".join(f"line {n}\n" for n in range(50)))
    run(traced.keyed, source, out, block_size=100)
    assert sum(path.is_file() and path.name[0] not in "._" for path in out.iterdir()) == 3
    report = replay(str(out), locator=ApplicationLocator(trust=True))
    assert (report.windows, report.rows, report.problems, report.left_out) == (1, 50, (), ())


def test_what_goes_on_over_windows_is_told(tmp_path: Path) -> None:
    """The window at the end of a run has no ranges of its own."""
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "a").write_text("one\ntwo\n")
    run(traced.windows, source, out, block_size=4)
    found = trace(str(out), 0)
    assert (found.problem, found.items) == (None, ())
    assert found.remarks == ("so may what earlier windows had brought: counts continues from window to window",)
