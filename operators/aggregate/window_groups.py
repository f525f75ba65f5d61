"""The groups of the rows of a window, as tables: from batches of rows, from parts that others have grouped, and merged to one."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pyarrow as pa

from dagflow.errors import ColumnNotThere
from operators.aggregate.accumulators import MAX_ROWS, ROWS, Accumulator, accumulated, check_alike, merged, retyped
from operators.aggregate.agg import Aggregation
from operators.aggregate.errors import OtherColumns

WAITING_ROWS = 1 << 17
"""Rows of batches that wait to be grouped at once."""
MAX_PARTIAL_GROUPS = 100_000
"""The most groups that a partial aggregation keeps. When there are more, it emits them."""
ROWS_OF_A_BATCH = 1 << 15


@attrs.define
class Groups:
    """The groups of the rows so far.

    Attributes:
        keys: the columns of the key, once they are known.
        accumulators: what is kept of groups, with the types of the values so far.
        waiting: rows that are not grouped yet, all with one schema and one `sign`; `rows`: how many.
        tables: tables of groups.
        key_types: the types of the columns of the key.
    """

    keys: tuple[str, ...] = ()
    accumulators: tuple[Accumulator, ...] = ()
    waiting: list[pa.RecordBatch] = attrs.field(factory=list)
    sign: int = 1
    rows: int = 0
    tables: list[pa.Table] = attrs.field(factory=list)
    key_types: dict[str, pa.DataType] = attrs.field(factory=dict)

    def __deepcopy__(self, memo: object) -> Groups:
        return attrs.evolve(self, waiting=self.waiting[:], tables=self.tables[:], key_types=dict(self.key_types))


@attrs.frozen
class Grouping:
    """The key of groups, and their aggregates.

    Attributes:
        operator: the name of its class, for messages.
        keys: the columns of the key; without any and without aggregates all columns of the rows.
        aggregates: by name.
    """

    operator: str
    keys: tuple[str, ...]
    aggregates: Mapping[str, Aggregation]

    def add(self, groups: Groups, batch: pa.RecordBatch, sign: int, *, keeps_all: bool) -> None:
        """Take rows in, or back (`sign`: -1). Raises ColumnNotThere, OtherColumns, ColumnTypeChanged, ValueColumnRefused.

        `keeps_all`: whether all values are kept for extremes, since rows may be taken back.
        """
        self._take_keys(groups, batch.schema)
        names = list(dict.fromkeys([*groups.keys, *(name for each in self.aggregates.values() for name in each.columns)]))
        for name in names:
            if name not in batch.schema.names:
                raise ColumnNotThere.of("`keys`" if name in groups.keys else "an aggregate", name, batch.schema)
        rows = batch.select(names)
        is_alike = bool(groups.waiting) and groups.waiting[0].schema == rows.schema and groups.sign == sign
        if not is_alike or groups.rows + rows.num_rows > MAX_ROWS:
            self.gather(groups)
            self._take_types(groups, rows.schema, keeps_all=keeps_all)
        groups.sign = sign
        for start in range(0, rows.num_rows, MAX_ROWS):
            groups.waiting.append(rows.slice(start, MAX_ROWS))
            groups.rows += groups.waiting[-1].num_rows
            if groups.rows >= WAITING_ROWS:
                self.gather(groups)

    def add_groups(self, groups: Groups, table: pa.Table) -> None:
        """Take groups in, which another grouping with the same keys and aggregates has made."""
        fresh = [
            Accumulator.of_parts(name, each.function, each.column, table.schema, each.share)
            for name, each in self.aggregates.items()
        ]
        self._take_keys(groups, table.schema)
        self._check_keys(groups, table.schema)
        groups.tables, groups.accumulators = retyped(groups.tables, groups.accumulators, fresh)
        groups.tables += retyped([table], fresh, groups.accumulators)[0]
        self.merge(groups, least=2 * MAX_PARTIAL_GROUPS)

    def gather(self, groups: Groups) -> None:
        """Group the rows that wait."""
        if not groups.waiting:
            return
        rows = pa.concat_batches(groups.waiting)
        groups.waiting, groups.rows = [], 0
        groups.tables.append(accumulated(rows, groups.keys, groups.accumulators, groups.sign))
        self.merge(groups, least=2 * MAX_PARTIAL_GROUPS)

    def merge(self, groups: Groups, least: int = 0) -> pa.Table | None:
        """Merge the tables of groups to one, if they have so many rows. Return the first; None without groups.

        With `least`, the others have at least as many rows as the first, which was merged before: so the work for each row grows
        with the logarithm of the number of groups only.
        """
        rows = [table.num_rows for table in groups.tables]
        if len(rows) > 1 and sum(rows) >= max(least, 2 * rows[0] if least else 0):
            groups.tables = [merged(groups.tables, groups.keys, groups.accumulators)]
        return groups.tables[0] if groups.tables else None

    def drained(self, groups: Groups) -> list[pa.RecordBatch]:
        """Return the groups as batches, and forget them: not the types, since a batch may be going on."""
        self.gather(groups)
        table = self.merge(groups)
        groups.tables = []
        return [] if table is None else table.to_batches()

    def _take_keys(self, groups: Groups, schema: pa.Schema) -> None:
        """Take the names of the key. Raises OtherColumns where others came before."""
        names = self.keys if self.keys or self.aggregates else tuple(name for name in schema.names if name != ROWS)
        groups.keys = groups.keys or names
        if {*names} != {*groups.keys}:
            raise OtherColumns(operator=self.operator, before=groups.keys, now=names)

    def _take_types(self, groups: Groups, schema: pa.Schema, *, keeps_all: bool) -> None:
        """Take the types of columns. Raises ValueColumnRefused, and ColumnTypeChanged where the groups so far have others."""
        fresh = []
        compared = {name for each in self.aggregates.values() if each.function != "count" for name in each.columns}
        ties = compared - {*groups.keys}
        for name, each in self.aggregates.items():
            kind = each.values_type(schema, ties)
            fresh.append(Accumulator.of(name, each.function, each.column, kind, each.share, keeps_all=keeps_all))
        self._check_keys(groups, schema)
        groups.tables, groups.accumulators = retyped(groups.tables, groups.accumulators, fresh)

    def _check_keys(self, groups: Groups, schema: pa.Schema) -> None:
        """Raise ColumnTypeChanged where a key has another kind of values than those so far."""
        kinds = groups.key_types
        for name in groups.keys:
            kind = schema.field(name).type
            check_alike(name, kinds.setdefault(name, kind), kind)
            if pa.types.is_null(kinds[name]):
                kinds[name] = kind
