"""Groups of records by key: a value and a count for each, of records one by one or of batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import attrs

from operators.aggregate.fields import getter, names_of, one_nan

if TYPE_CHECKING:
    import pyarrow as pa

Groups = dict[Any, list[Any]]
"""Key → the value (None: none has come) and the count."""


@attrs.frozen
class Merge:
    """How two values become one, and what pyarrow's group_by calls that."""

    both: Callable[[Any, Any], Any]
    arrow: str


def least(one: Any, other: Any) -> Any:
    """The smaller one; what is not a number (NaN) only where nothing else is."""
    return other if other < one or one != one else one


def greatest(one: Any, other: Any) -> Any:
    """The larger one; what is not a number (NaN) only where nothing else is."""
    return other if other > one or one != one else one


@attrs.frozen
class Grouping:
    """By what records are grouped, and what of them counts: the values of `of` that are not None; where it is None, records."""

    by: Any
    of: Any = None
    merge: Merge | None = None

    @property
    def is_by_names(self) -> bool:
        """Whether batches do as well."""
        return not callable(self.by) and not callable(self.of)

    def add_records(self, groups: Groups, records: Iterator[Any]) -> None:
        """Takes records in."""
        key_of = getter(self.by)
        if self.merge is None:
            found: Counter[Any] = Counter()
            try:
                found.update(map(key_of, records))
            finally:  # what came before a record that raises is counted
                for key, count in found.items():
                    self.add(groups, key, None, count)
            return
        value_of, both = getter(self.of), self.merge.both
        for record in records:
            key, value = key_of(record), value_of(record)
            group = groups.setdefault(key, [None, 0])
            if value is not None:
                group[0] = value if group[0] is None else both(group[0], value)
                group[1] += 1

    def add_batch(self, groups: Groups, batch: pa.RecordBatch) -> None:
        """Takes the rows of a batch in, by pyarrow where that comes to what Python would come to."""
        import pyarrow as pa

        columns = {f"k{number}": batch.column(name) for number, name in enumerate(names_of(self.by))}
        keys = list(columns)
        if self.merge is None:
            table = pa.table(columns or {"none": pa.nulls(batch.num_rows)})
            found = table.group_by(keys, use_threads=False).aggregate([([], "count_all")])
            self._add_rows(groups, found, keys, [None] * found.num_rows, found.column("count_all").to_pylist())
            return
        values = batch.column(names_of(self.of)[0])
        table = pa.table({**columns, "v": values})
        if _is_exact(values, self.merge.arrow):
            found = table.group_by(keys, use_threads=False).aggregate([("v", self.merge.arrow), ("v", "count")])
            self._add_rows(
                groups, found, keys, found.column(f"v_{self.merge.arrow}").to_pylist(), found.column("v_count").to_pylist()
            )
        else:
            one_by_one = values.to_pylist()
            self._add_rows(groups, table, keys, one_by_one, [int(value is not None) for value in one_by_one])

    def _add_rows(self, groups: Groups, table: pa.Table, keys: list[str], values: list[Any], counts: list[int]) -> None:
        parts = [table.column(name).to_pylist() for name in keys]
        whole = [None] * table.num_rows if not self.by else parts[0] if isinstance(self.by, str) else zip(*parts, strict=True)
        for key, value, count in zip(whole, values, counts, strict=True):
            self.add(groups, key, value, count)

    def add(self, groups: Groups, key: Any, value: Any, count: int) -> None:
        """Takes in what is known of a group."""
        group = groups.setdefault(key, [None, 0])
        if value is not None and self.merge is not None:
            group[0] = value if group[0] is None else self.merge.both(group[0], value)
        group[1] += count

    def settle(self, groups: Groups) -> None:
        """Makes one group of those whose keys differ only in their NaN, each of which differs from all others."""
        odd = [(key, one) for key in groups if (one := one_nan(key)) is not key]
        for key, one in odd:
            self.add(groups, one, *groups.pop(key))


def _is_exact(values: pa.Array, function: str) -> bool:
    """Whether pyarrow comes to what Python does: its sums of integers overflow silently, and some types are not there."""
    import pyarrow as pa
    import pyarrow.compute

    types: Any = pa.types
    kind, is_float = values.type, bool(types.is_floating(values.type))
    if function != "sum":
        return is_float or bool(types.is_integer(kind) or types.is_string(kind) or types.is_boolean(kind))
    if not types.is_integer(kind):
        return is_float
    ends = cast("Any", pyarrow.compute).min_max(values).as_py()
    return bool(ends["min"] is None or max(abs(ends["min"]), abs(ends["max"])) * len(values) < 1 << 63)
