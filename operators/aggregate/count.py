"""Count: the number of records of each key, or of all."""

from __future__ import annotations

from typing import Any, Generic

import attrs

from operators.aggregate.aggregate import Aggregate, K, T
from operators.aggregate.groups.columns import COUNT
from operators.aggregate.groups.grouping import Grouping


@attrs.define
class Count(Aggregate[T, K, int], Generic[T, K]):
    """Count the records of each key, or all records.

    Args:
        by, combiner, scope, running, output_mode: see `Aggregate`.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Count(by="value"), {"input": ["to", "be", "or", "not", "to", "be"]})["output"]
    [KeyValue(key='to', value=2), KeyValue(key='be', value=2), KeyValue(key='or', value=1), KeyValue(key='not', value=1)]
    >>> run_operator(Count(by=len), {"input": ["to", "be", "not"]})["output"]
    [KeyValue(key=2, value=2), KeyValue(key=3, value=1)]
    >>> run_operator(Count(), {"input": ["to", "be"]})["output"]
    [KeyValue(key=None, value=2)]
    """

    def grouping(self) -> Grouping:
        """Return groups by key, without values."""
        return Grouping(self.by)

    def result(self, value: Any, count: int) -> int:
        """Return the count."""
        return count

    def result_column(self) -> str | None:
        """Return the column of the counts."""
        return COUNT if type(self).result is Count.result else None
