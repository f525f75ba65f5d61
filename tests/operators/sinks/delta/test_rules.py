"""Tables with rules of their own for the rows that DeltaWriter writes: constraints, invariants, columns without nulls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pytest

from dagflow import SinkLaunch
from operators import DeltaWriter
from operators.sinks.errors import ValueNotWritable
from operators.sinks.table_formats.errors import TableSchemaDiffers
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


def test_deltalake_checks_the_rules_of_a_table_that_it_merges_into(tmp_path: Path) -> None:
    table_of_longs(tmp_path).alter.add_constraint({"positive": "v > 0"})
    sink = DeltaWriter(str(tmp_path), "upsert", keys=["n"])
    publish(sink, 0, batch(n=[1], v=[5]))
    with pytest.raises(deltalake.exceptions.DeltaError, match="validation check"):
        publish(sink, 1, batch(n=[2], v=[-5]))
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
