"""The groups of records whose keys and values are Python objects: they become numbers of groups and columns of values."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from operators.aggregate.accumulators import ROWS, Accumulator, merged
from operators.aggregate.fields import one_nan
from operators.aggregate.window_groups import Grouping, Groups

CODE = "#code"
"""The column of the numbers of groups, which stand for keys."""
VALUE = "value"
MAX_DIGITS = 38
_LARGE = 1 << 63
_MAX_DAYS = 106_000_000


class _AwareDatetime(datetime.datetime):
    """The kind of datetimes with a time zone."""


_ADDED: dict[type, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    decimal.Decimal: pa.decimal128(MAX_DIGITS, 0),
    datetime.timedelta: pa.duration("us"),
}
_COMPARED: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    **_ADDED,
    str: pa.string(),
    bytes: pa.binary(),
    datetime.datetime: pa.timestamp("us"),
    datetime.date: pa.date32(),
    datetime.time: pa.time64("us"),
    _AwareDatetime: pa.timestamp("us", "UTC"),
}
"""The types of values with those of their columns; a subclass before its base class."""
_BESIDE: dict[type, set[type]] = {int: {float, decimal.Decimal}, float: {int}, decimal.Decimal: {int}}
"""The types that values may have beside those of a type."""


class _Codes(dict[Any, int]):
    """The number of each key: they are counted as they come."""

    def __missing__(self, key: Any) -> int:
        self[key] = code = len(self)
        return code


@attrs.define
class RecordGroups:
    """The groups of the records so far.

    Attributes:
        codes: the number of each key.
        groups: the groups by these numbers.
        kinds: the types of the values so far.
        whole, scale: the most digits before and behind the point of the decimals so far.
    """

    codes: _Codes = attrs.field(factory=_Codes)
    groups: Groups = attrs.field(factory=Groups)
    kinds: set[type] = attrs.field(factory=set)
    whole: int = 0
    scale: int = 0


@attrs.frozen
class Partial:
    """The partial result of a group in one partition: what is kept of it, and how. `key0`, `key1` … are parts of a tuple."""

    key: Any
    parts: tuple[Any, ...]
    accumulator: Accumulator

    def __getattr__(self, name: str) -> Any:
        if name.startswith("key") and name[3:].isdecimal():
            return self.key[int(name[3:])]
        raise AttributeError(name)


@attrs.frozen
class RecordGrouping:
    """The key and the value of records, and their aggregate.

    Attributes:
        key_of, value_of: functions of the record; no value where records are counted.
        grouping: by number, with one aggregate, `value`.
    """

    key_of: Callable[[Any], Any]
    value_of: Callable[[Any], Any] | None
    grouping: Grouping

    @property
    def is_sum(self) -> bool:
        """True if values are added up, and not compared."""
        return self.grouping.aggregates[VALUE].function in ("sum", "mean")

    def add(self, state: RecordGroups, records: Iterator[Any], sign: int, *, keeps_all: bool) -> None:
        """Take records in, or back. Raises TypeError, OverflowError for values that cannot be added up, or compared."""
        if self.value_of is None:
            counted: list[int] = []
            try:
                counted.extend(map(state.codes.__getitem__, map(self.key_of, records)))
            finally:  # records before one that raises count
                self._take(state, counted, None, sign, keeps_all)
            return
        values: dict[Any, tuple[list[int], list[Any]]] = {}
        try:
            for record in records:
                key, value = self.key_of(record), self.value_of(record)
                kind = None if value is None else self._kind(state, value)
                codes, of_kind = values.setdefault(kind, ([], []))
                codes.append(state.codes[key])
                of_kind.append(value)
        finally:
            for kind, (codes, of_kind) in values.items():
                self._take(state, codes, self._column(state, kind, of_kind), sign, keeps_all)

    def add_column(self, state: RecordGroups, rows: int, column: pa.Array | None, sign: int, *, keeps_all: bool) -> None:
        """Take the rows of a batch in, or back, which are one group."""
        if rows:
            self._take(state, np.full(rows, state.codes[None]), column, sign, keeps_all)

    def add_partials(self, state: RecordGroups, partials: Iterable[Partial]) -> None:
        """Take in what `partials` has made."""
        by_accumulator: dict[Accumulator, tuple[list[int], list[tuple[Any, ...]]]] = {}
        for partial in partials:
            codes, parts = by_accumulator.setdefault(partial.accumulator, ([], []))
            codes.append(state.codes[partial.key])
            parts.append(partial.parts)
        for accumulator, (codes, parts) in by_accumulator.items():
            types = {ROWS: pa.int64(), **accumulator.parts}
            columns = zip(types.items(), zip(*parts, strict=True), strict=True)
            table = {name: pa.array(column, kind) for (name, kind), column in columns}
            rows = pa.table({CODE: pa.array(codes, pa.int64()), **table})
            self.grouping.add_groups(state.groups, merged([rows], (CODE,), (accumulator,)))

    def partials(self, state: RecordGroups) -> Iterator[Partial]:
        """Yield the partial result of each group, and forget them."""
        keys, table = self.drained(state, one=one_nan)
        if table is not None:
            (accumulator,) = state.groups.accumulators
            columns = (table.column(name).to_pylist() for name in (ROWS, *accumulator.parts))
            for key, parts in zip(keys, zip(*columns, strict=True), strict=True):
                yield Partial(key, parts, accumulator)
            state.codes, state.groups.tables = _Codes(), []

    def drained(self, state: RecordGroups, one: Callable[[Any], Any]) -> tuple[list[Any], pa.Table | None]:
        """Return the keys, and the table of their groups in the same order. Keys of which `one` makes the same are one group."""
        self.grouping.gather(state.groups)
        table = self.grouping.merge(state.groups)
        if table is None:
            return [], None
        keys = list(state.codes)
        canonical: dict[Any, int] = {}
        codes = np.array([canonical.setdefault(one(key), number) for number, key in enumerate(keys)])
        numbers = codes[table.column(CODE).to_numpy()]
        if len(canonical) < len(keys):
            table = table.set_column(table.column_names.index(CODE), CODE, pa.array(numbers))
            table = merged([table], (CODE,), state.groups.accumulators)
            numbers = table.column(CODE).to_numpy()
        return [keys[number] for number in numbers], table

    def _take(self, state: RecordGroups, codes: Any, column: pa.Array | None, sign: int, keeps_all: bool) -> None:
        if len(codes):
            columns = {CODE: pa.array(codes, pa.int64())}
            if column is not None:
                columns[str(self.grouping.aggregates[VALUE].column)] = column
            self.grouping.add(state.groups, pa.record_batch(columns), sign, keeps_all=keeps_all)

    def _kind(self, state: RecordGroups, value: Any) -> type:
        """Return the type of a value. Raises TypeError, OverflowError for one that no column holds beside those so far."""
        types = _ADDED if self.is_sum else _COMPARED
        kind = type(value) if type(value) in types else next((each for each in types if isinstance(value, each)), None)
        if kind is None:
            wanted = ", ".join(each.__name__ for each in types)
            verb = "added up" if self.is_sum else "compared"
            raise TypeError(f"{value!r} cannot be {verb}: it is not one of {wanted}; give a function that returns one of these")
        if kind is int and not -_LARGE <= value < _LARGE:
            raise OverflowError(f"{value} has more than 64 bits")
        if kind is str:
            value.encode()  # raises for half a surrogate pair, which no column holds
        if kind is datetime.timedelta and abs(value.days) > _MAX_DAYS:
            raise OverflowError(f"{value} has more than 64 bits of microseconds")
        if kind is datetime.time and value.tzinfo is not None:
            raise TypeError(f"{value!r} has a time zone, which no column of times has")
        if kind is datetime.datetime and value.tzinfo is not None:
            kind = _AwareDatetime
        if kind is decimal.Decimal:
            _take_digits(state, value)
        if kind not in state.kinds:
            others = state.kinds - (
                {int} if kind in (float, decimal.Decimal) else {float, decimal.Decimal} if kind is int else set()
            )
            if others:
                raise TypeError(f"{value!r} is not of the type of the values before it, {others.pop().__name__}")
            state.kinds.add(kind)
        return kind

    @staticmethod
    def _column(state: RecordGroups, kind: type | None, values: list[Any]) -> pa.Array:
        if kind is None:
            return pa.nulls(len(values))
        arrow = _COMPARED[kind]
        if kind is decimal.Decimal:
            arrow = pa.decimal128(MAX_DIGITS, state.scale)
        return pa.array(values, arrow)


def _take_digits(state: RecordGroups, value: decimal.Decimal) -> None:
    """Note the digits of a decimal. Raises OverflowError where a column with those so far has too many."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise OverflowError(f"{value} is not a number")
    scale = max(state.scale, -exponent)
    whole = max(state.whole, len(digits) + exponent if any(digits) else 0)
    if whole + scale > MAX_DIGITS:
        raise OverflowError(f"{value} needs {whole} digits before the point and {scale} behind it: a column has {MAX_DIGITS}")
    state.whole, state.scale = whole, scale
