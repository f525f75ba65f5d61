from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.model.graph.infer import own_bindings, port_types
from dagflow.testing import OperatorTask, run_operator
from operators import FlatMap
from operators.transform.errors import ExpressionRefused, NotSeveral

TEXTS = st.lists(st.text(alphabet="a,é", max_size=5), max_size=10)


def run(operator: Any, data: Any, form: str) -> list[Any]:
    return run_operator(operator, {"input": [data] if form == "batch" else data}, form=form)["output"]


@given(TEXTS, st.integers(0, 10))
def test_a_function_in_both_forms_and_an_expression_agree(texts: list[str], at: int) -> None:
    expected = [part for text in texts for part in text.split(",")]
    by_function, by_expression = (
        FlatMap[str, str](lambda t: t.split(",")),
        FlatMap[str, str](pc.split_pattern(pc.field("value"), ",")),
    )
    assert run(by_function, texts, "record") == run(by_function, texts, "stream") == expected
    whole = pa.record_batch([pa.array(texts, pa.string())], names=["value"])
    assert run(by_expression, whole, "batch") == expected
    assert run(by_expression, whole.slice(0, at), "batch") + run(by_expression, whole.slice(at), "batch") == expected


def test_a_null_list_is_an_empty_one() -> None:
    lists = pa.record_batch([pa.array([[1, 2], None, [], [3]], pa.list_(pa.int64()))], names=["value"])
    assert run(FlatMap(pc.field("value")), lists, "batch") == [1, 2, 3]


def test_a_long_iterable_is_never_held_as_a_whole() -> None:
    made = 0

    def many(count: int) -> Iterator[int]:
        nonlocal made
        for n in range(count):
            made = n
            yield n

    operator = FlatMap(many)
    with OperatorTask(operator) as task:
        seen: list[int] = []

        def emit_all(records: Any) -> None:
            seen.extend(made - record for record in records)  # how far the generator is ahead of what was taken

        operator.output.emit_all = emit_all  # type: ignore[method-assign]
        task.give("input", [10_000], "stream")
    assert len(seen) == 10_000
    assert set(seen) == {0}


def test_what_a_generator_yielded_before_it_raised_is_emitted() -> None:
    def digits(text: str) -> Iterator[int]:
        yield from map(int, text)

    found = run_operator(FlatMap(digits, on_error="route"), {"input": ["12", "3x4", "5"]}, form="stream")
    assert found["output"] == [1, 2, 3, 5]
    assert [error.record for error in found["errors"]] == ["3x4"]


def test_the_element_type_is_inferred() -> None:
    def words(text: str) -> list[str]:
        return text.split()

    types = port_types(FlatMap(words), own_bindings(FlatMap(words)))
    assert (types["input"], types["output"]) == (str, str)


def test_an_expression_that_gives_no_lists() -> None:
    with pytest.raises(ExpressionRefused) as caught:
        run(FlatMap(pc.utf8_upper(pc.field("value"))), pa.record_batch({"value": ["a"]}), "batch")
    assert str(caught.value) == (
        "FlatMap: it gives string, but must give lists\n  expression  utf8_upper(value)\n  columns     value (string)\n"
        "  help: use Map where every record becomes exactly one"
    )


def shout(text: str) -> str:
    return text.upper()


def nothing(text: str) -> list[str] | None:
    return None if text else []


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (shout, r"shout\(\) \(.*test_flat_map.py:\d+\) returns str,"),
        (nothing, "returns None,"),
        (str, r"str\(\) returns str"),
        (int, "int"),
    ],
)
def test_an_annotation_that_says_one_record_is_refused_with_the_dag(function: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        FlatMap(function).check()


def test_annotations_of_several_records_are_fine() -> None:
    def yields(text: str) -> Iterator[str]:
        yield text

    for function in (yields, str.split, list, lambda text: text):
        FlatMap[Any, Any](function).check()


@pytest.mark.parametrize("form", ["record", "stream"])
@pytest.mark.parametrize(("function", "got"), [(lambda text: text.upper(), "'A'"), (lambda text: None, "None"), (len, "1")])
def test_one_record_where_several_belong_is_told_at_run_time(form: str, function: Any, got: str) -> None:
    with OperatorTask(FlatMap[str, Any](function)) as task, pytest.raises(NotSeveral, match=f"returned {got}") as caught:
        task.give("input", "a", form)
    assert task.emitted.get("output", []) == []
    assert ("test_flat_map.py:" in str(caught.value)) == (function is not len)


def test_the_run_names_operator_window_and_record() -> None:
    with pytest.raises(NotSeveral) as caught:
        run_operator(FlatMap[str, str](lambda text: text if text == "bad" else [text]), {"input": ["good", "bad"]})
    assert caught.value.notes == ["  operator 'operator' in apply_all() of port 'input', window 0, record 'bad'"]
    skipped = run_operator(
        FlatMap[str, str](lambda text: text if text == "bad" else [text], on_error="skip"), {"input": ["good", "bad", "x"]}
    )
    assert skipped["output"] == ["good", "x"]
