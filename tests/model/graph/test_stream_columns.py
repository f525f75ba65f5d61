"""The columns of streams: solved along the DAG, from those that a source declares."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG, InputOperator, InputPort, Operator, OutputPort, StreamColumns
from dagflow.errors import ColumnNeeded
from dagflow.launching.build import build
from dagflow.model.graph.checks import check
from dagflow.model.graph.dag import PortName
from dagflow.testing import Collector, run_operator
from operators import (
    Count,
    Deduplicate,
    Distinct,
    Expect,
    Filter,
    FlatMap,
    GroupBy,
    HashJoin,
    Map,
    Sample,
    Split,
    TopN,
    Tumbling,
    Union,
    agg,
)

R = TypeVar("R")
S = TypeVar("S")
SALES = {"shop": "string", "day": "date32[day]", "n": "int16", "price": "double"}
IS_LARGE = pc.field("n") > 3


@attrs.define
class Source(InputOperator):
    """Declares columns, without any rows."""

    types: Mapping[str, str] = attrs.field(factory=lambda: SALES)

    output = OutputPort[Any]()

    def emitted_columns(self, port: str, agreed: Any) -> list[tuple[str, str]]:
        return list(self.types.items())


class Passes(Operator):
    """Lets the records of one input pass, maybe twice, and looks at those of another."""

    input = InputPort[R]()
    other = InputPort[S]()
    output = OutputPort[R]()


class Meets(Operator):
    left = InputPort[R]()
    right = InputPort[R]()
    output = OutputPort[R]()


def behind(*operators: Any, port: str = "output", ways: tuple[str, ...] = ("input",)) -> StreamColumns:
    """Return what is known behind operators in a row, of which the first has a source at each of the ports `ways`."""
    dag = DAG("columns")
    made = [dag.add_operator(f"o{number}", operator) for number, operator in enumerate(operators)]
    for way in ways:
        dag.add_stream(way, dag.add_operator(f"to {way}", Source()).output, getattr(made[0], way))
    for number, (one, other) in enumerate(itertools.pairwise(made)):
        dag.add_stream(f"s{number}", one.output, other.input)
    dag.add_stream("end", getattr(made[-1], port), dag.add_operator("seen", Collector[Any]()).input)
    checked = check(dag)
    return checked.columns().behind(PortName(f"o{len(made) - 1}", port))


TOTALS = GroupBy("shop", "day", sold=agg.sum("n"), mean=agg.mean("n"), top=agg.max("price"), rows=agg.count())
TYPES_OF_TOTALS = {
    "shop": "string",
    "day": "date32[day]",
    "sold": "int64",
    "mean": "double",
    "top": "double",
    "rows": "int64",
}
KEY = frozenset({"shop", "day"})


def test_totals_have_the_columns_of_the_key_which_identify_a_row() -> None:
    assert behind(TOTALS) == StreamColumns(TYPES_OF_TOTALS, [KEY])
    assert behind(GroupBy(n=agg.count())) == StreamColumns({"n": "int64"}, [()])
    assert behind(GroupBy("shop", n=agg.count(), scope="window")).unique == frozenset()


@pytest.mark.parametrize(
    ("operators", "unique"),
    [
        ([TOTALS, Filter(pc.field("sold") > 3)], {KEY}),
        ([TOTALS, Expect(pc.field("sold") > 3)], {KEY}),
        ([TOTALS, Sample(0.5)], {KEY}),
        ([TOTALS, TopN(3, "sold")], {KEY}),
        ([TOTALS, TopN(1, "sold", by="shop")], {KEY, frozenset({"shop"})}),
        ([TOTALS, TopN(1, "sold")], {KEY, frozenset[str]()}),
        ([TOTALS, Deduplicate(by="shop")], {KEY, frozenset({"shop"})}),
        ([TOTALS, Distinct()], {KEY, frozenset(TYPES_OF_TOTALS)}),
        ([Distinct()], {frozenset(SALES)}),
        ([TopN(2, "n", by="shop")], set()),
        ([TopN(1, "n", by=lambda row: row["shop"])], set()),
        ([TOTALS, GroupBy("shop", days=agg.count())], {frozenset({"shop"})}),
        ([TOTALS, Map(lambda row: row)], set()),
        ([TOTALS, FlatMap(lambda row: [row, row])], set()),
    ],
    ids=lambda value: "+".join(type(each).__name__ for each in value) if isinstance(value, list) else "",
)
def test_what_identifies_a_row_behind(operators: list[Any], unique: set[frozenset[str]]) -> None:
    assert behind(*operators).unique == unique


def test_results_of_one_aggregate_differ_in_their_key() -> None:
    assert behind(Count(by="shop")).unique == {frozenset({"key"})}
    assert behind(Count()).unique == {frozenset()}
    assert behind(Tumbling("1h", time="day", by="shop")).unique == {frozenset({"key", "start"})}


def test_both_sides_of_a_split_are_some_of_the_rows() -> None:
    split = Split({"large": IS_LARGE})
    assert behind(split, port="large") == behind(split, port="rest") == StreamColumns(SALES)


def test_of_the_input_whose_records_pass() -> None:
    assert behind(Passes(), ways=("input", "other")) == StreamColumns(SALES)
    assert behind(Meets(), ways=("left", "right")) == StreamColumns()
    assert behind(Union(2), ways=("input_0", "input_1")).unique == frozenset()


# ------------------------------------------------------------------------------------------------------------------------- joins


def joined(join: Any, left: Any, right: Any) -> StreamColumns:
    dag = DAG("join")
    made = dag.add_operator("join", join)
    for name, side in (("left", left), ("right", right)):
        operator = dag.add_operator(f"of {name}", side)
        dag.add_stream(f"to {name}", dag.add_operator(f"{name} rows", Source()).output, operator.input)
        dag.add_stream(name, operator.output, getattr(made, name))
    dag.add_stream("end", made.output, dag.add_operator("seen", Collector[Any]()).input)
    checked = check(dag)
    return checked.columns().behind(PortName("join", "output"))


BY_SHOP, BY_DAY = GroupBy("shop", n=agg.count()), GroupBy("shop", "day", n=agg.count())


def test_a_join_with_at_most_one_partner_keeps_what_identifies_a_row() -> None:
    found = joined(HashJoin("shop"), BY_DAY, BY_SHOP)
    assert found.types == {"shop": "string", "day": "date32[day]", "n": "int64", "n_right": "int64"}
    assert KEY in found.unique
    assert joined(HashJoin("shop", how="left"), BY_DAY, BY_SHOP).unique == found.unique
    assert joined(HashJoin("shop", how="semi"), BY_DAY, BY_SHOP) == StreamColumns(
        {"shop": "string", "day": "date32[day]", "n": "int64"}, [KEY]
    )


def test_of_a_join_with_several_partners_both_identify_a_row() -> None:
    found = joined(HashJoin("shop"), BY_SHOP, BY_DAY)
    assert found.types == {"shop": "string", "n": "int64", "day": "date32[day]", "n_right": "int64"}
    assert found.unique == {KEY}
    assert joined(HashJoin("shop", how="full"), BY_SHOP, BY_DAY).unique == frozenset()


def test_a_join_whose_left_columns_are_unknown_claims_nothing_of_others() -> None:
    """A right column may get a suffix."""
    unknown, days = StreamColumns(None, [["shop"]]), StreamColumns({"shop": "string", "day": "string"}, [["shop", "day"]])
    found = HashJoin("shop").result_columns("output", lambda side: unknown if side == "left" else days)
    assert found is not None
    assert found.unique == frozenset()


class OfDicts(InputOperator):
    """Declares dicts, and may emit rows."""

    output = OutputPort[dict[str, Any]]()


def test_a_type_of_dicts_says_no_columns() -> None:
    dag = DAG("dicts")
    totals = dag.add_operator("totals", GroupBy("shop", n=agg.sum("n")))
    dag.add_stream("rows", dag.add_operator("source", OfDicts()).output, totals.input)
    dag.add_stream("sums", totals.output, dag.add_operator("seen", Collector[Any]()).input)
    assert check(dag).nodes.keys() == {"source", "totals", "seen"}


def test_names_of_a_join_are_those_of_its_rows() -> None:
    left = pa.record_batch({"a": [1], "b": [2]})
    right = pa.record_batch({"k": [1], "a": [3], "c": [4]})
    (row,) = run_operator(HashJoin("a", right_by="k", suffix="_2"), {"left": [left], "right": [right]})["output"]
    columns = HashJoin("a", right_by="k", suffix="_2").result_columns(
        "output", lambda side: StreamColumns(dict.fromkeys((left if side == "left" else right).schema.names))
    )
    assert columns is not None
    assert list(columns.types or ()) == list(row)


# -------------------------------------------------------------------------------------------------------------------- the promise


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(1, 2), st.integers(0, 3)), min_size=1, max_size=12))
def test_rows_keep_what_the_solver_says(rows: list[tuple[str | None, int, int]]) -> None:
    schema = pa.schema([("shop", pa.string()), ("day", pa.int64()), ("n", pa.int64())])
    batch = pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    arriving = StreamColumns({field.name: str(field.type) for field in schema})
    operators: list[Callable[[], Any]] = [
        lambda: GroupBy("shop", s=agg.sum("n"), m=agg.mean("n"), lo=agg.min("day"), c=agg.count("n")),
        lambda: TopN(1, "n", by="shop"),
        lambda: TopN(1, "n"),
        lambda: Deduplicate(by=("shop", "day")),
        lambda: Distinct(),
    ]
    for make in operators:
        operator = make()
        known = operator.result_columns("output", lambda _: arriving)
        emitted = run_operator(operator, {"input": [batch]})["output"]
        assert all(list(row) == list(known.types) for row in emitted)
        for unique in known.unique:
            seen = [tuple(row[name] for name in sorted(unique)) for row in emitted]
            assert len(set(seen)) == len(seen), (operator, unique)


# ------------------------------------------------------------------------------------------------------------------------- checks


def test_a_column_that_totals_do_not_have_is_refused_with_the_dag() -> None:
    with pytest.raises(ColumnNeeded, match=r"revenue of port o0\.input names column 'prise'.*Did you mean 'price'"):
        behind(GroupBy("shop", revenue=agg.sum("prise")))
    with pytest.raises(ColumnNeeded, match=r"revenue of port o1\.input names column 'price'"):
        behind(GroupBy("shop", sold=agg.sum("n")), GroupBy("shop", revenue=agg.sum("price")))


def test_the_plan_shows_what_is_known() -> None:
    from dagflow.planning.view import plan_view
    from dagflow.render.plan import plan_text

    def populate_dag(dag: DAG, conf: object) -> None:
        totals = dag.add_operator("totals", TOTALS)
        dag.add_stream("sales", dag.add_operator("source", Source()).output, totals.input)
        dag.add_stream("sums", totals.output, dag.add_operator("seen", Collector[Any]()).input)

    view = plan_view(build(populate_dag).plan())
    text = plan_text(view)
    assert "columns of sums: shop: string, day: date32[day], sold: int64, mean: double, top: double, rows: int64" in text
    assert "rows of sums differ in day, shop" in text
    (sums,) = [stream for stream in view.streams if stream.name == "sums"]
    assert sums.identified_by == (("day", "shop"),)
