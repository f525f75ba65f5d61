"""Decimals in aggregates: sums are exact, whatever Python's decimal context is, and averages have the digits of a column."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.testing import Window, run_operator
from operators import Average, Sum, Tumbling
from tests.tiers import examples

MOST = Decimal(10**38 - 1).scaleb(-18, decimal.Context(prec=60))
DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-18, decimal.Context(prec=60)))


def batch(values: list[Any]) -> pa.RecordBatch:
    return pa.record_batch({"v": pa.array(values, pa.decimal128(38, 18)), "at": pa.array([0] * len(values), pa.timestamp("us"))})


def tumbling(time: Any) -> Any:
    return Tumbling(60, time=time, aggregate="sum", of="v")


SUMS: dict[str, Any] = {
    "columns": lambda values: (Sum("v"), [Window([batch(values)])]),
    "records": lambda values: (Sum(), [Window(values)]),
    "by key": lambda values: (Sum("v", by="at"), [Window([batch(values)])]),
    "running": lambda values: (Sum("v", running=True), [Window([batch([each])]) for each in values]),
    "running, of records": lambda values: (Sum(running=True), [Window([each]) for each in values]),
    "time windows": lambda values: (tumbling("at"), [Window([batch(values)])]),
    "open time windows": lambda values: (tumbling("at"), [Window([batch([each])]) for each in values]),
    "time windows of records": lambda values: (
        Tumbling(60, time=lambda _: 0, aggregate="sum", of=lambda each: each),
        [Window(values)],
    ),
}


@pytest.mark.parametrize("kind", SUMS)
@settings(max_examples=examples(20), deadline=None)
@given(values=st.lists(DECIMALS, min_size=1, max_size=6))
def test_sums_are_exact(kind: str, values: list[Decimal]) -> None:
    operator, windows = SUMS[kind](values)
    with decimal.localcontext(prec=5):
        found = run_operator(operator, {"input": windows})["output"][-1].value
    assert Fraction(found) == sum(map(Fraction, values))


def test_a_sum_with_more_digits_than_any_column_is_a_bad_record() -> None:
    huge = Decimal("1E+500")
    with pytest.raises(Exception, match="has more than 400 digits"):
        run_operator(Sum(), {"input": [Decimal(1), huge]})
    assert run_operator(Sum(on_error="skip"), {"input": [Decimal(1), huge, Decimal(2)]})["output"][0].value == 3


@pytest.mark.parametrize("values", [[MOST, MOST, MOST.copy_negate()], [Decimal(1), Decimal(1), Decimal(0)], [MOST] * 7])
def test_averages_have_the_digits_of_a_column(values: list[Decimal]) -> None:
    whole = sum(map(Fraction, values)) / len(values)
    expected = decimal.Context(prec=38).divide(Decimal(whole.numerator), Decimal(whole.denominator))
    for given_ in (values, [batch(values)]):
        average = Average() if given_ is values else Average("v")
        assert run_operator(average, {"input": given_})["output"][0].value == expected
