"""Rows that are taken back and never came: the run ends, or they are counted and change nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import DAG, InputPort, Operator, OperatorContext, OutputPort, launch
from dagflow.errors import NeverInserted
from dagflow.planning.unique_rows import UniqueRows
from dagflow.testing import Collector, OperatorTask
from operators import Deduplicate, Distinct, GroupBy, HashJoin, SqlWriter, TopN, agg
from operators.aggregate.current_rows import CurrentRows

MAKERS: list[Callable[..., Operator]] = [
    lambda **given: GroupBy("k", sold=agg.sum("v"), **given),
    lambda **given: GroupBy("k", most=agg.max("v"), **given),
    Distinct,
    lambda **given: Deduplicate(by="k", order_by="v", **given),
    lambda **given: TopN(1, of="v", by="k", **given),
    CurrentRows,
]
NAMES = ["sum", "max", "Distinct", "Deduplicate", "TopN", "CurrentRows"]


def rows(*pairs: tuple[str, int]) -> pa.RecordBatch:
    return pa.record_batch({"k": [key for key, _ in pairs], "v": pa.array([value for _, value in pairs], pa.int64())})


@pytest.mark.parametrize("make", MAKERS, ids=NAMES)
def test_they_end_the_run(make: Callable[..., Operator]) -> None:
    with OperatorTask(make(), in_batches=True) as task:
        task.give("input", rows(("a", 1)))
        task.end_window()
        task.give("input", rows(("b", 5)), retracts=True)
        with pytest.raises(NeverInserted, match="b"):
            task.end_window()


@pytest.mark.parametrize("make", MAKERS, ids=NAMES)
def test_they_are_counted_and_change_nothing(make: Callable[..., Operator]) -> None:
    def emitted(*, wrong: bool) -> tuple[list[Any], list[Any], int]:
        with OperatorTask(make(on_error="skip"), in_batches=True) as task:
            task.give("input", rows(("a", 1), ("c", 2)))
            task.end_window()
            if wrong:
                task.give("input", rows(("b", 5), ("b", 6)), retracts=True)
            task.give("input", rows(("c", 3)))
            task.end_window()
            count = task.counters.get("never_inserted", 0)
            return task.emitted["output"], task.retracted["output"], count

    *right, none = emitted(wrong=False)
    *found, two = emitted(wrong=True)
    assert (found, none, two) == (right, 0, 2)


def test_rows_of_joins_are_counted() -> None:
    with OperatorTask(HashJoin("k", on_error="skip"), in_batches=True) as task:
        task.give("left", rows(("a", 1)))
        task.give("right", pa.record_batch({"k": ["a"], "w": [1]}))
        task.end_window()
        task.give("left", rows(("a", 7)), retracts=True)
        task.end_window()
        assert (task.emitted["output"], task.retracted["output"]) == ([{"k": "a", "v": 1, "w": 1}], [])
        assert task.counters["never_inserted"] == 1
        task.give("left", rows(("a", 3)))
        task.end_window()
        task.give("right", pa.record_batch({"k": ["a"], "w": [2]}))
        task.end_window()
        assert sorted((row["v"], row["w"]) for row in task.emitted["output"]) == [(1, 1), (1, 2), (3, 1), (3, 2)]


@pytest.mark.parametrize("how", ["left", "full", "semi", "anti"])
def test_a_partner_that_never_came_does_not_count(how: Any) -> None:
    with OperatorTask(HashJoin("k", how=how, on_error="skip", right_columns="k: string, w: int64"), in_batches=True) as task:
        task.give("left", rows(("a", 1)))
        task.end_window()
        task.give("right", pa.record_batch({"k": ["a"], "w": [7]}), retracts=True)
        task.give("right", pa.record_batch({"k": ["a"], "w": [2]}))
        task.end_window()
        emitted = Counter(str(row) for row in task.emitted["output"])
        emitted.subtract(str(row) for row in task.retracted["output"])
        partner = {"left": {"w": 2}, "full": {"w": 2}, "semi": {}, "anti": None}[how]
        standing = [] if partner is None else [str({"k": "a", "v": 1, **partner})]
        assert [row for row, count in emitted.items() if count] == standing


@pytest.mark.parametrize("function", ["max", "min", "count_distinct", "collect", "stddev"])
@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_values_that_never_came(function: str, on_error: str) -> None:
    """The group has as many rows as before, and none of them has the value that is taken back."""
    with OperatorTask(GroupBy("k", found=getattr(agg, function)("v"), on_error=on_error), in_batches=True) as task:
        task.give("input", rows(("a", 1), ("a", 5)))
        first = task.end_window()["output"]
        task.give("input", rows(("a", 7)), retracts=True)
        task.give("input", rows(("b", 1)))
        if on_error == "fail":
            with pytest.raises(NeverInserted, match="takes back a row that it has not emitted: k='a', v=7"):
                task.end_window()
        else:
            assert [row["k"] for row in task.end_window()["output"]] == ["b"]
            assert (task.counters["never_inserted"], task.retracted["output"]) == (1, [])
            task.give("input", rows(("a", 1), ("a", 5)), retracts=True)
            task.end_window()
            assert task.retracted["output"] in ([], first)


def test_keys_that_never_came() -> None:
    with OperatorTask(UniqueRows(keys=("k",)), in_batches=True) as task:
        task.give("input", rows(("a", 1)), retracts=True)
        with pytest.raises(NeverInserted, match="takes back a row that it has not emitted: k='a', v=1"):
            task.end_window()


@attrs.frozen
class Sale:
    shop: str
    price: int


@attrs.define
class TakesBack(Operator):
    """Takes back what it has never emitted."""

    emits_changes = True
    input = InputPort[Any]()
    output = OutputPort[Sale]()

    @input.process
    def each(self, row: Any) -> None:
        self.output.retract(Sale(row["shop"], -1))


@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_the_error_names_where_they_come_from(on_error: str, tmp_path: Any) -> None:
    (tmp_path / "a.csv").write_text("shop,price\nnorth,5\n")
    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: object) -> None:
        back = dag.read(tmp_path / "a.csv", format="csv").to(TakesBack(), name="wrong")
        back.to(GroupBy("shop", sold=agg.sum("price"), on_error=on_error)).to(seen)

    if on_error == "fail":
        with pytest.raises(NeverInserted, match=r"wrong\.output takes back a row that it has not emitted: shop='north'"):
            launch(populate_dag, runner="local", run_folder=str(tmp_path / "run"))
    else:
        report = launch(populate_dag, runner="local", run_folder=str(tmp_path / "run")).report
        assert seen.records == []
        assert report.operators["group_by"].counters["never_inserted"] == 1


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("mode", ["replace", "upsert"])
def test_a_sink_says_whether_those_that_reach_it_end_the_run(mode: str, on_error: str, tmp_path: Any) -> None:
    (tmp_path / "a.csv").write_text("shop,price\nnorth,5\n")
    keys = ["shop"] if mode == "upsert" else []

    def populate_dag(dag: DAG, conf: object) -> None:
        back = dag.read(tmp_path / "a.csv", format="csv").to(TakesBack(), name="wrong")
        back.to(SqlWriter(f"sqlite:///{tmp_path}/out.db", "sales", mode=mode, keys=keys, on_error=on_error), name="sink")

    if on_error == "fail":
        with pytest.raises(NeverInserted, match=r"wrong\.output takes back a row"):
            launch(populate_dag, runner="local", run_folder=str(tmp_path / "run"))
    else:
        report = launch(populate_dag, runner="local", run_folder=str(tmp_path / "run")).report
        before = "sink.current" if mode == "replace" else "sink.unique"
        assert report.operators[before].counters["never_inserted"] == 1


class Mine(Operator):
    """An operator of a user's that reports such rows."""

    takes_changes = True
    input = InputPort[int]()

    def setup(self, context: OperatorContext) -> None:
        self.context = context

    @input.process
    def each(self, number: int) -> None:
        if self.context.retracts:
            self.context.never_inserted({"number": number}, 1)


def test_operators_of_users_report_them() -> None:
    with OperatorTask(Mine()) as task, pytest.raises(NeverInserted, match="takes back a row that it has not emitted: number=3"):
        task.give("input", [3], retracts=True)
