from __future__ import annotations

import pickle
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG, ReaderRecord
from dagflow.errors import BadValue, DagErrors, InputUnconnected
from dagflow.model.graph.checks import check
from dagflow.model.graph.dag import PortName
from dagflow.model.operator.ports import input_ports
from dagflow.testing import Collector, OperatorTask, check_operator, run_dag, run_operator
from operators import FileInput, Filter, Map, Union


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
    check_operator(Union[str](3), st.text(max_size=3), port="input_2")


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


def test_branches_of_a_dag_meet_again_one_in_batches_the_other_in_records(tmp_path: Any) -> None:
    import pyarrow.compute as pc

    (tmp_path / "a.txt").write_text("one\n.two\nthree\n")
    found = Collector[Any]()
    dotted, plain = Filter(pc.starts_with(pc.field("record"), ".")), Filter(lambda line: not line.record.startswith("."))
    report = run_dag(branches(dotted, plain, found, str(tmp_path)))
    assert sorted(line.record for line in found.records) == [".two", "one", "three"]
    assert report.operators["both"].records_in == report.operators["both"].records_out == 3
