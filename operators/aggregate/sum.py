"""Sum: the sum of the values of each key, or of all."""

from __future__ import annotations

from typing import ClassVar, Generic

import attrs

from operators.aggregate.accumulators import Function
from operators.aggregate.aggregate import AggregateOfValues, K, T, V


@attrs.define
class Sum(AggregateOfValues[T, K, V], Generic[T, K, V]):
    """Add up values of the records of each key, or of all records.

    Values are integers of 64 bits, floats, decimals of 38 digits, or durations; others are bad records. Sums are exact: those of
    floats are rounded once, to the result.

    Args:
        of: the values: a function of the record, or the name of a column. None is skipped. Without other values, the result is
            None.
        by, combiner, scope: see `Aggregate`.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Sum(lambda sale: sale[1], by=lambda sale: sale[0]), {"input": [("a", 1), ("b", 5), ("a", 3)]})["output"]
    [KeyValue(key='a', value=4), KeyValue(key='b', value=5)]
    >>> run_operator(Sum(), {"input": [1, None, 5]})["output"]
    [KeyValue(key=None, value=6)]
    """

    function: ClassVar[Function] = "sum"
