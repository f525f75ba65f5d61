"""Decimals that may need more than 38 digits: the results are those of all digits, whatever values come first."""

from __future__ import annotations

import decimal
import math
import operator
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators import col, lit
from operators.expressions.programs import narrow_for
from operators.transform.errors import ExpressionFailed
from operators.transform.expressions import columns_of, values_of

EXACT = decimal.Context(prec=120)
OPERATIONS = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}
EXPRESSIONS = {"+": col("a") + col("b"), "-": col("a") - col("b"), "*": col("a") * col("b")}
TYPES = [(38, 0), (38, 6), (30, 2), (32, 4), (20, 10), (38, 18)]


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal | None]:
    bounds = st.sampled_from([10, 10**9, 10**18, 10**precision]).map(lambda bound: min(bound, 10**precision) - 1)
    whole = bounds.flatmap(lambda bound: st.integers(-bound, bound))
    return st.none() | whole.map(lambda number: Decimal(f"{number}e-{scale}"))


@st.composite
def batches(draw: st.DrawFn) -> list[pa.RecordBatch]:
    """Batches of two columns of decimals."""
    one, other = (draw(st.sampled_from(TYPES)) for _ in range(2))
    rows = st.lists(st.tuples(decimals(*one), decimals(*other)), min_size=1, max_size=4)

    def batch(pairs: list[Any]) -> pa.RecordBatch:
        columns = [
            pa.array(values, pa.decimal128(*kind)) for values, kind in zip(zip(*pairs, strict=True), (one, other), strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=["a", "b"])

    return [batch(draw(rows)) for _ in range(draw(st.integers(1, 3)))]


@given(batches(), st.sampled_from("+-*"))
def test_results_have_all_digits(some: list[pa.RecordBatch], symbol: str) -> None:
    places = some[0].schema.field("a").type.scale, some[0].schema.field("b").type.scale
    scale = sum(places) if symbol == "*" else max(places)
    for batch in some:
        pairs = zip(batch.column("a").to_pylist(), batch.column("b").to_pylist(), strict=True)
        expected = [None if None in pair else OPERATIONS[symbol](*pair) for pair in pairs]
        fits = all(each is None or abs(each) < Decimal(f"1e{38 - scale}") for each in expected)
        if fits:
            assert values_of(batch, EXPRESSIONS[symbol], "X").to_pylist() == expected
        else:
            with pytest.raises(ExpressionFailed):
                values_of(batch, EXPRESSIONS[symbol], "X")


def test_few_digits_are_tried_until_a_value_needs_more() -> None:
    kind = pa.decimal128(32, 4)
    product = col("a") * col("b")

    def batch(value: str) -> pa.RecordBatch:
        return pa.record_batch({"a": pa.array([Decimal(value)], kind), "b": pa.array([Decimal(3)], kind)})

    small, large = batch("2.5"), batch("9" * 28)
    assert values_of(small, product, "X").to_pylist() == [Decimal("7.5")]
    assert narrow_for(product, small.schema) is not None
    assert values_of(large, product, "X").to_pylist() == [Decimal(3 * int("9" * 28))]
    assert narrow_for(product, small.schema) is None
    assert values_of(small, product, "X").to_pylist() == [Decimal("7.5")]


@pytest.mark.parametrize("number", [sys.float_info.max, -sys.float_info.max, math.inf, math.nan, 5e-324, 0.0])
@pytest.mark.parametrize("kind", [pa.decimal128(5, -2), pa.decimal128(38, 38), pa.decimal128(20, 3)])
def test_decimals_are_compared_with_any_float(kind: pa.DataType, number: float) -> None:
    scale = 10**-kind.scale if kind.scale < 0 else Decimal(f"1e-{kind.scale}")
    values = [Decimal(-7) * scale, Decimal(0), Decimal(12) * scale]
    batch = pa.record_batch({"d": pa.array(values, kind)})
    for expression, compare in ((col("d") < number, operator.lt), (col("d") >= number, operator.ge)):
        assert values_of(batch, expression, "X").to_pylist() == [compare(float(value), number) for value in values]


NUMBERS = st.floats() | st.integers(-(10**9), 10**9).map(lambda number: number / 100)


@given(
    st.lists(decimals(15, 2), min_size=1, max_size=5), NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.booleans()
)
def test_decimals_are_compared_as_the_nearest_floats(some: list[Any], number: float, symbol: str, flipped: bool) -> None:
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}[
        symbol
    ]
    batch = pa.record_batch({"d": pa.array(some, pa.decimal128(15, 2))})
    expression = compare(lit(number), col("d")) if flipped else compare(col("d"), number)
    pairs = [None if value is None else (number, float(value)) if flipped else (float(value), number) for value in some]
    expected = [None if pair is None else compare(*pair) for pair in pairs]
    assert values_of(batch, expression, "X").to_pylist() == expected


def test_a_cast_to_more_places_does_not_wrap() -> None:
    columns = {
        "a": pa.array([Decimal(8170106367488376172602131352)], pa.decimal128(38, 2)),
        "b": pa.array([Decimal("0.5")], pa.decimal128(20, 12)),
    }
    batch = pa.record_batch(columns)
    for expression in (col("a") + col("b"), col("a") - col("b")):
        with pytest.raises(ExpressionFailed):
            values_of(batch, expression, "X")


def test_another_error_says_nothing_of_digits() -> None:
    kind = pa.decimal128(32, 4)
    product = col("a") * col("a")
    rows = {"a": pa.array([Decimal(2)], kind)}
    good, bad = (pa.record_batch({**rows, "text": [text]}) for text in ("1", "x"))
    both = {"product": product, "number": col("text").cast("int64")}
    assert columns_of(good, both, "X").to_pylist() == [{"product": Decimal(4), "number": 1}]
    with pytest.raises(ExpressionFailed):
        columns_of(bad, both, "X")
    assert narrow_for(product, good.schema) is not None
