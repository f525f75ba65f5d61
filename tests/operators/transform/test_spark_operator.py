"""What needs no Spark: how the operator is planned, what it refuses, what it says of itself. The rest: tests/conformance."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dagflow import DAG
from dagflow.errors.dag import DagError, NotSupported
from dagflow.errors.dataframes import BodyPartitioned, ColumnsDiffer, ColumnsUnknown
from dagflow.plan.plan import make_plan
from dagflow.runtime.exchange.fitting import fitted
from dagflow.testing import run_operator
from operators import BlockReader, FileSplitterInput, Map, SparkOperator

PAGE = Path(__file__).parents[3] / "docs" / "spark_operator.md"


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
    with pytest.raises(ColumnsDiffer, match="has column 'a' as double, declared is int64"):
        fitted(pa.RecordBatch.from_pydict({"a": [1.5], "b": ["x"]}), wanted, "body")
