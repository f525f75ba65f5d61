"""Timestamps of 12 bytes, which Spark, Hive and Impala wrote before Parquet had a type for timestamps."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

DAY = 86_400_000_000
LEAST, GREATEST = -62_135_596_800_000_000 - DAY, 253_402_300_800_000_000 + DAY
"""The years 1 to 9999 in microseconds, in any time zone. Beyond 292,000 years, Arrow gives other times without a word."""


def int96_columns(metadata: pq.FileMetaData, names: list[str]) -> frozenset[str]:
    """Return the columns that are or contain such timestamps."""
    leaves = (metadata.schema.column(n) for n in range(metadata.num_columns))
    paths = [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]
    return frozenset(name for name in names if any(path == name or path.startswith(name + ".") for path in paths))


def beyond_years(batch: pa.RecordBatch, columns: frozenset[str]) -> str | None:
    """Return the first column with a timestamp outside of the years 1 to 9999; None without one."""
    for name in columns.intersection(batch.schema.names):
        for values in _timestamps(batch.column(name)):
            ends = pc.min_max(values.cast("int64"))
            if ends["min"].is_valid and not LEAST <= ends["min"].as_py() <= ends["max"].as_py() <= GREATEST:
                return name
    return None


def _timestamps(values: Any) -> Iterator[Any]:
    if pa.types.is_timestamp(values.type):
        yield values
    elif pa.types.is_struct(values.type):
        for n in range(values.type.num_fields):
            yield from _timestamps(pc.struct_field(values, [n]))
    elif pa.types.is_map(values.type):
        yield from (*_timestamps(values.keys), *_timestamps(values.items))
    elif pa.types.is_nested(values.type):
        yield from _timestamps(values.flatten())
