"""Sum: the sum of the values of each key, or of all."""

from __future__ import annotations

from typing import Generic

import attrs

from operators.aggregate.aggregate import AggregateOfValues, K, T, V
from operators.aggregate.groups.grouping import SUM, Grouping


@attrs.define
class Sum(AggregateOfValues[T, K, V], Generic[T, K, V]):
    """Add up values of the records of each key, or of all records.

    Integers are exact, of any size, and so are decimals of up to 400 digits (more are a bad record). The last digits of sums of
    floats depend on the order in which they are added.

    Args:
        of: the values: a function of the record, or the name of a column. None is skipped. Without other values, the result is
            None.
        by, combiner, scope, running, output_mode: see `Aggregate`.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Sum(lambda sale: sale[1], by=lambda sale: sale[0]), {"input": [("a", 1), ("b", 5), ("a", 3)]})["output"]
    [KeyValue(key='a', value=4), KeyValue(key='b', value=5)]
    >>> run_operator(Sum(), {"input": [1, None, 5]})["output"]
    [KeyValue(key=None, value=6)]
    """

    def grouping(self) -> Grouping:
        """Return groups by key, with the sum of its values."""
        return Grouping(self.by, self.of, SUM)
