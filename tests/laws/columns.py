"""Columns of random types, and their values: nulls, NaN, zeros of both signs, decimals, odd text."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import ItemsView
from decimal import Decimal
from typing import Any

import attrs
import pyarrow as pa

Row = tuple[Any, ...]
Rows = Counter[Row]
"""Rows, each with how often it is there. All NaN in them are `NAN`, so that equal rows are one."""

NAN = math.nan
INFINITY = math.inf


@attrs.frozen
class Kind:
    """A type of columns.

    Attributes:
        text: the type as a reader's schema has it.
        arrow, sql: the same in Arrow and in DuckDB.
        values: some of its values, the odd ones among them.
        is_number: values can be added up.
        is_plain: values can be compared, and be keys.
        in_json: lines of JSON hold all values.
    """

    text: str
    arrow: pa.DataType
    sql: str
    values: tuple[Any, ...]
    is_number: bool = False
    is_plain: bool = True
    in_json: bool = True

    @property
    def is_float(self) -> bool:
        """True for types that have NaN."""
        return bool(pa.types.is_floating(self.arrow))


_FLOATS = (0.0, -0.0, 1.5, -2.25, 0.1, 0.2, 0.3, 1e16, -1e16, 1e300, -1e300, 5e-324, NAN, INFINITY, -INFINITY)
_REALS = (0.0, -0.0, 1.5, -2.25, 0.5, 16777216.0, -16777216.0, 2.0**100, 2.0**-149, NAN, INFINITY, -INFINITY)
_TEXTS = (
    "",
    "a",
    "A",
    "null",
    "NaN",
    "0",
    " a",
    "a,b",
    'q"q',
    "two\nlines",
    "\r",
    "a\0b",
    "\u00e1",
    "a\u0301",
    "\u2028",
    "😀",
    "ß",
    "x" * 70,
)
_DAYS = tuple(map(dt.date.fromisoformat, ("0001-01-01", "1969-12-31", "1970-01-01", "2024-02-29", "2024-03-02", "9999-12-31")))
_ZONED = tuple(
    map(
        dt.datetime.fromisoformat,
        (
            "0001-01-01T00:00Z",
            "1969-12-31T23:59:59.999999Z",
            "1970-01-01T00:00Z",
            "2024-02-29T11:54:00Z",
            "2024-02-29T12:00:00.000001Z",
            "9999-12-31T23:59:59Z",
        ),
    )
)
_SHORT_TIMES = tuple(each.replace(tzinfo=None) for each in _ZONED if 1700 < each.year < 2200)
"""Times that nanoseconds reach."""
_STRUCTS = tuple((("n", number), ("text", text)) for number, text in ((0, ""), (1, "a"), (1, None), (None, None)))
_DECIMALS = tuple(map(Decimal, ("0.00", "0.01", "-0.01", "1.10", "1.20", "-99999999.99", "99999999.99")))

KINDS: dict[str, Kind] = {
    "bool": Kind("bool", pa.bool_(), "BOOLEAN", (True, False)),
    "tiny": Kind("int8", pa.int8(), "TINYINT", (0, 1, -1, 2, 127, -128), is_number=True),
    "unsigned": Kind("uint32", pa.uint32(), "UINTEGER", (0, 1, 2, 2**31, 2**32 - 1), is_number=True),
    "huge": Kind("uint64", pa.uint64(), "UBIGINT", (0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)),
    "short": Kind("int16", pa.int16(), "SMALLINT", (0, 1, -1, 2, 7, 32767, -32768), is_number=True),
    "int": Kind("int64", pa.int64(), "BIGINT", (0, 1, -1, 2, 3, 10, -7, 2**31, -(2**33), 2**40), is_number=True),
    "wide": Kind("int64", pa.int64(), "BIGINT", (0, 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63))),
    "real": Kind("float32", pa.float32(), "FLOAT", _REALS, is_number=True),
    "float": Kind("float64", pa.float64(), "DOUBLE", _FLOATS, is_number=True),
    "decimal": Kind("decimal128(10, 2)", pa.decimal128(10, 2), "DECIMAL(10, 2)", _DECIMALS, is_number=True),
    "total": Kind("decimal128(38, 2)", pa.decimal128(38, 2), "DECIMAL(38, 2)", _DECIMALS, is_number=True),
    "text": Kind("string", pa.string(), "VARCHAR", _TEXTS),
    "bytes": Kind("binary", pa.binary(), "BLOB", (b"", b"a", b"\0", b"\xff\xfe", b"a\0b"), in_json=False),
    "day": Kind("date32", pa.date32(), "DATE", _DAYS),
    "time": Kind("timestamp[us]", pa.timestamp("us"), "TIMESTAMP", tuple(each.replace(tzinfo=None) for each in _ZONED)),
    "nanos": Kind("timestamp[ns]", pa.timestamp("ns"), "TIMESTAMP_NS", _SHORT_TIMES),
    "zoned": Kind("timestamp[us, UTC]", pa.timestamp("us", "UTC"), "TIMESTAMPTZ", _ZONED),
    "clock": Kind("time64[us]", pa.time64("us"), "TIME", (dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999999))),
    "list": Kind("list<int64>", pa.list_(pa.int64()), "BIGINT[]", ((), (1,), (1, None), (None,), (2, 3)), is_plain=False),
    "struct": Kind(
        "struct<n: int64, text: string>",
        pa.struct([("n", pa.int64()), ("text", pa.string())]),
        "STRUCT(n BIGINT, text VARCHAR)",
        _STRUCTS,
        is_plain=False,
        in_json=False,
    ),
}
DRAWN = tuple(name for name in KINDS if name != "total")
"""The kinds of columns that sources have."""


@attrs.frozen
class Column:
    """A column of a stream.

    Attributes:
        name: of the column.
        kind: the name of its type in `KINDS`.
        has_nulls: whether values may be missing.
        is_finite: no value is NaN or infinite.
    """

    name: str
    kind: str
    has_nulls: bool = True
    is_finite: bool = True

    @property
    def of(self) -> Kind:
        """Its type."""
        return KINDS[self.kind]

    @property
    def identifies(self) -> bool:
        """True if its values can identify rows of a table: neither null nor NaN."""
        return self.of.is_plain and not self.has_nulls and self.is_finite


Columns = tuple[Column, ...]


def names_of(columns: Columns) -> tuple[str, ...]:
    """Return the names of columns."""
    return tuple(column.name for column in columns)


def random_column(rng: random.Random, name: str, kind: str) -> Column:
    """Return a column, with or without nulls and NaN."""
    return Column(name, kind, has_nulls=rng.random() < 0.5, is_finite=not KINDS[kind].is_float or rng.random() < 0.4)


def pool_of(rng: random.Random, column: Column) -> tuple[Any, ...]:
    """Return the few values that a column has: so keys repeat, and match those of other sources."""
    values = [
        value for value in column.of.values if not (column.is_finite and isinstance(value, float) and not math.isfinite(value))
    ]
    some = rng.sample(values, min(len(values), rng.choice((1, 2, 3, 4, 6))))
    return tuple([*some, None] if column.has_nulls else some)


def plain(value: Any) -> Any:
    """Return a value as rows have it: one NaN, tuples for lists, and for structs tuples of pairs.

    >>> plain([1.5, float("nan")])[1] is NAN
    True
    """
    if isinstance(value, dict):
        value = value.items()
    if isinstance(value, list | tuple | ItemsView):
        return tuple(map(plain, value))
    return NAN if value != value else value


def as_rows(records: Any, columns: Columns) -> Rows:
    """Return records, objects or dicts, as rows."""
    names = names_of(columns)
    return Counter(tuple(plain(field_of(record, name)) for name in names) for record in records)


def field_of(record: Any, name: str) -> Any:
    """Return the field of a record: that of a dict, of an object, or the bare value where the only column is `value`."""
    if isinstance(record, dict):
        return record[name]
    return getattr(record, name) if attrs.has(type(record)) else record


def table_of(rows: Rows, columns: Columns) -> pa.Table:
    """Return rows as a table."""
    every = list(rows.elements())
    structs = [pa.types.is_struct(column.of.arrow) for column in columns]
    arrays = [
        pa.array([dict(row[at]) if structs[at] and row[at] else row[at] for row in every], column.of.arrow)
        for at, column in enumerate(columns)
    ]
    return pa.table(arrays, names=list(names_of(columns)))
