"""Tables with rules of their own for the rows that DeltaWriter writes: constraints, invariants, columns without nulls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pytest

from dagflow import SinkLaunch
from operators import DeltaWriter
from operators.sinks.errors import ValueNotWritable
from operators.sinks.table_formats.errors import TableSchemaDiffers
from operators.sinks.tables.errors import RuleBroken
from tests.operators.sinks.tables import staged_window
from tests.operators.sinks.test_delta_writer import batch, publish, rows


def table_of_longs(path: Path, *, nullable: bool = True, **metadata: str) -> deltalake.DeltaTable:
    names = {name.replace("_", "."): text for name, text in metadata.items()}
    fields = [deltalake.Field("n", "long"), deltalake.Field("v", "long", nullable=nullable, metadata=names)]
    return deltalake.DeltaTable.create(path, deltalake.Schema(fields))


INVARIANT = {"delta_invariants": '{"expression": {"expression": "v > 0"}}'}


@pytest.mark.parametrize("mode", ["append", "replace"])
@pytest.mark.parametrize("metadata", [INVARIANT, {}])
def test_tables_with_rules_that_the_sink_does_not_check_are_refused(mode: Any, metadata: dict[str, str], tmp_path: Path) -> None:
    table = table_of_longs(tmp_path, **metadata)
    if not metadata:
        table.alter.add_constraint({"positive": "v > 0"})
    rule = "delta.invariants" if metadata else r"the constraint positive \(v > 0\)"
    with pytest.raises(TableSchemaDiffers, match=rule):
        DeltaWriter(str(tmp_path), mode).check_store(SinkLaunch(name="app", sink="sink"))
    with pytest.raises(TableSchemaDiffers, match=rule):
        publish(DeltaWriter(str(tmp_path), mode), 0, batch(n=[1], v=[-5]))
    assert rows(tmp_path) == []


def test_rows_that_break_a_rule_are_refused_before_they_are_merged(tmp_path: Path) -> None:
    table_of_longs(tmp_path).alter.add_constraint({"positive": "v > 0"})
    sink = DeltaWriter(str(tmp_path), "upsert", keys=["n"])
    publish(sink, 0, batch(n=[1], v=[5]))
    for task in (sink, DeltaWriter(str(tmp_path), "upsert", keys=["n"])):
        with pytest.raises(RuleBroken, match=r"refuses rows: .*validation check"):
            staged_window(task, 1, batch(n=[2], v=[-5]))
    assert rows(tmp_path) == [(1, 5)]


@pytest.mark.parametrize("mode", ["append", "replace", "upsert"])
@pytest.mark.parametrize("partition_columns", [[], ["v"]])
def test_columns_that_take_no_nulls_get_none(mode: Any, partition_columns: list[str], tmp_path: Path) -> None:
    fields = [deltalake.Field("n", "long"), deltalake.Field("v", "long", nullable=False)]
    deltalake.DeltaTable.create(tmp_path, deltalake.Schema(fields), partition_by=partition_columns)
    keys = ["n"] if mode == "upsert" else []
    sink = DeltaWriter(str(tmp_path), mode, keys=keys, partition_columns=partition_columns)
    for number in range(2):  # of a table that a task opens, and of a note
        for nulls in (batch(n=[1, 2], v=[3, None]), *([] if partition_columns else [batch(n=[1])])):
            with pytest.raises(ValueNotWritable, match=r"column 'v' has null, which the table .* does not support"):
                publish(sink, number, nulls)
        publish(sink, number, batch(n=[number], v=[number]))
    assert len(rows(tmp_path)) == (1 if mode == "replace" else 2)


def test_a_decided_window_with_a_null_for_which_the_table_has_no_place_is_not_committed(tmp_path: Path) -> None:
    """As one that was staged by a task that did not know."""
    sink = DeltaWriter(str(tmp_path))
    window = publish(sink, 0, batch(n=[1, 2], v=[3, None]), run=False)
    table_of_longs(tmp_path, nullable=False)
    with pytest.raises(ValueNotWritable, match="column 'v' has null"):
        sink.publish(window)
    assert rows(tmp_path) == []


def test_a_column_that_takes_no_nulls_and_is_missing_is_named_before_the_launch(tmp_path: Path) -> None:
    table_of_longs(tmp_path, nullable=False)
    with pytest.raises(TableSchemaDiffers, match="column 'v' is missing, and the table takes no nulls there"):
        DeltaWriter(str(tmp_path)).check_store(SinkLaunch(name="app", sink="sink", columns=[("n", "int64")]))


@pytest.mark.parametrize("mode", ["replace", "upsert"])
def test_a_table_that_only_takes_appends_is_refused_before_the_launch(mode: Any, tmp_path: Path) -> None:
    fields = [deltalake.Field("n", "long")]
    deltalake.DeltaTable.create(tmp_path, deltalake.Schema(fields), configuration={"delta.appendOnly": "true"})
    launch = SinkLaunch(name="app", sink="sink")
    with pytest.raises(TableSchemaDiffers, match=f"it has delta.appendOnly=true, and mode is {mode!r}"):
        DeltaWriter(str(tmp_path), mode, keys=["n"] if mode == "upsert" else []).check_store(launch)
    DeltaWriter(str(tmp_path)).check_store(launch)


@pytest.mark.parametrize(
    ("feature", "configuration", "message"),
    [
        ("rowTracking", {}, "deltalake cannot write it: .*RowTracking"),
        ("invariants", {"delta.columnMapping.mode": "name"}, "delta.columnMapping.mode"),
    ],
)
def test_a_table_that_deltalake_cannot_write_is_refused_before_the_launch(
    feature: str, configuration: dict[str, str], message: str, tmp_path: Path
) -> None:
    table_of_longs(tmp_path)
    log = tmp_path / "_delta_log" / "00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [feature]}
        if "metaData" in action:
            action["metaData"]["configuration"] = configuration
    log.write_text("\n".join(map(json.dumps, actions)))
    for mode in ("append", "replace"):
        with pytest.raises(TableSchemaDiffers, match=message):
            DeltaWriter(str(tmp_path), mode).check_store(SinkLaunch(name="app", sink="sink"))


def test_generated_columns_are_refused_or_computed(tmp_path: Path) -> None:
    table_of_longs(tmp_path, delta_generationExpression="n")
    with pytest.raises(TableSchemaDiffers, match=r"the table has delta\.generationExpression"):
        DeltaWriter(str(tmp_path)).check_store(SinkLaunch(name="app", sink="sink"))


def test_both_zeros_are_one_key(tmp_path: Path) -> None:
    sink = DeltaWriter(str(tmp_path), "upsert", keys=["k"])
    publish(sink, 0, batch(k=[-0.0, 0.0], v=[1, 2]))
    publish(sink, 1, batch(k=[-0.0], v=[3]))
    assert [row[1] for row in rows(tmp_path)] == [3]
