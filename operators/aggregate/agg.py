"""The aggregates of `GroupBy`: `from operators import agg`, then `agg.count()`, `agg.sum("price")`.

They mean what they mean in SQL: a null is not a value, and without values the result is null (a count is 0).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import attrs
import pyarrow as pa

from dagflow.arrow_types import type_named
from dagflow.config import one_of
from operators.aggregate.accumulators import Accumulator, Function
from operators.aggregate.errors import ValueColumnRefused
from operators.aggregate.ordered_rows import plain_type, type_of_rows
from operators.names import a_column, one_or_more


def _a_share(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"a quantile is of a share from 0 to 1, not {value!r}")


@attrs.frozen
class Aggregation:
    """One aggregate of a `GroupBy`: a function, and the column that it is of; None for the rows.

    `share`: of a quantile. `order_by`: the columns that decide which row is the first one.
    """

    function: Function = attrs.field(validator=one_of(get_args(Function)))
    column: str | None = attrs.field(default=None, validator=attrs.validators.optional(a_column))
    share: float | None = attrs.field(default=None, validator=attrs.validators.optional(_a_share))
    order_by: tuple[str, ...] = attrs.field(default=(), converter=one_or_more, validator=attrs.validators.deep_iterable(a_column))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return () if self.column is None else (self.column, *self.order_by)

    def values_type(self, rows: pa.Schema, ties: Iterable[str]) -> pa.DataType:
        """Return the type of the values of rows that it aggregates. Raises ValueColumnRefused.

        `ties`: the columns that decide between rows which are equal in the order.
        """
        if self.column is None:
            return pa.int64()
        if not self.order_by:
            return rows.field(self.column).type
        kind = type_of_rows(rows, self.order_by, {*ties, self.column})
        for name in self.columns:
            if kind.get_field_index(name) < 0:
                raise ValueColumnRefused(column=name, type=str(rows.field(name).type), lack="compared")
        return kind

    def result_type(self, column_type: str | None) -> str | None:
        """Return the type of the results, by that of the column: as text, None for an unknown one.

        >>> sum("price").result_type("int16"), mean("price").result_type(None), max("price").result_type("date32[day]")
        ('int64', None, 'date32[day]')
        """
        if self.function in ("count", "count_distinct"):
            return "int64"
        if self.function in ("quantile", "stddev"):
            return "double"
        if column_type is None:  # a mean is a float, but of durations a duration
            return None
        try:
            if self.order_by:
                return str(plain_type(type_named(column_type)))
            return str(Accumulator.of("", self.function, self.column, type_named(column_type)).result_type)
        except (ValueError, ValueColumnRefused):  # of a type that has no name, or that rows will be refused for
            return None

    def __str__(self) -> str:
        """Return it as it is written."""
        given = [repr(each) for each in (self.column, self.share) if each is not None]
        if self.order_by:
            name = "order_by" if self.function in ("first", "last") else "by"
            given.append(f"{name}={(self.order_by[0] if len(self.order_by) == 1 else self.order_by)!r}")
        return f"agg.{self.function}({', '.join(given)})"


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


def count_distinct(column: str) -> Aggregation:
    """Count the different values of a column. All NaN are one value. All different values are kept."""
    return Aggregation("count_distinct", column)


def quantile(column: str, share: float) -> Aggregation:
    """Return the quantile of a column of numbers as a float: 0.5 for the median. All different values are kept.

    Between two values it lies in proportion, as by `quantile_cont` of SQL, NumPy and pandas. NaN is larger than all numbers.
    """
    return Aggregation("quantile", column, share)


def stddev(column: str) -> Aggregation:
    """Return the sample standard deviation of a column of numbers as a float: null for less than two values.

    It is computed exactly and rounded once, so the order of rows does not matter. All different values are kept.
    """
    return Aggregation("stddev", column)


def collect(column: str) -> Aggregation:
    """Return all values of a column as a list, in their order: nulls are none."""
    return Aggregation("collect", column)


def first(column: str, *, order_by: str | Iterable[str]) -> Aggregation:
    """Return the value of a column in the first row in the order of some columns. The value may be null.

    Rows that are equal in `order_by` are ordered by all columns that the `GroupBy` reads, by name, but those that it only counts.
    So aggregates with the same `order_by` take their values from one row. Nulls come last in the order, and NaN after all
    numbers.
    """
    return Aggregation("first", column, order_by=_some(order_by))


def last(column: str, *, order_by: str | Iterable[str]) -> Aggregation:
    """Return the value of a column in the last row. See `first`; a row with a null in the order is not preferred here either."""
    return Aggregation("last", column, order_by=_some(order_by))


def arg_min(column: str, *, by: str | Iterable[str]) -> Aggregation:
    """Return the value of a column in the row with the smallest value of another one; null without any. See `first`."""
    return Aggregation("arg_min", column, order_by=_some(by))


def arg_max(column: str, *, by: str | Iterable[str]) -> Aggregation:
    """Return the value of a column in the row with the largest value of another one; null without any. See `first`."""
    return Aggregation("arg_max", column, order_by=_some(by))


def _some(order_by: str | Iterable[str]) -> tuple[str, ...]:
    if not (names := one_or_more(order_by)):
        raise ValueError("it needs the name of a column that decides the order, or several")
    return names
