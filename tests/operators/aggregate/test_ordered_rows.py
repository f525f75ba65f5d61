"""`agg.first`, `agg.last`, `agg.arg_min` and `agg.arg_max` against DuckDB, with rows of any types, some of them taken back."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import attrs
import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.errors import ColumnNotThere, ColumnTypeChanged, ValueColumnRefused
from dagflow.testing import OperatorTask, run_operator
from operators import GroupBy, agg
from operators.aggregate.group_by import PartialGroupBy
from operators.aggregate.ordered_rows import bytes_of_rows, results_of_rows, type_of_rows
from tests.operators.aggregate.test_group_by import VALUES, Batches, rows_of
from tests.tiers import examples

AGGREGATES: dict[str, Any] = {
    "first": agg.first("x", order_by="t"),
    "last": agg.last("x", order_by="t"),
    "arg_min": agg.arg_min("x", by="t"),
    "arg_max": agg.arg_max("x", by="t"),
    "both": agg.last("t", order_by=["x", "t"]),
}
SQL = """
SELECT k, first(x ORDER BY t NULLS LAST, x NULLS LAST), first(x ORDER BY t DESC NULLS LAST, x DESC NULLS LAST),
    first(x ORDER BY t, x NULLS LAST) FILTER (t IS NOT NULL), first(x ORDER BY t DESC, x DESC NULLS LAST) FILTER (t IS NOT NULL),
    first(t ORDER BY x DESC NULLS LAST, t DESC NULLS LAST)
FROM rows GROUP BY k
"""


@attrs.frozen
class Case:
    """Rows of a key, an order and a value, with those that are taken back."""

    kinds: tuple[str, str]
    rows: list[tuple[Any, ...]]
    gone: frozenset[int]

    def batch(self, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        types = (pa.int8(), *(VALUES[kind][0] for kind in self.kinds))
        columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(types)]
        return pa.record_batch(columns, names=["k", "t", "x"])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kinds = tuple(draw(st.sampled_from(list(VALUES))) for _ in range(2))
    pools = [st.one_of(st.none(), st.sampled_from(draw(st.lists(VALUES[kind][1], min_size=1, max_size=3)))) for kind in kinds]
    rows = draw(st.lists(st.tuples(st.integers(0, 1), *pools), max_size=12))
    return Case((kinds[0], kinds[1]), rows, frozenset(draw(st.lists(st.integers(0, 11)))))


@given(cases(), st.booleans())
@settings(max_examples=examples(150), deadline=None)
def test_any_rows_in_any_windows(case: Case, is_partial: bool) -> None:
    """At last, what stands is what SQL says."""
    states: Any = None
    stands: Counter[tuple[Any, ...]] = Counter()
    taken_back = [row for number, row in enumerate(case.rows) if number in case.gone]
    steps = [(some, False) for some in (case.rows[::2], case.rows[1::2])] + [(taken_back, True)]
    for number, (some, retracts) in enumerate(steps):
        given = [(case.batch(some), retracts)]
        if is_partial:
            with OperatorTask(PartialGroupBy(keys=("k",), aggregates=AGGREGATES), in_batches=True) as task:
                partials = Batches(task)
                task.give("input", given[0][0], retracts=retracts)
            given = [(batch, False) for batch, _ in partials]
        with OperatorTask(GroupBy("k", **AGGREGATES), in_batches=True, window=number, states=states) as task:
            changes = Batches(task)
            for batch, takes_back in given or [(case.batch([]), False)]:
                task.give("partials" if is_partial and given else "input", batch, retracts=takes_back)
            task.end_window()
            states = task.states()
        for batch, takes_back in changes:
            (stands.subtract if takes_back else stands.update)(rows_of(pa.Table.from_batches([batch])))
    left = case.batch([row for number, row in enumerate(case.rows) if number not in case.gone])
    with duckdb.connect() as connection:
        connection.register("rows", pa.Table.from_batches([left]))
        assert +stands == rows_of(connection.sql(SQL).to_arrow_table())


@given(cases(), st.booleans())
@settings(max_examples=examples(100), deadline=None)
def test_a_value_comes_back_as_it_was(case: Case, last: bool) -> None:
    batch = case.batch(case.rows).select(["t", "x"])
    kinds = type_of_rows(batch.schema, ["t"], ["t", "x"])
    found = results_of_rows(bytes_of_rows(batch, kinds, "x", last=last), kinds.field("x").type)
    assert found.type == batch.column("x").type
    assert rows_of(pa.table({"x": found})) == rows_of(pa.table({"x": batch.column("x")}))


def test_values_of_one_order_are_of_one_row() -> None:
    rows = [{"t": 1, "price": price, "unit": unit} for price, unit in ((5, "b"), (7, "a"), (5, "c"))]
    aggregates = {name: agg.first(name, order_by="t") for name in ("price", "unit")}
    wanted = [{"price": 5, "unit": "b"}]
    for some in (rows, rows[::-1]):
        assert run_operator(GroupBy(**aggregates), {"input": [pa.RecordBatch.from_pylist(some)]})["output"] == wanted


def test_a_column_becomes_wider_and_nulls_have_no_type() -> None:
    times, values = [pa.int16(), pa.int64(), pa.null()], [[None], [1], [7]]
    batches = [
        pa.record_batch({"t": pa.array([None if pa.types.is_null(kind) else 2], kind), "x": pa.array(value)})
        for kind, value in zip(times, values, strict=True)
    ]
    found = run_operator(GroupBy(x=agg.last("x", order_by="t"), y=agg.first("x", order_by="t")), {"input": batches})["output"]
    assert found == [{"x": 1, "y": 1}]
    rows = [pa.record_batch({"t": [1], "x": [1]}), pa.record_batch({"t": [1.5], "x": [1]})]
    with pytest.raises(ColumnTypeChanged, match="the column 't' is double, and was int64 before"):
        run_operator(GroupBy(x=agg.first("x", order_by="t")), {"input": rows})


def test_what_cannot_be() -> None:
    rows = [pa.record_batch({"t": [[1]], "x": [1]})]
    with pytest.raises(ValueColumnRefused, match="an aggregate is of the column 't', whose values are list"):
        run_operator(GroupBy(x=agg.first("x", order_by="t")), {"input": rows})
    with pytest.raises(ColumnNotThere, match="'u'"):
        run_operator(GroupBy(x=agg.first("x", order_by="u")), {"input": rows})
    with pytest.raises(ValueError, match="it needs the name of a column that decides the order"):
        agg.first("x", order_by=[])
    assert [str(each) for each in AGGREGATES.values()][-2:] == ["agg.arg_max('x', by='t')", "agg.last('t', order_by=('x', 't'))"]


@pytest.mark.parametrize("name", ["z", "a"])
def test_a_column_that_is_only_counted_may_be_null_first_and_a_list_later(name: str) -> None:
    batches = [pa.record_batch({"k": [1], "v": [value], "o": [1], name: lists}) for value, lists in ((5, [None]), (4, [[1]]))]
    for some in (batches, batches[::-1]):
        grouping = GroupBy("k", x=agg.first("v", order_by="o"), n=agg.count(name))
        assert run_operator(grouping, {"input": some})["output"] == [{"k": 1, "x": 4, "n": 1}]


def test_a_list_after_nulls_is_refused_by_its_name() -> None:
    batches = [pa.record_batch({"a": values, "v": [1], "o": [1]}) for values in (pa.nulls(1), pa.array([[1]]))]
    grouping = GroupBy(x=agg.first("v", order_by="o"), y=agg.first("a", order_by="o"))
    with pytest.raises(ValueColumnRefused, match="an aggregate is of the column 'a', whose values are list"):
        run_operator(grouping, {"input": batches})


@pytest.mark.parametrize("aggregate", [agg.first("i", order_by="o"), agg.arg_max("o", by="i"), agg.min("i"), agg.collect("i")])
def test_intervals_have_no_order(aggregate: Any) -> None:
    rows = pa.record_batch({"i": pa.array([pa.MonthDayNano([1, 2, 3])], pa.month_day_nano_interval()), "o": [1]})
    with pytest.raises(ValueColumnRefused, match="an aggregate is of the column 'i', whose values are month_day_nano_interval"):
        run_operator(GroupBy(x=aggregate), {"input": [rows]})


def test_types_of_results_are_known_before_there_are_rows() -> None:
    assert AGGREGATES["first"].result_type("int16") == "int16"
    assert AGGREGATES["first"].result_type("dictionary<values=string, indices=int32, ordered=0>") == "string"
    assert AGGREGATES["first"].result_type(None) is None
    assert re.match(r"agg\.first\('x', order_by='t'\)", str(AGGREGATES["first"]))
