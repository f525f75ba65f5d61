"""Count: how many records there are, of each key or of all."""

from __future__ import annotations

from typing import Any, Generic

import attrs

from operators.aggregate.aggregate import Aggregate, K, T
from operators.aggregate.groups.columns import COUNT
from operators.aggregate.groups.grouping import Grouping


@attrs.define
class Count(Aggregate[T, K, int], Generic[T, K]):
    """Count the records of each window, or of all so far: of each key, or all of them.

    Args:
        by, combiner, running: see `Aggregate`.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Count(by="value"), {"input": ["to", "be", "or", "not", "to", "be"]})["output"]
    [KeyValue(key='to', value=2), KeyValue(key='be', value=2), KeyValue(key='or', value=1), KeyValue(key='not', value=1)]
    >>> run_operator(Count(by=len), {"input": ["to", "be", "not"]})["output"]
    [KeyValue(key=2, value=2), KeyValue(key=3, value=1)]
    >>> run_operator(Count(), {"input": ["to", "be"]})["output"]
    [KeyValue(key=None, value=2)]
    """

    def grouping(self) -> Grouping:
        """By key, without values."""
        return Grouping(self.by)

    def result(self, value: Any, count: int) -> int:
        """The count."""
        return count

    def result_column(self) -> str | None:
        """The count."""
        return COUNT if type(self).result is Count.result else None
