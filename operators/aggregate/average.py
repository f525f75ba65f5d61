"""Average: the average of the values of each key, or of all."""

from __future__ import annotations

from typing import Any, ClassVar, Generic

import attrs

from dagflow import OutputPort
from operators.aggregate.accumulators import Function
from operators.aggregate.aggregate import AggregateOfValues, K, KeyValue, T, V


@attrs.define
class Average(AggregateOfValues[T, K, V], Generic[T, K, V]):
    """Average values of the records of each key, or of all records.

    It is a float, which is rounded once, from the exact sum; of durations a duration.

    Args:
        of: the values: a function of the record, or the name of a column. None is skipped. Without other values, the result is
            None.
        by, combiner, scope: see `Aggregate`.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Average(lambda sale: sale[1], by=lambda sale: sale[0]), {"input": [("a", 1), ("b", 5), ("a", 3)]})["output"]
    [KeyValue(key='a', value=2.0), KeyValue(key='b', value=5.0)]
    >>> run_operator(Average(), {"input": [1, None, 5]})["output"]
    [KeyValue(key=None, value=3.0)]
    """

    function: ClassVar[Function] = "mean"

    output = OutputPort[KeyValue[K, Any]]()
