"""Accumulators of `GroupBy`: what is kept of groups, as columns of a table with a row for each group.

Rows can be added and taken back in any order, and what is left is exact: integers are summed as two halves, floats as digits of
30 bits (rounded once, where a result is asked for), and of smallest and largest values it is known how many rows have them. So
tables of groups merge by adding up, whatever the windows were.
"""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Literal

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from operators.acero import acero, computed_by
from operators.aggregate.errors import ColumnTypeChanged, KeyColumnRefused, TotalNotHeld, ValueColumnRefused
from operators.transform.content import contents_of_column

Function = Literal["count", "sum", "mean", "min", "max"]
Ints = np.ndarray[Any, np.dtype[np.int64]]

ROWS = "#rows"
"""The column of a table of groups that has the number of rows of each."""
MAX_ROWS = 1 << 20
"""The rows that are accumulated at once: sums of so many halves and digits are exact as floats, by which numpy adds them up."""
_DIGIT, _BIAS = 30, 38 * 30
"""The bits of a digit of a sum of floats, and the power of two by which sums are scaled: so the smallest float is an integer."""
_MASK = (1 << _DIGIT) - 1
_NAN, _INFINITY, _MINUS_INFINITY = 1000, 1001, 1002
"""The digits that count what is not finite."""
_CARRY = 1 << 61


@attrs.frozen
class Accumulator:
    """The columns that are kept of an aggregate.

    Attributes:
        name: of the aggregate, and of the column of its results.
        function, column: what is aggregated; no column: the rows.
        type: of the values: that of the column, or a wider one in which they are added up; null as long as there are none.
        keeps_all: all values are kept for the smallest and the largest, since rows may be taken back; else these alone.
    """

    name: str
    function: Function
    column: str | None
    type: pa.DataType
    keeps_all: bool = False

    @classmethod
    def of(cls, name: str, function: Function, column: str | None, kind: pa.DataType, *, keeps_all: bool = False) -> Accumulator:
        """Return the accumulator of a column of a type. Raises ValueColumnRefused."""
        if t.is_dictionary(kind):
            kind = kind.value_type
        if t.is_float16(kind):
            kind = pa.float32()
        if function == "count":
            return cls(name, function, column, pa.int64())
        adds = function in ("sum", "mean")
        is_number = t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_null(kind)
        is_odd = t.is_decimal(kind) and not t.is_decimal128(kind)
        if (adds and not is_number) or t.is_nested(kind) or is_odd:
            raise ValueColumnRefused(column=str(column), type=str(kind), lack="added up" if adds else "compared")
        if adds and not t.is_null(kind):
            kind = pa.decimal128(38, kind.scale) if t.is_decimal(kind) else pa.float64() if t.is_floating(kind) else pa.int64()
        return cls(name, function, column, kind, keeps_all and not adds)

    @classmethod
    def of_parts(cls, name: str, function: Function, column: str | None, schema: pa.Schema) -> Accumulator:
        """Return the accumulator whose parts are columns of a table of groups."""
        parts = {field.name.rpartition("#")[2]: field.type for field in schema if field.name.startswith(f"{name}#")}
        kind = pa.int64()
        if function in ("min", "max"):
            kind = next(iter(parts.values())).value_type.field("value").type
        elif "total" in parts:
            kind = pa.decimal128(38, parts["total"].scale)
        elif "digits" in parts:
            kind = pa.float64()
        elif function in ("sum", "mean") and "high" not in parts:
            kind = pa.null()
        return cls(name, function, column, kind, "all" in parts)

    @property
    def result_type(self) -> pa.DataType:
        """The type of its results."""
        if self.function == "mean":
            return pa.float64()
        return pa.int64() if self.function == "sum" and t.is_null(self.type) else self.type

    @property
    def parts(self) -> dict[str, pa.DataType]:
        """The columns of a table of groups that belong to it, with their types."""
        return {f"{self.name}#{part}": kind for part, kind in self._parts()}

    def _parts(self) -> Iterator[tuple[str, pa.DataType]]:
        if self.function in ("min", "max"):
            yield "all" if self.keeps_all else "values", counts_type(self.type)
            return
        yield "n", pa.int64()
        kind = self.type
        if self.function == "count" or t.is_null(kind):
            return
        if t.is_decimal(kind):
            yield "total", pa.decimal256(76, kind.scale)
        elif t.is_floating(kind):
            yield "digits", counts_type(pa.int32())
        else:
            yield "high", pa.int64()
            yield "low", pa.int64()

    def of_rows(self, batch: pa.RecordBatch, codes: Ints, groups: int, sign: int) -> Iterator[pa.Array]:
        """Yield its columns for the groups of a batch. `codes`: the group of each row. See `accumulated`."""
        if self.column is None:
            yield _summed(codes, None, groups, sign)
            return
        values = plain_column(batch.column(self.column))
        if self.function != "count":
            values = values.cast(self.type) if not t.is_uint64(values.type) else values
        valid = np.ones(len(values), bool) if not values.null_count else values.is_valid().to_numpy(zero_copy_only=False)
        if self.function in ("min", "max"):
            yield _extremes(self.function, codes[valid], values.drop_null(), groups, sign, keeps_all=self.keeps_all)
            return
        codes = codes[valid]
        yield _summed(codes, None, groups, sign)
        if self.function == "count" or t.is_null(self.type):
            return
        values = values.drop_null()
        if t.is_decimal(values.type):
            kind = pa.decimal256(76, values.type.scale)
            signed = values.cast(kind) if sign > 0 else pc.negate(values.cast(kind))
            yield _grouped({"value": (signed, "sum")}, codes, groups)["value"].fill_null(pa.scalar(0, kind)).cast(kind)
        elif t.is_floating(values.type):
            yield counts_of(*_digits(codes, values.to_numpy(), groups, sign), groups)
        else:
            whole = values.to_numpy()
            yield _summed(codes, whole >> np.asarray(32, whole.dtype), groups, sign)
            yield _summed(codes, whole & np.asarray(0xFFFFFFFF, whole.dtype), groups, sign)

    def results(self, table: pa.Table) -> pa.Array:
        """Return its results for the groups of a table. Raises TotalNotHeld."""
        parts = [table.column(name).combine_chunks() for name in self.parts]
        if self.function == "count":
            return parts[0]
        if self.function in ("min", "max"):
            return _ends(parts[0], last=self.function == "max")
        counts = parts[0].to_numpy()
        if self.function == "sum" and t.is_integer(self.type) and len(counts) and np.abs(parts[1].to_numpy()).max() < 1 << 29:
            return pa.array(parts[1].to_numpy() * 2**32 + parts[2].to_numpy(), self.result_type, mask=counts == 0)
        totals = list(map(self._value, counts.tolist(), self._totals(parts)))
        try:
            return pa.array(totals, self.result_type)
        except (OverflowError, pa.ArrowInvalid) as error:
            largest = max((total for total in totals if total is not None), key=abs)
            raise TotalNotHeld(name=self.name, type=str(self.result_type), total=str(largest)) from error

    def _totals(self, parts: list[pa.Array]) -> Iterator[Any]:
        """Yield the exact total of each group: an integer, a decimal, or of floats a fraction, or what is not finite."""
        if t.is_null(self.type):
            yield from [None] * len(parts[0])
        elif t.is_decimal(self.type):
            yield from parts[1].to_pylist()
        elif t.is_floating(self.type):
            yield from map(_total_of_digits, parts[1].to_pylist())
        else:
            yield from (high * 2**32 + low for high, low in zip(parts[1].to_pylist(), parts[2].to_pylist(), strict=True))

    def _value(self, count: int, total: Any) -> Any:
        if count == 0:
            return None
        if self.function == "sum":
            return _rounded(total, 1) if t.is_floating(self.type) else total
        return _rounded(total, count)


def retyped(
    tables: Sequence[pa.Table], known: Sequence[Accumulator], fresh: Sequence[Accumulator]
) -> tuple[list[pa.Table], tuple[Accumulator, ...]]:
    """Return tables of groups with the columns of fresh accumulators, and the accumulators from now on.

    A column without any values so far takes any type. Raises ColumnTypeChanged for others.
    """
    if not known or tuple(known) == tuple(fresh):
        return list(tables), tuple(fresh)
    tables, after = list(tables), []
    for old, new in zip(known, fresh, strict=True):
        after.append(old if t.is_null(new.type) else new)
        if old.type == new.type or t.is_null(new.type):
            continue
        if not t.is_null(old.type):
            raise ColumnTypeChanged(column=str(old.column), before=str(old.type), now=str(new.type))
        for number, table in enumerate(tables):
            columns = {name: _none(kind, table.num_rows) for name, kind in new.parts.items() if not name.endswith("#n")}
            kept = {name: table.column(name) for name in table.column_names if name not in columns}
            tables[number] = pa.table({**kept, **columns})
    return tables, tuple(after)


def _none(kind: pa.DataType, rows: int) -> pa.Array:
    """Return a part of groups without values."""
    return pa.array([[]] * rows, kind) if t.is_list(kind) else pa.array([0] * rows, pa.int64()).cast(kind)


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
    """Return True for types of keys whose equal values are one group: integers of any width, or texts."""
    one, other = (kind.value_type if t.is_dictionary(kind) else kind for kind in (one, other))
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
    rows = batch.num_rows
    if not keys:
        return np.zeros(rows, np.int64), np.zeros(min(rows, 1), np.int64)
    codes, groups = np.zeros(rows, np.int64), 1
    for name in keys:
        column = batch.column(name)
        column = plain_column(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
        if t.is_nested(column.type):
            raise KeyColumnRefused(column=name, type=str(column.type))
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        if groups > 1:
            encoded = pc.dictionary_encode(pa.array(codes * len(encoded.dictionary) + encoded.indices.to_numpy()))
        codes, groups = encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
    first = np.empty(groups, np.int64)
    first[codes[::-1]] = np.arange(rows)[::-1]
    return codes, first


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
    columns[ROWS] = _summed(codes, None, groups, sign)
    for each in accumulators:
        columns.update(zip(each.parts, each.of_rows(batch, codes, groups, sign), strict=True))
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
    columns |= _grouped({name: (whole.column(name), "sum") for name in sums}, codes, groups)
    columns |= {name: columns[name].cast(kind) for name, kind in sums.items()}
    for each in accumulators:
        for name, kind in each.parts.items():
            if t.is_list(kind):
                keep = "all" if each.keeps_all or each.function not in ("min", "max") else each.function
                columns[name] = _merged_counts(whole.column(name).combine_chunks(), codes, groups, keep)
    return pa.table({name: columns[name] for name in (*keys, ROWS, *parts)})


def counts_of(codes: Ints, values: pa.Array, numbers: Ints, groups: int, keep: str = "all") -> pa.Array:
    """Return the values of each group with their numbers. `keep`: `all`, or of each group the `min` or the `max` only."""
    order = pc.sort_indices(
        pa.table({"code": codes, "value": values}), [("code", "ascending"), ("value", "ascending")]
    ).to_numpy()
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
    found = computed_by("aggregate", acero().AggregateNodeOptions(wanted, keys=["code"]), table)
    place = np.full(groups, -1, np.int64)
    place[found.column("code").to_numpy()] = np.arange(found.num_rows)
    at = pa.array(place, mask=place < 0)
    return {name: found.column(name).combine_chunks().take(at) for name in columns}


def _summed(codes: Ints, values: Any, groups: int, sign: int) -> pa.Array:
    """Return sums by group: of integers below 2**32, or of the rows."""
    sums = np.bincount(codes, None if values is None else values.astype(np.float64), minlength=groups)
    return pa.array(sums.astype(np.int64) * sign)


def _extremes(function: str, codes: Ints, values: pa.Array, groups: int, sign: int, *, keeps_all: bool) -> pa.Array:
    if not keeps_all and not t.is_floating(values.type) and not t.is_duration(values.type):  # Acero leaves NaN out
        best = _grouped({"value": (values, function)}, codes, groups)["value"]
        there = best.is_valid().to_numpy(zero_copy_only=False)
        codes, values = np.flatnonzero(there), best.drop_null()
        return counts_of(codes, values, np.ones(len(codes), np.int64), groups)
    pairs, first = group_codes(pa.record_batch({"code": codes, "value": values}), ("code", "value"))
    numbers = np.bincount(pairs, minlength=len(first)).astype(np.int64) * sign
    return counts_of(codes[first], values.take(pa.array(first)), numbers, groups, "all" if keeps_all else function)


def _ends(counts: pa.Array, *, last: bool) -> pa.Array:
    """Return the first or the last value of each group, null without any."""
    offsets = counts.offsets.to_numpy()
    start, stop = offsets[:-1], offsets[1:]
    at = stop - 1 if last else start
    return counts.values.field("value").take(pa.array(at.astype(np.int64), mask=start == stop))


def _merged_counts(counts: pa.Array, codes: Ints, groups: int, keep: str) -> pa.Array:
    """Return lists of values with numbers, merged by group: the numbers of a value are added up, and without any it is gone."""
    pairs = pc.list_flatten(counts)
    values, numbers = pairs.field("value"), pairs.field("n")
    codes = codes[pc.list_parent_indices(counts).to_numpy()]
    same, first = group_codes(pa.record_batch({"code": codes, "value": values}), ("code", "value"))
    sums = _grouped({"n": (numbers, "sum")}, same, len(first))["n"].to_numpy()
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
    """Return the digits of the sums of floats by group: the group, the digit's place, and the digit."""
    is_finite = np.isfinite(values)
    others = []
    if not is_finite.all():
        kinds = ((_NAN, np.isnan(values)), (_INFINITY, values == np.inf), (_MINUS_INFINITY, values == -np.inf))
        for kind, there in kinds:
            numbers = np.bincount(codes[there], minlength=groups)
            some = np.flatnonzero(numbers)
            others.append((some, np.full(len(some), kind), numbers[some] * sign))
        codes, values = codes[is_finite], values[is_finite]
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    signs = np.where(values < 0, -sign, sign)
    digit, shift = np.divmod(exponent.astype(np.int64) - 53 + _BIAS, _DIGIT)
    low = (whole & _MASK) << shift
    high = ((whole >> _DIGIT) << shift) + (low >> _DIGIT)
    first = int(digit.min()) if len(digit) else 0
    span = (int(digit.max()) - first if len(digit) else 0) + 3
    parts = (low & _MASK, high & _MASK, high >> _DIGIT)
    keys = np.concatenate([codes * span + (digit - first + step) for step in range(3)])
    if groups * span > 4 * len(keys) + MAX_ROWS:  # digits far apart, in many groups
        used, keys = np.unique(keys, return_inverse=True)
    else:
        used = np.arange(groups * span)
    sums = np.bincount(keys, np.concatenate([part * signs for part in parts]).astype(np.float64), minlength=len(used))
    there = np.flatnonzero(sums)
    codes, digit = np.divmod(used[there], span)
    found = [(codes, digit + first, sums[there].astype(np.int64)), *others]
    codes, digit, numbers = (np.concatenate(each).astype(np.int64) for each in zip(*found, strict=True))
    return codes, pa.array(digit, pa.int32()), numbers


def _total_of_digits(digits: list[dict[str, int]]) -> Fraction | float:
    """Return the exact sum of digits, or what is not finite."""
    counts = {each["value"]: each["n"] for each in digits if each["value"] >= _NAN}
    if counts:
        if counts.get(_NAN) or (counts.get(_INFINITY) and counts.get(_MINUS_INFINITY)):
            return float("nan")
        if counts.get(_INFINITY) or counts.get(_MINUS_INFINITY):
            return float("inf") if counts.get(_INFINITY) else float("-inf")
    return Fraction(sum(each["n"] << (_DIGIT * each["value"]) for each in digits if each["value"] < _NAN), 1 << _BIAS)


def _rounded(total: Any, count: int) -> float:
    """Return a total by a count as the nearest float."""
    if isinstance(total, float):
        return total
    try:
        return float(Fraction(total) / count)
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")
