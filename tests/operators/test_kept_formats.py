"""The rows that operators keep over windows have a format version: other rows need another number."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import operators
from dagflow import TableState
from dagflow.errors import StateFormatChanged
from dagflow.model.operator.base import Operator
from dagflow.model.operator.state import state_fields
from dagflow.planning.held_changes import HeldChanges
from dagflow.planning.unique_rows import UniqueRows
from dagflow.testing import Collector, OperatorTask, run_dag
from operators import Count, Deduplicate, Distinct, GroupBy, HashJoin, Sort, Sum, TopN, Tumbling, agg, window
from operators.aggregate.aggregate import Aggregate
from operators.aggregate.current_rows import CurrentRows
from operators.aggregate.group_by import GroupByResult
from tests.golden.compare import Golden

ROWS = pa.record_batch(
    {
        "k": ["a", "b", "a", "a"],
        "t": pa.array([0, 1, 2, 2], pa.timestamp("us")),
        "n": pa.array([3, None, -1, 3], pa.int32()),
        "x": [0.1, float("nan"), 1e20, -0.0],
        "d": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.00"), decimal.Decimal("7.25")], pa.decimal128(9, 2)),
        "s": ["one", "two", None, "one"],
    }
)
TAKEN_BACK = ROWS.slice(3)
FUNCTIONS = (agg.count, agg.sum, agg.mean, agg.min, agg.max, agg.stddev, agg.count_distinct, agg.collect)
ALL = {f"{each.__name__}_{column}": each(column) for each in FUNCTIONS for column in "nxd"}
TEXTS = {f"{each.__name__}_s": each("s") for each in (agg.count, agg.min, agg.max, agg.count_distinct, agg.collect)}
KEEPING: dict[str, Any] = {
    "GroupBy": lambda: GroupBy("k", **ALL, **TEXTS, rows=agg.count(), middle=agg.quantile("x", 0.5)),
    "GroupByResult": lambda: GroupByResult("k", rows=agg.count()),
    "Count": lambda: Count(by="k"),
    "Sum": lambda: Sum(by="k", of="d"),
    "Tumbling": lambda: Tumbling(60, time="t", by="k", allowed_lateness=0),
    "Tumbling without a watermark": lambda: Tumbling(60, time="t", by="k"),
    "GroupBy by time": lambda: GroupBy("k", window("t", 60), rows=agg.count()),
    "GroupBy by time alone": lambda: GroupBy(window("t", 60), rows=agg.count()),
    "TopN": lambda: TopN(2, "n", by="k"),
    "Sort": lambda: Sort("-n"),
    "Deduplicate": lambda: Deduplicate(by="k"),
    "Distinct": lambda: Distinct("k"),
    "HashJoin": lambda: HashJoin(by="k", how="left"),
    "CurrentRows": CurrentRows,
    "HeldChanges": HeldChanges,
    "UniqueRows": lambda: UniqueRows(keys=("k", "n")),
}


def tables(cls: type) -> list[str]:
    return [name for name, each in state_fields(cls).items() if isinstance(each, TableState)]


def kept(operator: Operator) -> Iterator[str]:
    """Yield what an operator keeps of rows of which one was taken back, a line for each row."""
    inputs = ["left", "right"] if isinstance(operator, HashJoin) else ["input"]
    with OperatorTask(operator) as task:
        for port in inputs:
            task.give(port, ROWS)
        if operator.takes_changes:
            for port in inputs:
                task.give(port, TAKEN_BACK, retracts=True)
        task.end_window()
        for name in tables(type(operator)):
            declared = getattr(type(operator), name)
            yield f"  {name}, format {declared.format_version}"
            for kind, rows in getattr(operator, name).all_rows().items():
                yield f"    {kind}: {', '.join(f'{field.name} {field.type}' for field in rows.batch.schema)}"
                for row in rows.batch.to_pylist():
                    yield f"      {list(row.values())}"


def test_what_is_kept_of_the_same_rows_is_the_same_as_long_as_the_format_is(golden: Golden) -> None:
    """If it differs, rows of before may be read as something else: raise `format_version` of the table, or read both."""
    golden("kept_rows.txt", "".join(f"{text}\n" for name, make in KEEPING.items() for text in (name, *kept(make()))))


def test_each_operator_of_the_library_that_keeps_rows_is_there() -> None:
    """Of those that share a table, one is enough."""
    declaring = set()
    for name in operators.__all__:
        cls = getattr(operators, name)
        if isinstance(cls, type) and issubclass(cls, Operator):
            declaring |= {base for base in cls.__mro__ for each in vars(base).values() if isinstance(each, TableState)}
    there = {base for make in KEEPING.values() for base in type(make()).__mro__}
    assert Aggregate in declaring
    assert declaring <= there


def test_a_launch_that_finds_rows_of_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    seen = Collector[Any]()

    def populate_dag(dag: Any, conf: Any) -> None:
        dag.read(tmp_path / "in", "csv").to(GroupBy("k", n=agg.count()), name="totals").to(seen, name="seen")

    def launched() -> list[Any]:
        run_dag(populate_dag, run_folder=str(tmp_path / "run"))
        return seen.records

    (tmp_path / "in" / "a.csv").write_text("k\na\n")
    assert launched() == [{"k": "a", "n": 1}]
    (tmp_path / "in" / "b.csv").write_text("k\na\n")
    with monkeypatch.context() as patch:
        patch.setattr(GroupBy.kept, "format_version", 2)
        with pytest.raises(StateFormatChanged, match=r"'totals' has kept rows of format 1 in .*'kept' has format 2 now"):
            launched()
    assert launched() == [{"k": "a", "n": 2}], "with the version that wrote them"
