"""The join of rows: batches with the columns of both sides."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dagflow import OperatorContext
from dagflow.arrow_types import joint_type
from operators.aggregate.fields import check_columns
from operators.expressions.columns import Expression
from operators.join.at_once import rows_at_once
from operators.join.buffer import together
from operators.join.change import KINDS, How
from operators.join.errors import JoinColumnsClash, JoinColumnsDiffer, JoinColumnsUnknown, JoinKeyRefused, JoinKeysDiffer
from operators.join.kept_rows import Marks
from operators.join.lookup import MAX_PAIRS, Lookup
from operators.join.sizes import most_row_bytes, portions, row_bytes
from operators.transform.expressions import mask_of

MAX_BATCH_BYTES = 64 << 20
"""The largest size of a batch of joined rows, in bytes. A single row may be larger."""


@attrs.frozen(kw_only=True)
class RowJoin:
    """Join the rows of a window by columns.

    Attributes:
        by, right_by: the columns of the key on the left and on the right side.
        right_property: the property of the operator that names those of the right side.
        keep_all: whether rows of the left side without a partner come too.
        suffix: of columns of the right side whose names the left side has.
        right_schema: the columns of the right side, as far as the operator declares them.
    """

    context: OperatorContext
    by: tuple[str, ...]
    right_by: tuple[str, ...]
    right_property: str
    keep_all: bool
    suffix: str
    right_schema: pa.Schema | None

    def check_key(self, side: str, schema: pa.Schema) -> None:
        """Raise ColumnNotThere, and JoinKeyRefused, where batches of a side cannot be joined by the key."""
        names, setting = (self.by, "by") if side == "left" else (self.right_by, self.right_property)
        check_columns(schema, setting, names, side)
        for name in names:
            if pa.types.is_nested(kind := schema.field(name).type):
                raise JoinKeyRefused(operator=self.context.name, side=side, column=name, type=str(kind))

    def joined(
        self, lefts: Iterator[pa.RecordBatch], rights: Sequence[pa.RecordBatch], port_schema: pa.Schema | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the joined rows in the order of the left side. `port_schema`: the columns that the right port declares."""
        first = next(lefts, None)
        table = None if first is None else self.right_table(rights, port_schema)
        if first is None or table is None:
            if first is not None and self.keep_all:
                raise self.unknown("right")
            return
        columns = [column.combine_chunks() for column in table.columns]  # fewer bytes than one holds: see max_right_bytes
        right = pa.RecordBatch.from_arrays(columns, schema=table.schema)
        lookup = Lookup.of([right.column(name) for name in self.right_by])
        for left in together(itertools.chain([first], lefts)):
            pairs = lookup.pairs([left.column(name) for name in self.by], keep_all=self.keep_all)
            yield from self.batches(left, right, ((pa.array(rows), partners) for rows, partners in pairs))

    def at_once(self, how: How, left: pa.Table, right: pa.Table) -> Iterator[pa.RecordBatch] | None:
        """Return the joined rows of both sides: see `rows_at_once`. Raises JoinColumnsClash."""
        rows = rows_at_once(how, left, right, self.by, self.right_by)
        others = [name for name in right.schema.names if name not in self.right_by] if KINDS[how].pairs else []
        names = self._names(left.schema.names, others)
        if rows is None:
            return None
        self._check_names(names)
        return (pa.RecordBatch.from_arrays(columns, names=names) for columns in rows)

    def batches(
        self,
        left: pa.RecordBatch,
        right: pa.RecordBatch,
        pairs: Iterable[tuple[pa.Array, pa.Array]],
        *,
        names_may_clash: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Yield joined rows. `pairs`: rows of both sides, by their numbers; null for none. Raises JoinColumnsClash."""
        others = right.select([name for name in right.schema.names if name not in self.right_by])
        names = self._names(left.schema.names, others.schema.names)
        if not names_may_clash:
            self._check_names(names)
        sides = [(left.columns, left.num_rows), (others.columns, others.num_rows)]
        is_small = sum(most_row_bytes(*side) for side in sides) * MAX_PAIRS <= MAX_BATCH_BYTES
        sizes = [] if is_small else [np.append(row_bytes(*side), 0) for side in sides]  # at the end: of no row
        for rows, partners in pairs:
            if not len(rows):  # to take back nothing is refused, too, of a join that takes back no rows
                continue
            runs: Iterable[slice] = [slice(None)]
            if not is_small:
                each = [size[pc.fill_null(some, -1).to_numpy()] for size, some in zip(sizes, (rows, partners), strict=True)]
                runs = portions(each[0] + each[1], MAX_BATCH_BYTES)
            for run in runs:
                columns = [*left.take(rows[run]).columns, *others.take(partners[run]).columns]
                if rows.null_count:  # of rows of the right side only, the key is there
                    for name, other in zip(self.by, self.right_by, strict=True):
                        at = names.index(name)
                        keys = right.column(other).take(partners[run])
                        if pa.types.is_null(columns[at].type):
                            columns[at] = columns[at].cast(keys.type)
                        if (alike := _as_type(keys, columns[at].type)) is None:
                            types = (str(columns[at].type), str(keys.type))
                            raise JoinKeysDiffer(operator=self.context.name, column=name, types=types)
                        columns[at] = pc.coalesce(columns[at], alike)
                yield pa.RecordBatch.from_arrays(columns, names=names)

    def holds(self, left: pa.RecordBatch, right: pa.RecordBatch, pair: tuple[pa.Array, pa.Array], where: Any) -> Marks:
        """Return for which pairs of rows a condition holds, which is an expression over joined rows.

        Of semi and anti joins only the left side is emitted, so names may clash that it does not read.
        """
        masks = []
        for rows in self.batches(left, right, [pair], names_may_clash=True):
            if isinstance(where, Expression):
                self._check_names([name for name in rows.schema.names if name in where.columns()])
            try:
                masks.append(mask_of(rows, where, self.context.name))
            except pa.ArrowInvalid as error:
                if "Multiple matches for FieldRef" in str(error):
                    self._check_names(rows.schema.names)
                raise
        return np.concatenate([mask.to_numpy(zero_copy_only=False) for mask in masks] or [np.zeros(0, bool)])

    def right_table(self, batches: Sequence[pa.RecordBatch], port_schema: pa.Schema | None) -> pa.Table | None:
        """Return the rows of the right side; None where their columns are not known."""
        declared = self.right_schema
        if declared is not None and port_schema is not None:
            self._check_right(declared, port_schema)
        table = one_table(batches, port_schema if declared is None else declared)
        if declared is not None and table is not None:
            self._check_right(declared, table.schema)
            table = table.select(declared.names).cast(declared)
        return table

    def unknown(self, side: str) -> JoinColumnsUnknown:
        """Return the error of a side whose columns are not known."""
        context = self.context
        return JoinColumnsUnknown(
            operator=context.name,
            window=context.window,
            side=side,
            partition=context.partition,
            partitions=context.partitions,
        )

    def _check_right(self, declared: pa.Schema, schema: pa.Schema) -> None:
        """Raise JoinColumnsDiffer where columns have other names than those declared, or types; their order is free."""
        types = {field.name: field.type for field in declared}
        is_same = sorted(types) == sorted(schema.names)
        if not is_same or any(field.type not in (types[field.name], pa.null()) for field in schema):  # null: of nulls only
            shown = (tuple((field.name, str(field.type)) for field in each) for each in (schema, declared))
            context = self.context
            raise JoinColumnsDiffer(operator=context.name, window=context.window, found=next(shown), said=next(shown))

    def _names(self, left: list[str], right: list[str]) -> list[str]:
        """Return the names of the columns of both sides."""
        return [*left, *(f"{name}{self.suffix}" if name in left else name for name in right)]

    def _check_names(self, names: list[str]) -> None:
        """Raise JoinColumnsClash for names that are there twice."""
        twice = tuple(name for name in dict.fromkeys(names) if names.count(name) > 1)
        if twice:
            context = self.context
            raise JoinColumnsClash(operator=context.name, window=context.window, columns=twice, suffix=self.suffix)


def _as_type(keys: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Return keys as values of another type; None where that has not all of them as they are."""
    if joint_type(kind, keys.type) != kind or pa.types.is_string(keys.type) != pa.types.is_string(kind):
        return None
    converted = keys.cast(kind, safe=False)
    if pa.types.is_floating(keys.type):  # to a longer one
        return converted
    try:
        return converted if converted.cast(keys.type).equals(keys) else None
    except pa.ArrowInvalid:  # of another value
        return None


def one_table(batches: Sequence[pa.RecordBatch], schema: pa.Schema | None) -> pa.Table | None:
    """Return batches as one table; without any an empty one, or None where no schema is known."""
    if batches:
        return pa.concat_tables(map(pa.Table.from_batches, ([batch] for batch in batches)), promote_options="default")
    return None if schema is None else schema.empty_table()
