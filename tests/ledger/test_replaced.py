"""Rows that take the place of all rows before them."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import NewerLedger, ObjectDamaged
from dagflow.ledger import (
    InputSlice,
    KeptFiles,
    Ledger,
    LedgerEntry,
    committed_files,
    decode_entry,
    encode_entry,
    hash_bytes,
    read_dataset,
    schema_hash,
)
from dagflow.ledger.errors import FileNotKept
from dagflow.ledger.snapshots import replaced_files, root_of, sweep_snapshots, window_of
from tests.ledger.chains import SCHEMA, root, rows, txn
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
    newer = decode_entry(encode_entry(attrs.evolve(ledger.entry(6), format=4)), 6)
    ledger._head = newer
    with pytest.raises(NewerLedger, match="format 4"):
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


class Table:
    """A dataset of lines whose entries replace the files of some partitions, and what it must hold."""

    def __init__(self, folder: Path) -> None:
        self.data = Dataset(folder)
        self.folder, self.ledger = folder, self.data.ledger
        self.expected: dict[str, list[str]] = {}

    def replace(self, window: int, partitions: dict[str, list[str]]) -> None:
        """Commit a window: the new lines of the partitions that it touches."""
        made = []
        for partition, lines in partitions.items():
            if lines:
                name, data = f"_partitions/p={partition}/part-{window}", "".join(f"{line}\n" for line in lines).encode()
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_bytes(data)
                made.append((name, len(lines), len(data), hash_bytes(data)))
        touched = {f"_partitions/p={partition}" for partition in partitions}
        state, kept = self.ledger.resume(), self.ledger.files_kept(lambda file: file.path.rpartition("/")[0] in touched)
        new = state.data_slice(made, schema_hash=schema_hash(SCHEMA), replaces=kept is not None, kept=kept or ())
        if new is not None:
            self.ledger.append(state.add_data(txn(window), new))
        self.expected = {name: lines for name, lines in {**self.expected, **partitions}.items() if lines}

    def content(self, at: int | None = None) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in committed_files(str(self.folder), at):
            found.setdefault(Path(name).parent.name.partition("=")[2], []).extend(Path(name).read_text().split())
        return found


WINDOWS = st.lists(
    st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from(["1", "2", "3"]), max_size=2), max_size=3), max_size=8
)


class TestPartitions:
    @given(WINDOWS, st.integers(0, 2))
    def test_an_entry_replaces_the_partitions_that_it_touches(
        self, tmp_path_factory: pytest.TempPathFactory, windows: list[dict[str, list[str]]], keep: int
    ) -> None:
        table = Table(tmp_path_factory.mktemp("table"))
        states: dict[int, dict[str, list[str]]] = {}
        for window, partitions in enumerate(windows):
            before = committed_files(str(table.folder))
            table.replace(window, partitions)
            head = table.ledger.refresh()
            assert head is not None
            states[head.seq] = dict(table.expected)
            untouched = [name for name in before if Path(name).parent.name.partition("=")[2] not in partitions]
            assert set(untouched) <= set(committed_files(str(table.folder)))
            sweep_snapshots(table.ledger, keep)
            assert table.content() == table.expected
            assert table.ledger.content_rows() == sum(map(len, table.expected.values()))
            report = Ledger.open(str(table.folder)).verify()
            assert (report.problems, report.rows) == ((), table.ledger.content_rows())
        replacing = [e.seq for e in table.ledger.entries() if e.data and e.data.new_data and e.data.new_data.replaces]
        for seq, state in states.items():
            if not [each for each in replacing if each > seq][keep:]:
                assert table.content(seq) == state, "the newest replaced states can be read"
        needed = {
            name
            for seq in states
            if not [r for r in replacing if r > seq][keep:]
            for name in committed_files(str(table.folder), seq)
        }
        assert {str(path) for path in table.folder.rglob("part-*")} == needed, "and no other file stays"

    def test_rows_that_only_come_replace_nothing(self, tmp_path: Path) -> None:
        table = Table(tmp_path)
        table.replace(0, {"a": ["1"]})
        table.replace(1, {"b": ["2"], "c": []})
        head = table.ledger.refresh()
        assert head is not None
        assert (head.carried.replaced, head.format) == (None, 1)

    def test_an_entry_may_only_take_files_away(self, tmp_path: Path) -> None:
        table = Table(tmp_path)
        table.replace(0, {"a": ["1"], "b": ["2", "3"]})
        table.replace(1, {"a": []})
        head = table.ledger.refresh()
        assert head is not None
        assert head.format == 3
        assert decode_entry(encode_entry(head), head.seq) == head
        assert (table.ledger.content_rows(), read_dataset(tmp_path).to_table()["value"].to_pylist()) == (2, ["2", "3"])
        table.replace(2, {"b": []})
        assert (table.ledger.content_rows(), read_dataset(tmp_path).count_rows()) == (0, 0)
        table.replace(3, {"b": [], "c": []})
        assert table.ledger.refresh() == table.ledger.entry(head.seq + 1), "nothing was there to be replaced"

    def test_what_is_kept_is_read_as_it_was_written(self, tmp_path: Path) -> None:
        table = Table(tmp_path)
        table.replace(0, {"a": ["1"], "b": ["2"]})
        table.ledger.append(attrs.evolve(SCHEMA, written={"kind": "text"}))
        table.replace(1, {"b": ["3"]})
        table.replace(2, {"b": ["4"]})
        found = [(file.path.rpartition("/")[2], schema) for _, schema, file in table.ledger.content_files()]
        assert found == [("part-0", 1), ("part-2", 3)]

    def test_a_file_that_was_not_there_cannot_be_kept(self, tmp_path: Path) -> None:
        table = Table(tmp_path)
        table.replace(0, {"a": ["1"], "b": ["2"]})
        table.replace(1, {"a": ["3"]})
        state = table.ledger.resume()
        old = table.ledger.files_kept(lambda file: False, newest=2)
        assert old is None
        gone = KeptFiles(schema=1, files=(table.ledger.content_files(2)[0][2],))
        new = attrs.evolve(rows(state.next_offset, 1, path="_partitions/p=a/part-1"), replaces=True, kept=(gone,))
        table.ledger.append(state.add_data(txn(2), new), check_files=False)
        (problem, *_) = table.ledger.verify(files=False).problems
        assert isinstance(problem, FileNotKept)
