"""The parts that need no Spark: planning, refusals, descriptions. The rest is in tests/conformance."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import DAG, OperatorContext
from dagflow.errors import (
    BodyPartitioned,
    ColumnsDiffer,
    ColumnsUnknown,
    DagError,
    NotSupported,
    NullMade,
    TimeNotInSpark,
    TypeNotInSpark,
)
from dagflow.model.operator.dataframes import not_in_spark
from dagflow.planning.steps import make_plan
from dagflow.runtime.exchange.dataframes import TransformOutput
from dagflow.runtime.exchange.fitting import fitted
from dagflow.runtime.task.compile import stage_program
from dagflow.scan import TableSchema
from dagflow.testing import run_operator
from operators import BlockReader, FileSplitterInput, Map, SparkOperator

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "dataframe_operators.md"


@pytest.mark.spark
def test_the_example_of_the_page_runs(spark_session: Any) -> None:
    assert doctest.testfile(str(PAGE), module_relative=False).failed == 0


def planned(operator: Any, **attributes: Any) -> Any:
    dag = DAG("planned")
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    lines = dag.add_operator("lines", BlockReader[str]())
    made = dag.add_operator("made", Map(str))
    body = dag.add_operator("body", operator, **attributes)
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, made.input)
    dag.add_stream("made", made.output, body.input)
    return make_plan(dag)


def same(frame: Any) -> Any:
    return frame


def test_types_or_schemas_say_the_columns() -> None:
    assert [s.head for s in planned(SparkOperator[str, str](same)).stages] == ["lines", "body"]
    assert planned(SparkOperator(same, output_schema="value: string")).placement["body"] == "counted"
    with pytest.raises(ColumnsUnknown, match=r"its port output: Any .*\n.*SparkOperator\[In, Out\].*output_schema="):
        planned(SparkOperator(same))
    with pytest.raises(ColumnsUnknown, match="its port output: object"):
        planned(SparkOperator[str, object](same))


def test_a_body_is_partitioned_by_spark() -> None:
    with pytest.raises(BodyPartitioned, match="a partition_by"):
        planned(SparkOperator[str, str](same), partition_by="value")
    with pytest.raises(DagError, match="partition_parallel"):
        planned(SparkOperator[str, str](same), partition_parallel=True)


def test_run_operator_needs_the_columns_too() -> None:
    with pytest.raises(NotSupported, match="nothing says the columns of SparkOperator"):
        run_operator(SparkOperator(same), {"input": ["a"]})


def test_batches_are_made_to_fit() -> None:
    wanted = pa.schema({"a": pa.int64(), "b": pa.string()})
    given = pa.RecordBatch.from_pydict({"b": ["x"], "more": [1.5], "a": pa.array([3], pa.int8())})
    assert fitted(given, wanted, "body").to_pylist() == [{"a": 3, "b": "x"}]
    assert fitted(given, wanted, "body").schema == wanted
    with pytest.raises(ColumnsDiffer, match="has no column 'b'"):
        fitted(given.drop_columns(["b"]), wanted, "body")
    with pytest.raises(ColumnsDiffer, match="has column 'a' as double, but int64 is declared"):
        fitted(pa.RecordBatch.from_pydict({"a": [1.5], "b": ["x"]}), wanted, "body")


@pytest.mark.parametrize("port", ["input", "output"])
@pytest.mark.parametrize(
    ("kind", "help"),
    [("uint64", "declare decimal128(20, 0)"), ("halffloat", "declare float32"), ("list<uint8>", "convert the column before")],
)
def test_types_that_spark_has_not_are_refused_before_anything_runs(port: str, kind: str, help: str) -> None:
    schemas: Any = {"input_schema": "value: string", "output_schema": "value: string", f"{port}_schema": f"a: int8, c: {kind}"}
    with pytest.raises(TypeNotInSpark) as caught:
        planned(SparkOperator(same, **schemas))
    told = str(caught.value)
    assert f"has column 'c' as {'list<item: uint8>' if 'list' in kind else kind}, which Spark does not support" in told
    assert help in told


LEAVES = [
    pa.int8(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.bool_(),
    pa.date32(),
    pa.date64(),
]
TIMES = [
    pa.timestamp("s"),
    pa.timestamp("ns", "UTC"),
    pa.time32("s"),
    pa.time64("us"),
    pa.duration("ms"),
    pa.month_day_nano_interval(),
]
TEXTS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.binary(3),
    pa.binary_view(),
    pa.decimal128(5, 2),
    pa.null(),
]


@pytest.mark.parametrize(
    "wrap", [lambda t: t, pa.list_, pa.list_view, lambda t: pa.map_(pa.string(), t), lambda t: pa.struct({"a": t})]
)
@pytest.mark.parametrize("kind", [*LEAVES, *TIMES, *TEXTS], ids=str)
def test_which_types_spark_has(kind: Any, wrap: Any) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        from_arrow_type(wrap(kind), prefer_timestamp_ntz=True)
        has = True
    except PySparkException:
        has = False
    instead = not_in_spark(wrap(kind))
    assert (instead is None) == has
    if instead:
        converted = pa.array([], wrap(kind)).cast(TableSchema.of(f"a: {instead}").arrow.field("a").type)
        assert not_in_spark(converted.type) is None


def test_times_that_spark_cannot_hold_are_told_with_their_column() -> None:
    for kind in (pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns")):
        whole, fine = (pa.record_batch({"at": pa.array([number], kind)}) for number in (10**18, 10**18 + 1))
        assert fitted(whole, whole.schema, "body") is whole
        with pytest.raises(TimeNotInSpark, match=r"operator 'body': its input has column 'at' as (timestamp|duration)\[ns"):
            fitted(fine, fine.schema, "body")
        assert fitted(fine, pa.schema({"at": pa.int64()}), "body").to_pylist() == [{"at": 10**18 + 1}]


@attrs.frozen
class Visit:
    host: str | None
    count: int


@pytest.mark.parametrize(
    ("operator", "names"),
    [
        (SparkOperator[str, Visit](same), ("count",)),
        (SparkOperator[str, str](same), ("value",)),
        (SparkOperator[str, str | None](same), ()),
        (SparkOperator[str, Any](same, output_schema="host: string"), ()),
        (SparkOperator[str, Any](same, output_schema=pa.schema([pa.field("host", pa.string(), nullable=False)])), ("host",)),
    ],
)
def test_columns_that_must_have_values(operator: Any, names: tuple[str, ...]) -> None:
    plan = planned(operator)
    (made,) = (each.operator for each in stage_program(plan, plan.stage_of("body").name).operators if each.name == "body")
    assert isinstance(made, TransformOutput)
    assert made.with_values == names
    if "count" in names:
        made.setup(OperatorContext(name="body"))
        with pytest.raises(
            NullMade, match=r"'body': the result of its body has a null in column 'count', but .* must have a value"
        ):
            made.each(pa.record_batch({"host": ["a"], "count": pa.nulls(1, pa.int64())}))
