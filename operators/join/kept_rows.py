"""The rows of a side over all windows so far, by key: a window adds its own, and takes back those that no longer hold."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from dagflow import KeyedTable, OperatorContext, TableKeys
from dagflow.arrow_types.buffers import of_marks, of_numbers, order_of
from operators.aggregate.accumulators import comparable, group_codes
from operators.join.errors import JoinColumnChanged

Ints = np.ndarray[Any, np.dtype[np.int64]]
Marks = np.ndarray[Any, np.dtype[np.bool_]]

_PREFIX = "#"
"""The prefix of the columns of rows in a state, which has columns of its own."""


@attrs.frozen(eq=False)
class Arrived:
    """The rows of a side that a window brings.

    Attributes:
        rows: the rows.
        keys: their keys; null: the row matches nothing.
        signs: 1 for a row that is added, -1 for one that is taken back.
        places: the places of the rows among those that have come.
    """

    rows: pa.RecordBatch
    keys: TableKeys
    signs: Ints
    places: Ints

    def netted(self) -> Arrived:
        """Return what is left where rows are taken back that have come in the same window."""
        if (self.signs > 0).all():
            return self
        codes = equal_rows(self.rows)
        net = np.bincount(codes, self.signs).astype(np.int64)
        places = np.flatnonzero(self.signs * net[codes] > 0)
        places = places[ranks(codes[places]) < np.abs(net[codes[places]])]
        return Arrived(self.rows.take(pa.array(places)), self.keys.take(places), self.signs[places], self.places[places])


@attrs.frozen(eq=False)
class Pool:
    """The rows of a side with keys that a window touches.

    Attributes:
        rows: the kept ones, then those that have arrived.
        codes: the number of the key of each; -1 where it matches nothing.
        before, after: whether it was there before the window, and is there after it.
        places: the places of the rows among those that have come; -1 for kept ones.
    """

    rows: pa.RecordBatch
    codes: Ints
    before: Marks
    after: Marks
    places: Ints

    def gone(self, keys: int) -> Ints:
        """Return of each key the number of rows that are no longer there."""
        return np.bincount(self.codes[self.before & ~self.after & (self.codes >= 0)], minlength=keys)


@attrs.frozen(eq=False)
class KeptRows:
    """The rows of a side in a state, each by its key and a number: those with one key have the numbers from 0."""

    side: str
    table: KeyedTable
    context: OperatorContext

    @property
    def count(self) -> str:
        """The column that has the numbers of its rows by key."""
        return f"{self.side}_rows"

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of the rows; None where none is kept."""
        kept = self.table.columns
        return None if kept is None else pa.schema([(field.name.removeprefix(_PREFIX), field.type) for field in kept])

    def merged(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of kept rows, and of a schema. Raises JoinColumnChanged where one has another type."""
        types = {field.name: field.type for field in self.schema or ()}
        for field in schema:
            known = types.get(field.name, pa.null())
            if not pa.types.is_null(known) and not pa.types.is_null(field.type) and known != field.type:
                raise JoinColumnChanged(side=self.side, column=field.name, before=str(known), now=str(field.type))
            types[field.name] = field.type if pa.types.is_null(known) else known
        return pa.schema(list(types.items()))

    def change(self, arrived: Arrived, codes: Ints, keys: TableKeys, counts: Ints, loaded: Marks) -> Pool:
        """Add rows, and remove those that are taken back. Return the rows of keys.

        `codes`: the number of the key of each row. `counts`: of each key the number of rows so far; `loaded`: whether its kept
        rows matter. Raises NeverInserted where a row is taken back that is not kept.
        """
        if not self.table.is_saved and (arrived.signs > 0).all():  # a final launch looks at each key once
            is_new = np.ones(len(codes), bool)
            return Pool(arrived.rows, codes, ~is_new, is_new, arrived.places)
        schema = arrived.rows.schema
        wanted = np.flatnonzero(loaded & (counts > 0))
        each = counts[wanted]
        old_codes, numbers = np.repeat(wanted, each), _counted_up(each)
        old = self._lookup(keys.take(old_codes).numbered(numbers), schema)
        is_new = arrived.signs > 0
        gone = _taken_back(old, _where(arrived.rows, (codes >= 0) & ~is_new), self.context)
        added = is_new & (codes >= 0)
        order = order_of(codes[added])  # that of the state, which finds these rows sorted
        rows, of = _where(arrived.rows, added).take(of_numbers(order)), codes[added][order]
        nth, more = ranks(of), np.bincount(of, minlength=len(keys))
        places, after = counts[of] + nth, counts + more
        if gone.any():  # others get the numbers of those that go: new rows first, then the last ones of those that stay
            fewer = np.bincount(old_codes[gone], minlength=len(keys))
            after -= fewer
            holes, holes_of = numbers[gone], old_codes[gone]
            hole = holes[np.minimum((np.cumsum(fewer) - fewer)[of] + nth, len(holes) - 1)]
            is_open = (ranks(holes_of) >= more[holes_of]) & (holes < after[holes_of])
            moved = ~gone & (numbers >= after[old_codes])
            rows, places = (
                _together(_where(old, moved), rows),
                np.concatenate([holes[is_open], np.where(nth < fewer[of], hole, places - fewer[of])]),
            )
            of = np.concatenate([old_codes[moved], of])
        if rows.num_rows:
            self.table.put(keys.take(of).numbered(places), {f"{_PREFIX}{name}": rows.column(name) for name in schema.names})
        lost = np.maximum(counts - after, 0)
        if lost.any():
            at = np.repeat(np.arange(len(keys)), lost)
            self.table.remove(keys.take(at).numbered(after[at] + _counted_up(lost)))
        stays = is_new | (codes < 0)
        old_marks = np.ones(len(old_codes), bool)
        return Pool(
            _together(old, _where(arrived.rows, stays)),
            np.concatenate([old_codes, codes[stays]]),
            np.concatenate([old_marks, ~is_new[stays]]),
            np.concatenate([~gone, is_new[stays]]),
            np.concatenate([np.full(len(old_codes), -1), arrived.places[stays]]),
        )

    def _lookup(self, keys: TableKeys, schema: pa.Schema) -> pa.RecordBatch:
        """Return kept rows, with the columns of a schema."""
        if not len(keys):
            return pa.RecordBatch.from_pylist([], schema)
        rows = self.table.lookup(keys)
        there = set(rows.schema.names)
        columns = [
            rows.column(name).cast(field.type) if (name := f"{_PREFIX}{field.name}") in there else pa.nulls(len(rows), field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _where(rows: pa.RecordBatch, mask: Marks) -> pa.RecordBatch:
    """Return the rows that a mask selects, without a copy where these are all."""
    return rows if mask.all() else rows.filter(of_marks(mask))


def _together(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of both, without a copy where one has none."""
    return one if not other.num_rows else other if not one.num_rows else pa.concat_batches([one, other])


def _taken_back(old: pa.RecordBatch, rows: pa.RecordBatch, context: OperatorContext) -> Marks:
    """Return which of the kept rows are taken back by rows that equal them. Raises NeverInserted."""
    if not rows.num_rows:
        return np.zeros(old.num_rows, bool)
    codes = equal_rows(pa.concat_batches([old, rows]))
    own, others = codes[: old.num_rows], codes[old.num_rows :]
    wanted = np.bincount(others, minlength=int(codes.max()) + 1)
    gone: Marks = ranks(own) < wanted[own]
    missing = wanted - np.bincount(own[gone], minlength=len(wanted))
    if missing.any():
        at = int(np.flatnonzero(others == int(missing.argmax()))[0])
        (row,) = rows.slice(at, 1).to_pylist()
        context.never_inserted(row, missing.sum())
    return gone


def equal_rows(rows: pa.RecordBatch) -> Ints:
    """Return a number for each row, the same for equal rows: a null is one value, and so is NaN."""
    names = list(map(str, range(rows.num_columns)))
    return group_codes(pa.RecordBatch.from_arrays(list(map(comparable, rows.columns)), names=names), names)[0]


def ranks(codes: Ints) -> Ints:
    """Return the number of each row among those with its code.

    >>> ranks(np.array([7, 3, 7, 7])).tolist()
    [0, 0, 1, 2]
    """
    order = order_of(codes)
    first = np.flatnonzero(np.append(True, codes[order][1:] != codes[order][:-1]))
    result = np.empty(len(codes), np.int64)
    result[order] = _counted_up(np.diff(np.append(first, len(codes))))
    return result


def _counted_up(counts: Ints) -> Ints:
    """Return the numbers from 0 for each count.

    >>> _counted_up(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    numbers: Ints = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return numbers
