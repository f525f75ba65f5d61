"""Distinct: each row once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import attrs

from dagflow import StateSize, StreamColumns, TableState
from operators.aggregate.fields import no_key
from operators.aggregate.group_by import GroupBy
from operators.problems import all_problems


@attrs.define(init=False)
class Distinct(GroupBy):
    """Each different row once. `SELECT DISTINCT` of SQL.

    Args:
        keys: the columns that are compared, and that the rows have then. None: all columns. Nulls are equal, and so are all NaN.
        scope: the input within which rows are compared. `all`: all input so far. Rows are kept over windows and launches.
            `window`: a window, however the input is cut.
        combiner: whether rows are compared before the exchange too, so that few cross it.

    A row is taken back when all that are equal to it have been: where rows only come, no row is. Rows come in order.

    >>> from dagflow.testing import run_operator
    >>> import pyarrow as pa
    >>> sales = pa.record_batch({"shop": ["b", "a", "b"], "price": [5, 7, 5]})
    >>> run_operator(Distinct("shop"), {"input": [sales]})["output"]
    [{'shop': 'a'}, {'shop': 'b'}]
    """

    kept = TableState(record_key=no_key, format_version=2)

    @property
    def emits_changes(self) -> bool | None:  # type: ignore[override]
        """None where rows that come are never taken back."""
        return None if self.scope == "all" else False

    def check(self) -> None:
        """Raise ValueError where there are aggregates."""
        with all_problems(super().check) as problems:
            if self.aggregates:
                problems.append("Distinct has no aggregates: write GroupBy")

    def state_size(self, changing: Collection[str]) -> StateSize:
        """Return that all different rows are kept."""
        return StateSize("all different rows") if not self.keys else super().state_size(changing)

    def lacks(self) -> str:
        """Return nothing: without columns, all are compared."""
        return ""

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return the columns that are compared, which together identify a row."""
        if self.keys or port != "output":
            return super().result_columns(port, arriving)
        before = arriving("input")
        return before if before.types is None or self.scope == "window" else before.also_unique(*before.types)

    def partition_key(self, port: str) -> Any:
        """Return the key: equal rows reach one partition."""
        return super().partition_key(port) if self.keys else "*"
