"""Max: the largest value of each key, or of all."""

from __future__ import annotations

from typing import ClassVar, Generic

import attrs

from operators.aggregate.accumulators import Function
from operators.aggregate.aggregate import AggregateOfValues, K, T, V


@attrs.define
class Max(AggregateOfValues[T, K, V], Generic[T, K, V]):
    """Find the largest value of the records of each key, or of all records.

    Values are numbers, strings, bytes, dates, times or durations, all of one kind; others are bad records. NaN is larger than all
    numbers.

    Args:
        of: the values: a function of the record, or the name of a column. None is skipped. Without other values, the result is
            None.
        by, combiner, scope: see `Aggregate`.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Max(lambda sale: sale[1], by=lambda sale: sale[0]), {"input": [("a", 1), ("b", 5), ("a", 3)]})["output"]
    [KeyValue(key='a', value=3), KeyValue(key='b', value=5)]
    >>> run_operator(Max(), {"input": [1, None, 5]})["output"]
    [KeyValue(key=None, value=5)]
    """

    function: ClassVar[Function] = "max"
