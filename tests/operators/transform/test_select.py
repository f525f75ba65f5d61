from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import cloudpickle
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG, InputOperator, OutputPort, StreamColumns
from dagflow.errors import ColumnNeeded
from dagflow.model.graph.checks import check
from dagflow.model.graph.dag import PortName
from dagflow.testing import Collector, OperatorTask, check_operator, run_dag, run_operator
from operators import CsvFormat, FileSplitterInput, GroupBy, ParquetWriter, ScanReader, Select, agg, col, lit, when
from operators.transform import expressions
from operators.transform.errors import ExpressionFailed, ExpressionRefused
from tests.tiers import examples

SALES = pa.record_batch({"shop": ["b", "a"], "price": [5, 7], "count": pa.array([2, 3], pa.int8())})


def selected(operator: Select, batch: pa.RecordBatch = SALES) -> Any:
    """Return the rows that an operator emits for a batch."""
    return run_operator(operator, {"input": [batch]})["output"]


@pytest.mark.parametrize(
    ("operator", "names", "row"),
    [
        (Select("price", "shop"), ["price", "shop"], (5, "b")),
        (Select("*"), ["shop", "price", "count"], ("b", 5, 2)),
        (Select("*", total=col("price") * col("count")), ["shop", "price", "count", "total"], ("b", 5, 2, 10)),
        (Select("*", price=-col("price"), new="price"), ["shop", "price", "count", "new"], ("b", -5, 2, 5)),
        (Select(shop="price", price="shop"), ["shop", "price"], (5, "b")),
        (Select(n=1, text=lit("x"), none=None), ["n", "text", "none"], (1, "x", None)),
        (Select("shop", n=pc.field("price") + 1), ["shop", "n"], ("b", 6)),
        (Select(keep=["shop"], columns={"keep": "price"}), ["shop", "keep"], ("b", 5)),
    ],
)
def test_columns_in_their_order(operator: Select, names: list[str], row: tuple[Any, ...]) -> None:
    first = selected(operator)[0]
    assert (list(first), tuple(first.values())) == (names, row)
    copy = pickle.loads(cloudpickle.dumps(operator))
    assert selected(copy) == selected(operator)


@given(st.lists(st.integers(-1000, 1000) | st.none(), max_size=20), st.integers(0, 20))
def test_splitting_a_batch_changes_nothing(numbers: list[int | None], at: int) -> None:
    whole = pa.record_batch({"n": pa.array(numbers, pa.int64())})
    with OperatorTask(Select("n", double=col("n") * 2)) as task:
        task.give("input", whole.slice(0, at), "batch")
        task.give("input", whole.slice(at), "batch")
    assert task.emitted["output"] == [{"n": n, "double": None if n is None else 2 * n} for n in numbers]


def test_columns_that_are_kept_are_not_touched() -> None:
    kinds = {"d": pa.dictionary(pa.int8(), pa.string()), "v": pa.string_view(), "l": pa.list_(pa.int8())}
    batch = pa.record_batch(
        {name: pa.array([None], pa.string() if name != "l" else kind).cast(kind) for name, kind in kinds.items()}
    )
    with OperatorTask(Select("l", "v", "d")) as task:
        task.give("input", batch, "batch")
        task.end_window()
    assert task.chunks["output"] == [("batch", 1)]
    assert Select("l", "v", "d").result_columns("output", lambda _: StreamColumns({k: str(t) for k, t in kinds.items()})) == (
        StreamColumns({name: str(kinds[name]) for name in "lvd"})
    )


@attrs.frozen
class Sale:
    shop: str
    price: int


def test_records_of_a_class_are_rows() -> None:
    rows = run_operator(Select("shop", twice=col("price") * 2), {"input": [Sale("a", 1), Sale("b", 2)]})["output"]
    assert rows == [{"shop": "a", "twice": 2}, {"shop": "b", "twice": 4}]
    check_operator(Select("price"), st.builds(Sale, st.text(max_size=1), st.integers(0, 3)), max_examples=examples(50))


@attrs.define
class Source(InputOperator):
    """Declares columns, without any rows."""

    types: Mapping[str, str | None] | None = attrs.field(factory=lambda: {"shop": "string", "price": "int64"})

    output = OutputPort[Any]()

    def emitted_columns(self, port: str, agreed: Any) -> Any:
        return None if self.types is None else list(self.types.items())


def checked(*operators: Any) -> Any:
    """Check a DAG of a source and operators behind it."""
    dag = DAG("select")
    before: Any = dag.add_operator("source", Source()).output
    for number, operator in enumerate([*operators, Collector[Any]()]):
        added = dag.add_operator(f"o{number}", operator)
        dag.add_stream(f"s{number}", before, added.input)
        before = getattr(added, "output", None)
    return check(dag)


def test_types_come_along_the_stream() -> None:
    select = Select("shop", half=col("price") / 2, large=col("price") > 3, copy="price", one=1, by_arrow=pc.field("price") + 1)
    types = {"shop": "string", "half": "double", "large": "bool", "copy": "int64", "one": "int64", "by_arrow": "int64"}
    assert checked(select).columns().behind(PortName("o0", "output")) == StreamColumns(types)


def test_columns_that_identify_a_row_stay_where_all_are_kept_or_copied() -> None:
    totals = GroupBy("shop", "price", n=agg.count())
    for select, unique in (
        (Select("shop", "price"), {"shop", "price"}),
        (Select("n", "shop", cost="price"), {"shop", "cost"}),
        (Select("*", price=col("price") + 1), None),
        (Select("shop", "n"), None),
    ):
        known = checked(totals, select).columns().behind(PortName("o1", "output"))
        assert known.unique == (frozenset() if unique is None else frozenset({frozenset(unique)}))


def test_what_is_not_known_stays_unknown() -> None:
    def behind(select: Select, known: StreamColumns) -> StreamColumns | None:
        return select.result_columns("output", lambda _: known)

    assert behind(Select("*", n=1), StreamColumns()) == StreamColumns()
    assert behind(Select("a", n=1, b=col("a") + 1), StreamColumns()) == StreamColumns({"a": None, "n": "int64", "b": None})
    assert behind(Select("a", b=col("a") + 1, c=col("x") + 1), StreamColumns({"a": None, "x": "int8"})) == (
        StreamColumns({"a": None, "b": None, "c": "int64"})
    )
    assert behind(Select(b=col("x") + "s"), StreamColumns({"x": "int8"})) == StreamColumns({"b": None})


@pytest.mark.parametrize(
    ("select", "said_by"), [(Select("shop", "prce"), "keep"), (Select("*", double=col("prce") * 2), "double")]
)
def test_a_column_that_is_not_there_is_refused_with_the_dag(select: Select, said_by: str) -> None:
    with pytest.raises(ColumnNeeded, match="Did you mean 'price'") as caught:
        checked(select)
    assert (caught.value.property, caught.value.column) == (said_by, "prce")


def test_a_column_that_is_not_there_is_refused_at_run_time() -> None:
    for select in (Select("shop", "prce"), Select("*", double=col("prce") * 2)):
        with pytest.raises(ExpressionRefused, match=r"(?s)there is no column 'prce'.*write col\('price'\)"):
            selected(select)


def test_the_expression_that_fails_is_named() -> None:
    with pytest.raises(ExpressionFailed) as caught:
        selected(Select(a=col("count") + 1, b=col("price") * 2**62))
    assert caught.value.expression == "col('price') * 4611686018427387904"
    assert caught.value.values == (("price", "5"),)


@pytest.mark.parametrize(
    ("select", "message"),
    [
        (Select(), "it selects no column"),
        (Select("a", "a"), "the column 'a' would be there twice"),
        (Select("a", a=col("b") + 1), "the column 'a' would be there twice"),
    ],
)
def test_names_that_contradict_each_other(select: Select, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        select.check()


def test_columns_that_are_none() -> None:
    with pytest.raises(TypeError, match=r"(?s)total: .* cannot be part of an expression"):
        Select(total=lambda row: row)
    with pytest.raises(TypeError, match="give all in one place"):
        Select("a", keep=["b"])


def test_between_a_reader_and_a_writer(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("shop,price,count\nb,5,2\na,7,3\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput([str(tmp_path / "sales.csv")]))
        sales = dag.add_operator("sales", ScanReader(CsvFormat()))
        revenue = dag.add_operator("revenue", Select("shop", revenue=col("price") * col("count")))
        writer = dag.add_operator("writer", ParquetWriter(str(tmp_path / "out")))
        dag.add_stream("blocks", files.blocks_metadata_output, sales.blocks_metadata_input)
        dag.add_stream("rows", sales.batches, revenue.input)
        dag.add_stream("result", revenue.output, writer.input)

    run_dag(populate_dag, {}, runner="local")
    import pyarrow.parquet as pq

    (file,) = (tmp_path / "out").glob("*.parquet")
    assert pq.read_table(file).select(["shop", "revenue"]).to_pylist() == [
        {"shop": "b", "revenue": 10},
        {"shop": "a", "revenue": 21},
    ]


def test_parts_that_expressions_share_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    computed = expressions._computed

    def noted(node: str, options: Any, batch: Any, several: list[Any], operator: str) -> Any:
        asked.append(list(map(str, several)))
        return computed(node, options, batch, several, operator)

    monkeypatch.setattr(expressions, "_computed", noted)
    rows = pa.record_batch({"price": [5, 7], "off": [1, 2]})

    def paid() -> Any:
        return col("price") - col("off")

    select = Select("off", paid=paid(), double=paid() * 2, off_paid=paid() * col("off"))
    assert run_operator(select, {"input": [rows]})["output"] == [
        {"off": 1, "paid": 4, "double": 8, "off_paid": 4},
        {"off": 2, "paid": 5, "double": 10, "off_paid": 10},
    ]
    assert asked == [["col('price') - col('off')"], ["col('$part 0') * 2", "col('$part 0') * col('off')"]]


def test_errors_name_the_expression_as_it_is_written() -> None:
    select = Select(a=col("n") // col("zero") + 1, b=col("n") // col("zero") + 2)
    with pytest.raises(ExpressionFailed, match=r"col\('n'\) // col\('zero'\)") as caught:
        run_operator(select, {"input": [pa.record_batch({"n": [1], "zero": [0]})]})
    assert "$part" not in str(caught.value)


def test_a_part_that_only_some_rows_need_is_not_computed_for_others() -> None:
    quotient = col("n") // col("by")
    guarded = when(col("by") != 0).then(quotient + 1).otherwise(0)
    select = Select(a=guarded, b=when(col("by") != 0).then(quotient + 2).otherwise(0))
    assert run_operator(select, {"input": [pa.record_batch({"n": [6, 6], "by": [0, 2]})]})["output"] == [
        {"a": 0, "b": 0},
        {"a": 4, "b": 5},
    ]
