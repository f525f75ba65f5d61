"""Accumulators of `GroupBy`: what is kept of groups, as columns of a table with a row for each group.

Rows can be added and taken back in any order, and what is left is exact: integers are summed as two halves, floats as digits of
30 bits (rounded once, where a result is asked for), and of smallest and largest values it is known how many rows have them. So
tables of groups merge by adding up, whatever the windows were.
"""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import contextlib
import decimal
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Literal

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from dagflow.arrow_types import type_named, type_text
from dagflow.arrow_types.buffers import order_of
from operators.acero import acero, computed_by
from operators.aggregate.errors import ColumnTypeChanged, KeyColumnRefused, TotalNotHeld, ValueColumnRefused
from operators.aggregate.ordered_rows import bytes_of_rows, results_of_rows, wider_rows
from operators.transform.content import contents_of_column

Function = Literal[
    "count", "sum", "mean", "min", "max", "count_distinct", "quantile", "stddev", "collect", "first", "last", "arg_min", "arg_max"
]
OF_ALL_VALUES = ("count_distinct", "quantile", "stddev", "collect")
"""The functions for which all different values are kept, each with its number."""
OF_ROWS = ("first", "last", "arg_min", "arg_max")
"""The functions that take a value of the first or the last row: rows are kept, as `bytes_of_rows`."""
OF_ORDERED_VALUES = ("min", "max", *OF_ALL_VALUES, *OF_ROWS)
"""The functions for which values are kept in their order; all of them, where rows may be taken back."""
Ints = np.ndarray[Any, np.dtype[np.int64]]

ROWS = "#rows"
"""The column of a table of groups that has the number of rows of each."""
MAX_ROWS = 1 << 20
"""The rows that are accumulated at once: sums of so many halves and digits are exact as floats, by which numpy adds them up."""
_DIGIT, _BIAS = 30, 38 * 30
"""The bits of a digit of a sum of floats, and the power of two by which sums are scaled: so the smallest float is an integer."""
_MASK = (1 << _DIGIT) - 1
_DIGITS = 3
"""The digits that a float has bits of, at most."""
_TOPS = np.maximum((np.arange(2048) - 1023 + _BIAS) // _DIGIT, 4)
"""The first digit of floats by the bits of their exponents. The smallest ones have 0 there, since the next factor is infinite."""
_SCALES = np.ldexp(1.0, _BIAS - _DIGIT * _TOPS)
"""The factors that make the first digit the integer part."""
_NAN, _INFINITY, _MINUS_INFINITY = 1000, 1001, 1002
"""The digits that count what is not finite."""
_CARRY = 1 << 61
_EXACT = 1 << 53
"""The end of the integers that are exact as floats."""
_CACHED = 1 << 14  # floats whose digits are added up at once: they, and what is made of them, fit a core's own cache
_LANES = 16  # sums of each of few groups: to add to the same number again and again is to wait for it
_DENSE = 4  # the most places of integers for each of them, where they are numbered by their places and not sorted


@attrs.frozen
class Accumulator:
    """The columns that are kept of an aggregate.

    Attributes:
        name: of the aggregate, and of the column of its results.
        function, column: what is aggregated; no column: the rows.
        type: of the values: that of the column, or a wider one in which they are added up; null as long as there are none. Of
            rows the columns that decide their order, as a struct.
        keeps_all: all values are kept for the smallest and the largest, since rows may be taken back; else these alone.
        share: of a quantile, from 0 to 1.
    """

    name: str
    function: Function
    column: str | None
    type: pa.DataType
    keeps_all: bool = False
    share: float | None = None

    @classmethod
    def of(
        cls,
        name: str,
        function: Function,
        column: str | None,
        kind: pa.DataType,
        share: float | None = None,
        *,
        keeps_all: bool = False,
    ) -> Accumulator:
        """Return the accumulator of a column of a type. Raises ValueColumnRefused."""
        if t.is_dictionary(kind):
            kind = kind.value_type
        if t.is_float16(kind):
            kind = pa.float32()
        if function == "count":
            return cls(name, function, column, pa.int64())
        if function in OF_ROWS:
            return cls(name, function, column, kind, keeps_all)
        adds = function in ("sum", "mean")
        is_number = t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_null(kind) or t.is_duration(kind)
        is_odd = (t.is_decimal(kind) and not t.is_decimal128(kind)) or t.is_interval(kind)
        counts_up = adds or (function in ("quantile", "stddev"))
        is_time = t.is_duration(kind) and not adds
        if (counts_up and (not is_number or is_time)) or t.is_nested(kind) or is_odd:
            raise ValueColumnRefused(column=str(column), type=str(kind), lack="added up" if counts_up else "compared")
        if adds and not t.is_null(kind) and not t.is_duration(kind):
            kind = pa.decimal128(38, kind.scale) if t.is_decimal(kind) else pa.float64() if t.is_floating(kind) else pa.int64()
        return cls(name, function, column, kind, function in OF_ALL_VALUES or (keeps_all and not adds), share)

    @classmethod
    def all_of_parts(
        cls, name: str, function: Function, column: str | None, schema: pa.Schema, share: float | None = None
    ) -> list[Accumulator]:
        """Return the accumulators whose parts are columns of a table of groups: several where the values had several types.

        One without values of any type comes first.
        """
        if function == "count":
            return [cls(name, function, column, pa.int64())]
        parts = [part.removeprefix(f"{name}#").partition(":") for part in schema.names if part.startswith(f"{name}#")]
        keeps_all = {kind: part == "all" for part, _, kind in parts if kind}
        made = [cls(name, function, column, type_named(kind), keeps, share) for kind, keeps in keeps_all.items()]
        of_none = [cls(name, function, column, pa.null())] if function in ("sum", "mean") else []
        return [*of_none, *made]

    @classmethod
    def of_parts(
        cls, name: str, function: Function, column: str | None, schema: pa.Schema, share: float | None = None
    ) -> Accumulator:
        """Return the accumulator whose parts are columns of a table of groups, all of which had values of one type."""
        return cls.all_of_parts(name, function, column, schema, share)[-1]

    @property
    def result_type(self) -> pa.DataType:
        """The type of its results."""
        if self.function in ("quantile", "stddev") or (self.function == "mean" and not t.is_duration(self.type)):
            return pa.float64()
        if self.function == "collect":
            return pa.list_(self.type)
        if self.function in OF_ROWS:
            return self.type.field(self.column).type
        if self.function == "count_distinct":
            return pa.int64()
        return pa.int64() if self.function == "sum" and t.is_null(self.type) else self.type

    @property
    def keep(self) -> str:
        """The kept values of a group: `all`, or the `min` or the `max` only."""
        return "all" if self.keeps_all else "max" if self.function in ("max", "last", "arg_max") else "min"

    @property
    def parts(self) -> dict[str, pa.DataType]:
        """The columns of a table of groups that belong to it, with their types. Their names tell the type of the values."""
        return {f"{self.name}#{part}": kind for part, kind in self._parts()}

    def _parts(self) -> Iterator[tuple[str, pa.DataType]]:
        kind = self.type
        if self.function in OF_ORDERED_VALUES:
            of_rows = self.function in OF_ROWS
            text = type_text(kind) if of_rows else str(kind)
            yield f"{'all' if self.keeps_all else 'values'}:{text}", counts_type(pa.binary() if of_rows else kind)
            return
        yield "n", pa.int64()
        if self.function == "count" or t.is_null(kind):
            return
        if t.is_decimal(kind):
            yield f"total:{kind}", pa.decimal256(76, kind.scale)
        elif t.is_floating(kind):
            yield f"digits:{kind}", counts_type(pa.int32())
        else:
            yield f"high:{kind}", pa.int64()
            yield f"low:{kind}", pa.int64()

    @property
    def kept(self) -> Accumulator:
        """The same for all accumulators that keep the same of rows."""
        return attrs.evolve(self, name="", function="sum" if self.function == "mean" else self.function)

    def of_rows(self, batch: pa.RecordBatch, codes: Ints, rows: pa.Array, sign: int) -> Iterator[pa.Array]:
        """Yield its columns for the groups of a batch. `codes`: the group of each row; `rows`: how many each group has."""
        groups = len(rows)
        if self.column is None:
            yield rows
            return
        if self.function in OF_ROWS:
            values = self._rows(batch)
        else:
            values = plain_column(batch.column(self.column))
            values = values if self.function == "count" else self._as_own(values)
        if values.null_count:
            codes = codes[values.is_valid().to_numpy(zero_copy_only=False)]
            values, rows = values.drop_null(), _summed(codes, None, groups, sign)
        if self.function in OF_ORDERED_VALUES:
            yield _extremes(self.keep, codes, values, groups, sign)
            return
        yield rows
        if self.function == "count" or t.is_null(self.type):
            return
        if t.is_decimal(values.type):
            kind = pa.decimal256(76, values.type.scale)
            if values.type.bit_width > 128:
                signed = values.cast(kind) if sign > 0 else pc.negate(values.cast(kind))
                yield _grouped({"value": (signed, "sum")}, codes, groups)["value"].fill_null(pa.scalar(0, kind)).cast(kind)
            else:
                values = values if t.is_decimal128(values.type) else values.cast(pa.decimal128(38, kind.scale))
                yield _sums_of_decimals(codes, values, kind, groups, sign)
        elif t.is_floating(values.type):
            yield counts_of(*_digits(codes, values.to_numpy(), groups, sign), groups)
        else:
            whole = (values.cast(pa.int64()) if t.is_duration(self.type) else values).to_numpy()
            high = _summed(codes, whole >> np.asarray(32, whole.dtype), groups, sign)
            low = _summed(codes, whole & np.asarray(0xFFFFFFFF, whole.dtype), groups, sign)
            yield from (high, low) if not t.is_floating(self.type) else [_digits_of_halves(high.to_numpy(), low.to_numpy())]

    def _rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return rows as bytes in their order; null for those that do not count, as they have nothing to compare."""
        rows = bytes_of_rows(batch, self.type, str(self.column), last=self.function in ("last", "arg_max"))
        if self.function in ("first", "last"):
            return rows
        return pc.if_else(batch.column(self.type.field(0).name).is_valid(), rows, pa.scalar(None, pa.binary()))

    def _as_own(self, values: pa.Array) -> pa.Array:
        """Return values as its type has them; as they are where they are added up exactly. Raises ColumnTypeChanged."""
        is_sum, kind = self.function in ("sum", "mean"), values.type
        if t.is_uint64(kind) or (is_sum and t.is_integer(kind) and t.is_floating(self.type)):
            return values
        if is_sum and t.is_decimal128(kind) and t.is_decimal(self.type) and kind.scale == self.type.scale:
            return values
        try:
            return values.cast(self.type)
        except pa.ArrowInvalid as error:
            raise ColumnTypeChanged(column=str(self.column), before=str(self.type), now=str(values.type)) from error

    def results(self, table: pa.Table, *, wide: bool = False) -> pa.Array:
        """Return its results for the groups of a table. Raises TotalNotHeld.

        `wide`: sums of integers and decimals as decimals of 76 digits, which all of them fit into.
        """
        parts = [table.column(name).combine_chunks() for name in self.parts]
        if self.function == "count":
            return parts[0]
        if self.function in OF_ORDERED_VALUES:
            return self._of_values(parts[0])
        counts, kind = parts[0].to_numpy(), self.result_type
        if self.function == "sum" and t.is_integer(self.type) and len(counts) and np.abs(parts[1].to_numpy()).max() < 1 << 29:
            return pa.array(parts[1].to_numpy() * 2**32 + parts[2].to_numpy(), kind, mask=counts == 0)
        if wide and (t.is_integer(kind) or t.is_decimal(kind)):
            kind = pa.decimal256(76, kind.scale if t.is_decimal(kind) else 0)
        if self.function == "sum" and t.is_decimal(self.type):
            with contextlib.suppress(pa.ArrowInvalid):  # a total is larger, which is told below
                return pc.if_else(pa.array(counts > 0), parts[1].cast(kind), pa.scalar(None, kind))
        totals = list(map(self._value, counts.tolist(), self._totals(parts)))
        try:
            return pa.array(totals, kind)
        except (OverflowError, pa.ArrowInvalid) as error:
            largest = max((total for total in totals if total is not None), key=abs)
            raise TotalNotHeld(name=self.name, type=str(kind), total=str(largest)) from error

    def _of_values(self, counts: pa.Array) -> pa.Array:
        """Return its results for groups of values in their order, each with a number."""
        if self.function in ("min", "max", *OF_ROWS):
            ends = _ends(counts, last=self.function in ("max", "last", "arg_max"))
            return results_of_rows(ends, self.result_type) if self.function in OF_ROWS else ends
        if self.function == "count_distinct":
            return pc.list_value_length(counts).cast(pa.int64())
        values, offsets = counts.values.field("value"), counts.offsets.to_numpy()
        ends = np.append(0, np.cumsum(counts.values.field("n").to_numpy()))
        if self.function == "collect":
            rows = np.repeat(np.arange(len(values)), np.diff(ends))
            starts = pa.array(ends[offsets].astype(np.int32), mask=np.append(np.diff(offsets) == 0, False))  # null: no values
            return pa.ListArray.from_arrays(starts, values.take(pa.array(rows)))
        if self.function == "quantile":
            numbers = values.cast(pa.float64(), safe=False).to_numpy()  # rounded, where a float does not hold an integer
            return _quantiles(numbers, ends, offsets, self.share or 0.0)
        return _deviations(values.to_pylist(), np.diff(ends), offsets)

    def not_held(self, table: pa.Table) -> dict[int, TotalNotHeld]:
        """Return the groups of a table whose results its column cannot hold, by their place, each with the error."""
        if self.function not in ("sum", "mean") or t.is_floating(self.type):
            return {}
        with contextlib.suppress(TotalNotHeld):
            self.results(table)
            return {}
        errors, kind = dict[int, TotalNotHeld](), self.result_type
        for at, each in enumerate(self.totals(table)):
            value = self._value(*each)
            try:
                pa.scalar(value, kind)
            except (OverflowError, pa.ArrowInvalid):
                errors[at] = TotalNotHeld(name=self.name, type=str(kind), total=str(value))
        return errors

    def totals(self, table: pa.Table) -> Iterator[tuple[int, Any]]:
        """Yield the number of values and the exact total of each group of a table, of a sum or a mean."""
        parts = [table.column(name).combine_chunks() for name in self.parts]
        yield from zip(parts[0].to_pylist(), self._totals(parts), strict=True)

    def _totals(self, parts: list[pa.Array]) -> Iterator[Any]:
        """Yield the exact total of each group: an integer or a decimal; of floats an integer times `2**-_BIAS`, or a float."""
        if t.is_null(self.type):
            yield from [None] * len(parts[0])
        elif t.is_decimal(self.type):
            yield from parts[1].to_pylist()
        elif t.is_floating(self.type):
            yield from _totals_of_digits(parts[1])
        else:
            yield from (high * 2**32 + low for high, low in zip(parts[1].to_pylist(), parts[2].to_pylist(), strict=True))

    def _value(self, count: int, total: Any) -> Any:
        if count == 0:
            return None
        if t.is_floating(self.type):
            return _rounded(total, (1 if self.function == "sum" else count) << _BIAS)
        if self.function == "sum":
            return total
        return round(Fraction(total, count)) if t.is_duration(self.type) else _rounded(total, count)


def retyped(
    tables: Sequence[pa.Table], known: Sequence[Accumulator], fresh: Sequence[Accumulator]
) -> tuple[list[pa.Table], tuple[Accumulator, ...]]:
    """Return tables of groups with the columns of the wider ones of known and fresh accumulators, and these.

    Without any values so far a column takes any type; integers become floats or decimals, decimals get more digits behind the
    point, exactly. Raises ColumnTypeChanged for other types.
    """
    if not known or tuple(known) == tuple(fresh):
        return list(tables), tuple(fresh)
    both = tuple(_wider(old, new) for old, new in zip(known, fresh, strict=True))
    changed = [(old, now) for old, now in zip(known, both, strict=True) if old.type != now.type]
    tables = list(tables)
    for number, table in enumerate(tables):
        columns = {name: table.column(name) for name in table.column_names}
        for old, now in changed:
            parts = [columns.pop(name).combine_chunks() for name in old.parts]
            columns |= dict(zip(now.parts, _as_wider(parts, old, now), strict=True))
        tables[number] = pa.table(columns)
    return tables, both


def _wider(old: Accumulator, new: Accumulator) -> Accumulator:
    """Return the one of two accumulators that holds the values of both. Raises ColumnTypeChanged where neither does."""
    if old.type == new.type or t.is_null(new.type):
        return old
    if old.function in OF_ROWS:
        return attrs.evolve(old, type=wider_rows(old.type, new.type))
    if t.is_null(old.type):
        return new
    if t.is_decimal(old.type) and t.is_decimal(new.type):
        return attrs.evolve(old, type=pa.decimal128(38, max(old.type.scale, new.type.scale)))
    for one, other in ((old, new), (new, old)):
        if t.is_integer(one.type) and t.is_decimal(other.type):
            return attrs.evolve(other, type=pa.decimal128(38, other.type.scale))
        is_longer = t.is_integer(other.type) and other.type.bit_width > one.type.bit_width
        if t.is_integer(one.type) and (t.is_floating(other.type) or is_longer):
            return other
        if t.is_float32(one.type) and t.is_float64(other.type):
            return other
    raise ColumnTypeChanged(column=str(old.column), before=str(old.type), now=str(new.type))


def _as_wider(parts: list[pa.Array], old: Accumulator, now: Accumulator) -> Iterator[pa.Array]:
    """Yield the columns of a wider accumulator for the groups that another one has columns of. Raises ColumnTypeChanged."""
    rows, types = len(parts[0]), [kind for _, kind in now._parts()]
    if now.function in OF_ORDERED_VALUES:
        try:
            yield pa.array([[]] * rows, types[0]) if t.is_null(old.type) else parts[0].cast(types[0])
        except pa.ArrowInvalid as error:
            raise ColumnTypeChanged(column=str(old.column), before=str(old.type), now=str(now.type)) from error
        return
    yield parts[0]
    if t.is_null(old.type):
        yield from (pa.array([[]] * rows, kind) if t.is_list(kind) else pa.array([0] * rows).cast(kind) for kind in types[1:])
    elif t.is_decimal(old.type):
        yield parts[1].cast(types[1])
    elif t.is_decimal(now.type):
        yield pa.array(map(decimal.Decimal, old._totals(parts)), types[1])
    else:
        yield _digits_of_halves(*(each.to_numpy() for each in parts[1:]))


def _digits_of_halves(high: Ints, low: Ints) -> pa.Array:
    """Return sums of integers as digits of sums of floats."""
    codes = np.arange(len(high))
    place = _BIAS // _DIGIT
    digits = ((place, low & _MASK), (place + 1, (low >> _DIGIT) + ((high & _MASK) << 2)), (place + 2, (high >> _DIGIT) << 2))
    parts = [(codes[numbers != 0], np.full(np.count_nonzero(numbers), at), numbers[numbers != 0]) for at, numbers in digits]
    codes, places, numbers = (np.concatenate(each) for each in zip(*parts, strict=True))
    return counts_of(codes, pa.array(places, pa.int32()), numbers, len(high))


def counts_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column that has, for each group, values in their order, each with a number."""
    return pa.list_(pa.struct([("value", kind), ("n", pa.int64())]))


def plain_column(column: pa.Array) -> pa.Array:
    """Return a column without a dictionary, with one zero and one NaN."""
    if t.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not t.is_floating(column.type):
        return column
    column = column.cast(pa.float32()) if t.is_float16(column.type) else column
    column = pc.add(column, pa.scalar(0.0, column.type))
    is_nan = pc.is_nan(column)
    return pc.if_else(is_nan, pa.scalar(float("nan"), column.type), column) if pc.any(is_nan).as_py() else column


def is_alike_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Return True for types of keys whose equal values are one group: integers of any width, decimals of one scale, or texts."""
    one, other = (kind.value_type if t.is_dictionary(kind) else kind for kind in (one, other))
    if t.is_decimal(one) and t.is_decimal(other):
        return bool(one.scale == other.scale)  # else a row that is taken back has another text than the one that stands
    kinds = (t.is_integer, t.is_floating, lambda kind: t.is_string(kind) or t.is_large_string(kind))
    return one == other or t.is_null(one) or t.is_null(other) or any(is_kind(one) and is_kind(other) for is_kind in kinds)


def check_alike(column: str, before: pa.DataType, now: pa.DataType) -> None:
    """Raise ColumnTypeChanged where values of two types of a column are not `is_alike_type`."""
    if not is_alike_type(before, now):
        raise ColumnTypeChanged(column=column, before=str(before), now=str(now))


def comparable(column: pa.Array) -> pa.Array:
    """Return values of a type that Arrow sorts and encodes, the same for equal values: of nested ones their content."""
    if t.is_nested(column.type):
        return pa.array(list(contents_of_column(column)), pa.binary())
    return column.cast(pa.string()) if t.is_string_view(column.type) else column


def group_codes(batch: pa.RecordBatch | pa.Table, keys: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the group of each row, numbered from 0, and the first row of each group. Raises KeyColumnRefused."""
    codes: Ints = np.zeros(batch.num_rows, np.int64)
    first = codes[:1]
    for place, name in enumerate(keys):
        column = batch.column(name)
        column = plain_column(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
        if t.is_nested(column.type):
            raise KeyColumnRefused(column=name, type=str(column.type))
        if t.is_integer(column.type) and not column.null_count:
            own, first = _numbered(column.to_numpy())
        else:
            encoded = pc.dictionary_encode(column, null_encoding="encode")
            own, first = encoded.indices.to_numpy().astype(np.int64), np.empty(len(encoded.dictionary), np.int64)
            first[own[::-1]] = np.arange(len(own))[::-1]
        codes, first = (own, first) if not place else _numbered(codes * len(first) + own)
    return codes, first


def _numbered(values: Ints) -> tuple[Ints, Ints]:
    """Return the number of each value among the different ones in their order, and the first place of each of these."""
    if len(values) and (span := int(values.max()) - int(least := values.min()) + 1) <= _DENSE * len(values):
        at = values.astype(np.int64) - least.astype(np.int64)
        first = np.full(span, -1, np.int64)
        first[at[::-1]] = np.arange(len(at))[::-1]
        is_there = first >= 0
        return (np.cumsum(is_there) - 1)[at], first[is_there]
    order = order_of(values)
    ordered = values[order]
    is_first = np.append(len(values) > 0, ordered[1:] != ordered[:-1])[: len(values)]
    codes: Ints = np.empty(len(values), np.int64)
    codes[order] = np.cumsum(is_first) - 1
    return codes, order[is_first]


def accumulated(batch: pa.RecordBatch, keys: Sequence[str], accumulators: Sequence[Accumulator], sign: int) -> pa.Table:
    """Return the groups of the rows of a batch, at most `MAX_ROWS`.

    Args:
        batch: the rows.
        keys: the columns that are the key.
        accumulators: what is kept of groups.
        sign: 1 for rows that are added, -1 for rows that are taken back.
    """
    codes, first = group_codes(batch, keys)
    groups = len(first)
    columns = {name: plain_column(batch.column(name)).take(pa.array(first)) for name in keys}
    columns[ROWS] = rows = _summed(codes, None, groups, sign)
    kept: dict[Accumulator, list[pa.Array]] = {}  # a sum and a mean of one column are kept alike
    for each in accumulators:
        if each.kept not in kept:
            kept[each.kept] = list(each.of_rows(batch, codes, rows, sign))
        columns.update(zip(each.parts, kept[each.kept], strict=True))
    return pa.table(columns)


def merged(
    tables: Sequence[pa.Table], keys: Sequence[str], accumulators: Sequence[Accumulator], groups_of_rows: Ints | None = None
) -> pa.Table:
    """Return the groups of several tables of groups as one table.

    `groups_of_rows`: the group of each row, where it is known; the first rows are those of all groups, in their order.
    """
    whole = pa.concat_tables(tables, promote_options="permissive")
    if groups_of_rows is None:
        codes, first = group_codes(whole, keys)
    else:
        codes, first = groups_of_rows, np.arange(tables[0].num_rows)
    groups = len(first)
    columns: dict[str, Any] = {name: whole.column(name).take(pa.array(first)).combine_chunks() for name in keys}
    parts = {name: kind for each in accumulators for name, kind in each.parts.items()}
    sums = {ROWS: pa.int64(), **{name: kind for name, kind in parts.items() if not t.is_list(kind)}}
    columns |= _added({name: whole.column(name) for name in sums}, codes, groups)
    columns |= {name: columns[name].cast(kind) for name, kind in sums.items()}
    for each in accumulators:
        for name, kind in each.parts.items():
            if t.is_list(kind):
                keep = each.keep if each.function in OF_ORDERED_VALUES else "all"
                columns[name] = _merged_counts(whole.column(name).combine_chunks(), codes, groups, keep)
    return pa.table({name: columns[name] for name in (*keys, ROWS, *parts)})


def counts_of(codes: Ints, values: pa.Array, numbers: Ints, groups: int, keep: str = "all") -> pa.Array:
    """Return the values of each group with their numbers. `keep`: `all`, or of each group the `min` or the `max` only."""
    if t.is_int32(values.type):
        order = order_of((codes << 32) + values.to_numpy())
    else:
        by = [("code", "ascending"), ("value", "ascending")]
        order = pc.sort_indices(pa.table({"code": codes, "value": values}), by).to_numpy()
    codes, values, numbers = codes[order], values.take(pa.array(order)), numbers[order]
    if keep != "all" and len(codes):
        is_end = np.ones(len(codes), bool)
        differs = codes[1:] != codes[:-1]
        if keep == "min":
            is_end[1:] = differs
        else:
            is_end[:-1] = differs
        codes, values, numbers = codes[is_end], values.filter(pa.array(is_end)), numbers[is_end]
    offsets = np.searchsorted(codes, np.arange(groups + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.StructArray.from_arrays([values, pa.array(numbers)], ["value", "n"]))


def _grouped(columns: dict[str, tuple[Any, str]], codes: Ints, groups: int) -> dict[str, pa.Array]:
    """Return columns of values by group, each made by a function of Acero; null for groups without rows."""
    table = pa.table({"code": codes, **{name: column for name, (column, _) in columns.items()}})
    wanted = [([name], f"hash_{function}", None, name) for name, (_, function) in columns.items()]
    result = computed_by("aggregate", acero().AggregateNodeOptions(wanted, keys=["code"]), table)
    place = np.full(groups, -1, np.int64)
    place[result.column("code").to_numpy()] = np.arange(result.num_rows)
    at = pa.array(place, mask=place < 0)
    return {name: result.column(name).combine_chunks().take(at) for name in columns}


def _added(columns: dict[str, pa.ChunkedArray], codes: Ints, groups: int) -> dict[str, pa.Array]:
    """Return the sums of columns by group. Integers are added up by numpy, in a third of Acero's time."""
    totals: dict[str, pa.Array] = {}
    for name, column in columns.items():
        if t.is_decimal256(column.type) and (sums_of_long := _sums_of_long(codes, column, groups)) is not None:
            totals[name] = sums_of_long
            continue
        if column.type != pa.int64() or column.null_count:
            totals |= _grouped({name: (column, "sum")}, codes, groups)
            continue
        sums = np.zeros(groups, np.int64)
        np.add.at(sums, codes, column.to_numpy())
        totals[name] = pa.array(sums)
    return totals


def _summed(codes: Ints, values: Any, groups: int, sign: int) -> pa.Array:
    """Return sums by group: of integers below 2**32, or of the rows."""
    sums = np.bincount(codes, None if values is None else values.astype(np.float64), minlength=groups)
    return pa.array(sums.astype(np.int64) * sign)


def _sums_of_decimals(codes: Ints, values: pa.Array, kind: pa.DataType, groups: int, sign: int) -> pa.Array:
    """Return exact sums of decimals of 128 bits, by their digits to the base 2**32: in a fifth of Acero's time."""
    low, high = _words(values, 2)
    if (high == low >> 63).all():  # the sign alone
        digits = _halves(low)
    else:
        digits = [low & 0xFFFFFFFF, (low >> 32) & 0xFFFFFFFF, high & 0xFFFFFFFF, high >> 32]
    return _of_digits(codes, digits, kind, groups, sign)


def _sums_of_long(codes: Ints, column: pa.ChunkedArray, groups: int) -> pa.Array | None:
    """Return exact sums of decimals of 256 bits whose values have 64 bits; None where others have more, or are null."""
    parts = [_words(chunk, 4) for chunk in column.chunks]
    if column.null_count or not all((word == low >> 63).all() for low, *high in parts for word in high):
        return None
    low = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)])
    return _of_digits(codes, _halves(low), column.type, groups, 1)


def _halves(values: Ints) -> list[Ints]:
    """Return integers as digits to the base 2**32; as one where the sums of small ones are exact as floats."""
    largest = max(int(values.max()), -int(values.min())) if len(values) else 0
    return [values] if largest * len(values) < _EXACT else [values & 0xFFFFFFFF, values >> 32]


def _words(values: pa.Array, width: int) -> list[Ints]:
    """Return the words of 64 bits of decimals with so many of them, the lowest first."""
    words = np.frombuffer(values.buffers()[1] or b"", np.int64, width * (len(values) + values.offset))[width * values.offset :]
    return [words[place::width] for place in range(width)]


def _of_digits(codes: Ints, digits: list[Ints], kind: pa.DataType, groups: int, sign: int) -> pa.Array:
    """Return sums of decimals of 256 bits, given their digits to the base 2**32."""
    totals, carry = np.empty((groups, 8), np.uint32), np.zeros(groups, np.int64)
    for place in range(8):
        if place < len(digits):
            carry += _summed(codes, digits[place], groups, sign).to_numpy()
        totals[:, place] = carry & 0xFFFFFFFF
        carry >>= 32
    return pa.Array.from_buffers(kind, groups, [None, pa.py_buffer(totals)])


def _extremes(keep: str, codes: Ints, values: pa.Array, groups: int, sign: int) -> pa.Array:
    if keep != "all":
        best = _best(keep, codes, values, groups)
        there = best.is_valid().to_numpy(zero_copy_only=False)
        codes, values = np.flatnonzero(there), best.drop_null()
        return counts_of(codes, values, np.ones(len(codes), np.int64), groups)
    pairs, first = group_codes(pa.record_batch({"code": codes, "value": values}), ("code", "value"))
    numbers = np.bincount(pairs, minlength=len(first)).astype(np.int64) * sign
    return counts_of(codes[first], values.take(pa.array(first)), numbers, groups)


def _best(keep: str, codes: Ints, values: pa.Array, groups: int) -> pa.Array:
    """Return the smallest or the largest value of each group, null for those without any. NaN is larger than all numbers."""
    if t.is_duration(values.type):  # Acero does not compare them
        return _best(keep, codes, values.view(pa.int64()), groups).view(values.type)
    is_nan = np.isnan(values.to_numpy()) if t.is_floating(values.type) else np.zeros(0, bool)  # Acero leaves NaN out
    if not is_nan.any():
        return _grouped({"value": (values, keep)}, codes, groups)["value"]
    numbers = _grouped({"value": (values.filter(pa.array(~is_nan)), keep)}, codes[~is_nan], groups)["value"]
    is_best = np.bincount(codes[is_nan], minlength=groups) > 0
    if keep == "min":
        is_best &= numbers.is_null().to_numpy(zero_copy_only=False)
    return pc.if_else(pa.array(is_best), pa.scalar(math.nan, values.type), numbers)


def _ends(counts: pa.Array, *, last: bool) -> pa.Array:
    """Return the first or the last value of each group, null without any."""
    offsets = counts.offsets.to_numpy()
    start, stop = offsets[:-1], offsets[1:]
    at = stop - 1 if last else start
    return counts.values.field("value").take(pa.array(at.astype(np.int64), mask=start == stop))


def _quantiles(numbers: np.ndarray[Any, Any], ends: Ints, offsets: Ints, share: float) -> pa.Array:
    """Return the quantile of each group, null without values: between two of them in proportion, as `quantile_cont` of SQL.

    `ends`: how many values there are before each number, and in all.
    """
    start, count = ends[offsets[:-1]], np.diff(ends[offsets])
    at = share * np.maximum(count - 1, 0)
    below = np.floor(at).astype(np.int64)
    # the place of a value among those that are different
    low, high = (np.searchsorted(ends, start + each, side="right") - 1 for each in (below, np.ceil(at).astype(np.int64)))
    is_none, part = count == 0, at - below
    if not len(numbers):
        return pa.nulls(len(count), pa.float64())
    low, high = numbers[np.where(is_none, 0, low)], numbers[np.where(is_none, 0, high)]
    with np.errstate(invalid="ignore"):
        between = np.where(part == 0, low, low + (high - low) * part)
    return pa.array(between, pa.float64(), mask=is_none)


def _deviations(numbers: list[Any], counts: Ints, offsets: Ints) -> pa.Array:
    """Return the sample standard deviation of each group, null for less than two values: exact sums, whatever the order."""
    results: list[float | None] = []
    for start, stop in itertools.pairwise(offsets.tolist()):
        own, n = numbers[start:stop], counts[start:stop]
        count = int(n.sum())
        if count < 2:
            results.append(None)
        elif not all(map(math.isfinite, own)):
            results.append(math.nan)
        else:
            weights = list(zip(map(Fraction, own), n.tolist(), strict=True))
            middle = sum(value * times for value, times in weights) / count
            squares = sum((value - middle) ** 2 * times for value, times in weights)
            results.append(_root(Fraction(squares) / (count - 1)))
    return pa.array(results, pa.float64())


def _root(square: Fraction) -> float:
    """Return the square root of an exact number as a float, rounded once."""
    shift = max(64, 64 + (square.denominator.bit_length() - square.numerator.bit_length()) // 2)  # 64 bits of the root or more
    scaled = square * 4**shift
    root = math.isqrt(math.floor(scaled))
    try:
        return float(Fraction(2 * root + (root * root != scaled), 2 << shift))  # more than `root`, if only by a little
    except OverflowError:
        return math.inf


def _merged_counts(counts: pa.Array, codes: Ints, groups: int, keep: str) -> pa.Array:
    """Return lists of values with numbers, merged by group: the numbers of a value are added up, and without any it is gone."""
    pairs = pc.list_flatten(counts)
    values, numbers = pairs.field("value"), pairs.field("n")
    codes = codes[pc.list_parent_indices(counts).to_numpy()]
    same, first = group_codes(pa.record_batch({"code": codes, "value": values}), ("code", "value"))
    sums = _added({"n": pa.chunked_array([numbers])}, same, len(first))["n"].to_numpy()
    codes, values = codes[first], values.take(pa.array(first))
    if t.is_int32(values.type) and len(sums) and np.abs(sums).max() >= _CARRY:
        codes, values, sums = _carried(codes, values, sums)
    there = sums != 0
    return counts_of(codes[there], values.filter(pa.array(there)), sums[there], groups, keep)


def _carried(codes: Ints, digits: pa.Array, sums: Ints) -> tuple[Ints, pa.Array, Ints]:
    """Return digits of sums with what is too large for a digit in those above it. May return a digit several times."""
    place = digits.to_numpy().astype(np.int32)
    rests = [(codes, place, np.sign(sums) * (np.abs(sums) & _MASK))]
    for step in (1, 2):
        above = np.abs(sums) >> (_DIGIT * step)
        rests.append((codes, place + step, np.sign(sums) * (above & _MASK if step == 1 else above)))
    codes, place, sums = (np.concatenate(each) for each in zip(*rests, strict=True))
    return codes, pa.array(place, pa.int32()), sums


def _digits(codes: Ints, values: Any, groups: int, sign: int) -> tuple[Ints, pa.Array, Ints]:
    """Return the digits of the sums of floats by group, in order: the group, the digit's place, and the digit."""
    others: dict[int, Any] = {}
    if not (is_finite := np.isfinite(values)).all():
        kinds = ((_NAN, np.isnan(values)), (_INFINITY, values == np.inf), (_MINUS_INFINITY, values == -np.inf))
        others = {kind: np.bincount(codes[is_kind], minlength=groups) for kind, is_kind in kinds}
        codes, values = codes[is_finite], values[is_finite]
    parts = [slice(start, start + _CACHED) for start in range(0, len(values), _CACHED)]
    occurs = np.full(len(_TOPS), has_all := groups << 8 < len(values))  # sums of digits that do not occur cost less than a look
    for part in () if has_all else parts:
        occurs[values[part].view(np.int64) >> 52] = True
    numbers = np.bincount((_TOPS[occurs] - np.arange(_DIGITS)[:, None]).ravel(), minlength=_TOPS[-1] + 1)
    places = np.append(np.flatnonzero(numbers), [*others]).astype(np.int32)
    columns = (np.cumsum(numbers > 0) - 1)[_TOPS]
    lanes = _LANES if groups < _LANES else 1
    lane = (np.arange(min(_CACHED, len(values))) & lanes - 1) * groups
    sums = np.zeros((lanes, groups, len(places)))
    for part in parts:
        exponents = values[part].view(np.int64) >> 52  # those of negative floats are negative: they count from the end
        at = (codes[part] + lane[: len(exponents)]) * len(places) + columns[exponents]
        rest = values[part] * _SCALES[exponents]
        for _ in range(_DIGITS):
            np.add.at(sums.reshape(-1), at, whole := np.trunc(rest))
            rest = (rest - whole) * (1 << _DIGIT)  # exact: the bits behind the digit
            at -= 1
    total = sums.sum(axis=0) if lanes > 1 else sums[0]
    total[:, len(places) - len(others) :] = np.array([*others.values()]).T
    some = np.flatnonzero(total != 0)
    codes = some // len(places)
    return codes, pa.array(places[some - codes * len(places)]), total.reshape(-1)[some].astype(np.int64) * sign


def _totals_of_digits(digits: pa.Array) -> Iterator[int | float]:
    """Yield the exact sums of digits times `2**_BIAS`, or what is not finite."""
    places, numbers = digits.values.field("value").to_numpy(), digits.values.field("n").to_pylist()
    bits = (places * _DIGIT).tolist()
    for start, stop in itertools.pairwise(digits.offsets.to_pylist()):
        if start < stop and places[stop - 1] >= _NAN:
            kinds = {place for place in places[start:stop].tolist() if place >= _NAN}
            yield math.inf if kinds == {_INFINITY} else -math.inf if kinds == {_MINUS_INFINITY} else math.nan
        else:
            yield sum(map(operator.lshift, numbers[start:stop], bits[start:stop]))


def _rounded(total: Any, count: int) -> float:
    """Return a total by a count as the nearest float."""
    if isinstance(total, float):
        return total
    try:
        numerator, denominator = total.as_integer_ratio()
        return float(numerator / (denominator * count))
    except OverflowError:
        return math.inf if total > 0 else -math.inf
