"""Sinks of files whose windows replace each other: the newest result under one name, whole, whatever happens."""

from __future__ import annotations

import contextlib
import itertools
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import DAG, InputOperator, OutputPort, State, WindowState, launch
from dagflow.errors import FileInTheWay, ObjectMissing, OperatorFailed
from dagflow.ledger import Ledger, committed_files, read_dataset, snapshots
from dagflow.ledger.dataset.first_rows import first_rows
from dagflow.ledger.history import history
from dagflow.lineage.trace import row_of, trace
from dagflow.render.datasets.ledger import LogHead, entry_text, log_head, log_lines
from dagflow.render.style import Style
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.windows.directories import Directories
from dagflow.runtime.windows.errors import ModesDiffer
from dagflow.storage import file_system
from dagflow.storage.local.files import LocalFileSystem
from dagflow.testing import Window, run_operator
from operators import CsvWriter, DeltaWriter, JsonLinesWriter, Map, ParquetWriter, RecordWriter
from tests.of_windows import OfWindows


@attrs.frozen
class Row:
    kind: str
    number: int


def row(number: int) -> Row:
    return Row("even" if number % 2 == 0 else "odd", number)


@attrs.define
class Numbers(InputOperator):
    """Emits the numbers of one window after the other, over all launches."""

    windows: list[list[int]]
    output = OutputPort[int]()
    given = State(0)

    def setup(self, context: Any) -> None:
        self.context = context

    def emit_tuples(self) -> None:
        if self.given < len(self.windows):
            self.output.emit_all(self.windows[self.given])
            self.given += 1
            self.context.close_window()


@attrs.define
class Titled(RecordWriter[str]):
    """Writes a title also where nothing follows it."""

    lines = WindowState[list[str]](factory=list)

    def end_window(self) -> None:
        file = self._context.create_file(self.path, self.part_name)
        file.write(b"title\n" + b"".join(line.encode() + b"\n" for line in self.lines))
        file.records(len(self.lines))
        file.close()

    @RecordWriter.input.process
    def keep(self, line: str) -> None:
        self.lines.append(line)


WRITERS: dict[str, Callable[..., Any]] = {
    "csv": CsvWriter[Row],
    "json": JsonLinesWriter[Row],
    "parquet": ParquetWriter[Row],
}
SNAPSHOTS = [[0, 1, 2], [10, 11], [], [20, 21, 22, 23], [30]]
"""Rows of windows. The window without rows reads a number that a filter drops."""


def populate(out: Path, windows: list[list[int]], writer: Callable[..., Any], **properties: Any) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        numbers = dag.add_operator("numbers", Numbers([window or [-1] for window in windows]))
        kept = dag.add_operator("kept", OfWindows[int](lambda number: number >= 0))
        rows = dag.add_operator("rows", Map[int, Row](row))
        sink = dag.add_operator("sink", writer(str(out), **properties))
        dag.add_stream("read", numbers.output, kept.input)
        dag.add_stream("kept", kept.output, rows.input)
        dag.add_stream("rows", rows.output, sink.input)

    return populate_dag


def run(out: Path, windows: list[list[int]] = SNAPSHOTS, kind: str = "csv", mode: str = "replace", **properties: Any) -> Any:
    settings = {"slots": 1, "retry_delay": 0.01}
    return launch(populate(out, windows, WRITERS[kind], mode=mode, **properties), settings, runner="local").wait()


def numbers_of(out: Path) -> list[int]:
    return sorted(read_dataset(out).to_table()["number"].to_pylist())


def current(out: Path) -> list[int]:
    """Read the rows as a reader that knows nothing of ledgers, and resolves the name once."""
    folder = (out / "current").resolve(strict=True)
    return sorted(int(line.split(",")[1]) for path in folder.rglob("*.csv") for line in path.read_text().splitlines()[1:])


def kept(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "_snapshots").iterdir())


class TestContent:
    @pytest.mark.parametrize("partition_columns", [[], ["kind"]])
    @pytest.mark.parametrize("kind", WRITERS)
    def test_the_newest_window_is_all(self, kind: str, partition_columns: list[str], tmp_path: Path) -> None:
        run(tmp_path, kind=kind, partition_columns=partition_columns)
        assert numbers_of(tmp_path) == [30]
        assert read_dataset(tmp_path).to_table().column_names == ["kind", "number"]
        assert os.readlink(tmp_path / "current") == "_snapshots/w000004"
        assert committed_files(str(tmp_path)) == [str(path) for path in (tmp_path / "_snapshots/w000004").rglob("part-*")]
        assert first_rows(str(tmp_path)).total == 1
        report = Ledger.open(str(tmp_path)).verify()
        assert (report.rows, report.problems) == (1, ())

    @pytest.mark.parametrize(
        ("target", "reason"),
        [
            ("_snapshots/w000001", "current leads to _snapshots/w000001, and the content is _snapshots/w000004"),
            ("/tmp", "current leads to /tmp, and the content is _snapshots/w000004"),
            (None, "current is missing, and the content is _snapshots/w000004"),
            ("", "current leads nowhere: dagflow did not make it, and the content is _snapshots/w000004"),
        ],
    )
    def test_verify_names_a_current_that_leads_elsewhere(self, target: str | None, reason: str, tmp_path: Path) -> None:
        run(tmp_path)
        link = tmp_path / "current"
        link.unlink()
        if target:
            link.symlink_to(target)
        elif target is not None:
            link.write_text("a copy")
        (problem,) = Ledger.open(str(tmp_path)).verify().problems
        remedy = f"remove {link}, then ln -s" if target == "" else "ln -sfn"
        assert str(problem) == f"{tmp_path}, entry 7: {reason}\n  help: {remedy} _snapshots/w000004 {link}"
        assert Ledger.open(str(tmp_path)).verify(files=False).is_clean

    def test_verify_knows_launches_that_died_before_their_entry(self, tmp_path: Path) -> None:
        run(tmp_path)
        (tmp_path / "current").unlink()
        (tmp_path / "current").symlink_to("_snapshots/w000005")
        assert Ledger.open(str(tmp_path)).verify().is_clean

    def test_lines(self, tmp_path: Path) -> None:
        run_operator(RecordWriter(str(tmp_path), mode="replace"), {"input": [Window(["a", "b"]), Window(["c"])]})
        assert [path.read_text() for path in (tmp_path / "current").iterdir()] == ["c\n"]

    def test_a_window_without_rows_changes_nothing(self, tmp_path: Path) -> None:
        run(tmp_path, SNAPSHOTS[:3])
        assert (numbers_of(tmp_path), current(tmp_path)) == ([10, 11], [10, 11])
        assert kept(tmp_path) == ["w000000", "w000001"]

    def test_files_without_rows_replace_nothing(self, tmp_path: Path) -> None:
        run_operator(Titled(str(tmp_path), mode="replace"), {"input": [Window(["a"]), Window(list[str]())]})
        assert [path.read_text() for path in (tmp_path / "current").iterdir()] == ["title\na\n"]

    @pytest.mark.parametrize("keep_replaced", [None, 1, 3])
    def test_as_many_are_kept_as_were_asked_for(self, keep_replaced: int | None, tmp_path: Path) -> None:
        run(tmp_path, keep_replaced=keep_replaced)
        assert len(kept(tmp_path)) == 1 + (keep_replaced or 2)

    def test_a_kept_snapshot_can_still_be_read(self, tmp_path: Path) -> None:
        run(tmp_path)
        entries = [entry.seq for entry in Ledger.open(str(tmp_path)).data_entries()]
        then = [read_dataset(tmp_path, as_of=entry).to_table()["number"].to_pylist() for entry in entries[:3]]
        assert then == [[30], [20, 21, 22, 23], [10, 11]]
        with pytest.raises(ObjectMissing, match=f"Entry {entries[0]} has replaced them since"):
            read_dataset(tmp_path, as_of=entries[3])

    def test_starting_over_begins_with_nothing(self, tmp_path: Path) -> None:
        run(tmp_path)
        again = populate(tmp_path, [[7]], WRITERS["csv"], mode="replace")
        launch(again, {"slots": 1}, runner="local", fresh=True).wait()
        assert (numbers_of(tmp_path), current(tmp_path), kept(tmp_path)) == ([7], [7], ["w000000"])


class TestProperties:
    @pytest.mark.parametrize(
        ("sink", "problem"),
        [
            (lambda: CsvWriter("out", keep_replaced=2), "keep_replaced is of no use here"),
            (lambda: CsvWriter("out", mode="replace", keep_replaced=0), "keep_replaced is 0, and must be at least 1"),
            (lambda: DeltaWriter("out", "replace", keep_replaced=1), "keep_replaced is of no use"),
        ],
    )
    def test_contradictions(self, sink: Callable[[], Any], problem: str) -> None:
        with pytest.raises(ValueError, match=problem):
            sink().check()

    def test_files_have_no_keys(self) -> None:
        with pytest.raises(ValueError, match="must be 'append', 'replace' or 'changelog'"):
            CsvWriter("out", mode="upsert")  # type: ignore[arg-type]

    def test_two_sinks_of_a_folder_agree(self, tmp_path: Path) -> None:
        def populate_dag(dag: DAG, conf: Any) -> None:
            numbers = dag.add_operator("numbers", Numbers([[1]]))
            rows = dag.add_operator("rows", Map[int, Row](row))
            sinks = [
                dag.add_operator(mode, CsvWriter[Row](str(tmp_path), mode=mode))  # type: ignore[arg-type]
                for mode in ("append", "replace")
            ]
            dag.add_stream("read", numbers.output, rows.input)
            dag.add_stream("rows", rows.output, *(sink.input for sink in sinks))

        with pytest.raises(ModesDiffer, match="sinks 'append' and 'replace' have another mode"):
            launch(populate_dag, runner="local").wait()


class TestOtherModes:
    def test_rows_are_added_to_the_last_snapshot(self, tmp_path: Path) -> None:
        run(tmp_path, SNAPSHOTS[:2])
        run(tmp_path, SNAPSHOTS, mode="append")
        assert numbers_of(tmp_path) == [10, 11, 20, 21, 22, 23, 30]
        assert not os.path.lexists(tmp_path / "current"), "it would lead to a part of the content"
        assert Ledger.open(str(tmp_path)).verify().is_clean
        run(tmp_path, [*SNAPSHOTS, [40]])
        assert (numbers_of(tmp_path), current(tmp_path)) == ([40], [40])

    def test_rows_that_were_added_are_a_snapshot(self, tmp_path: Path) -> None:
        run(tmp_path, SNAPSHOTS[:2], mode="append")
        run(tmp_path, SNAPSHOTS[:4], keep_replaced=1)
        assert (numbers_of(tmp_path), len(list(tmp_path.glob("part-*")))) == ([20, 21, 22, 23], 2)
        run(tmp_path, SNAPSHOTS, keep_replaced=1)
        assert (numbers_of(tmp_path), list(tmp_path.glob("part-*"))) == ([30], [])
        assert Ledger.open(str(tmp_path)).verify().is_clean

    @pytest.mark.parametrize("what", ["a folder", "a link elsewhere"])
    def test_a_name_that_is_taken_is_left_alone(self, what: str, tmp_path: Path) -> None:
        run(tmp_path / "out", SNAPSHOTS[:1], mode="append")
        (tmp_path / "out" / "current").mkdir() if what == "a folder" else (tmp_path / "out" / "current").symlink_to("/usr")
        with pytest.raises(FileInTheWay, match=r"out/current"):
            run(tmp_path / "out", SNAPSHOTS[:2])
        (tmp_path / "out" / "current").rmdir() if what == "a folder" else (tmp_path / "out" / "current").unlink()
        run(tmp_path / "out", SNAPSHOTS[:2])
        assert numbers_of(tmp_path / "out") == [10, 11]


BEFORE, AFTER = True, False
STEPS: dict[str, tuple[Any, str, bool]] = {
    "after the decision": (WindowLog, "decide", AFTER),
    "after one name": (LocalFileSystem, "rename", AFTER),
    "after all names": (Directories, "give_names", AFTER),
    "before the name of the snapshot": (os, "symlink", BEFORE),
    "between link and name": (os, "symlink", AFTER),
    "after the name of the snapshot": (LocalFileSystem, "point", AFTER),
    "before an entry": (Ledger, "append", BEFORE),
    "after an entry": (Ledger, "append", AFTER),
    "before the mark": (WindowLog, "done", BEFORE),
    "after the mark": (WindowLog, "done", AFTER),
    "before sweeping": (snapshots, "_is_there", BEFORE),
    "before a file is swept": (snapshots, "file_system", AFTER),
    "after sweeping": (Directories, "sweep", AFTER),
}


class Died(BaseException):
    """Passes all handlers of errors, as a kill does."""


def around(place: Any, name: str, monkeypatch: pytest.MonkeyPatch, before: Callable[[], None], after: Callable[[], None]) -> None:
    function = getattr(place, name)

    def call(*arguments: Any, **options: Any) -> Any:
        before()
        result = function(*arguments, **options)
        after()
        return result

    monkeypatch.setattr(place, name, call)


def kill_at(step: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launch dies at that call of the step's function."""
    place, name, is_before = STEPS[step]
    calls = itertools.count()

    def die() -> None:
        if next(calls) == number:
            raise Died

    around(place, name, monkeypatch, *((die, lambda: None) if is_before else (lambda: None, die)))


QUICK = ("between link and name", "before an entry", "before a file is swept")
KILLS = [
    pytest.param(step, number, marks=() if step in QUICK and number == 1 else pytest.mark.full)
    for step in STEPS
    for number in (0, 1, 2, 5)
]


class TestKills:
    @pytest.mark.parametrize(("step", "number"), KILLS)
    def test_every_step(self, step: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for again in range(2):
            with monkeypatch.context() as patch:
                kill_at(step, number + again, patch)
                with contextlib.suppress(Died, OperatorFailed):  # of later calls there are fewer where more is done already
                    run(tmp_path, keep_replaced=1, max_file_rows=2)
            if os.path.lexists(tmp_path / "current"):
                assert current(tmp_path) in SNAPSHOTS
        run(tmp_path, keep_replaced=1, max_file_rows=2)
        assert (numbers_of(tmp_path), current(tmp_path)) == ([30], [30])
        assert len(kept(tmp_path)) == 2
        assert {path.name for path in tmp_path.iterdir()} == {"_dagflow", "_snapshots", "current"}
        assert Ledger.open(str(tmp_path)).verify().is_clean
        entries = [entry.data for entry in Ledger.open(str(tmp_path)).entries() if entry.data is not None]
        assert [entry.txn.window_id for entry in entries if entry.new_data is not None] == [0, 1, 3, 4]

    def test_readers_see_one_snapshot_or_the_next(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        plain: list[list[int]] = []
        of_the_ledger: list[list[int]] = []

        def look() -> None:
            if plain or os.path.lexists(tmp_path / "current"):  # once it is there, it stays
                plain.append(current(tmp_path))
            if Ledger.open(str(tmp_path)).resume().last_offset is not None:
                of_the_ledger.append(numbers_of(tmp_path))

        for place, name in _touching():
            around(place, name, monkeypatch, look, look)
        run(tmp_path, keep_replaced=1, max_file_rows=1)
        rows = [snapshot for snapshot in SNAPSHOTS if snapshot]
        for readings in (plain, of_the_ledger):
            assert [reading for reading, _ in itertools.groupby(readings)] == rows

    def test_an_old_launch_that_wakes_up_does_not_turn_back(self, tmp_path: Path) -> None:
        run(tmp_path)
        decided = WindowLog.open(str(tmp_path / "_dagflow"), durable=False).read_decision(3)
        assert decided is not None
        Directories(durable=False)._point(str(tmp_path), 3)
        assert current(tmp_path) == [30]


def _touching() -> Iterator[tuple[Any, str]]:
    yield from ((LocalFileSystem, name) for name in ("rename", "point", "remove", "remove_tree"))
    yield from ((os, name) for name in ("symlink", "replace"))
    yield Ledger, "append"


def test_object_stores_have_a_file_that_names_the_snapshot() -> None:
    out: Any = f"memory://{uuid.uuid4().hex}/out"
    for given in (SNAPSHOTS[:2], SNAPSHOTS):
        launch(populate(out, given, WRITERS["csv"], mode="replace"), {"slots": 1}, runner="local").wait()
        newest = f"_snapshots/w{len(given) - 1:06d}"
        with file_system(out).open(f"{out}/current") as reader:
            assert reader.read().decode() == f"{newest}\n"
        (file,) = committed_files(out)
        assert file == f"{out}/{newest}/part-{len(given) - 1:06d}-0000.csv"
    kept_ones = [status.path for status in file_system(out).scan(f"{out}/_snapshots") if list(file_system(out).scan(status.path))]
    assert sorted(window.rpartition("/")[2] for window in kept_ones) == ["w000001", "w000003", "w000004"]
    assert Ledger.open(out).verify().is_clean
    file_system(out).remove_tree(out)


def test_the_log_says_that_rows_were_replaced(tmp_path: Path) -> None:
    run(tmp_path)
    ledger, style = Ledger.open(str(tmp_path)), Style()
    newest = next(iter(history(ledger)))
    head = LogHead.of(ledger, str(tmp_path))
    assert log_head(head, style).endswith(", 1 row")
    assert log_lines([newest], head, style)[1].endswith("; replaces all rows")
    assert "[9, 9]: 1 row, 20 B, in the place of all earlier rows" in entry_text(newest, str(tmp_path), style)


def test_rows_are_traced_by_the_name_of_the_snapshot(tmp_path: Path) -> None:
    run(tmp_path)
    (newest,) = (tmp_path / "current").iterdir()
    assert row_of(str(newest), 1) == 9
    assert trace(str(tmp_path), 9).remarks == ()
    before = trace(str(tmp_path), 8)
    assert before.file.path == "_snapshots/w000003/part-000003-0000.csv"
    assert [remark.partition(":")[0] for remark in before.remarks] == ["the row is no longer in the dataset"]


def test_the_content_is_what_a_table_says(tmp_path: Path) -> None:
    run(tmp_path, kind="parquet")
    assert read_dataset(tmp_path).to_table().equals(pa.table({"kind": ["even"], "number": [30]}))
