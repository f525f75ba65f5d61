from __future__ import annotations

import pickle
from typing import Any

import cloudpickle
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG
from dagflow.errors import UnknownName
from dagflow.model.graph.checks import check
from dagflow.model.graph.dag import PortName
from dagflow.testing import Collector, OperatorTask, check_operator, run_dag, run_operator
from operators import FileInput, Split
from operators.transform.errors import ExpressionRefused
from tests.tiers import examples

NUMBERS = st.lists(st.integers(-50, 50), max_size=30)
FUNCTIONS: dict[str, Any] = {"small": lambda n: n < 10, "even": lambda n: n % 2 == 0, "negative": lambda n: n < 0}
EXPRESSIONS: dict[str, Any] = {
    "small": pc.field("value") < 10,
    "even": pc.bit_wise_and(pc.field("value"), 1) == 0,
    "negative": pc.field("value") < 0,
}


def expected(numbers: list[int], matches: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {name: [] for name in (*FUNCTIONS, "rest")}
    for number in numbers:
        names = [name for name, predicate in FUNCTIONS.items() if predicate(number)] or ["rest"]
        for name in names if matches == "all" else names[:1]:
            found[name].append(number)
    return found


@given(NUMBERS, st.sampled_from(["first", "all"]))
def test_functions_and_expressions_do_the_same(numbers: list[int], matches: Any) -> None:
    wanted = expected(numbers, matches)
    for predicates, forms in ((FUNCTIONS, ["record", "stream"]), (EXPRESSIONS, ["batch"])):
        for form in forms:
            with OperatorTask(Split[int](predicates, matches=matches)) as task:
                data = pa.record_batch({"value": pa.array(numbers, pa.int64())}) if form == "batch" else numbers
                task.give("input", data, form)
            assert {name: task.emitted.get(name, []) for name in wanted} == wanted


@given(NUMBERS)
def test_first_is_a_partition_of_what_arrives(numbers: list[int]) -> None:
    found = run_operator(Split[int](EXPRESSIONS), {"input": numbers})
    assert sorted(n for name in (*EXPRESSIONS, "rest") for n in found[name]) == sorted(numbers)


@pytest.mark.parametrize("predicates", [FUNCTIONS, EXPRESSIONS])
def test_the_laws_of_operators(predicates: dict[str, Any]) -> None:
    check_operator(Split[int](predicates), st.integers(-20, 20), max_examples=examples(50))
    check_operator(Split[int](predicates, matches="all"), st.integers(-20, 20), max_examples=examples(50))


def test_null_is_not_true() -> None:
    with OperatorTask(Split({"small": pc.field("value") < 10, "big": pc.field("value") >= 10})) as task:
        task.give("input", pa.record_batch({"value": [1, None, 20]}), "batch")
    assert (task.emitted["small"], task.emitted["big"], task.emitted["rest"]) == ([1], [20], [None])


def test_an_expression_must_say_true_or_false() -> None:
    with OperatorTask(Split({"odd": pc.field("value") + 1})) as task, pytest.raises(ExpressionRefused, match="it gives int64"):
        task.give("input", pa.record_batch({"value": [1]}), "batch")
    with (
        OperatorTask(Split({"odd": pc.field("valeu") == 1})) as task,
        pytest.raises(ExpressionRefused, match="no column 'valeu'"),
    ):
        task.give("input", pa.record_batch({"value": [1]}), "batch")


@pytest.mark.parametrize(
    ("predicates", "words"),
    [
        ({}, "is empty"),
        ({"rest": bool}, "has the port 'rest'"),
        ({"input": bool}, "has the port 'input'"),
        ({"on_error": bool}, "has the port 'on_error'"),
        ({"not a name": bool}, "has the port 'not a name'"),
        ({"_hidden": bool}, "has the port '_hidden'"),
        ({"a": bool, "b": pc.field("value") > 1}, "functions or expressions, not some of each"),
        ({"a": 3}, "must be a function of the record"),
    ],
)
def test_predicates_that_are_refused(predicates: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        Split(predicates)


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_it_pickles_with_its_ports(dumps: Any) -> None:
    copy = pickle.loads(dumps(Split[int]({"small": pc.field("value") < 10})))
    assert list(copy.outputs) == ["small"]
    assert run_operator(copy, {"input": [1, 11]}) == {"small": [1], "rest": [11]}


def test_what_comes_before_a_bad_record_is_emitted() -> None:
    found = run_operator(Split({"big": lambda n: n > 1}, on_error="skip"), {"input": [2, "x", 3, 0]})
    assert (found["big"], found["rest"]) == ([2, 3], [0])


def test_its_ports_have_the_type_of_what_arrives_and_need_no_stream(tmp_path: Any) -> None:
    (tmp_path / "a.txt").write_text("one\n.two\nthree\n")
    dotted, rest = Collector[Any](), Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_module("files", FileInput([str(tmp_path)]))
        split = dag.add_operator(
            "split", Split({"dotted": pc.starts_with(pc.field("record"), "."), "long": pc.utf8_length(pc.field("record")) > 4})
        )
        dag.add_operator("dots", dotted)
        dag.add_operator("others", rest)
        dag.add_stream("lines", files.messages, split.input)
        dag.add_stream("dotted", split.outputs["dotted"], dotted.input)
        dag.add_stream("rest", split.rest, rest.input)

    dag = DAG()
    populate_dag(dag, None)
    types = check(dag).types
    assert types[PortName("split", "dotted")] == types[PortName("files.reader", "messages")]
    run_dag(populate_dag)
    assert [[line.record for line in sink.records] for sink in (dotted, rest)] == [[".two"], ["one"]]


def test_ports_that_are_not_there_are_told() -> None:
    split = Split({"small": len})
    with pytest.raises(UnknownName, match=r"there is no port of a predicate 'smal'\. Did you mean 'small'\?"):
        split.outputs["smal"]
    with pytest.raises(UnknownName, match=r"split\.rest is what no predicate holds for"):
        split.outputs["rest"]
    assert "rest" not in split.outputs
