"""From a row of a real run back to the bytes that it was made of."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import launch
from dagflow.errors import (
    ApplicationChanged,
    ApplicationUnknown,
    NoSuchEntry,
    RunFolderMissing,
    SourceSilent,
    StateForgotten,
    WindowForgotten,
)
from dagflow.ledger import Ledger
from dagflow.lineage.history import PastWindow
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator, row_of, trace
from dagflow.testing import run_dag
from operators.readers.errors import FileChanged, FileGone
from tests.lineage import traced
from tests.lineage.traced import exactly, record
from tests.tiers import examples

Application = Callable[..., None]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def run(application: Application, source: Path, out: Path, *, run_options: dict[str, Any] | None = None, **conf: Any) -> Any:
    given = {"input": str(source), "output": str(out), **conf}
    return launch(application, given, runner="local", durability="process", **(run_options or {})).report


def rows_of(out: Path) -> list[bytes]:
    """All rows of a dataset of lines, in the order of their offsets."""
    rows: list[bytes] = []
    for entry in reversed(list(Ledger.open(str(out)).data_entries())):
        assert entry.data is not None
        assert entry.data.new_data is not None
        for file in entry.data.new_data.files:
            rows += (out / file.path).read_bytes().splitlines(keepends=True)
    return rows


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12)
FILES = st.lists(st.lists(st.tuples(TEXT, st.sampled_from(["\n", "\r\n"])), max_size=12), min_size=1, max_size=4)


@settings(max_examples=examples(30), deadline=None)
@given(FILES, st.integers(1, 40), st.booleans(), st.sampled_from([traced.filtered, traced.mapped, traced.lazily]), st.data())
def test_every_row_leads_to_its_line(files: Any, block_size: int, per_block: bool, application: Any, data: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "in"), Path(folder, "out")
        source.mkdir()
        for number, lines in enumerate(files):
            (source / f"{number}.txt").write_bytes("".join(line + end for line, end in lines).encode())
        per_block = per_block and application is traced.filtered
        run(application, source, out, block_size=block_size, per_block=per_block, readers=data.draw(st.integers(1, 3)))
        rows = rows_of(out)
        for offset in data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=3)) if rows else ():
            row = rows[offset].removesuffix(b"\n").decode()
            line = record(exactly(out, offset)).decode()
            line = line.removesuffix("\n").removesuffix("\r")
            assert row == (f"<{line.upper()}>" if application is traced.mapped else line)


@pytest.mark.full
def test_equal_lines_are_told_apart(source: Path, out: Path) -> None:
    (source / "a").write_text("same\n.no\n" * 50)
    (source / "b").write_text("same\r\n.no\r\n" * 50)
    run(traced.filtered, source, out, block_size=64, readers=3)
    places = set()
    for offset in range(100):
        found = exactly(out, offset)
        assert record(found).rstrip() == b"same"
        assert found.source is not None
        places.add((found.source.path, found.source.position))
    assert len(places) == 100


def test_one_record_may_make_several_rows(source: Path, out: Path) -> None:
    (source / "a").write_text("to be\n\nor not\nto be\n")
    run(traced.split, source, out, block_size=4)
    assert [record(exactly(out, offset)) for offset in range(6)] == [b"to be\n"] * 2 + [b"or not\n"] * 2 + [b"to be\n"] * 2


def test_without_exact_the_ranges_of_the_task(source: Path, out: Path) -> None:
    (source / "a").write_text("1\n2\n3\n4\n")
    run(traced.filtered, source, out, block_size=4, readers=1)
    found = trace(str(out), 3)
    assert (found.entry.seq, found.row, found.window, found.head) == (3, 3, 0, "reader")
    assert found.written is not None
    assert (found.written.operator, found.written.task) == ("writer", "s0-0000")
    assert [(item.path, item.start, item.stop) for item in found.items] == [(f"{source}/a", 0, 4), (f"{source}/a", 4, 8)]
    assert (found.source, found.problem, found.several) == (None, None, None)


def test_what_a_window_adds_up_comes_from_all_of_the_task(source: Path, out: Path) -> None:
    (source / "a").write_text("1\n2\n3\n4\n")
    run(traced.counted, source, out, block_size=4, readers=1)
    found = exactly(out, 0)
    assert found.source is None
    assert found.several is not None
    assert len(found.items) == 2


def test_operators_that_keep_something_are_named(source: Path, out: Path) -> None:
    (source / "a").write_text("1\n2\n3\n4\n")
    run(traced.paired, source, out)
    found = exactly(out, 1)
    assert record(found) == b"4\n"
    assert found.remarks == ("middle keeps something from record to record: earlier ones may have a part in the row",)


def test_windows_and_outputs(source: Path, out: Path) -> None:
    for name in "abc":
        (source / name).write_text(f"{name}1\n{name}2\n")
    run(traced.filtered, source, out, threshold=1)
    (source / "d").write_text("d1\n")
    run(traced.filtered, source, out, threshold=1)
    rows = rows_of(out)
    assert len(rows) == 7
    for offset, row in enumerate(rows):
        found = exactly(out, offset)
        assert record(found) == row
        assert found.window == offset // 2


def test_errors_lead_to_what_was_wrong(source: Path, out: Path) -> None:
    (source / "a").write_text("1\ntwo\n3\nfour\n")
    run(traced.with_errors, source, out, block_size=5)
    assert [record(exactly(out / "good", offset)) for offset in range(2)] == [b"1\n", b"3\n"]
    assert rows_of(out / "bad") == [b"two\n", b"four\n"]
    found = [exactly(out / "bad", offset) for offset in range(2)]
    assert [len(each.items) for each in found] == [1, 1]


def test_a_sink_that_counts_late_and_leaves_out_some(source: Path, out: Path) -> None:
    (source / "a").write_text("1\n.\n3\n4\n")
    run(traced.lazily_without_some, source, out, block_size=4, readers=1)
    with pytest.raises(SourceSilent, match="operator 'writer' counts its rows too late"):
        exactly(out, 1)


@pytest.mark.full
@pytest.mark.parametrize("application", [traced.filtered, traced.mapped, traced.lazily])
def test_one_of_many(source: Path, out: Path, application: Application) -> None:
    (source / "a").write_text("".join(f"{number}\n" for number in range(100_000)))
    run(application, source, out, readers=1)
    for offset in (0, 77_777, 99_999):
        assert record(exactly(out, offset)) == f"{offset}\n".encode()


@pytest.mark.parametrize("per_block", [False, True])
def test_one_of_many_in_batches(source: Path, out: Path, per_block: bool) -> None:
    (source / "a").write_text("".join(f"{'.' * (number % 3 == 0)}{number}\n" for number in range(100_000)))
    run(traced.in_batches, source, out, readers=1, per_block=per_block, block_size=100_000)
    rows = rows_of(out)
    for offset in (0, 44_444, len(rows) - 1):
        assert record(exactly(out, offset)) == rows[offset]


def test_what_either_runner_has_made(runner: str, source: Path, out: Path) -> None:
    (source / "a").write_text("".join(f"{'.' * (number % 3 == 0)}{number}\n" for number in range(1_000)))
    run_dag(traced.in_batches, {"input": str(source), "output": str(out), "block_size": 1_000}, runner=runner)
    rows = rows_of(out)
    for offset in (0, 333, len(rows) - 1):
        assert record(exactly(out, offset)) == rows[offset]
    report = replay(str(out), locator=ApplicationLocator(trust=True))
    assert (report.windows, report.rows, report.problems) == (1, len(rows), ())


def test_from_a_derived_dataset_through_the_one_before(source: Path, out: Path, tmp_path: Path) -> None:
    totals = tmp_path / "totals"
    for name in "ab":
        (source / name).write_text(f"{name}1\n.no\n{name}2\n")
        run(traced.filtered, source, out)
        run(traced.derived, out, totals, block_size=4)
    assert rows_of(totals) == [b"<A1>\n", b"<A2>\n", b"<B1>\n", b"<B2>\n"]
    found = exactly(totals, 3)
    assert record(found) == b"b2\n"
    assert [(each.prev_offset, each.new_offset) for each in found.inputs] == [(1, 3)]
    assert found.source is not None
    upstream = row_of(found.source.path, 2)
    assert upstream == 3
    first = exactly(out, upstream)
    assert record(first) == b"b2\n"
    assert first.source is not None
    assert first.source.path == str(source / "b")
    assert replay(str(totals), locator=ApplicationLocator(trust=True)).windows == 2


class TestState:
    def test_goes_on_from_the_window_before(self, source: Path, out: Path) -> None:
        (source / "a").write_text("a\nb\n")
        (source / "b").write_text("c\nd\n")
        run(traced.numbered, source, out, threshold=1, readers=1)
        assert rows_of(out)[3] == b"4 d\n"
        assert record(exactly(out, 3)) == b"d\n"

    def test_that_is_gone(self, source: Path, out: Path) -> None:
        for name in "abc":
            (source / name).write_text("1\n")
        run(traced.numbered, source, out, threshold=1, readers=1)
        (out / "_dagflow" / "decision" / "0000000001").unlink()
        with pytest.raises(StateForgotten, match="middle"):
            exactly(out, 2)
        assert record(exactly(out, 0)) == b"1\n"


class TestWhatHasChangedSince:
    def test_a_source_that_is_another(self, source: Path, out: Path) -> None:
        (source / "a").write_text("1\n2\n")
        run(traced.filtered, source, out)
        (source / "a").write_text("1\n2\n3\n")
        found = trace(str(out), 1, exact=True, locator=ApplicationLocator(trust=True))
        assert isinstance(found.problem, FileChanged)
        assert [item.path for item in found.items] == [f"{source}/a"]
        (source / "a").unlink()
        assert isinstance(trace(str(out), 1, exact=True, locator=ApplicationLocator(trust=True)).problem, FileGone)

    def test_a_source_that_may_change_and_did(self, source: Path, out: Path) -> None:
        (source / "a").write_text("1\n2\n")
        run(traced.growing, source, out)
        with open(source / "a", "a") as file:
            file.write("3\n")
        found = exactly(out, 1)
        assert record(found) == b"2\n"
        assert found.remarks == (
            f"{source}/a has changed since (4 bytes then, 6 now): the row may have been made of another record",
        )

    def test_a_row_that_was_replaced(self, source: Path, out: Path) -> None:
        for name in "ab":
            (source / name).write_text(f"{name}\n")
            run(traced.replacing, source, out)
        remark = "the row is no longer in the dataset: entry 4 replaced all rows before its own"
        assert trace(str(out), 0).remarks == (remark,)
        assert exactly(out, 0).remarks == (remark,)

    def test_a_source_that_has_changed_unseen(self, source: Path, out: Path) -> None:
        (source / "a").write_text("1\n2\n")
        then = (source / "a").stat()
        run(traced.filtered, source, out)
        assert exactly(out, 1).remarks == ()
        (source / "a").write_text("1\n3\n")
        os.utime(source / "a", ns=(then.st_atime_ns, then.st_mtime_ns))
        found = exactly(out, 1)
        assert record(found) == b"3\n"
        assert [remark.split(":")[0] for remark in found.remarks] == [
            "run again, the task does not write this file as it was committed"
        ]

    def test_sources_that_nobody_minds(self, source: Path, out: Path) -> None:
        for name in "abc":
            (source / name).write_text(f"{name}1\n{name}2\n")
        run(traced.careless, source, out, readers=1)
        (source / "a").unlink()
        (source / "b").write_text("B1\nB2\n")
        found = exactly(out, 0)
        assert [remark.split(":")[0] for remark in found.remarks] == [
            f"{source}/a has been removed since",
            f"{source}/b has changed since (6 bytes then, 6 now)",
        ]

    def test_windows_that_are_no_longer_kept(self, source: Path, out: Path) -> None:
        for name in "abc":
            (source / name).write_text("1\n")
        run(traced.filtered, source, out, threshold=1, run_options={"retain_windows": 1})
        found = trace(str(out), 0)
        assert isinstance(found.problem, WindowForgotten)
        assert "the oldest is 1" in str(found.problem)
        assert found.items == ()
        assert record(exactly(out, 2)) == b"1\n"

    def test_an_application_that_is_another(self, source: Path, out: Path) -> None:
        (source / "a").write_text("1\n")
        run(traced.filtered, source, out)
        with pytest.raises(ApplicationChanged, match="operator middle was a Filter"):
            exactly(out, 0, application=traced.mapped, definitions=[f"input={source}", f"output={out}"])

    def test_properties_that_are_others(self, source: Path, out: Path) -> None:
        (source / "a").write_text("1\n")
        run(traced.filtered, source, out)
        found = exactly(out, 0, definitions=["readers=3"])
        assert found.remarks == ("properties have changed since: reader.max_readers = 16 → 3",)

    def test_an_application_that_does_not_do_the_same_twice(self, source: Path, out: Path) -> None:
        (source / "a").write_text("1\n2\n")
        run(traced.filtered, source, out)
        with pytest.raises(SourceSilent, match="does not do the same twice"):
            exactly(out, 1, definitions=["prefix=2"])

    def test_a_dataset_that_has_moved(self, source: Path, out: Path, tmp_path: Path) -> None:
        (source / "a").write_text("1\n")
        run(traced.filtered, source, out)
        shutil.move(out, tmp_path / "moved")
        assert record(exactly(tmp_path / "moved", 0)) == b"1\n"

    def test_a_run_folder_that_has_moved(self, source: Path, out: Path, tmp_path: Path) -> None:
        (source / "a").write_text("1\n")
        run(traced.filtered, source, out, run_options={"run_folder": str(tmp_path / "run")})
        assert record(exactly(out, 0)) == b"1\n"
        shutil.move(tmp_path / "run", tmp_path / "other")
        with pytest.raises(RunFolderMissing, match="run-folder"):
            exactly(out, 0)
        assert record(exactly(out, 0, run_folder=str(tmp_path / "other"))) == b"1\n"

    def test_a_run_folder_of_another_application(self, source: Path, out: Path, tmp_path: Path) -> None:
        (source / "a").write_text("1\n")
        run(traced.filtered, source, out)
        run(traced.filtered, source, tmp_path / "other")
        with pytest.raises(RunFolderMissing, match="and the entry of"):
            exactly(out, 0, run_folder=str(tmp_path / "other" / "_dagflow"))

    def test_settings_of_each_launch(self, source: Path, out: Path) -> None:
        (source / "a").write_text("1\n.2\n")
        run(traced.filtered, source, out)
        (source / "b").write_text("1\n.2\n")
        run(traced.filtered, source, out, prefix="1")
        assert rows_of(out) == [b"1\n", b".2\n"]
        assert [record(exactly(out, offset)) for offset in (0, 1)] == [b"1\n", b".2\n"]

    def test_relative_paths(self, source: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (source / "a").write_text("1\n")
        monkeypatch.chdir(tmp_path)
        run(traced.filtered, Path("in"), Path("out"))
        monkeypatch.chdir("/")
        assert record(exactly(out, 0)) == b"1\n"
        assert os.getcwd() == "/"


class TestTheApplication:
    def test_that_has_no_name_must_be_given(self, source: Path, out: Path) -> None:
        def populate_dag(dag: Any, conf: traced.Settings) -> None:
            traced.filtered(dag, conf)

        (source / "a").write_text("1\n")
        run(populate_dag, source, out)
        with pytest.raises(ApplicationUnknown, match="--app"):
            exactly(out, 0)
        given = [f"input={source}", f"output={out}"]
        assert record(exactly(out, 0, application=populate_dag, definitions=given)) == b"1\n"

    def test_settings_objects_are_remembered(self, source: Path, out: Path) -> None:
        (source / "a").write_text("1\n2\n")
        launch(traced.filtered, traced.Settings(str(source), str(out), prefix="1"), runner="local", durability="process")
        assert record(exactly(out, 0)) == b"2\n"

    def test_secrets_are_not_kept(self, source: Path, out: Path) -> None:
        (source / "a").write_text("1\n")
        run(traced.filtered, source, out, password="hunter2", key="hunter2", context=object())
        kept = [file.read_bytes() for file in (out / "_dagflow").rglob("*") if file.is_file()]
        assert [content for content in kept if b"hunter2" in content] == []
        window = PastWindow.of(str(out), Ledger.open(str(out)).entry_of(0))
        assert set(window.launched().left_out) == {"password", "key", "context"}
        found = exactly(out, 0, definitions=["password=hunter3"])
        assert record(found) == b"1\n"
        assert found.remarks == ("the run folder does not keep these settings, which are now as by default: key, context (-D)",)

    def test_that_is_not_kept(self, source: Path, out: Path) -> None:
        (source / "a").write_text("1\n")
        run(traced.filtered, source, out)
        shutil.rmtree(out / "_dagflow" / "launches")
        with pytest.raises(ApplicationUnknown, match="does not keep how it was launched"):
            exactly(out, 0)


def test_rows_by_their_number_in_a_file(source: Path, out: Path) -> None:
    (source / "a").write_text("1\n2\n")
    (source / "b").write_text("3\n")
    run(traced.filtered, source, out, threshold=1)
    second = str(out / "part-000001-0000")
    assert row_of(second, 1) == 2
    with pytest.raises(NoSuchEntry, match="row 2 of part-000001-0000; that file has 1"):
        row_of(second, 2)
    (out / "mine.txt").write_text("1\n")
    with pytest.raises(NoSuchEntry, match=r"committed file 'mine\.txt'"):
        row_of(str(out / "mine.txt"), 1)
    with pytest.raises(NoSuchEntry, match="its newest row is 2"):
        trace(str(out), 3)
