"""Expressions over batches: in operators, for columns of all types, and their errors."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from dagflow.testing import check_operator, run_operator
from operators import Expect, Filter, Map, Sample, Select, Split, col, when
from operators.expressions import programs
from operators.transform.errors import ExpressionFailed, ExpressionRefused
from operators.transform.expressions import values_of
from tests.tiers import examples

ROWS = pa.record_batch({"shop": ["a", "b", None], "n": pa.array([1, 2, None], pa.int32())})


def test_operators_take_expressions_of_columns() -> None:
    def emitted(operator: Any, port: str = "output") -> Any:
        return run_operator(operator, {"input": [ROWS]})[port]

    assert emitted(Filter(col("n") > 1)) == [{"shop": "b", "n": 2}]
    assert emitted(Map(col("n") + 1)) == [2, 3, None]
    assert emitted(Expect(col("n") > 1, max_share=1.0), "failed") == [{"shop": "a", "n": 1}, {"shop": None, "n": None}]
    assert emitted(Split({"large": col("n") > 1}), "large") == [{"shop": "b", "n": 2}]
    assert emitted(Sample(1.0, key=col("n") % 2)) == ROWS.to_pylist()


@attrs.frozen
class Sale:
    shop: str
    n: int


def test_records_of_a_class_are_rows() -> None:
    assert run_operator(Filter[Sale](col("n") > 1), {"input": [Sale("a", 1), Sale("b", 2)]})["output"] == [Sale("b", 2)]
    check_operator(Filter[Sale](col("n") > 1), st.builds(Sale, st.text(max_size=1), st.integers(0, 3)), max_examples=examples(50))


def test_the_name_of_an_expectation_is_its_text() -> None:
    assert Expect(col("n") > 1).reject_limits()[0].name == "col('n') > 1"


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str
)
def test_strings_of_all_types(kind: pa.DataType) -> None:
    batch = pa.record_batch({"s": pa.array(["a", None, "b"], pa.string()).cast(kind)})
    assert values_of(batch, col("s").str.upper() + "!", "Map").to_pylist() == ["A!", None, "B!"]
    assert values_of(batch, when(col("s") == "a").then(col("s")).otherwise("x"), "Map").to_pylist() == ["a", "x", "x"]
    assert values_of(batch, col("s").isin(["a"]), "Map").to_pylist() == [True, None, False]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()], ids=str)
def test_integers_of_all_types(kind: pa.DataType) -> None:
    batch = pa.record_batch({"n": pa.array([100, None], kind)})
    assert values_of(batch, col("n") * 3 + 1, "Map").to_pylist() == [301, None]
    assert values_of(batch, col("n") < 300, "Map").to_pylist() == [True, None]
    assert values_of(batch, col("n") > -1, "Map").to_pylist() == [True, None]
    assert values_of(batch, col("n").isin([100, 2**63, -5]), "Map").to_pylist() == [True, None]
    assert values_of(batch, col("n").fill_null(0), "Map").type == kind


def test_large_unsigned_integers_stay_exact() -> None:
    batch = pa.record_batch({"n": pa.array([2**64 - 1], pa.uint64())})
    assert values_of(batch, col("n") - 1, "Map").to_pylist() == [2**64 - 2]
    with pytest.raises(ExpressionFailed):
        values_of(batch, col("n") + 1, "Map")
    with pytest.raises(ExpressionFailed):
        values_of(batch, col("n") + col("n").cast("uint64") * -1, "Map")


def test_times_with_a_zone_are_read_in_it() -> None:
    at = dt.datetime(2024, 1, 1, 23, tzinfo=dt.UTC)
    batch = pa.record_batch({"t": pa.array([at], pa.timestamp("us", "Asia/Tokyo"))})
    assert values_of(batch, col("t").dt.date(), "Map").to_pylist() == [dt.date(2024, 1, 2)]
    assert values_of(batch, col("t").dt.hour(), "Map").to_pylist() == [8]
    assert values_of(batch, col("t") == at, "Map").to_pylist() == [True]


@pytest.mark.parametrize(
    ("expression", "reason", "advice"),
    [
        (col("nn") + 1, "there is no column 'nn' in col('nn')", "write col('n')"),
        (col("shop") + 1, "+ does not take string and int64", "cast the column first"),
        (col("shop") > 1, "string and int64 have no type in common", "cast one of them"),
        (col("n") & True, "it takes true and false, and gets int32", "compare it with something"),
        (when(col("n")).then(1).otherwise(2), "the condition col('n') gives int32, but must be true or false", ""),
        (col("n").str.lower(), "it takes strings, and gets int32", "cast the column first"),
        (col("n").dt.year(), "it takes timestamps and dates, and gets int32", "cast the column first"),
        (col("n").cast("integer"), "did you mean 'int64'?", ""),
        (col("n") // 1.5, "// divides integers, not int32 and double", "write /"),
        (col("shop").abs(), "it takes numbers, and gets string", "cast the column first"),
    ],
)
def test_an_expression_that_does_not_fit(expression: Any, reason: str, advice: str) -> None:
    with pytest.raises(ExpressionRefused) as caught:
        values_of(ROWS, expression, "Map")
    assert reason in str(caught.value)
    assert advice in str(caught.value)
    assert f"expression  {expression}" in str(caught.value)


def test_a_filter_that_is_not_true_or_false() -> None:
    with pytest.raises(ExpressionRefused, match="it gives int64, but must be true or false"):
        run_operator(Filter(col("n") + 1), {"input": [ROWS]})


def test_a_row_without_a_value_is_named() -> None:
    batch = pa.record_batch({"n": [1, 2**62, 3], "m": [1, 2, 3]})
    with pytest.raises(ExpressionFailed) as caught:
        run_operator(Filter((col("n") * col("m")) + 1 > 0), {"input": [batch]})
    assert str(caught.value).splitlines()[:4] == [
        "Filter: overflow",
        "  expression  ((col('n') * col('m')) + 1) > 0",
        "  part        col('n') * col('m')",
        "  values      n = 4611686018427387904, m = 2",
    ]


def place_of(text: str) -> str:
    """Return the line and the column of a text in this file, whose first place is where it is written."""
    before, _, _ = Path(__file__).read_text().partition(text)
    return f"{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}"


def test_the_part_that_is_wrong_is_named_with_line_and_column() -> None:
    total = (
        col("n")
        + col("first_wrong").str.lower()
    )  # fmt: skip
    with pytest.raises(ExpressionRefused) as refused:
        run_operator(Select("*", total=total), {"input": [pa.record_batch({"n": [1], "first_wrong": [2]})]})
    assert f"  where       {refused.value.where}\n" in str(refused.value)
    assert refused.value.where.endswith(place_of('col("first_wrong")'))
    product = pickle.loads(pickle.dumps(1 + col("n") * col("second_wrong")))
    with pytest.raises(ExpressionFailed) as failed:
        run_operator(Map(product), {"input": [pa.record_batch({"n": [2**62], "second_wrong": [4]})]})
    assert failed.value.where.endswith(place_of('col("n") * col("second_wrong")'))


def test_rows_without_a_value_are_skipped_or_routed() -> None:
    batch = pa.record_batch({"value": ["1", "x", "3"]})
    emitted = run_operator(Map[str, int](col("value").cast("int64"), on_error="route"), {"input": [batch]})
    assert emitted["output"] == [1, 3]
    assert [error.record for error in emitted["errors"]] == ["x"]


def test_an_expression_is_compiled_once_for_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_programs", {})
    expression = col("n") + 1
    for _ in range(3):
        values_of(ROWS, expression, "Map")
    assert len(programs._programs) == 1
    other = ROWS.set_column(1, "n", pa.array([0.5, 1.5, None]))
    assert values_of(other, expression, "Map").to_pylist() == [1.5, 2.5, None]
    assert len(programs._programs) == 2
    monkeypatch.setattr(programs, "_MAX_PROGRAMS", 2)
    assert values_of(ROWS, col("n") + 2, "Map").to_pylist() == [3, 4, None]
    assert len(programs._programs) == 1
