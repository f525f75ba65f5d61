"""The aggregates of `GroupBy`: `from operators import agg`, then `agg.count()`, `agg.sum("price")`.

They mean what they mean in SQL: a null is not a value, and without values the result is null (a count is 0).
"""

from __future__ import annotations

import attrs

from dagflow.config import one_of
from operators.aggregate.accumulators import Function


@attrs.frozen
class Aggregation:
    """One aggregate of a `GroupBy`: a function, and the column that it is of; None for the rows."""

    function: Function = attrs.field(validator=one_of(("count", "sum", "mean", "min", "max")))
    column: str | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.instance_of(str)))

    def __str__(self) -> str:
        """Return it as it is written."""
        return f"agg.{self.function}({'' if self.column is None else repr(self.column)})"


def count(column: str | None = None) -> Aggregation:
    """Count the rows, or those with a value in a column."""
    return Aggregation("count", column)


def sum(column: str) -> Aggregation:  # noqa: A001  # the name that everybody knows
    """Add up a column: exactly, whatever the order; floats are rounded once."""
    return Aggregation("sum", column)


def mean(column: str) -> Aggregation:
    """Return the mean of a column as a float: the exact sum by the number of values, rounded once."""
    return Aggregation("mean", column)


def min(column: str) -> Aggregation:  # noqa: A001
    """Return the smallest value of a column. NaN is larger than all numbers."""
    return Aggregation("min", column)


def max(column: str) -> Aggregation:  # noqa: A001
    """Return the largest value of a column. NaN is larger than all numbers."""
    return Aggregation("max", column)
