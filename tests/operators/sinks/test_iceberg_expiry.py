"""IcebergWriter: which snapshots it expires, and what happens where the catalog refuses."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import BadRequestError
from pyiceberg.table.update.snapshot import ExpireSnapshots

from operators.sinks.iceberg import snapshots
from tests.operators.sinks.test_iceberg_writer import Make, batch, make, publish, rows, table_of

__all__ = ["make"]  # a fixture


def numbers(table: Any) -> list[str]:
    """The windows of the snapshots that the table has."""
    return [each.summary["dagflow.window"] for each in table.snapshots()]


def set_property(table: Any, name: str, value: str) -> None:
    with table.transaction() as transaction:
        transaction.set_properties({name: value})


def test_a_catalog_that_refuses_to_expire_snapshots_does_not_end_the_run(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried = []

    def refuse(update: Any) -> None:
        tried.append(update)
        raise BadRequestError("remove-snapshots is not supported")

    monkeypatch.setattr(ExpireSnapshots, "_commit", refuse)
    sink = make(keep_snapshots=1)
    with caplog.at_level(logging.WARNING):
        for number in range(4):
            publish(sink, number, batch(n=[number]))
    assert numbers(table_of(sink)) == ["0", "1", "2", "3"]
    assert rows(sink) == [(n,) for n in range(4)]
    [record] = [each for each in caplog.records if each.name == "dagflow.iceberg"]
    assert "shop.rows could not be expired" in record.getMessage()
    assert "BadRequestError: remove-snapshots is not supported" in record.getMessage()
    assert len(tried) == 1


def test_what_a_sink_that_does_not_say_keeps_is_what_the_table_says(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(snapshots.PROPERTIES, snapshots.KEEP_SNAPSHOTS, "2")
    for number in range(4):
        publish(make(), number, batch(n=[number]))
    assert numbers(table_of(make())) == ["2", "3"]
    set_property(table_of(make()), snapshots.KEEP_SNAPSHOTS, "3")
    for number in range(4, 7):
        publish(make(), number, batch(n=[number]))
    assert numbers(table_of(make())) == ["4", "5", "6"]
    publish(make(keep_snapshots=0), 7, batch(n=[7]))
    assert len(numbers(table_of(make()))) == 4


def test_tables_that_others_have_created_keep_all(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "PROPERTIES", {})
    publish(make(), 0, batch(n=[0]))
    opened = make().open_table()
    assert opened is not None
    monkeypatch.setattr(snapshots.IcebergTable, "for_commit", None)
    opened.table.metadata = opened.table.metadata.model_copy(update={"snapshots": 1000 * opened.table.metadata.snapshots})
    opened.expire(None)


@pytest.mark.parametrize(
    ("name", "value", "left"), [("gc.enabled", "false", 4), ("history.expire.min-snapshots-to-keep", "3", 3), ("x", "y", 1)]
)
def test_properties_of_the_table_keep_snapshots(name: str, value: str, left: int, make: Make) -> None:
    publish(make(), 0, batch(n=[0]))
    set_property(table_of(make()), name, value)
    for number in range(1, 4):
        publish(make(keep_snapshots=1), number, batch(n=[number]))
    assert len(table_of(make()).snapshots()) == left


def test_other_branches_keep_what_their_snapshots_build_on(make: Make) -> None:
    publish(make(), 0, batch(n=[0]))
    table = table_of(make())
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()
    for number in range(3):
        table.refresh().append(pa.table({"n": [100 + number]}), branch="audit")
    for number in range(1, 4):
        publish(make(keep_snapshots=1), number, batch(n=[number]))
    table = table_of(make())
    line, snapshot = [], table.snapshot_by_name("audit")
    while snapshot is not None:
        line.append(snapshot)
        snapshot = None if snapshot.parent_snapshot_id is None else table.snapshot_by_id(snapshot.parent_snapshot_id)
    assert len(line) == 4
    assert len(table.snapshots()) == 5
    assert table.scan().use_ref("audit").to_arrow().num_rows == 4
    assert rows(make()) == [(n,) for n in range(4)]
