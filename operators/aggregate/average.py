"""Average: the average of the values of each key, or of all."""

from __future__ import annotations

import decimal
from typing import Any, Generic

import attrs

from dagflow import OutputPort
from operators.aggregate.aggregate import AggregateOfValues, K, KeyValue, T, V
from operators.aggregate.groups.grouping import SUM, Grouping

DIGITS = decimal.Context(prec=38)
"""The digits of decimals in columns. Python's own context would round to 28."""


@attrs.define
class Average(AggregateOfValues[T, K, V], Generic[T, K, V]):
    """Average values of the records of each key, or of all records.

    An average of decimals is rounded to 38 digits, half to even, from an exact sum.

    Args:
        of: the values: a function of the record, or the name of a column. None is skipped. Without other values, the result is
            None.
        by, combiner, scope, running, output_mode: see `Aggregate`.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Average(lambda sale: sale[1], by=lambda sale: sale[0]), {"input": [("a", 1), ("b", 5), ("a", 3)]})["output"]
    [KeyValue(key='a', value=2.0), KeyValue(key='b', value=5.0)]
    >>> run_operator(Average(), {"input": [1, None, 5]})["output"]
    [KeyValue(key=None, value=3.0)]
    """

    output = OutputPort[KeyValue[K, Any]]()

    def grouping(self) -> Grouping:
        """Return groups by key, with the sum of its values."""
        return Grouping(self.by, self.of, SUM)

    def result(self, value: Any, count: int) -> Any:
        """Return the sum divided by the number of values; None without values."""
        if not count:
            return None
        return DIGITS.divide(value, count) if isinstance(value, decimal.Decimal) else value / count
