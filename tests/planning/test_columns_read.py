from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dagflow import DAG
from dagflow.model.graph.dag import PortName
from dagflow.planning.columns_read import columns_wanted
from dagflow.planning.emission import Emission
from dagflow.planning.steps import after
from dagflow.scan import Column, TableSchema
from dagflow.testing import Collector, run_dag
from operators import (
    Console,
    Deduplicate,
    Distinct,
    FileSplitterInput,
    Filter,
    GroupBy,
    HashJoin,
    Join,
    Map,
    ParquetFormat,
    ScanReader,
    Select,
    TopN,
    Union,
    Unnest,
    agg,
    col,
)

ROWS = pa.table({"a": [1, 2, 2], "b": [5, 6, 7], "c": ["x", "y", "z"], "filter": [[1], [2, 3], []]})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("rows", "others"):
        (tmp_path / name).mkdir()
        pq.write_table(ROWS, tmp_path / name / "a.parquet")
    return tmp_path


def read_of(home: Path, populate: Any) -> list[str] | None:
    """Return the columns of `rows` that are read behind its reader."""
    dag = DAG("columns")
    populate(dag, dag.read(home / "rows", "parquet", name="rows"))
    plan: Any = after(dag, "checked")
    wanted = columns_wanted(plan)[PortName("rows", "batches")]
    return None if wanted is None else sorted(wanted)


@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        ([GroupBy("a", n=agg.sum("b"))], ["a", "b"]),
        ([GroupBy(n=agg.count())], []),
        ([GroupBy("a", first=agg.first("c", order_by="b"))], ["a", "b", "c"]),
        ([Filter(col("c") == "x"), GroupBy("a", n=agg.count())], ["a", "c"]),
        ([Filter(lambda row: row["c"] == "x"), GroupBy("a", n=agg.count())], None),
        ([Select("a", x=col("b") + 1)], ["a", "b"]),
        ([Select("*", b=col("b") + 1), GroupBy("b", n=agg.count())], ["b"]),
        ([Select("*", a=col("b"), b=col("c")), GroupBy("a", n=agg.max("b"))], ["b", "c"]),
        ([Unnest("filter"), GroupBy("filter", n=agg.count())], ["filter"]),
        ([Map(col("a"))], None),
        ([Distinct()], None),
        ([Distinct("a")], ["a"]),
        ([Deduplicate(by="a")], None),
        ([TopN(1, "a")], None),
        ([], None),
    ],
    ids=lambda value: " ".join(type(each).__name__ for each in value or ()),
)
def test_columns_that_are_read(home: Path, operators: list[Any], expected: list[str] | None) -> None:
    def populate(dag: DAG, port: Any) -> None:
        for operator in operators:
            port = port.to(operator)
        port.to(Console())

    assert read_of(home, populate) == expected


def test_what_is_kept_over_launches_does_not_depend_on_what_is_read_behind_it(home: Path) -> None:
    def populate(dag: DAG, port: Any) -> None:
        join = Join("a")
        port.to(join.left)
        dag.read(home / "others", "parquet", name="others").to(join.right)
        join.output.to(GroupBy("c", n=agg.sum("b_right"))).to(Console())

    assert read_of(home, populate) is None


def test_all_streams_of_a_port_count(home: Path) -> None:
    def populate(dag: DAG, port: Any) -> None:
        port.to(GroupBy("a", n=agg.count())).to(Console())
        port.to(GroupBy("b", n=agg.count())).to(Console())

    assert read_of(home, populate) == ["a", "b"]


def test_rejected_records_have_all_columns(home: Path) -> None:
    def populate(dag: DAG, port: Any) -> None:
        select = Select(x=col("a") // col("b"))
        select.on_error = "route"
        port.to(select).to(Console())
        select.errors.to(Console())

    assert read_of(home, populate) is None


def collected(home: Path, populate: Any) -> list[Any]:
    sink = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        populate(dag, dag.read(home / "rows", "parquet", name="rows")).to(sink, name="sink")

    run_dag(populate_dag, {})
    return sorted(sink.records, key=repr)


def test_rows_without_columns_are_counted(home: Path) -> None:
    assert collected(home, lambda dag, port: port.to(GroupBy(n=agg.count()))) == [{"n": 3}]
    assert collected(home, lambda dag, port: port.to(Filter(col("b") > 5)).to(GroupBy(n=agg.count()))) == [{"n": 2}]


@pytest.mark.parametrize("name", ["filename", "a`b", "a.b", "*"])
def test_odd_names_of_columns(home: Path, name: str) -> None:
    pq.write_table(ROWS.rename_columns(["a", name, "c", "filter"]), home / "rows" / "a.parquet")
    assert collected(home, lambda dag, port: port.to(GroupBy("a", n=agg.sum(name)))) == [{"a": 1, "n": 5}, {"a": 2, "n": 13}]


def test_a_reader_leaves_out_columns_and_a_plan_names_those_that_it_reads(home: Path) -> None:
    dag = DAG("columns")
    keep = Filter[Any](col("b") > 5)
    dag.read(home / "rows", "parquet", name="rows").to(keep, name="keep").to(GroupBy("a", n=agg.count())).to(Console())
    plan: Any = after(dag, "columns")
    reader: Any = plan.dag.nodes["rows"].operator
    assert reader.describe_columns("batches").endswith(", of which a, b are read")
    assert dag.operators["rows"].operator.only is None, "the operator of the user stays as it is"


def test_a_reader_emits_no_other_columns(home: Path) -> None:
    class Reading(Filter[Any]):
        def columns_read(self, port: str, wanted: Any) -> frozenset[str]:
            return frozenset({"b", "a", "missing"})

        @Filter.input.batch
        def keep_batch(self, batch: pa.RecordBatch) -> None:
            self.output.emit_batch(batch)

    rows = collected(home, lambda dag, port: port.to(Reading(col("b") > 5)))
    assert rows == [{"a": 1, "b": 5}, {"a": 2, "b": 6}, {"a": 2, "b": 7}]


def test_partition_keys_of_folders_are_columns(home: Path) -> None:
    for year in (2025, 2026):
        (home / "rows" / f"year={year}").mkdir()
        pq.write_table(ROWS, home / "rows" / f"year={year}" / "a.parquet")
    (home / "rows" / "a.parquet").unlink()
    counted = collected(home, lambda dag, port: port.to(GroupBy("year", n=agg.count())))
    assert [(int(row["year"]), row["n"]) for row in counted] == [(2025, 3), (2026, 3)]


def test_a_union_hands_on_what_is_read(home: Path) -> None:
    def populate(dag: DAG, port: Any) -> Any:
        union = Union[Any]()
        port.to(union.input_0)
        dag.read(home / "others", "parquet", name="others").to(union.input_1)
        return union.output.to(GroupBy("a", n=agg.count()))

    assert read_of(home, lambda dag, port: populate(dag, port).to(Console())) == ["a"]
    assert collected(home, populate) == [{"a": 1, "n": 2}, {"a": 2, "n": 4}]


def test_a_subclass_with_a_handler_of_its_own_reads_all(home: Path) -> None:
    class Counted(Filter[Any]):
        @Filter.input.batch
        def keep_batch(self, batch: pa.RecordBatch) -> None:
            assert "c" in batch.schema.names
            self.output.emit_batch(batch)

    assert read_of(home, lambda dag, port: port.to(Counted(col("b") > 5)).to(GroupBy("a", n=agg.count())).to(Console())) is None


@pytest.mark.parametrize(("key", "expected"), [("c", ["a", "b", "c"]), (["a", "c"], ["a", "b", "c"]), (str, None)])
def test_a_key_that_the_dag_gives_is_read(home: Path, key: Any, expected: list[str] | None) -> None:
    def populate(dag: DAG, port: Any) -> Any:
        keep = Filter[Any](col("b") > 5)
        kept = port.to(keep, name="keep")
        dag.set_port_attributes(keep.input, partition_by=key)
        return kept.to(GroupBy("a", n=agg.count()))

    assert read_of(home, lambda dag, port: populate(dag, port).to(Console())) == expected
    assert collected(home, populate) == [{"a": 2, "n": 2}]


def counts(home: Path, **options: Any) -> dict[int, int]:
    """The rows by `a`, which are counted without a look at other columns."""
    sink = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(str(home / "rows")))
        reader = dag.add_operator("rows", ScanReader(ParquetFormat(), on_bad_row="drop", **options))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        reader.batches.to(GroupBy("a", n=agg.count())).to(sink, name="sink")

    report = run_dag(populate_dag, {})
    bad = report.operators["rows"].counters.get("bad_rows", 0)
    return {**{row["a"]: row["n"] for row in sink.records}, -1: bad}


def test_rows_are_bad_whatever_is_read(home: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, 2], "b": ["8", "x", "9"]}), home / "rows" / "b.parquet")
    assert counts(home, schema="a: int64, b: int64") == {1: 2, 2: 3, -1: 1}
    assert counts(home, schema="a: int64, b: date") == {-1: 6}


def test_rows_without_a_value_are_bad_whatever_is_read(home: Path) -> None:
    pq.write_table(pa.table({"a": [3, 3], "b": [1, None]}), home / "rows" / "b.parquet")
    pq.write_table(pa.table({"a": [4]}), home / "rows" / "c.parquet")
    schema = TableSchema({"a": "int64", "b": Column("int64", nullable=False)})
    assert counts(home, schema=schema) == {1: 1, 2: 2, 3: 1, -1: 2}


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        (Join("a"), ["a", "b", "b_right", "c"]),
        (Join({"a": "b"}, where=col("filter").is_not_null()), ["a", "b", "b_right", "c", "filter"]),
        (Join("a", "anti"), ["a", "b", "b_right", "c"]),
    ],
    ids=["inner", "condition", "anti"],
)
def test_joins_of_a_final_launch_read_keys_and_what_is_read_behind_them(home: Path, join: Any, expected: list[str]) -> None:
    dag = DAG("columns")
    dag.read(home / "rows", "parquet", name="rows").to(join.left)
    dag.read(home / "others", "parquet", name="others").to(join.right)
    join.output.to(GroupBy("c", n=agg.sum("b_right"))).to(Console())
    plan: Any = attrs.evolve(after(dag, "checked"), emission=Emission(is_final=True))
    wanted = columns_wanted(plan)[PortName("rows", "batches")]
    assert wanted is not None
    assert sorted(wanted) == expected


def test_the_declared_columns_of_a_right_side_are_read(home: Path) -> None:
    pq.write_table(ROWS.select(["a", "b"]), home / "others" / "a.parquet")
    sink = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        join = HashJoin[Any, Any, Any]("a", how="semi", right_columns="a: int64, b: int64")
        dag.read(home / "rows", "parquet", name="rows").to(join.left, name="join")
        dag.read(home / "others", "parquet", name="others").to(join.right)
        join.output.to(GroupBy("c", n=agg.count())).to(sink, name="sink")

    run_dag(populate_dag, {}, final=True)
    assert sorted((row["c"], row["n"]) for row in sink.records) == [("x", 1), ("y", 1), ("z", 1)]


def test_a_final_launch_sends_no_columns_that_only_a_filter_reads(home: Path) -> None:
    sink = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        join = Join("a")
        dag.read(home / "rows", "parquet", name="rows").to(Filter(col("b") > 5), name="keep").to(join.left, name="join")
        dag.read(home / "others", "parquet", name="others").to(join.right)
        join.output.to(GroupBy("c", n=agg.count())).to(sink, name="sink")

    report = run_dag(populate_dag, {}, final=True)
    assert sorted((row["c"], row["n"]) for row in sink.records) == [("y", 2), ("z", 2)]
    assert report.status == "done"


def test_a_subclass_in_the_same_module_reads_all(home: Path) -> None:
    class Base(Filter[Any]):
        def columns_read(self, port: str, wanted: Any) -> frozenset[str] | None:
            return super().columns_read(port, wanted)

        @Filter.input.batch
        def keep_batch(self, batch: pa.RecordBatch) -> None:
            self.output.emit_batch(batch)

    class Sub(Base):
        @Filter.input.batch
        def keep_batch(self, batch: pa.RecordBatch) -> None:
            self.output.emit_batch(batch)

    def populate(operator: Filter[Any]) -> Any:
        return lambda dag, port: port.to(operator).to(GroupBy("a", n=agg.count())).to(Console())

    assert read_of(home, populate(Base(col("b") > 5))) == ["a", "b"]
    assert read_of(home, populate(Sub(col("b") > 5))) is None


def test_one_name_is_a_column_and_not_its_letters(home: Path) -> None:
    assert ScanReader(ParquetFormat(), only="worth").only == {"worth"}
    assert Filter(col("b") > 5, only="worth").only == {"worth"}
