"""Rows of a table by key, for many keys at once."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dagflow.arrow_types.buffers import of_numbers, order_of
from operators.aggregate.fields import one_nan

MAX_PAIRS = 1 << 16
"""The number of rows that are joined at once: a row may have a million partners."""


@attrs.frozen(eq=False)
class Partners:
    """Rows by the number of their key.

    Attributes:
        rows: the rows, those of each key together.
        starts: the position at which the rows of each key begin; the last entry is the end.
    """

    rows: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]

    @classmethod
    def of(cls, codes: np.ndarray[Any, Any], count: int) -> Partners:
        """Return the rows that have codes below `count`; -1 for those that have no key."""
        order = order_of(codes)
        rows = order[np.searchsorted(codes[order], 0) :]
        return cls(rows, np.concatenate([[0], np.cumsum(np.bincount(codes[rows], minlength=count))]))

    def pairs(self, codes: np.ndarray[Any, Any], *, keep_all: bool) -> Iterator[tuple[np.ndarray[Any, Any], pa.Array]]:
        """Yield pairs of rows that have codes and their partners, in the order of both, some at a time.

        `keep_all`: rows without a partner too, with null for it.
        """
        numbers = np.maximum(codes, 0)
        counts = np.where(codes >= 0, self.starts[numbers + 1] - self.starts[numbers], 0) if len(self.rows) else 0 * codes
        widths = np.maximum(counts, 1) if keep_all else counts
        ends = np.cumsum(widths)
        total = int(ends[-1]) if len(ends) else 0
        firsts = self.starts[numbers] - (ends - widths)  # of the partners of a row, less the place of its first pair
        for start in range(0, total, MAX_PAIRS):
            stop = min(start + MAX_PAIRS, total)
            first, last = np.searchsorted(ends, [start, stop - 1], side="right").tolist()
            some = slice(first, last + 1)
            each = np.minimum(ends[some], stop) - np.maximum(ends[some] - widths[some], start)
            left = np.repeat(np.arange(first, last + 1), each)
            partners = firsts[left] + np.arange(start, stop)
            alone = counts[left] == 0
            if not alone.any():
                yield left, of_numbers(self.rows[partners])
                continue
            right = self.rows[np.where(alone, 0, partners)] if len(self.rows) else np.zeros(len(left), np.int64)
            yield left, pa.array(right, pa.int64(), mask=alone)


@attrs.define
class Lookup:
    """The rows of a table by the key in some columns.

    Keys are equal where they are in Python (1 and 1.0), and all NaN are one key. Keys with a null match nothing.

    >>> import pyarrow as pa
    >>> lookup = Lookup.of([pa.array(["a", "b", None, "a"])])
    >>> [(left.tolist(), right.to_pylist()) for left, right in lookup.pairs([pa.array(["a", "c", None])], keep_all=True)]
    [([0, 0, 1, 2], [0, 3, None, None])]
    """

    _values: list[pa.Array]
    """Of each column, the values that it has."""
    _tuples: list[pa.Array]
    """The pairs of numbers that the values of the columns so far and of the next one have."""
    _partners: Partners

    @classmethod
    def of(cls, columns: Sequence[pa.Array]) -> Lookup:
        """Return the lookup of columns, which make the keys."""
        lookup = cls([], [], Partners.of(np.zeros(0, np.int64), 0))
        codes: Any = None
        for column in columns:
            values = _plain(_values(column)).unique().drop_null()
            lookup._values.append(values)
            others = _coded(column, values)
            if codes is None:
                codes = others
            else:
                pairs = _pairs(codes, others, len(values))
                tuples = pa.array(pairs[pairs >= 0]).unique()
                lookup._tuples.append(tuples)
                codes = _codes(pa.array(pairs), tuples)
        lookup._partners = Partners.of(codes, len((lookup._tuples or lookup._values)[-1]))
        return lookup

    def pairs(self, columns: Sequence[pa.Array], keep_all: bool) -> Iterator[tuple[np.ndarray[Any, Any], pa.Array]]:
        """Yield pairs of rows of the given columns and their partners: see `Partners.pairs`."""
        return self._partners.pairs(self._codes_of(columns), keep_all=keep_all)

    def _codes_of(self, columns: Sequence[pa.Array]) -> np.ndarray[Any, Any]:
        """Return the number of the key of each row; -1 where no row has it here."""
        codes: Any = None
        for number, (column, values) in enumerate(zip(columns, self._values, strict=True)):
            others = _coded(column, values)
            codes = others if codes is None else _codes(pa.array(_pairs(codes, others, len(values))), self._tuples[number - 1])
        return codes  # type: ignore[no-any-return]


def _pairs(one: Any, other: Any, count: int) -> Any:
    """Return a number for each pair of codes; -1 where one of them is."""
    return np.where((one >= 0) & (other >= 0), one * count + other, -1)


def _plain(column: Any) -> Any:
    """Return a column in which values that are equal in Python are equal for pyarrow."""
    kind = column.type
    if pa.types.is_floating(kind):
        return pc.add(column.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0, which it equals
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return column.cast(pa.int64())
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        return column.cast(pa.string())
    if pa.types.is_large_binary(kind) or kind == pa.binary_view():
        return column.cast(pa.binary())
    return column


def _values(column: Any) -> Any:
    """Return the values of a column, or of its dictionary."""
    return column.dictionary if pa.types.is_dictionary(column.type) else column


def _coded(column: Any, values: Any) -> Any:
    """Return `_codes` of the rows of a column, which may have a dictionary."""
    codes = _codes(_plain(_values(column)), values)
    if _values(column) is column:
        return codes
    return np.append(codes, -1)[pc.fill_null(column.indices.cast("int64"), -1).to_numpy()]  # null is at the end


def _codes(column: Any, values: Any) -> Any:
    """Return the number of the value of each row; -1 for null and other values. Python compares where the types differ."""
    if column.type == values.type and not pa.types.is_nested(column.type):
        indices = pc.fill_null(pc.index_in(column, value_set=values, skip_nulls=True), -1)
        return indices.to_numpy(zero_copy_only=False).astype(np.int64)
    numbers = {one_nan(value): number for number, value in enumerate(values.to_pylist())}
    keys = (None if value is None else one_nan(value) for value in column.to_pylist())
    return np.fromiter((numbers.get(key, -1) for key in keys), np.int64, len(column))
