"""Rows of batches that have no record, since Python cannot hold a value or a class refuses it: each costs itself."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dagflow import DAG
from dagflow.errors import OperatorFailed
from dagflow.runtime.stage.conversion import runs_of_records
from dagflow.testing import Collector, OperatorTask, run_dag
from operators import Count, Deduplicate, FileSplitterInput, Filter, Map, Max, Min, ScanReader, Tumbling

FAR = 1_700_000_000_000 * 10**6  # milliseconds that were taken for seconds
BAD = (3, 500, 998)


def table(rows: int = 1000, bad: tuple[int, ...] = BAD) -> pa.RecordBatch:
    at = pa.array([FAR if n in bad else n for n in range(rows)], pa.int64()).cast(pa.timestamp("us"))
    return pa.record_batch({"n": pa.array(range(rows)), "at": at})


def of_each(row: Any) -> int:
    return row["n"]


@attrs.frozen
class Even:
    n: int = attrs.field()

    @n.validator
    def _is_even(self, _: object, n: int) -> None:
        if n % 2:
            raise ValueError(f"{n} is odd")


def test_a_value_that_python_cannot_hold_costs_its_row() -> None:
    for operator in (Map(of_each, on_error="skip"), Map(of_each, on_error="route")):
        with OperatorTask(operator) as task:
            task.give("input", table())
        assert task.emitted["output"] == [n for n in range(1000) if n not in BAD]
        assert task.skipped == 3
        assert [each.operator for each in task.emitted.get("errors", ())] == ["operator"] * 3 * (operator.on_error == "route")


def test_the_error_names_the_column_and_the_value() -> None:
    what = rf"column 'at' has the timestamp\[us\] {FAR}, which is outside"
    with pytest.raises(OperatorFailed, match=what) as failed, OperatorTask(Map(of_each)) as task:
        task.give("input", table())
    assert "'n': 3" in str(failed.value.record)


def test_a_row_that_its_class_refuses_costs_itself() -> None:
    batch = pa.record_batch({"n": pa.array([0, 2, 3, 4, 7])})
    runs = list(runs_of_records(batch, Even))
    assert [(first, records) for first, records in runs if isinstance(records, list)] == [(0, [Even(0), Even(2)]), (3, [Even(4)])]
    assert [(first, str(error)) for first, error in runs if isinstance(error, Exception)] == [(2, "3 is odd"), (4, "7 is odd")]
    with pytest.raises(KeyError):
        list(runs_of_records(pa.record_batch({"m": [1]}), Even))


@pytest.mark.parametrize("by", ["at", lambda row: row["at"]], ids=["a column", "a function"])
@pytest.mark.parametrize("readers", [1, 3])
def test_an_exchange_by_such_a_value(tmp_path: Path, by: Any, readers: int) -> None:
    (tmp_path / "in").mkdir()
    for number in range(readers):
        pq.write_table(pa.Table.from_batches([table()]), tmp_path / "in" / f"{number}.parquet")
    found = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=str(tmp_path / "in")))
        reader = dag.add_operator("reader", ScanReader("parquet", min_readers=readers, on_error="skip"))
        seen = dag.add_operator("seen", Deduplicate(by=by, on_error="skip"))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, seen.input)
        dag.add_stream("once", seen.output, dag.add_operator("found", found).input)

    report = run_dag(populate_dag, {})
    assert sorted(row["n"] for row in found.records) == [n for n in range(1000) if n not in BAD]
    assert sum(figures.errors for figures in report.operators.values()) == 3 * readers


AGGREGATES: dict[str, Any] = {
    "Min": lambda: Min("at", on_error="skip"),
    "Max by key": lambda: Max("at", by="n", on_error="skip"),
    "Count by it": lambda: Count(by="at", on_error="skip"),
    "Tumbling": lambda: Tumbling(60, time="at", on_error="skip"),
    "Tumbling by it": lambda: Tumbling(60, time="n", by="at", on_error="skip"),
    "Max of Tumbling": lambda: Tumbling(60, time="n", aggregate="max", of="at", on_error="skip"),
    "Filter": lambda: Filter(lambda row: row["n"] >= 0, on_error="skip"),
}


@pytest.mark.parametrize("kind", AGGREGATES)
def test_aggregates_skip_the_rows_alone(kind: str) -> None:
    with OperatorTask(AGGREGATES[kind]()) as task:
        task.give("input", table(20, (3, 7)))
    assert task.skipped == 2
    found = task.emitted["output"]
    if kind == "Min":
        assert [each.value for each in found] == [datetime.datetime.fromisoformat("1970-01-01")]
    elif kind in ("Max by key", "Count by it", "Filter"):
        assert len(found) == 18
