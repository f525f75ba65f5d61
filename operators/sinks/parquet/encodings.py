"""The encodings of the columns of a Parquet file, chosen from a sample of its first rows."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

RUNS, RUN_ROWS = 8, 1024
"""A sample is so many runs of rows, evenly spread, of so many rows each."""
FEWEST_REPEATS = 0.2
"""The part of a sample that must be repeats for a dictionary to pay."""
LARGE = 1 << 20
"""Values of more bytes, on the average, fill a dictionary each: they have none, and are not copied to see whether they repeat.
Of a column that has one, Parquet is not asked for the least and greatest: it copies them four times, and writes no long ones."""


def encodings_of(table: pa.Table, large: Collection[str] = ()) -> dict[str, Any]:
    """Return the options of pyarrow's ParquetWriter for the encodings of columns, for a file that begins with these rows.

    Where values repeat, a dictionary makes a column smaller. Where they do not, the lookup of each value costs more than the rest
    of the writing, and saves nothing. So such a column has no dictionary, and what Parquet stores as integers is packed by
    differences (DELTA_BINARY_PACKED). Nested columns are judged leaf by leaf. Large values have neither a dictionary nor
    statistics. `large`: columns that have such values in other rows.

    >>> import pyarrow as pa
    >>> encodings_of(pa.table({"id": range(1000), "x": [n / 7 for n in range(1000)], "country": ["se", "no"] * 500}))
    {'use_dictionary': ['country'], 'column_encoding': {'id': 'DELTA_BINARY_PACKED'}}
    """
    dictionaries: list[str] = []
    packed: dict[str, str] = {}
    sample = _sample(table)
    for name, column in zip(sample.schema.names, sample.columns, strict=True):
        for path, values in _leaves(name, column):
            if _repeats(values):
                dictionaries.append(path)
            elif _is_integer(values.type):
                packed[path] = "DELTA_BINARY_PACKED"
    large = large_columns(table).union(large)
    described = {"write_statistics": [path for path in _paths(table) if path not in large]} if large else {}
    return {"use_dictionary": dictionaries, "column_encoding": packed, **described}


def _sample(table: pa.Table) -> pa.RecordBatch:
    rows = table.num_rows
    small = [n for n, column in enumerate(table.columns) if column.nbytes <= rows * LARGE or pa.types.is_nested(column.type)]
    table = table.select(small)
    if rows > RUNS * RUN_ROWS:
        table = pa.concat_tables(table.slice((rows - RUN_ROWS) * run // (RUNS - 1), RUN_ROWS) for run in range(RUNS))
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def large_columns(rows: pa.Table | pa.RecordBatch) -> set[str]:
    """Return the columns of text or bytes that have large values.

    >>> import pyarrow as pa
    >>> large_columns(pa.record_batch({"a": ["x", "x" * (LARGE + 1)], "b": ["x", "y"]}))
    {'a'}
    """
    if rows.nbytes <= LARGE:
        return set()
    return {name for name, column in zip(rows.schema.names, rows.columns, strict=True) if _has_large(column)}


def _has_large(column: Any) -> bool:
    types, kind = pa.types, column.type
    is_long = types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    return bool(is_long and column.nbytes > LARGE and pc.max(pc.binary_length(column)).as_py() > LARGE)


def _paths(table: pa.Table) -> list[str]:
    """Return the names that Parquet gives the columns that it makes of these."""
    empty = [(field.name, column.slice(0, 0).combine_chunks()) for field, column in zip(table.schema, table.columns, strict=True)]
    return [path for name, values in empty for path, _ in _leaves(name, values)]


def _leaves(path: str, values: Any) -> Iterator[tuple[str, Any]]:
    """Yield the columns of Parquet, with their names, that a column of Arrow becomes."""
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from _leaves(path, values.storage)
    elif pa.types.is_struct(kind):
        for at, field in enumerate(kind):
            yield from _leaves(f"{path}.{field.name}", values.field(at))
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", values.keys)
        yield from _leaves(f"{path}.key_value.value", values.items)
    elif hasattr(kind, "value_field"):  # lists of all layouts
        yield from _leaves(f"{path}.list.element", values.flatten())
    else:
        yield path, values


def _repeats(values: Any) -> bool:
    """Return True if so many values repeat that a dictionary pays; where that is unknown, the default of Parquet."""
    try:
        distinct: int = pc.count_distinct(values).as_py()
    except pa.ArrowNotImplementedError:
        return True
    return bool(distinct <= (1 - FEWEST_REPEATS) * (len(values) - values.null_count))


def _is_integer(kind: pa.DataType) -> bool:
    """Return True if Parquet stores values of a type as integers of 32 or 64 bits."""
    types = pa.types
    is_time = types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind) or types.is_duration(kind)
    return bool(types.is_integer(kind) or is_time)
