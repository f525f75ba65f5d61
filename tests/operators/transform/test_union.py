from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import attrs
import cloudpickle
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord, StreamColumns
from dagflow.arrow_types import type_named
from dagflow.errors import BadValue, DagErrors, InputUnconnected, UnionColumnsDiffer, UnionValueNotHeld
from dagflow.ledger import read_dataset
from dagflow.model.graph.checks import check
from dagflow.model.graph.dag import PortName
from dagflow.model.operator.ports import input_ports
from dagflow.testing import Collector, OperatorTask, check_operator, run_dag, run_operator
from operators import FileInput, Filter, Map, ParquetWriter, Select, Union, col
from operators.transform.errors import ExpressionRefused
from tests.tiers import examples


@given(st.lists(st.lists(st.integers()), min_size=1, max_size=5))
def test_everything_comes_out_in_the_order_of_its_input(streams: list[list[int]]) -> None:
    found = run_operator(Union[int](len(streams)), {f"input_{i}": records for i, records in enumerate(streams)})["output"]
    assert sorted(found) == sorted(record for records in streams for record in records)
    assert found == [record for records in streams for record in records]


@pytest.mark.parametrize("form", ["record", "stream", "batch"])
def test_each_form(form: str) -> None:
    one, two = (pa.record_batch({"value": [1, 2]}), pa.record_batch({"value": [3]})) if form == "batch" else ([1, 2], [3])
    with OperatorTask(Union[int](2)) as task:
        task.give("input_0", one, form)
        task.give("input_1", two, form)
    assert task.emitted["output"] == [1, 2, 3]


def test_the_laws_of_operators() -> None:
    check_operator(Union[str](3), st.text(max_size=3), port="input_2", max_examples=examples(50))


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_it_pickles_with_its_ports_and_type(dumps: Any) -> None:
    copy = pickle.loads(dumps(Union[str](3)))
    assert [port.name for port in copy.inputs] == ["input_0", "input_1", "input_2"]
    assert (copy.count, type(copy).__name__, type(copy)) == (3, "Union", type(Union(3)))
    assert run_operator(copy, {"input_2": ["a"]})["output"] == ["a"]


def test_instances_have_ports_of_their_own() -> None:
    assert list(input_ports(type(Union(1)))) == ["input_0"]
    assert list(input_ports(type(Union(2)))) == ["input_0", "input_1"]
    assert list(input_ports(Union)) == []


@pytest.mark.parametrize("count", [0, -1, "2", 1.5, None])
def test_counts_that_are_none(count: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=f"count is {count!r}, but must be an integer, 1 or more$"):
        Union(count)


def test_the_count_cannot_change_later() -> None:
    with pytest.raises(ValueError, match="count decides which ports there are"):
        Union(2).count = 3
    with pytest.raises(BadValue, match="set it where the operator is made"):
        run_dag(branches(Filter(bool), Filter(bool), Collector[Any]()), {"operator.both.count": 3})


def test_all_inputs_must_be_connected() -> None:
    dag = DAG()
    files, both = dag.add_module("files", FileInput(["/"])), dag.add_operator("both", Union[ReaderRecord[str]](2))
    dag.add_stream("lines", files.messages, both.inputs[0])
    with pytest.raises(InputUnconnected, match=r"both\.input_1"):
        check(dag)


def branches(first: Any, second: Any, sink: Any, source: str = "/") -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_module("files", FileInput([source]))
        one, two = dag.add_operator("one", first), dag.add_operator("two", second)
        both = dag.add_operator("both", Union(2))
        dag.add_operator("sink", sink)
        dag.add_stream("lines", files.messages, one.input, two.input)
        dag.add_stream("ones", one.output, both.inputs[0])
        dag.add_stream("twos", two.output, both.inputs[1])
        dag.add_stream("all", both.output, sink.input)

    return populate_dag


def test_the_type_of_its_output_is_that_of_its_inputs() -> None:
    def length(line: ReaderRecord[str]) -> int:
        return len(line.record)

    dag = DAG()
    branches(Map(length), Map(length), Collector[Any]())(dag, None)
    assert check(dag).types[PortName("both", "output")] is int
    wrong = DAG()
    branches(Map(length), Map(length), Filter[str](str.isdigit))(wrong, None)
    with pytest.raises((DagErrors, TypeError), match="int is not str"):
        check(wrong)


def united(home: Path, first: str, second: str, **options: Any) -> Any:
    """Return what `Union` makes of two files of CSV, each read by a reader of its own."""
    for name, text in (("first", first), ("second", second)):
        (home / name).mkdir()
        (home / name / "rows.csv").write_text(text)

    def populate_dag(dag: DAG, conf: Any) -> None:
        both = dag.add_operator("both", Union(2, **options))
        for name, port in zip(("first", "second"), both.inputs, strict=True):
            dag.read(home / name, "csv", name=name).to(port)
        both.output.to(ParquetWriter[Any](str(home / "out")), name="out")

    return populate_dag


def test_two_readers_meet_and_columns_are_found_by_name_and_widened(tmp_path: Path) -> None:
    """As DuckDB does by `UNION ALL BY NAME`."""
    populate_dag = united(tmp_path, "x,y,z\n1,a,1\n", "y,z,x\nb,2.5,3\n")
    run_dag(populate_dag, {})
    query = "SELECT * FROM read_csv($1) UNION ALL BY NAME SELECT * FROM read_csv($2)"
    paths = [str(tmp_path / name / "rows.csv") for name in ("first", "second")]
    wanted = duckdb.execute(query, paths).fetchall()
    found = read_dataset(str(tmp_path / "out")).to_table()
    assert found.schema.names == ["x", "y", "z"]
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == sorted(wanted)


def test_missing_columns_are_refused_or_null(tmp_path: Path) -> None:
    (tmp_path / "refused").mkdir()
    with pytest.raises(UnionColumnsDiffer, match=r"Union: input_1 has no column 'y', and input_0 has it as int64"):
        run_dag(united(tmp_path / "refused", "x,y\n1,2\n", "x\n3\n"), {})
    run_dag(united(tmp_path, "x,y\n1,2\n", "x,w\n3,4\n", allow_missing_columns=True), {})
    rows = read_dataset(str(tmp_path / "out")).to_table().to_pylist()
    assert sorted(rows, key=lambda row: row["x"]) == [{"x": 1, "y": 2, "w": None}, {"x": 3, "y": None, "w": 4}]


def united_with_expected(home: Path, expected: str, **schema: str) -> list[dict[str, Any]]:
    """Return what `Union` makes of a file and of files that may come later, and an expression of the column `z` of these."""
    for folder, text in (("first", "x,y\n1,2\n"), ("expected", expected)):
        (home / folder).mkdir(parents=True)
        if text:
            (home / folder / "rows.csv").write_text(text)
    sink = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        both = dag.add_operator("both", Union(2, allow_missing_columns=True))
        dag.read(home / "first", "csv", name="first").to(both.inputs[0])
        rows = dag.read(home / "expected", "csv", name="expected", **schema)
        rows.to(Select("*", more=col("x") + 1), name="more").to(both.inputs[1])
        both.output.to(Select("*", w=col("z") + 1), name="computed").to(sink, name="sink")

    run_dag(populate_dag, {})
    return sorted(sink.records, key=lambda row: row["x"])


def test_an_input_without_rows_has_the_columns_that_its_reader_declares(tmp_path: Path) -> None:
    first = {"x": 1, "y": 2, "z": None, "more": None, "w": None}
    schema = "x: int64, z: int64"
    assert united_with_expected(tmp_path / "none", "", schema=schema) == [first]
    both = [first, {"x": 3, "y": None, "z": 4, "more": 4, "w": 5}]
    assert united_with_expected(tmp_path / "some", "x,z\n3,4\n", schema=schema) == both
    assert united_with_expected(tmp_path / "files say it", "x,z\n3,4\n") == both


def test_the_columns_of_files_that_have_not_come_are_not_known(tmp_path: Path) -> None:
    with pytest.raises(ExpressionRefused, match="there is no column 'z'"):
        united_with_expected(tmp_path, "")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("int64", "string"),
        ("decimal128(9, 2)", "float64"),
        ("bool", "int64"),
        ("string", "binary"),
        ("list<item: decimal128(9, 2)>", "list<item: double>"),
    ],
)
def test_types_that_do_not_fit_are_refused(tmp_path: Path, first: str, second: str) -> None:
    kinds = [type_named(each) for each in (first, second)]
    paths = [tmp_path / f"{number}.parquet" for number in range(2)]
    for path, kind in zip(paths, kinds, strict=True):
        pq.write_table(pa.table({"x": pa.nulls(1, kind)}), path)

    def populate_dag(dag: DAG, conf: Any) -> None:
        both = dag.add_operator("both", Union(2))
        for path, port in zip(paths, both.inputs, strict=True):
            dag.read(path).to(port)
        both.output.to(Collector[Any](), name="sink")

    with pytest.raises(UnionColumnsDiffer) as caught:
        run_dag(populate_dag, {})
    assert f"column 'x' of input_1 is {kinds[1]}, and input_0 has it as {kinds[0]}: no type holds the values" in str(caught.value)


def test_a_value_that_would_change_is_a_bad_row(tmp_path: Path) -> None:
    populate_dag = united(tmp_path, f"x\n1\n{2**53 + 1}\n", "x\n0.5\n")
    with pytest.raises(UnionValueNotHeld, match="column 'x' has the int64 9007199254740993, and is double for all inputs"):
        run_dag(populate_dag, {})
    (tmp_path / "skip").mkdir()
    run_dag(united(tmp_path / "skip", f"x\n1\n{2**53 + 1}\n", "x\n0.5\n", on_error="skip"), {})
    assert sorted(read_dataset(str(tmp_path / "skip/out")).to_table().column("x").to_pylist()) == [0.5, 1.0]


@attrs.define
class Renamed(Operator):
    """Rows with columns of other names: an operator that does not say which."""

    names: tuple[str, ...]

    input = InputPort[Any]()
    output = OutputPort[Any]()

    @input.batch
    def rename(self, batch: pa.RecordBatch) -> None:
        """Emit the rows."""
        self.output.emit_batch(batch.rename_columns(self.names))


def united_with_unknown(home: Path, sink: Any, unknown: tuple[Any, Any], texts: tuple[str, str], **options: Any) -> Any:
    """Return what `Union` makes of two files. `unknown`: operators behind each reader, whose columns are not known; or None."""
    for number, text in enumerate(texts):
        (home / str(number)).mkdir(parents=True)
        (home / str(number) / "rows.csv").write_text(text)

    def populate_dag(dag: DAG, conf: Any) -> None:
        both = dag.add_operator("both", Union(2, **options))
        for number, (operator, port) in enumerate(zip(unknown, both.inputs, strict=True)):
            rows = dag.read(home / str(number), "csv", name=f"read_{number}")
            (rows if operator is None else rows.to(operator, name=f"other_{number}")).to(port)
        both.output.to(sink, name="sink")

    return populate_dag


UNKNOWN: Any = {
    "second": (None, Renamed(("k", "z"))),
    "first": (Renamed(("k", "z")), None),
    "both": (Renamed(("k", "v")), Renamed(("k", "z"))),
    "dicts": (None, Map(lambda row: {"k": row["k"], "z": row["v"]})),
    "both_dicts": (Map(lambda row: dict(row)), Map(lambda row: {"k": row["k"], "z": row["v"]})),
}


@pytest.mark.parametrize("which", list(UNKNOWN))
def test_columns_that_are_not_known_before_are_compared_as_they_come(tmp_path: Path, which: str) -> None:
    texts = "k,v\na,1\n", "k,v\nb,2\n"
    with pytest.raises(UnionColumnsDiffer, match=r"input_[01] has no column '[vz]', and input_[01] has it"):
        run_dag(united_with_unknown(tmp_path / "refused", Collector[Any](), UNKNOWN[which], texts), {})
    sink = Collector[Any]()
    populate_dag = united_with_unknown(tmp_path, sink, UNKNOWN[which], texts, allow_missing_columns=True)
    run_dag(populate_dag, {})
    found = [{name: value for name, value in row.items() if value is not None} for row in sink.records]
    wanted = [{"k": "a", "z": 1}, {"k": "b", "v": 2}] if which == "first" else [{"k": "a", "v": 1}, {"k": "b", "z": 2}]
    assert sorted(found, key=lambda row: row["k"]) == wanted
    if "both" not in which:
        assert all("v" in row for row in sink.records)  # as in the rows of the input that is known


def test_columns_that_are_not_known_before_are_found_by_name_and_widened(tmp_path: Path) -> None:
    sink = Collector[Any]()
    run_dag(united_with_unknown(tmp_path, sink, (None, Renamed(("v", "k"))), ("k,v\na,1\n", "v,k\n2.5,b\n")), {})
    assert sorted(sink.records, key=lambda row: row["k"]) == [{"k": "a", "v": 1}, {"k": "b", "v": 2.5}]
    with pytest.raises(UnionColumnsDiffer, match="column 'v' of input_1 is string, and input_0 has it as int64"):
        run_dag(united_with_unknown(tmp_path / "2", sink, (None, Renamed(("k", "v"))), ("k,v\na,1\n", "k,v\nb,c\n")), {})


def test_rows_of_one_input_are_compared_too() -> None:
    with pytest.raises(UnionColumnsDiffer, match="a row of input_0 has no column 'v', and another one has it"):
        run_operator(Union[Any](2), {"input_0": [{"k": 1, "v": 2}, {"k": 1}]})
    rows = [{"k": 1, "v": 2}, {"k": 1}]
    assert run_operator(Union[Any](2, allow_missing_columns=True), {"input_0": rows})["output"] == rows


def test_the_columns_behind_it_are_known() -> None:
    types = {"input_0": {"x": "int16", "y": "string"}, "input_1": {"y": "string", "x": "int64"}}
    columns = Union(2).result_columns("output", lambda port: StreamColumns(types[port]))
    assert columns == StreamColumns({"x": "int64", "y": "string"})
    assert Union(2).result_columns("output", lambda port: StreamColumns(types[port] if port == "input_0" else None)) is None


def test_branches_of_a_dag_meet_again_one_in_batches_the_other_in_records(tmp_path: Any) -> None:
    import pyarrow.compute as pc

    (tmp_path / "a.txt").write_text("one\n.two\nthree\n")
    found = Collector[Any]()
    dotted, plain = Filter(pc.starts_with(pc.field("record"), ".")), Filter(lambda line: not line.record.startswith("."))
    report = run_dag(branches(dotted, plain, found, str(tmp_path)))
    assert sorted(line.record for line in found.records) == [".two", "one", "three"]
    assert report.operators["both"].records_in == report.operators["both"].records_out == 3
