"""Current results in partitions: an emission point writes only the partitions in which a row has changed."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dagflow import DAG, InputOperator, OutputPort, State, launch
from dagflow.errors import FileInTheWay, OperatorFailed, PlanMismatch
from dagflow.ledger import Ledger, committed_files, read_dataset
from dagflow.ledger.dataset.first_rows import first_rows
from dagflow.ledger.history import history
from dagflow.lineage.trace import row_of, trace
from dagflow.render.datasets.ledger import entry_text
from dagflow.render.style import Style
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.windows.directories import Directories
from dagflow.storage import file_system
from dagflow.storage.local.files import LocalFileSystem
from operators import CsvWriter, JsonLinesWriter, Map, ParquetWriter
from tests.operators.sinks.test_replace import Died, around
from tests.tiers import examples

WRITERS: dict[str, Callable[..., Any]] = {"csv": CsvWriter, "json": JsonLinesWriter, "parquet": ParquetWriter}


@attrs.frozen
class Row:
    place: str | None
    day: datetime.date | None
    number: int


@attrs.frozen
class Plain:
    """A row as the driver hands it to tasks: plain data."""

    place: str | None
    day: str | None
    number: int

    @classmethod
    def of(cls, row: Row) -> Plain:
        return cls(row.place, None if row.day is None else row.day.isoformat(), row.number)


def made_of(plain: Plain) -> Row:
    day = None if plain.day is None else datetime.date.fromisoformat(plain.day)
    return Row(plain.place, day, plain.number)


Change = tuple[Row, bool]
"""A row, and whether it is taken back."""


@attrs.define
class Changes(InputOperator):
    """Emits the changes of one window after the other, over all launches."""

    emits_changes: ClassVar[bool | None] = True

    windows: list[list[Change]]
    output = OutputPort[Plain]()
    given = State(0)

    def setup(self, context: Any) -> None:
        self.context = context

    def emit_tuples(self) -> None:
        if self.given < len(self.windows):
            for row, is_taken_back in self.windows[self.given]:
                (self.output.retract if is_taken_back else self.output.emit)(Plain.of(row))
            self.given += 1
            self.context.close_window()


def populate(out: Path, windows: list[list[Change]], kind: str, columns: Sequence[str], **properties: Any) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        changes = dag.add_operator("changes", Changes(windows))
        sink = dag.add_operator("sink", WRITERS[kind](str(out), partition_columns=columns, **properties))
        rows = dag.add_operator("rows", Map[Plain, Row](made_of))
        dag.set_port_attributes(rows.input, partition_by="number")  # into tasks: the driver hands on plain data only
        dag.add_stream("changes", changes.output, rows.input)
        dag.add_stream("rows", rows.output, sink.input)

    return populate_dag


def run(
    out: Path,
    windows: list[list[Change]],
    kind: str = "parquet",
    columns: Sequence[str] = ("place",),
    slots: int = 1,
    runner: str = "local",
    **properties: Any,
) -> Any:
    in_launch = {"slots": slots, "retry_delay": 0.01}
    return launch(populate(out, windows, kind, columns, **properties), in_launch, runner=runner).wait()


def rows_of(out: Path) -> Counter[Row]:
    rows = read_dataset(out).to_table().to_pylist()
    return Counter(Row(row["place"], row["day"], row["number"]) for row in rows)


def files_of(out: Path) -> dict[str, list[str]]:
    """Return the names of the content's files by their folders, but of one without rows."""
    files: dict[str, list[str]] = {}
    for _, _, file in Ledger.open(str(out)).content_files():
        folder, _, last = file.path.removeprefix("_partitions/").rpartition("/")
        if file.rows:
            files.setdefault(folder, []).append(last)
    return files


def current(out: Path) -> dict[str, bytes]:
    """Return the files that a reader finds who knows nothing of ledgers, by their names."""
    folder = (out / "current").resolve(strict=True)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("part-*")}


def committed(out: Path) -> dict[str, bytes]:
    return {name.removeprefix(f"{out}/_partitions/"): Path(name).read_bytes() for name in committed_files(str(out))}


def files_in(out: Path) -> set[str]:
    return {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and "_dagflow" not in path.parts}


def net(window: list[Change]) -> Counter[Row]:
    """Return the changes of a window, without rows that both come and are taken back."""
    counts: Counter[Row] = Counter()
    for row, is_taken_back in window:
        counts[row] += -1 if is_taken_back else 1
    return Counter({row: count for row, count in counts.items() if count})


def after(windows: list[list[Change]]) -> Counter[Row]:
    return +net([change for window in windows for change in window])


PLACES = ["lund", "a/b", "å=%ö", "", None, "A", "a", " .x"]
ROWS = st.builds(
    Row,
    st.sampled_from(PLACES),
    st.sampled_from([None, datetime.date(2026, 1, 31), datetime.date(1, 1, 1)]),
    st.integers(0, 1),
)


@st.composite
def launches(draw: st.DrawFn) -> list[list[list[Change]]]:
    """Draw the windows of launches: rows that come, and rows that are taken back of those that stand."""
    standing: list[Row] = []
    drawn: list[list[list[Change]]] = []
    for _ in range(draw(st.integers(1, 4))):
        drawn.append([])
        for _ in range(draw(st.integers(1, 2))):
            window: list[Change] = []
            for _ in range(draw(st.integers(1, 4))):
                if standing and draw(st.booleans()):
                    window.append((standing.pop(draw(st.integers(0, len(standing) - 1))), True))
                else:
                    standing.append(draw(ROWS))
                    window.append((standing[-1], False))
            drawn[-1].append(window)
    return drawn


KINDS = [pytest.param(kind, marks={"parquet": (), "csv": pytest.mark.full}.get(kind, pytest.mark.nightly)) for kind in WRITERS]


class TestLaw:
    @pytest.mark.parametrize("kind", KINDS)
    @given(
        drawn=launches(), columns=st.sampled_from([("place",), ("day", "place")]), slots=st.lists(st.sampled_from([1, 1, 1, 3]))
    )
    @settings(max_examples=examples(20), deadline=None, phases=[Phase.generate])
    def test_the_result_is_that_of_all_changes_and_untouched_partitions_stay(
        self,
        kind: str,
        tmp_path_factory: pytest.TempPathFactory,
        drawn: list[list[list[Change]]],
        columns: tuple[str, ...],
        slots: list[int],
    ) -> None:
        out = tmp_path_factory.mktemp("out")
        windows: list[list[Change]] = []
        for number, new in enumerate(drawn):
            before = files_of(out) if number else {}
            windows += new
            run(out, windows, kind, columns, slots=(slots + [1] * len(drawn))[number])
            standing, files = after(windows), files_of(out)
            assert rows_of(out) == standing
            touched = {partition_of(row, columns) for window in new for row in net(window)}
            stands = {partition_of(row, columns) for row in standing}
            assert len(files) == len(stands), "a partition without rows has no files"
            assert sum(before.get(folder) == names for folder, names in files.items()) == len(stands - touched)
            report = Ledger.open(str(out)).verify()
            assert (report.problems, report.rows) == ((), standing.total())
            if committed_files(str(out)):
                assert current(out) == committed(out)
                assert len(list((out / "_snapshots").iterdir())) <= 3


def partition_of(row: Row, columns: Sequence[str]) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in columns)


ONE, TWO, THREE = (Row(place, datetime.date(2026, 1, 1), 0) for place in ("one", "two", "three"))
MOVED = attrs.evolve(ONE, place="two", number=1)
WINDOWS: list[list[Change]] = [
    [(ONE, False), (TWO, False), (THREE, False)],
    [(ONE, True), (MOVED, False)],
    [(MOVED, True), (TWO, True), (ONE, False)],
    [(ONE, True), (THREE, True)],
    [(TWO, False)],
]
"""The windows of five launches: a row moves, a partition becomes empty, and another one; then all, and one row comes."""


class TestLaunches:
    def test_an_entry_keeps_what_it_does_not_touch(self, tmp_path: Path) -> None:
        for number in range(1, 3):
            run(tmp_path, WINDOWS[:number])
        entry = next(Ledger.open(str(tmp_path)).data_entries())
        assert entry.data is not None
        assert entry.data.new_data is not None
        assert [file.path.split("/")[1] for file in entry.data.new_data.files] == ["place=two"]
        assert [file.path.split("/")[1] for file in entry.data.new_data.kept_files] == ["place=three"]
        text = entry_text(next(history(Ledger.open(str(tmp_path)))), str(tmp_path), Style())
        assert "in the place of all earlier rows but those of 1 file" in text

    def test_new_partitions_replace_nothing(self, tmp_path: Path) -> None:
        """So applications that read the dataset continue."""
        run(tmp_path, [[(ONE, False)]])
        run(tmp_path, [[(ONE, False)], [(TWO, False), (THREE, False)]])
        head = Ledger.open(str(tmp_path)).refresh()
        assert head is not None
        assert (head.carried.replaced, current(tmp_path)) == (None, committed(tmp_path))

    def test_partitions_that_change_before_the_emission_point_are_written_with_it(self, tmp_path: Path) -> None:
        run(tmp_path, WINDOWS[:1])
        before = files_of(tmp_path)
        in_launch = {"slots": 1, "max_windows": 1}
        for _ in range(2):
            launch(populate(tmp_path, WINDOWS[:3], "parquet", ["place"]), in_launch, runner="local").wait()
        assert files_of(tmp_path) == before
        run(tmp_path, WINDOWS[:3])
        assert rows_of(tmp_path) == after(WINDOWS[:3])
        assert files_of(tmp_path)["place=three"] == before["place=three"]

    def test_replaced_files_go_with_their_snapshots(self, tmp_path: Path) -> None:
        for number in range(1, len(WINDOWS) + 1):
            run(tmp_path, WINDOWS[:number], mode="replace", keep_replaced=1)
        entries = [entry.seq for entry in Ledger.open(str(tmp_path)).data_entries()]
        assert [read_dataset(tmp_path, as_of=seq).count_rows() for seq in entries[:2]] == [1, 0]
        assert {name for name in files_in(tmp_path) if name.startswith("_partitions")} == {
            file.path for seq in entries[:2] for _, _, file in Ledger.open(str(tmp_path)).content_files(seq)
        }
        assert len(list((tmp_path / "_snapshots").iterdir())) == 2

    def test_other_partitions_are_refused(self, tmp_path: Path) -> None:
        run(tmp_path, WINDOWS[:1])
        with pytest.raises(PlanMismatch, match=r"sink\.partition_columns = \(place\)"):
            run(tmp_path, WINDOWS[:2], columns=["day"])

    def test_starting_over_leaves_nothing(self, tmp_path: Path) -> None:
        for number in range(1, 3):
            run(tmp_path, WINDOWS[:number])
        launch(populate(tmp_path, [[(THREE, False)]], "parquet", ["place"]), {"slots": 1}, runner="local", fresh=True).wait()
        assert rows_of(tmp_path) == Counter([THREE])
        assert len(files_in(tmp_path)) == 2, "the file, and its link"

    def test_a_row_is_traced(self, tmp_path: Path) -> None:
        for number in range(1, 3):
            run(tmp_path, WINDOWS[:number])
        (three,) = (name for name in current(tmp_path) if "three" in name)
        offset = row_of(str(tmp_path / "current" / three), 1)
        assert "no longer" not in " ".join(trace(str(tmp_path), offset).remarks)
        replaced = next(file for _, _, file in Ledger.open(str(tmp_path)).content_files(4) if "two" in file.path)
        assert "or one before it, replaced it" in trace(str(tmp_path), replaced.interval.start).remarks[0]

    def test_the_first_rows(self, tmp_path: Path) -> None:
        for number in range(1, 3):
            run(tmp_path, WINDOWS[:number])
        rows = first_rows(str(tmp_path))
        assert (rows.total, sorted(rows.table["place"].to_pylist())) == (3, ["three", "two", "two"])
        (newest,) = Ledger.open(str(tmp_path)).resume().windows.values()
        assert first_rows(str(tmp_path), window=newest).total == 2

    def test_a_name_that_is_no_link_is_left_alone(self, tmp_path: Path) -> None:
        run(tmp_path, WINDOWS[:1])
        (tmp_path / "current").unlink()
        (tmp_path / "current").mkdir()
        with pytest.raises(FileInTheWay):
            run(tmp_path, WINDOWS[:2])
        (tmp_path / "current").rmdir()
        run(tmp_path, WINDOWS[:2])
        assert current(tmp_path) == committed(tmp_path)

    def test_without_links_there_is_no_current(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run(tmp_path, WINDOWS[:1])
        monkeypatch.setattr(LocalFileSystem, "link", lambda *_: False)
        run(tmp_path, WINDOWS[:2])
        assert not os.path.lexists(tmp_path / "current")
        assert rows_of(tmp_path) == after(WINDOWS[:2])

    def test_object_stores_have_no_links(self) -> None:
        out: Any = f"memory://{uuid.uuid4().hex}/out"
        for number in range(1, len(WINDOWS) + 1):
            run(out, WINDOWS[:number])
            assert Ledger.open(out).content_rows() == after(WINDOWS[:number]).total()
            assert all(file_system(out).exists(name) for name in committed_files(out))
            assert not file_system(out).exists(f"{out}/current")
            assert Ledger.open(out).verify().is_clean

    @pytest.mark.spark
    @pytest.mark.usefixtures("spark_session")
    def test_spark_does_the_same(self, tmp_path: Path) -> None:
        for number in range(1, len(WINDOWS) + 1):
            before = files_of(tmp_path) if number > 1 else {}
            run(tmp_path, WINDOWS[:number], slots=2, runner="spark")
            assert rows_of(tmp_path) == after(WINDOWS[:number])
            if number in (2, 3):
                assert files_of(tmp_path)["place=three"] == before["place=three"]


STEPS: dict[str, tuple[Any, str, bool]] = {
    "after the decision": (WindowLog, "decide", False),
    "after one name": (LocalFileSystem, "rename", False),
    "before a link": (LocalFileSystem, "link", True),
    "after a link": (LocalFileSystem, "link", False),
    "after the name of the snapshot": (LocalFileSystem, "point", False),
    "before an entry": (Ledger, "append", True),
    "after an entry": (Ledger, "append", False),
    "before the mark": (WindowLog, "done", True),
    "while files are removed": (LocalFileSystem, "remove", False),
    "after sweeping": (Directories, "sweep", False),
}
QUICK = ("after a link", "before an entry", "while files are removed")
KILLS = [
    pytest.param(step, number, marks=() if step in QUICK and number == 1 else pytest.mark.full)
    for step in STEPS
    for number in (0, 1, 3)
]


@pytest.mark.parametrize(("step", "call"), KILLS)
def test_kills(step: str, call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, is_before = STEPS[step]
    for number in range(1, len(WINDOWS) + 1):
        calls = itertools.count()

        def die(calls: Iterator[int] = calls) -> None:
            if next(calls) == call:
                raise Died

        with monkeypatch.context() as patch:
            around(place, name, patch, *((die, lambda: None) if is_before else (lambda: None, die)))
            with contextlib.suppress(Died, OperatorFailed):
                run(tmp_path, WINDOWS[:number], mode="replace", keep_replaced=1)
        before = files_of(tmp_path) if number > 1 else {}
        if os.path.lexists(tmp_path / "current"):
            assert len(current(tmp_path)) > 0
        run(tmp_path, WINDOWS[:number], mode="replace", keep_replaced=1)
        assert rows_of(tmp_path) == after(WINDOWS[:number])
        assert current(tmp_path) == committed(tmp_path)
        assert Ledger.open(str(tmp_path)).verify().is_clean
        if number in (2, 3):
            assert files_of(tmp_path)["place=three"] == before["place=three"]
    assert len(list((tmp_path / "_snapshots").iterdir())) == 2
    ledger = Ledger.open(str(tmp_path))
    needed = {file.path for entry in list(ledger.data_entries())[:2] for _, _, file in ledger.content_files(entry.seq)}
    assert {name for name in files_in(tmp_path) if name.startswith("_partitions")} == needed
