"""Statistics of Parquet files as a Delta log keeps them, by which readers skip files."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types as t

MAX_TEXT = 64
"""Longer texts are left out: each commit has the statistics of all its files."""


def stats_json(rows: int, footers: list[pq.FileMetaData]) -> str:
    """Return the rows of a file, and of its columns the nulls and the smallest and largest value where that is safe.

    Floats have no bounds: a reader that skips by them would lose NaN.
    """
    stats: dict[str, Any] = {"numRecords": rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for footer in footers:
        schema = footer.schema.to_arrow_schema()
        for number, field in _flat(footer, schema):
            chunks = [footer.row_group(group).column(number).statistics for group in range(footer.num_row_groups)]
            if any(chunk is None for chunk in chunks):
                continue
            if all(chunk.has_null_count for chunk in chunks):
                stats["nullCount"][field.name] = sum(chunk.null_count for chunk in chunks)
            valued = [chunk for chunk in chunks if chunk.num_values]
            if valued and all(chunk.has_min_max for chunk in valued):
                least, largest = min(chunk.min for chunk in valued), max(chunk.max for chunk in valued)
                bounds = _bounds(field.type, least, largest)
                if bounds is not None:
                    stats["minValues"][field.name], stats["maxValues"][field.name] = bounds
    return json.dumps(stats)


def _flat(footer: pq.FileMetaData, schema: pa.Schema) -> Iterator[tuple[int, pa.Field[Any]]]:
    """Yield the columns that are not nested, with their numbers."""
    numbers = {footer.schema.column(number).path: number for number in range(footer.num_columns)}
    for field in schema:
        if not t.is_nested(field.type) and field.name in numbers:
            yield numbers[field.name], field


def _bounds(kind: pa.DataType, least: Any, largest: Any) -> tuple[Any, Any] | None:
    if t.is_integer(kind):
        return least, largest
    if t.is_string(kind):
        return (least, largest) if len(least) <= MAX_TEXT and len(largest) <= MAX_TEXT else None
    if t.is_date(kind):
        return least.isoformat(), largest.isoformat()
    if t.is_timestamp(kind):
        return _moment(least, kind), _moment(largest + datetime.timedelta(microseconds=999), kind)  # kept in milliseconds
    return None


def _moment(value: datetime.datetime, kind: Any) -> str:
    text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z" if kind.tz else text
