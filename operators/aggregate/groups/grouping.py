"""Groups of records by key: a value and a count for each, from records or from batches."""

from __future__ import annotations

import decimal
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from operator import add
from typing import Any

import attrs
import pyarrow as pa

from operators.aggregate.fields import check_keys, check_objects, check_values, getter, names_of, one_nan
from operators.aggregate.groups.columns import COUNT, KEY, VALUE, ColumnGroups, grouped, is_plain

Groups = dict[Any, list[Any]]
"""Key → the value (None: none has come) and the count."""


@attrs.frozen
class Merge:
    """The function that makes one value of two, and the function of pyarrow's group_by that does the same: sum, min or max.

    `exact`: the function where `both` makes a decimal, which Python rounds to 28 digits; None: the same.
    """

    both: Callable[[Any, Any], Any]
    arrow: str
    exact: Callable[[Any, Any], Any] | None = None

    def of(self, one: Any, other: Any) -> Any:
        """Return one value of two."""
        value = self.both(one, other)
        return self.exact(one, other) if self.exact is not None and isinstance(value, Decimal) else value


EXACT = decimal.Context(prec=400, traps=[*decimal.DefaultContext.traps, decimal.Inexact])
"""Raises where a sum has more digits, which no column has."""


def exact_sum(one: Decimal | int, other: Decimal | int) -> Decimal:
    """Return the sum of decimals, whatever Python's context says. Raises OverflowError for one that has too many digits.

    >>> exact_sum(Decimal("12345678901234567890123456789.5"), Decimal("0.125"))
    Decimal('12345678901234567890123456789.625')
    """
    try:
        return EXACT.add(one, other)
    except decimal.Inexact:
        raise OverflowError(f"the sum of {one:.9e} and {other:.9e} has more than {EXACT.prec} digits") from None


SUM = Merge(add, "sum", exact_sum)


def least(one: Any, other: Any) -> Any:
    """Return the smaller one; NaN only where both are."""
    return other if other < one or one != one else one


def greatest(one: Any, other: Any) -> Any:
    """Return the larger one; NaN only where both are."""
    return other if other > one or one != one else one


@attrs.frozen
class Grouping:
    """The key of groups, and their values: those of `of` that are not None; without `of`, records are counted."""

    by: Any
    of: Any = None
    merge: Merge | None = None

    @property
    def is_by_names(self) -> bool:
        """True if batches can be grouped too."""
        return not callable(self.by) and not callable(self.of)

    def add_records(self, groups: Groups, records: Iterator[Any]) -> None:
        """Take records in."""
        key_of = getter(self.by)
        if self.merge is None:
            counts: Counter[Any] = Counter()
            try:
                counts.update(map(key_of, records))
            finally:  # what came before a record that raises is counted
                for key, count in counts.items():
                    self.add(groups, key, None, count)
            return
        value_of, both, exact = getter(self.of), self.merge.both, self.merge.exact
        for record in records:
            key, value = key_of(record), value_of(record)
            group = groups.setdefault(key, [None, 0])
            if value is not None:
                if (before := group[0]) is None:
                    group[0] = value
                else:
                    total = both(before, value)  # as `Merge.of`, without a call
                    group[0] = exact(before, value) if isinstance(total, Decimal) and exact is not None else total
                group[1] += 1

    def add_batch(self, groups: Groups, columns: ColumnGroups, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch in: many at once by pyarrow, where it gives the same result as Python."""
        check_keys(batch, self.by)
        if self.merge is not None:
            check_values(batch.schema, self.of, self.merge.arrow)
        check_objects(batch, self.by, None if self.merge is None else self.of)
        named = {f"k{number}": batch.column(name) for number, name in enumerate(names_of(self.by))}
        if self.merge is not None:
            named[VALUE] = batch.column(names_of(self.of)[0])
        if not named:
            self.add(groups, None, None, batch.num_rows)
            return
        self._add_table(groups, columns, pa.table(named), columns.take_rows)

    def add_partials(self, groups: Groups, columns: ColumnGroups, batch: pa.RecordBatch) -> None:
        """Take a batch of partial results in: `key`, `value`, `count` and `large`."""
        if batch.column("large").null_count < batch.num_rows or type(self.by) is tuple:
            self.fold(groups, columns)
            rows = zip(*(batch.column(name).to_pylist() for name in ("key", VALUE, COUNT, "large")), strict=True)
            for key, value, count, large in rows:
                self.add(groups, key, value if large is None else int(large, 16), count)
            return
        named = {KEY: batch.column("key"), COUNT: batch.column(COUNT)}
        if self.merge is not None:
            named[VALUE] = batch.column(VALUE)
        self._add_table(groups, columns, pa.table(named), columns.take_groups)

    def _add_table(self, groups: Groups, columns: ColumnGroups, table: pa.Table, take: Callable[[pa.Table], None]) -> None:
        columns.merge = None if self.merge is None else self.merge.arrow
        if not all(is_plain(table.column(name).type) for name in table.column_names if name not in (VALUE, COUNT)):
            self.fold(groups, columns)
            self._add_rows(groups, grouped([table], columns.merge) or table)
            return
        if not columns.fits(table):
            self.fold(groups, columns)
        take(table)
        if columns.is_full and not columns.compact():
            self.fold(groups, columns)

    def fold(self, groups: Groups, columns: ColumnGroups) -> None:
        """Move the content of columns into groups."""
        columns.compact(last=True)
        for table in columns.drain():
            self._add_rows(groups, table)

    def _add_rows(self, groups: Groups, table: pa.Table) -> None:
        """Take groups, or rows, in as Python objects."""
        parts = [table.column(name).to_pylist() for name in table.column_names if name not in (VALUE, COUNT)]
        keys = [None] * table.num_rows if self.by is None else zip(*parts, strict=True) if type(self.by) is tuple else parts[0]
        values = [None] * table.num_rows if self.merge is None else table.column(VALUE).to_pylist()
        if COUNT in table.column_names:
            counts = table.column(COUNT).to_pylist()
        else:
            counts = [1 if self.merge is None else int(value is not None) for value in values]
        for key, value, count in zip(keys, values, counts, strict=True):
            self.add(groups, key, value, count)

    def add(self, groups: Groups, key: Any, value: Any, count: int) -> None:
        """Add a value and a count to a group."""
        group = groups.setdefault(key, [None, 0])
        if value is not None and self.merge is not None:
            group[0] = value if group[0] is None else self.merge.of(group[0], value)
        group[1] += count

    def settle(self, groups: Groups) -> None:
        """Merge groups whose keys differ only in their NaN, since each NaN differs from all others."""
        odd = [(key, one) for key in groups if (one := one_nan(key)) is not key]
        for key, one in odd:
            self.add(groups, one, *groups.pop(key))
