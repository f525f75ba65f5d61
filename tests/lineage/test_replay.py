"""Windows of real runs, run again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.ledger import Ledger
from dagflow.lineage.replay import ReplayReport, replay
from dagflow.lineage.trace import ApplicationLocator
from tests.lineage import traced
from tests.lineage.test_trace import FILES, run
from tests.tiers import examples

Application = Callable[..., None]
APPLICATIONS = (
    traced.filtered,
    traced.mapped,
    traced.split,
    traced.counted,
    traced.numbered,
    traced.paired,
    traced.lazily,
    traced.dealt,
)
TRUSTED = ApplicationLocator(trust=True)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abc":
        (folder / name).write_text("".join(f"{name}{number}\n" for number in range(10)))
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def reasons(report: ReplayReport) -> list[str]:
    return [problem.reason for problem in report.problems]


def left_out(report: ReplayReport) -> list[tuple[int, str]]:
    return [(window, type(error).__name__) for window, error in report.left_out]


@settings(max_examples=examples(25), deadline=None)
@given(
    FILES,
    st.integers(1, 40),
    st.booleans(),
    st.sampled_from(
        [traced.filtered, traced.mapped, traced.split, traced.counted, traced.numbered, traced.paired, traced.lazily]
    ),
    st.integers(0, 2),
)
def test_what_was_committed_is_made_again(files: Any, block_size: int, per_block: bool, application: Any, threshold: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "in"), Path(folder, "out")
        source.mkdir()
        for number, lines in enumerate(files):
            (source / f"{number}.txt").write_bytes("".join(line + end for line, end in lines).encode())
        per_block = per_block and application is traced.filtered
        run(application, source, out, block_size=block_size, per_block=per_block, threshold=threshold, readers=3)
        ledger = Ledger.open(str(out))
        windows = sum(entry.data is not None for entry in ledger.entries())
        assert replay(str(out), locator=TRUSTED) == ReplayReport(windows=windows, rows=ledger.resume().next_offset)


@pytest.mark.parametrize("name", ["good", "bad"])
def test_one_of_several_datasets(source: Path, out: Path, name: str) -> None:
    (source / "a").write_text("1\ntwo\n3\n")
    run(traced.with_errors, source, out, block_size=5)
    report = replay(str(out / name), locator=TRUSTED)
    assert (report.windows, report.problems, report.left_out) == (1, (), ())
    assert report.rows == Ledger.open(str(out / name)).resume().next_offset


def test_what_comes_out_differently(source: Path, out: Path) -> None:
    run(traced.filtered, source, out, threshold=1, readers=1)
    report = replay(str(out), locator=ApplicationLocator(trust=True, definitions=["prefix=b"]))
    assert (report.windows, report.rows) == (2, 20)
    assert reasons(report) == ["it is not made at all"]
    assert str(report.problems[0]) == (
        "window 1 (entry 4), replayed, does not give part-000001-0000 as it was committed: it is not made at all"
    )
    some = replay(str(out), locator=ApplicationLocator(trust=True, definitions=["prefix=b1"]))
    assert reasons(some) == ["it has 9 rows, 10 were committed"]
    more = replay(str(out), locator=ApplicationLocator(trust=True, definitions=["middle.none=1"]))
    assert len(more.left_out) == 3


def test_which_row_is_the_first_that_differs(source: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(traced.mapped, source, out, threshold=1, readers=1)

    def lower(record: Any) -> str:
        return "<b7>" if record.record == "b7" else traced_upper(record)

    traced_upper = traced.upper
    monkeypatch.setattr(traced, "upper", lower)
    report = replay(str(out), locator=TRUSTED)
    assert reasons(report) == ["row 8 is '<b7>', '<B7>' was committed"]
    (out / "part-000001-0000").write_text("other\n")
    assert reasons(replay(str(out), locator=TRUSTED)) == [
        "its bytes are others; the committed file cannot be compared, for it has changed too"
    ]
    (out / "part-000001-0000").unlink()
    assert reasons(replay(str(out), locator=TRUSTED)) == ["its bytes are others; the committed file is not there"]


def test_the_same_rows_in_another_order_are_told(source: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(traced.split, source, out, threshold=1, readers=1)
    swapped = {"a3": ["a4"], "a4": ["a3"]}
    monkeypatch.setattr(traced, "words", lambda record: swapped.get(record.record, [record.record]))
    assert reasons(replay(str(out), locator=TRUSTED)) == ["the same rows in another order: row 4 is 'a4', 'a3' was committed"]


def test_windows_that_cannot_be_run_again(source: Path, out: Path, tmp_path: Path) -> None:
    run(traced.filtered, source, out, threshold=1, readers=1)
    (source / "b").write_text("changed\n")
    report = replay(str(out), locator=TRUSTED)
    assert (report.windows, left_out(report)) == (2, [(1, "FileChanged")])
    (out / "_dagflow" / "plan" / "0000000000").unlink()
    assert left_out(replay(str(out), locator=TRUSTED)) == [(1, "FileChanged"), (0, "WindowForgotten")]
    assert left_out(replay(str(out), locator=TRUSTED, windows=1)) == []
    shutil.rmtree(out / "_dagflow" / "launches")
    assert [name for _, name in left_out(replay(str(out), locator=TRUSTED))] == [
        "ApplicationUnknown",
        "ApplicationUnknown",
        "WindowForgotten",
    ]


class TestMapsByKey:
    """The state by key of operators is a chain of segments, which stay as long as the records of the windows that need them."""

    @pytest.fixture
    def source(self, source: Path) -> Path:
        for path in source.iterdir():
            path.write_text("".join(f"{letter}\n" for letter in "abcab" + path.name))
        return source

    @pytest.mark.parametrize("application", [traced.running, traced.windows])
    def test_windows_go_on_from_the_one_before(self, source: Path, out: Path, application: Application) -> None:
        run(application, source, out, block_size=4, readers=2)
        rows = Ledger.open(str(out)).resume().next_offset
        report = replay(str(out), locator=TRUSTED)
        assert (report.rows, report.problems, report.left_out) == (rows, (), ())
        assert report.windows > 5

    def test_windows_go_on_from_other_partitions(self, source: Path, out: Path) -> None:
        run(traced.running, source, out, readers=2)
        run(traced.running, source, out, readers=2, run_options={"max_windows": 1})
        (source / "d").write_text("d\n")
        run(traced.running, source, out, readers=3)  # which begins all chains anew
        report = replay(str(out), locator=TRUSTED)
        assert (report.windows, report.problems, report.left_out) == (4, (), ())

    def test_windows_whose_states_are_kept_can_be_run_again(self, source: Path, out: Path) -> None:
        for number in range(5):
            (source / f"d{number}").write_text("a\n" * number)
            run(traced.running, source, out, readers=2, run_options={"retain_windows": 3})
        report = replay(str(out), locator=TRUSTED)
        assert (report.windows, report.problems) == (3, ())
        assert [window for window, _ in report.left_out] == [3, 2, 1, 0]

    def test_those_whose_segments_are_gone_are_told(self, source: Path, out: Path) -> None:
        run(traced.running, source, out, readers=2)
        run(traced.running, source, out, readers=2)
        for segment in (out / "_dagflow" / "keyed-state" / "state").glob("0000000000-*"):
            segment.unlink()
        report = replay(str(out), locator=TRUSTED, windows=1)
        told = str(report.left_out[0][1])
        assert "began with state of 'counted' that is no longer stored" in told
        assert "launch the application on the same input into an empty folder" in told


def test_sources_that_the_reader_does_not_mind(source: Path, out: Path) -> None:
    run(traced.careless, source, out)
    assert replay(str(out), locator=TRUSTED).windows == 1
    (source / "b").write_text("changed\n")
    assert left_out(replay(str(out), locator=TRUSTED)) == [(0, "SourceChanged")]


def test_a_dataset_that_has_moved(source: Path, out: Path, tmp_path: Path) -> None:
    run(traced.filtered, source, out)
    shutil.move(out, tmp_path / "moved")
    report = replay(str(tmp_path / "moved"), locator=TRUSTED)
    assert (report.windows, report.rows, report.problems) == (1, 30, ())


def test_nothing_is_left_and_nothing_is_touched(source: Path, out: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    run(traced.filtered, source, out, block_size=5)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    replay(str(out), locator=TRUSTED)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert list(temporary.iterdir()) == []
