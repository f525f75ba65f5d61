"""Entries without bytes in the log of a Delta table: damage, or what a power cut has left of the newest commit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from dagflow.errors import TableLogDamaged
from operators import DeltaWriter
from operators.extras.delta_log import check_log, mend_log
from operators.tables.delta_history import DeltaHistory
from tests.operators.sinks.restored import Subject


def entry(table: Path, version: int) -> Path:
    """The file of a version."""
    return table / "_delta_log" / f"{version:020d}.json"


def written(table: Path, versions: int) -> Path:
    """A table with a row in each version."""
    for number in range(versions):
        deltalake.write_deltalake(str(table), pa.table({"n": [number]}), mode="append")
    return table


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("left", [b"", bytes(100)], ids=["no bytes", "zeros"])
def test_an_entry_without_bytes_is_damage(tmp_path: Path, version: int, left: bytes) -> None:
    table = str(written(tmp_path / "t", 4))
    check_log("sink", table, 3)
    entry(tmp_path / "t", version).write_bytes(left)
    with pytest.raises(
        TableLogDamaged, match=f"{version:020d}.json has no bytes or only zeros, and rows of that version are missing"
    ):
        check_log("sink", table, 3)


def test_versions_before_a_checkpoint_are_not_looked_at(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 4)
    deltalake.DeltaTable(table).create_checkpoint()
    os.truncate(entry(table, 1), 0)
    check_log("sink", str(table), 3)


def test_what_a_power_cut_has_left_of_the_newest_commit_is_removed(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 4)
    os.truncate(entry(table, 3), 0)
    mend_log(str(table), 3)
    assert entry(table, 3).exists()  # the writer knows that it was committed
    mend_log(str(table), 2)
    assert deltalake.DeltaTable(table).version() == 2
    os.truncate(entry(table, 1), 0)
    mend_log(str(table), 0)
    assert entry(table, 1).exists()  # it is not the newest


def test_a_table_opens_again_whose_checkpoint_has_no_bytes(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 4)
    deltalake.DeltaTable(table).create_checkpoint()
    [checkpoint] = table.glob("_delta_log/*.parquet")
    os.truncate(checkpoint, 0)
    with pytest.raises(deltalake.exceptions.DeltaError):
        deltalake.DeltaTable(table)
    mend_log(str(table), 3)
    assert deltalake.DeltaTable(table).version() == 3


@pytest.mark.parametrize("mode", ["upsert", "replace"])
def test_a_launch_after_a_power_cut_in_a_commit_commits_again(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Subject(f"delta_{mode}", tmp_path / "root", tmp_path / "copies")
    subject.deliver(0)
    subject.launch()

    def cut(self: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    subject.deliver(1)
    with monkeypatch.context() as patch:
        patch.setattr("operators.sinks.delta.log.DeltaLog.secure", cut)
        with pytest.raises(KeyboardInterrupt):
            subject.launch()
    newest = max((tmp_path / "root" / "table" / "_delta_log").glob("*.json"))
    os.truncate(newest, 0)
    subject.launch()
    assert subject.wrong_rows() is None
    assert newest.stat().st_size


def test_a_launch_refuses_a_log_with_an_older_entry_without_bytes(tmp_path: Path) -> None:
    subject = Subject("delta_append", tmp_path / "root", tmp_path / "copies")
    for number in range(3):
        subject.deliver(number)
        subject.launch()
    os.truncate(entry(tmp_path / "root" / "table", 1), 0)
    with pytest.raises(TableLogDamaged):
        subject.launch()


def test_an_input_refuses_it_too(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 2)
    position = DeltaHistory.open("orders", str(table), {}).start(None)
    written(table, 2)
    os.truncate(entry(table, 2), 0)
    history = DeltaHistory.open("orders", str(table), {})
    with pytest.raises(TableLogDamaged, match=r"orders: the log of .* is damaged"):
        history.after(position)
    with pytest.raises(TableLogDamaged):
        history.start(None)


def test_checkpoints_survive_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr("operators.sinks.delta.log.sync_local", synced.extend)
    monkeypatch.setattr("operators.sinks.delta.log._INTERVAL", 2)
    subject = Subject("delta_append", tmp_path / "root", tmp_path / "copies")
    for number in range(3):
        subject.deliver(number)
        subject.launch()
    checkpoints = sorted((tmp_path / "root" / "table" / "_delta_log").glob("*.checkpoint.parquet"))
    assert checkpoints
    assert {str(each) for each in checkpoints} <= set(synced)
    assert DeltaWriter(tmp_path / "root" / "table").open_table() is not None


@pytest.mark.parametrize("mode", ["append", "upsert", "replace"])
def test_all_versions_of_a_new_table_survive_a_power_cut(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[str] = set()
    monkeypatch.setattr("operators.sinks.delta.log.sync_local", synced.update)
    monkeypatch.setattr("operators.sinks.delta.appends.sync_local", synced.update, raising=False)
    subject = Subject(f"delta_{mode}", tmp_path / "root", tmp_path / "copies")
    for number in range(2):
        subject.deliver(number)
        subject.launch()
    own = {"append": 1}.get(mode, 3)  # of mode append, those behind the first are written by the sink itself, and synced there
    log = sorted(str(each) for each in (tmp_path / "root" / "table" / "_delta_log").glob("*.json"))
    assert log[:own]
    assert set(log[:own]) <= synced
