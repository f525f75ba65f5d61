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

from dagflow.errors import ColumnTypeChanged
from dagflow.testing import OperatorTask, Window, run_operator
from operators import Average, GroupBy, Sum, Tumbling, agg
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
    "in windows": lambda values: (Sum("v"), [Window([batch([each])]) for each in values]),
    "records in windows": lambda values: (Sum(), [Window([each]) for each in values]),
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


def test_a_decimal_with_more_digits_than_any_column_is_a_bad_record() -> None:
    huge = Decimal("1E+38")
    with pytest.raises(Exception, match="needs 39 digits before the point and 0 behind it: a column has 38"):
        run_operator(Sum(), {"input": [Decimal(1), huge]})
    assert run_operator(Sum(on_error="skip"), {"input": [Decimal(1), huge, Decimal(2)]})["output"][0].value == 3


@pytest.mark.parametrize("values", [[MOST, MOST, MOST.copy_negate()], [Decimal(1), Decimal(1), Decimal(0)], [MOST] * 7])
def test_averages_are_rounded_once_to_a_float_as_those_of_totals_are(values: list[Decimal]) -> None:
    expected = float(sum(map(Fraction, values)) / len(values))
    (totals,) = run_operator(GroupBy(mean=agg.mean("v")), {"input": [batch(values)]})["output"]
    assert totals["mean"] == expected
    for given_ in (values, [batch(values)]):
        average = Average() if given_ is values else Average("v")
        assert run_operator(average, {"input": given_})["output"][0].value == expected


def test_keys_of_other_digits_are_one_group_and_of_another_scale_are_refused() -> None:
    """Of another scale, the text of a row that is taken back is not that of the row that stands."""
    with OperatorTask(GroupBy("v", n=agg.count()), in_batches=True) as task:
        for digits in (4, 30):
            task.give("input", pa.record_batch({"v": pa.array([Decimal("1.50")], pa.decimal128(digits, 2))}))
            rows = task.end_window()["output"]
        assert rows == [{"v": Decimal("1.50"), "n": 2}]
        task.give("input", pa.record_batch({"v": pa.array([Decimal("1.5")], pa.decimal128(4, 1))}))
        with pytest.raises(ColumnTypeChanged, match="'v' is decimal128\\(4, 1\\), and was"):
            task.end_window()
