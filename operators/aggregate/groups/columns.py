"""Groups of batches: pyarrow groups many rows at once, before they become Python objects."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from operators.acero import acero, computed_by

ROWS = 1 << 19
"""The number of rows that are grouped at once."""
BYTES = 16 << 20
"""The most bytes of rows that wait."""
GROUPS = 1 << 16
"""The number of groups that are added before groups of one key are merged."""

KEY, VALUE, COUNT = "k0", "value", "count"
_OF_OBJECTS = frozenset({"string", "binary", "int64", "double", "bool", "date32[day]"})
"""The types of the columns that text, bytes, numbers, truth values and dates become."""


@attrs.define
class ColumnGroups:
    """The content of batches in their order: groups, then rows that are not grouped yet.

    Attributes:
        merge: pyarrow's name of the function that makes one value of two; None: there are no values.

    Groups have columns of the key, `value` (where there are values) and `count`; rows have no `count`. All have the same types.
    """

    merge: str | None = None
    _rows: list[pa.Table] = attrs.field(factory=list, init=False)
    _groups: list[pa.Table] = attrs.field(factory=list, init=False)
    _row_count: int = attrs.field(default=0, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _merged: int = attrs.field(default=0, init=False)
    _types: list[pa.DataType] | None = attrs.field(default=None, init=False)

    def __deepcopy__(self, memo: object) -> ColumnGroups:
        copied = ColumnGroups(self.merge)
        copied._rows, copied._groups = self._rows[:], self._groups[:]
        copied._row_count, copied._bytes, copied._merged = self._row_count, self._bytes, self._merged
        copied._types = self._types
        return copied

    def __len__(self) -> int:
        """Return the number of groups at the last compaction."""
        return self._merged

    def fits(self, table: pa.Table) -> bool:
        """Return True if rows, or groups, have the types of those before."""
        return self._types is None or self._types == table.schema.types

    def take_rows(self, table: pa.Table) -> None:
        """Take rows in."""
        self._types = table.schema.types
        self._rows.append(table)
        self._row_count += table.num_rows
        self._bytes += table.nbytes

    def take_groups(self, table: pa.Table) -> None:
        """Take groups in."""
        self._types = table.schema.types
        self._groups.append(table)

    @property
    def is_full(self) -> bool:
        """True if `compact` is due."""
        return self._row_count >= ROWS or self._bytes >= BYTES or self._has_many

    def compact(self, *, last: bool = False) -> bool:
        """Group the rows, and merge groups where there are many, or `last`. Return False where pyarrow would not be exact."""
        if self._rows:
            table = grouped(self._rows, self.merge)
            if table is None:
                return False
            self._rows, self._row_count, self._bytes = [], 0, 0
            self._groups.append(table)
        if len(self._groups) > 1 and (last or self._has_many):
            table = grouped(self._groups, self.merge)
            if table is None:
                return False
            self._groups = [table]
            self._merged = table.num_rows
        return True

    @property
    def _has_many(self) -> bool:
        rows: int = sum(table.num_rows for table in self._groups)
        return rows > 2 * self._merged + GROUPS

    def as_one(self) -> pa.Table | None:
        """Return one table of groups by one column; None where Python objects would have columns of other types."""
        if not self.compact(last=True) or not self._groups or self._groups[0].column_names[0] != KEY:
            return None
        table = self._groups[0]
        is_same = all(str(kind) in _OF_OBJECTS for kind in table.schema.types)
        return table if is_same and len(table.column_names) == 2 + (self.merge is not None) else None

    def drain(self) -> Iterator[pa.Table]:
        """Yield all tables, and forget them."""
        tables = [*self._groups, *self._rows]
        self._rows, self._groups = [], []
        self._row_count = self._bytes = self._merged = 0
        self._types = None
        yield from tables


def grouped(tables: Sequence[pa.Table], merge: str | None) -> pa.Table | None:
    """Group rows or groups, in the order of their first rows; None if pyarrow would not group as Python does."""
    whole = pa.concat_tables(tables)
    keys = [name for name in whole.column_names if name not in (VALUE, COUNT)]
    function = "hash_{}" if keys else "{}"
    aggregates: list[tuple[Any, ...]] = []
    if merge is not None:
        if not is_exact(whole.column(VALUE), merge):
            return None
        aggregates.append(([VALUE], function.format(merge), None, VALUE))
    if COUNT in whole.column_names:
        aggregates.append(([COUNT], function.format("sum"), None, COUNT))
    elif merge is None:
        aggregates.append(([], function.format("count_all"), None, COUNT))
    else:
        aggregates.append(([VALUE], function.format("count"), None, COUNT))
    return computed_by("aggregate", acero().AggregateNodeOptions(aggregates, keys=keys), whole).select([*keys, *_results(merge)])


def _results(merge: str | None) -> list[str]:
    return [COUNT] if merge is None else [VALUE, COUNT]


def is_plain(kind: pa.DataType) -> bool:
    """Return True if pyarrow and Python agree on equal keys of a type: not so for NaN, 0.0 and -0.0, or times with zones."""
    types: Any = pa.types
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    return bool(is_text or types.is_integer(kind) or types.is_boolean(kind) or types.is_date32(kind))


def is_exact(values: pa.ChunkedArray | pa.Array, merge: str) -> bool:
    """Return True if pyarrow's result is that of Python: its sums of integers overflow silently, and it lacks some types."""
    types: Any = pa.types
    kind, is_float = values.type, bool(types.is_floating(values.type))
    if merge != "sum":
        return is_float or bool(types.is_integer(kind) or types.is_string(kind) or types.is_boolean(kind))
    if not types.is_integer(kind):
        return is_float
    ends = pc.min_max(values).as_py()
    return bool(ends["min"] is None or max(abs(ends["min"]), abs(ends["max"])) * len(values) < 1 << 63)
