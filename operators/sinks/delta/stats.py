"""Statistics of Parquet files as a Delta log keeps them, by which readers skip files."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types as t

MAX_TEXT = 64
"""Longer texts are cut: each commit has the statistics of all its files."""
_WITHOUT_BOUNDS = (t.is_nested, t.is_binary, t.is_large_binary, t.is_fixed_size_binary)
"""Types that readers expect no bounds of."""
_LAST_CHARACTER = 0x10FFFF


def stats_json(rows: int, footers: list[pq.FileMetaData], with_nan: Collection[str] = ()) -> str:
    """Return the rows of a file, the nulls of its columns, and the smallest and largest value of each.

    A file has the bounds of all columns whose types have some, or no bounds at all: `deltalake` finds no rows for a filter on a
    column that has none beside others that have (https://github.com/delta-io/delta-rs/issues/3173). So a single value without a
    safe bound leaves them all out: NaN (`with_nan` are the columns that may hold one) and infinity, by which JSON or a reader
    would lose rows, and decimals that JSON does not hold exactly.
    """
    stats: dict[str, Any] = {"numRecords": rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    is_bounded = True
    for footer in footers:
        schema = footer.schema.to_arrow_schema()
        for number, field in _flat(footer, schema):
            chunks = [footer.row_group(group).column(number).statistics for group in range(footer.num_row_groups)]
            if any(chunk is None for chunk in chunks):
                is_bounded = False
                continue
            if all(chunk.has_null_count for chunk in chunks):
                stats["nullCount"][field.name] = sum(chunk.null_count for chunk in chunks)
            valued = [chunk for chunk in chunks if chunk.num_values]
            if not valued or any(is_of(field.type) for is_of in _WITHOUT_BOUNDS):
                continue
            bounds = None if field.name in with_nan else _bounds(field.type, valued)
            if bounds is None:
                is_bounded = False
            else:
                stats["minValues"][field.name], stats["maxValues"][field.name] = bounds
    if not is_bounded:
        del stats["minValues"], stats["maxValues"]
    return json.dumps(stats)


def _flat(footer: pq.FileMetaData, schema: pa.Schema) -> Iterator[tuple[int, pa.Field[Any]]]:
    """Yield the columns that are not nested, with their numbers."""
    numbers = {footer.schema.column(number).path: number for number in range(footer.num_columns)}
    for field in schema:
        if not t.is_nested(field.type) and field.name in numbers:
            yield numbers[field.name], field


def _bounds(kind: pa.DataType, chunks: list[Any]) -> tuple[Any, Any] | None:
    if not all(chunk.has_min_max for chunk in chunks):
        return None
    try:
        least, largest = min(chunk.min for chunk in chunks), max(chunk.max for chunk in chunks)
    except (OverflowError, ValueError):  # a time that Python does not have
        return None
    if t.is_integer(kind) or t.is_boolean(kind):
        return least, largest
    if t.is_floating(kind):
        return (least, largest) if math.isfinite(least) and math.isfinite(largest) else None
    if t.is_decimal(kind):
        numbers = float(least), float(largest)  # readers take numbers of JSON for these
        is_exact = all(decimal.Decimal(repr(number)) == each for number, each in zip(numbers, (least, largest), strict=True))
        return numbers if is_exact else None
    if t.is_string(kind):
        above = _above(largest)
        return None if above is None else (least[:MAX_TEXT], above)
    if t.is_date(kind):
        return least.isoformat(), largest.isoformat()
    if t.is_timestamp(kind):
        return _moment(least, kind), _moment(_next_millisecond(largest), kind)  # kept in milliseconds
    return None


def _above(text: str) -> str | None:
    """Return a text of at most MAX_TEXT characters that is not less than another one; None if there is none.

    >>> _above("a" * 64) == "a" * 64, _above("a" * 65) == "a" * 63 + "b"
    (True, True)
    """
    if len(text) <= MAX_TEXT:
        return text
    kept = text[:MAX_TEXT].rstrip(chr(_LAST_CHARACTER))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if 0xD800 <= following < 0xE000 else following)  # no surrogate is a character


def _next_millisecond(value: datetime.datetime) -> datetime.datetime:
    """Return a moment that is not less when its microseconds are cut; at the end of time, itself."""
    try:
        return value + datetime.timedelta(microseconds=999)
    except OverflowError:
        return value


def _moment(value: datetime.datetime, kind: Any) -> str:
    text = value.replace(tzinfo=None).isoformat(timespec="milliseconds" if value.year < 9999 else "microseconds")
    return f"{text}Z" if kind.tz else text
