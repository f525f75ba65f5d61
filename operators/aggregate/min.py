"""Min: the smallest value of each key, or of all."""

from __future__ import annotations

from typing import Generic

import attrs

from operators.aggregate.aggregate import AggregateOfValues, K, T, V
from operators.aggregate.groups.grouping import Grouping, Merge, least


@attrs.define
class Min(AggregateOfValues[T, K, V], Generic[T, K, V]):
    """Find the smallest value of the records of each key, or of all records.

    NaN is the result only where all values are NaN.

    Args:
        of: the values: a function of the record, or the name of a column. None is skipped. Without other values, the result is
            None.
        by, combiner, scope, running, output_mode: see `Aggregate`.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Min(lambda sale: sale[1], by=lambda sale: sale[0]), {"input": [("a", 1), ("b", 5), ("a", 3)]})["output"]
    [KeyValue(key='a', value=1), KeyValue(key='b', value=5)]
    >>> run_operator(Min(), {"input": [1, None, 5]})["output"]
    [KeyValue(key=None, value=1)]
    """

    def grouping(self) -> Grouping:
        """Return groups by key, with the smallest of its values."""
        return Grouping(self.by, self.of, Merge(least, "min"))
