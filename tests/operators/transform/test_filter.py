from __future__ import annotations

import pickle
from typing import Any

import cloudpickle
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import ReaderRecord
from dagflow.errors import OperatorFailed
from dagflow.model.graph.infer import own_bindings, port_types
from dagflow.testing import OperatorTask, run_operator
from operators import Filter
from operators.transform.errors import ExpressionRefused

TEXTS = st.lists(st.one_of(st.text(alphabet=".aé\n", max_size=3)), max_size=20)


def run(operator: Any, data: Any, form: str) -> list[Any]:
    return run_operator(operator, {"input": [data] if form == "batch" else data}, form=form)["output"]


def batch(values: list[Any], kind: pa.DataType | None = None) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, kind)], names=["value"])


@given(TEXTS)
def test_a_function_in_both_forms_and_an_expression_agree(texts: list[str]) -> None:
    expected = [text for text in texts if not text.startswith(".")]
    by_function = Filter[str](lambda text: not text.startswith("."))
    by_expression = Filter[str](~pc.starts_with(pc.field("value"), "."))
    assert run(by_function, texts, "record") == run(by_function, texts, "stream") == expected
    assert run(by_expression, batch(texts, pa.string()), "batch") == expected


@given(TEXTS, st.integers(0, 20))
def test_splitting_a_batch_changes_nothing(texts: list[str], at: int) -> None:
    whole = batch(texts, pa.string())
    with OperatorTask(Filter(pc.field("value") > "a")) as task:
        task.give("input", whole.slice(0, at), "batch")
        task.give("input", whole.slice(at), "batch")
    assert task.emitted["output"] == [text for text in texts if text > "a"]


def test_forms_follow_from_what_the_predicate_is() -> None:
    assert Filter(bool).offered_forms("input") == {"record", "stream"}
    assert Filter(pc.field("value") > 1).offered_forms("input") == {"batch"}


def test_the_columns_of_a_reader_record() -> None:
    records = pa.record_batch({"block_id": [1, 1], "position": [0, 5], "record": [".a", "b"]})
    assert run(Filter(~pc.starts_with(pc.field("record"), ".")), records, "batch") == [ReaderRecord(1, 5, "b")]


def test_null_is_not_true() -> None:
    assert run(Filter(pc.field("value") > 1), batch([1, None, 2]), "batch") == [2]
    assert run(Filter(pc.field("value").is_null()), batch([1, None, 2]), "batch") == [None]


def test_nothing_kept_emits_no_batch() -> None:
    with OperatorTask(Filter(pc.field("value") > 9)) as task:
        task.give("input", batch([1]), "batch")
        task.give("input", batch([], pa.int64()), "batch")
    assert task.chunks["output"] == []


def test_records_around_a_bad_one_are_emitted() -> None:
    operator = Filter[Any](lambda text: text.startswith("a"), on_error="route")
    found = run_operator(operator, {"input": ["a1", 7, "b", "a2"]}, form="stream")
    assert found["output"] == ["a1", "a2"]
    assert [error.record for error in found["errors"]] == ["7"]


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_an_expression_pickles(dumps: Any) -> None:
    copy = pickle.loads(dumps(Filter[str](~pc.starts_with(pc.field("value"), "."))))
    assert run(copy, batch([".a", "b"]), "batch") == ["b"]


def test_a_lambda_pickles() -> None:
    copy = pickle.loads(cloudpickle.dumps(Filter[int](lambda n: n > 1)))
    assert run(copy, [1, 2], "record") == [2]
    assert port_types(copy, own_bindings(copy))["output"] is int


def test_the_type_comes_from_the_function() -> None:
    def positive(number: float) -> bool:
        return number > 0

    assert port_types(Filter(positive), own_bindings(Filter(positive)))["input"] is float


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            pc.field("recrd") == "a",
            """Filter: there is no column 'recrd'
  expression  (recrd == "a")
  columns     block_id (int64), position (int64), record (string)
  help: write pc.field("record")""",
        ),
        (
            pc.field("other", "inner") == 1,
            """Filter: it names a column that is not there
  expression  (FieldRef.Nested(FieldRef.Name(other) FieldRef.Name(inner)) == 1)
  columns     block_id (int64), position (int64), record (string)""",
        ),
        (
            pc.utf8_length(pc.field("record")),
            """Filter: it gives int32, but must be true or false
  expression  utf8_length(record)
  columns     block_id (int64), position (int64), record (string)
  help: compare it with something: == != < <= > >=, .isin([…]), .is_null()""",
        ),
        (
            pc.starts_with(pc.field("position"), "1"),
            """Filter: function 'starts_with' has no kernel matching input types (int64)
  expression  starts_with(position, {pattern="1", ignore_case=false})
  columns     block_id (int64), position (int64), record (string)
  help: cast the column first: pc.field(…).cast(…); or give its reader a schema: a column that no type fits is a string""",
        ),
    ],
)
def test_an_expression_that_does_not_fit(expression: Any, message: str) -> None:
    records = pa.record_batch({"block_id": [1], "position": [0], "record": ["a"]})
    with pytest.raises(ExpressionRefused) as caught:
        run(Filter(expression), records, "batch")
    assert str(caught.value) == message
    assert caught.value.code == "DF332"


def test_what_is_wrong_with_the_data_stays_what_pyarrow_says() -> None:
    with pytest.raises(OperatorFailed, match="Failed to parse string: 'x'") as caught:
        run(Filter(pc.field("value").cast("int64") > 1), batch(["1", "x"]), "batch")
    assert isinstance(caught.value.__cause__, pa.ArrowInvalid)


@pytest.mark.parametrize("wrong", ["record > 1", True, None, ["a"]])
def test_neither_function_nor_expression(wrong: Any) -> None:
    with pytest.raises(
        TypeError,
        match=r"predicate must be a function of the record, or an expression over the batch, of col.* or pyarrow.compute; got",
    ):
        Filter(wrong)
