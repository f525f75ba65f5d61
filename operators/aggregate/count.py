"""Count: the number of records of each key, or of all."""

from __future__ import annotations

from typing import ClassVar, Generic

import attrs

from operators.aggregate.accumulators import Function
from operators.aggregate.aggregate import Aggregate, K, T


@attrs.define
class Count(Aggregate[T, K, int], Generic[T, K]):
    """Count the records of each key, or all records.

    Args:
        by, combiner, scope: see `Aggregate`.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Count(by="value"), {"input": ["to", "be", "or", "not", "to", "be"]})["output"]
    [KeyValue(key='be', value=2), KeyValue(key='not', value=1), KeyValue(key='or', value=1), KeyValue(key='to', value=2)]
    >>> run_operator(Count(by=len), {"input": ["to", "be", "not"]})["output"]
    [KeyValue(key=2, value=2), KeyValue(key=3, value=1)]
    >>> run_operator(Count(), {"input": ["to", "be"]})["output"]
    [KeyValue(key=None, value=2)]
    """

    function: ClassVar[Function] = "count"
