"""Rows that take the place of all rows before them."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from dagflow.errors import NewerLedger, ObjectDamaged
from dagflow.ledger import InputSlice, Ledger, LedgerEntry, committed_files, decode_entry, encode_entry, read_dataset
from dagflow.ledger.snapshots import replaced_files, root_of, sweep_snapshots, window_of
from tests.ledger.chains import root, rows, txn
from tests.operators.files.datasets import Dataset


def ingest(ledger: Ledger, window: int, count: int, *, replaces: bool = False) -> LedgerEntry:
    state = ledger.resume()
    new = attrs.evolve(rows(state.next_offset, count), replaces=replaces) if count else None
    return ledger.append(state.add_data(txn(window), new, watermark=window))


@pytest.fixture
def ledger() -> Ledger:
    """Ten rows, five more, then seven in the place of all, a watermark, three more."""
    made = root()
    for window, (count, replaces) in enumerate([(10, False), (5, False), (7, True), (0, False), (3, False)]):
        ingest(made, window, count, replaces=replaces)
    return made


def test_offsets_continue(ledger: Ledger) -> None:
    intervals = [entry.data.new_data.interval for entry in ledger.data_entries() if entry.data and entry.data.new_data]
    assert [(each.start, each.end) for each in intervals] == [(22, 24), (15, 21), (10, 14), (0, 9)]
    assert (ledger.first_row(), ledger.first_row(3), ledger.resume().next_offset) == (15, 0, 25)


def test_content_begins_with_the_newest_replacement(ledger: Ledger) -> None:
    assert [entry.seq for entry in ledger.content()] == [6, 4]
    assert [entry.seq for entry in ledger.content(3)] == [3, 2]
    assert ledger.verify().rows == 10


def test_rows_after_a_position_leave_out_what_was_replaced(ledger: Ledger) -> None:
    assert [entry.seq for entry in ledger.rows_after(None)] == [4, 6]
    assert [entry.seq for entry in ledger.rows_after(None, until=3)] == [2, 3]
    first = ledger.slice_after(None, until=2)
    assert [entry.seq for entry in ledger.rows_after(first)] == [4, 6]
    assert [entry.seq for entry in ledger.rows_after(first, until=3)] == [3]
    taken = ledger.slice_after(first)
    assert (taken.prev_offset, taken.new_offset) == (9, 24)
    assert [entry.seq for entry, _ in ledger.files_of(taken)] == [4, 6]
    inside = InputSlice(dataset_id="d", prev_block=ledger.entry(4).ref, prev_offset=21)
    assert [entry.seq for entry in ledger.rows_after(inside)] == [6]


def test_versions_that_would_read_all_rows_do_not_append(ledger: Ledger) -> None:
    assert [entry.format for entry in ledger.entries()] == [1, 1, 1, 1, 2, 2, 2]
    for entry in ledger.entries():
        assert decode_entry(encode_entry(entry), entry.seq) == entry
    newer = decode_entry(encode_entry(attrs.evolve(ledger.entry(6), format=3)), 6)
    ledger._head = newer
    with pytest.raises(NewerLedger, match="format 3"):
        ledger._check_known(newer.event)


def committed(tmp_path: Path, *replacing: bool) -> Dataset:
    made = Dataset(tmp_path)
    for number, replaces in enumerate(replacing):
        made.commit([f"a{number}", f"b{number}"], [f"c{number}"], replaces=replaces)
    return made


class TestSweeping:
    def test_the_newest_are_kept(self, tmp_path: Path) -> None:
        ledger = committed(tmp_path, False, False, True, True, True).ledger
        due = [[file.path for file in files] for files in replaced_files(ledger, keep=1)]
        assert [len(files) for files in due] == [4, 2], "rows that were added one by one are one snapshot"
        sweep_snapshots(ledger, keep=1)
        assert len(list(tmp_path.glob("part-*"))) == 4
        assert list(replaced_files(ledger, keep=1)) == []
        assert read_dataset(tmp_path).to_table()["value"].to_pylist() == ["a4", "b4", "c4"]
        assert ledger.verify().is_clean

    def test_a_sweep_that_died_is_continued(self, tmp_path: Path) -> None:
        ledger = committed(tmp_path, True, True, True, True).ledger
        first, second = (files[0] for files in replaced_files(ledger, keep=1))
        (tmp_path / first.path).unlink()
        due = [files[0] for files in replaced_files(ledger, keep=1)]
        assert due == [second]

    def test_a_damaged_file_of_a_kept_snapshot_is_noticed(self, tmp_path: Path) -> None:
        ledger = committed(tmp_path, True, True).ledger
        (tmp_path / "part-000000-0000").write_text("other\n")
        assert [type(problem) for problem in ledger.verify().problems] == [ObjectDamaged]

    def test_a_lost_file_of_the_content_is_noticed(self, tmp_path: Path) -> None:
        ledger = committed(tmp_path, True, True).ledger
        Path(committed_files(str(tmp_path))[0]).unlink()
        assert not ledger.verify().is_clean


@pytest.mark.parametrize("name", ["_snapshots/w", "_snapshots/wx", "_snapshots/w1/a", "elsewhere", "_snapshots/w\u0661", ""])
def test_other_names_are_no_snapshots(name: str) -> None:
    assert window_of(name) == -1
    assert root_of("/out", f"/out/{name}/part") in ("/out", "/out/_snapshots/w1")
