"""A decided window that a sink refuses for ever: what is lost is shown, the window is left out, and the run resumes."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import deltalake
import pytest

from dagflow import StagedWindow, launch
from dagflow.errors import RowsRefused, WindowNotRejectable
from dagflow.runtime.run_folder.verify import verify_run_folder
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.storage import open_store
from dagflow.storage.records.errors import RecordDamaged
from operators import CsvFormat, DeltaWriter, FileSplitterInput, JsonLinesWriter, ScanReader, SqlWriter


def run(database: Path, statement: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        return connection.execute(statement).fetchall()


class Late(SqlWriter[Any]):
    """A sink whose table gets a constraint behind its back, once the first window is decided."""

    def publish(self, window: StagedWindow) -> None:
        path = Path(self.url.removeprefix("sqlite:///"))
        if not run(path, "SELECT 1 FROM sqlite_master WHERE name = 'late'"):
            run(path, "CREATE TABLE late (id INTEGER, n INTEGER CHECK (n < 3))")
        super().publish(window)


@pytest.fixture
def populate_dag(tmp_path: Path) -> Any:
    def populate_dag(dag: Any, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput(str(tmp_path / "in")))
        reader = dag.add_operator("reader", ScanReader(CsvFormat()))
        early = dag.add_operator("early", SqlWriter(f"sqlite:///{tmp_path}/shop.db", "early"))
        late = dag.add_operator("late", Late(f"sqlite:///{tmp_path}/shop.db", "late"))
        out = dag.add_operator("out", JsonLinesWriter(str(tmp_path / "out")))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, early.input, late.input, out.input)

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,n\n1,1\n2,5\n")
    return populate_dag


def test_a_window_that_a_sink_refuses_is_left_out(populate_dag: Any, tmp_path: Path) -> None:
    settings, database = {"run_folder": str(tmp_path / "run")}, tmp_path / "shop.db"
    for _ in range(2):
        with pytest.raises(RowsRefused) as refused:
            launch(populate_dag, settings, runner="local")
        (note,) = [each for each in refused.value.__notes__ if "--reject-window" in each]
        assert "launch with --reject-window 0. That loses 2 rows for 'late'" in note
        assert "'out', 'early' will have the window all the same" in note
    with pytest.raises(WindowNotRejectable, match=r"window 7 of .* cannot be rejected: window 0 is the one that"):
        launch(populate_dag, {**settings, "reject_window": 7}, runner="local")
    assert WindowLog.open(str(tmp_path / "run"), durable=False).rejected() == []

    (tmp_path / "in" / "b.csv").write_text("id,n\n3,2\n")
    report = launch(populate_dag, {**settings, "reject_window": 0}, runner="local").report
    assert report.warnings == ["window 0 is rejected: 2 rows are not in 'late'; 'out' and 'early' have it"]
    assert (run(database, "SELECT * FROM late"), len(run(database, "SELECT * FROM early"))) == ([(3, 2)], 3)
    checked = verify_run_folder(str(tmp_path / "run"))
    assert (checked.problems, [each.rows for each in checked.rejected]) == ((), [{"late": 2}])

    (tmp_path / "in" / "c.csv").write_text("id,n\n4,2\n")
    report = launch(populate_dag, {**settings, "reject_window": 0}, runner="local").report  # as a script that still says it
    assert (report.windows, run(database, "SELECT * FROM late")) == (1, [(3, 2), (4, 2)])
    assert sum(len(path.read_text().splitlines()) for path in (tmp_path / "out").glob("*.jsonl")) == 4


def test_a_window_that_nothing_keeps_from_its_sinks_is_not_rejected(populate_dag: Any, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.csv").write_text("id,n\n1,1\n")
    settings = {"run_folder": str(tmp_path / "run")}
    launch(populate_dag, settings, runner="local")
    with pytest.raises(WindowNotRejectable, match="no window is decided and not published"):
        launch(populate_dag, {**settings, "reject_window": 0}, runner="local")


def test_a_damaged_rejection_is_refused(populate_dag: Any, tmp_path: Path) -> None:
    settings = {"run_folder": str(tmp_path / "run")}
    with pytest.raises(RowsRefused):
        launch(populate_dag, settings, runner="local")
    store = open_store(str(tmp_path / "run"), durable=False)
    store.create("rejected/0000000000", b"{}")
    with pytest.raises(RecordDamaged):
        launch(populate_dag, settings, runner="local")
    (problem,) = verify_run_folder(str(tmp_path / "run")).problems
    assert isinstance(problem, RecordDamaged)


class Refusing(DeltaWriter[Any]):
    """A Delta table that refuses window 1 for ever."""

    def publish(self, window: StagedWindow) -> None:
        if window.number == 1 and window.staged:
            raise RowsRefused(table="orders", database="", window=1, reason="the table says no")
        super().publish(window)


def test_launches_after_a_rejection_miss_nothing_in_the_table(tmp_path: Path) -> None:
    """A Delta table knows nothing of a window without rows: its newest window is the one before."""

    def populate_dag(dag: Any, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput(str(tmp_path / "in")))
        reader = dag.add_operator("reader", ScanReader(CsvFormat()))
        table = dag.add_operator("table", Refusing(str(tmp_path / "orders")))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, table.input)

    def go(**more: Any) -> int:
        return launch(populate_dag, {"run_folder": str(tmp_path / "run"), **more}, runner="local").report.windows

    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / f"{number}.csv").write_text(f"id\n{number}\n")
        with pytest.raises(RowsRefused) if number == 1 else contextlib.nullcontext():
            assert go() == 1
    assert go(reject_window=1) == 0
    assert go() == 0  # the table is compared, also if nothing is new
    (tmp_path / "in" / "2.csv").write_text("id\n2\n")
    assert (go(), go()) == (1, 0)
    assert sorted(deltalake.DeltaTable(str(tmp_path / "orders")).to_pyarrow_table().column("id").to_pylist()) == [0, 2]
