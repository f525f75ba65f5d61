from __future__ import annotations

import pickle
from typing import Any

import cloudpickle
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.model.graph.infer import own_bindings, port_types
from dagflow.testing import OperatorTask, run_operator
from operators import Map
from operators.transform.errors import ExpressionRefused

NUMBERS = st.lists(st.integers(-1000, 1000), max_size=20)


def run(operator: Any, data: Any, form: str) -> list[Any]:
    return run_operator(operator, {"input": [data] if form == "batch" else data}, form=form)["output"]


@given(NUMBERS, st.integers(0, 20))
def test_a_function_in_both_forms_and_an_expression_agree(numbers: list[int], at: int) -> None:
    expected = [3 * number for number in numbers]
    by_function, by_expression = Map[int, int](lambda n: 3 * n), Map[int, int](pc.field("value") * 3)
    assert run(by_function, numbers, "record") == run(by_function, numbers, "stream") == expected
    whole = pa.record_batch([pa.array(numbers, pa.int64())], names=["value"])
    assert run(by_expression, whole, "batch") == expected
    assert run(by_expression, whole.slice(0, at), "batch") + run(by_expression, whole.slice(at), "batch") == expected


def test_an_expression_over_several_columns_gives_the_column_value() -> None:
    operator = Map[Any, str | None](pc.utf8_upper(pc.field("record")))
    records = pa.record_batch({"block_id": [1, 1], "position": [0, 5], "record": ["a", None]})
    with OperatorTask(operator) as task:
        task.give("input", records, "batch")
    assert task.emitted["output"] == ["A", None]
    assert task.chunks["output"] == [("batch", 2)]


def test_a_constant() -> None:
    assert run(Map(pc.scalar(7)), pa.record_batch({"value": ["a", "b"]}), "batch") == [7, 7]


def test_an_unknown_column() -> None:
    with pytest.raises(ExpressionRefused) as caught:
        run(Map(pc.field("vlue") + 1), pa.record_batch({"value": [1]}), "batch")
    assert str(caught.value) == (
        "Map: there is no column 'vlue'\n  expression  add_checked(vlue, 1)\n  columns     value (int64)\n"
        '  help: write pc.field("value")'
    )


def test_records_around_a_bad_one_are_emitted() -> None:
    found = run_operator(Map[Any, int](int, on_error="route"), {"input": ["1", "x", "2"]}, form="stream")
    assert found["output"] == [1, 2]
    assert [(error.record, error.error) for error in found["errors"]] == [
        ("x", "ValueError: invalid literal for int() with base 10: 'x'")
    ]


def test_types_come_from_the_function_or_the_subscript() -> None:
    def halved(number: int) -> float:
        return number / 2

    for operator in (Map(halved), Map[int, float](lambda n: n / 2), Map[int, float](pc.field("value") / 2)):
        types = port_types(operator, own_bindings(operator))
        assert (types["input"], types["output"]) == (int, float)
    assert port_types(Map(int), own_bindings(Map(int)))["output"] is int


def test_it_pickles() -> None:
    copy = pickle.loads(cloudpickle.dumps(Map[int, int](pc.field("value") * 2)))
    assert run(copy, pa.record_batch({"value": [1]}), "batch") == [2]


def test_neither_function_nor_expression() -> None:
    with pytest.raises(
        TypeError,
        match=r"function must be a function of the record, or an expression over the batch, .* pyarrow.compute; got 'upper'",
    ):
        Map("upper")  # type: ignore[arg-type]
