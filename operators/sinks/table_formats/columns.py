"""Batches in the columns of a table: types that fit are cast, missing columns become nulls, others are named."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dagflow.arrow_types import is_wider, wider
from operators.sinks.errors import ValueNotWritable


def fits(kind: pa.DataType, column: pa.DataType) -> bool:
    """Return True if a column of a table holds all values of a type."""
    return kind.equals(column) or is_wider(column, kind)


Promotes = Callable[[pa.DataType, pa.DataType], bool]
"""Returns True if a column of the first type may become one of the second."""


def never(old: pa.DataType, new: pa.DataType) -> bool:
    """Return False: no column changes its type."""
    return False


def misfits(columns: pa.Schema, table: pa.Schema, *, may_extend: bool, promotes: Promotes = never) -> tuple[str, ...]:
    """Return the differences for which columns cannot be written to a table.

    `may_extend`: the table gets new columns, and the types that it `promotes`.

    >>> import pyarrow as pa
    >>> table = pa.schema({"a": pa.int64(), "b": pa.string()})
    >>> misfits(pa.schema({"a": pa.int32()}), table, may_extend=False)
    ()
    >>> misfits(pa.schema({"a": pa.float64(), "c": pa.int8()}), table, may_extend=False)
    ("column 'a' is double, and the table has int64", "column 'c' (int8) is not in the table")
    """
    problems = []
    for field in columns:
        index = table.get_field_index(field.name)
        if index < 0:
            if not may_extend:
                problems.append(f"column {field.name!r} ({field.type}) is not in the table")
        elif not fits(field.type, kind := table.field(index).type) and not (may_extend and promotes(kind, field.type)):
            problems.append(f"column {field.name!r} is {field.type}, and the table has {table.field(index).type}")
    return tuple(problems)


def extended(table: pa.Schema, columns: pa.Schema, promotes: Promotes = never) -> pa.Schema:
    """Return the columns of a table, with the types that it promotes, and behind them the others.

    >>> import pyarrow as pa
    >>> extended(pa.schema({"a": pa.int8()}), pa.schema({"b": pa.int8(), "a": pa.int8()})).names
    ['a', 'b']
    """
    known = []
    for field in table:
        index = columns.get_field_index(field.name)
        is_promoted = index >= 0 and promotes(field.type, columns.field(index).type)
        known.append(field.with_type(columns.field(index).type) if is_promoted else field)
    return pa.schema([*known, *(field for field in columns if field.name not in table.names)])


def union(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return all columns of several schemas, each with a type that holds all values.

    >>> import pyarrow as pa
    >>> union([pa.schema({"a": pa.int8()}), pa.schema({"a": pa.int16(), "b": pa.string()})])
    a: int16
    b: string
    """
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema:
            types[field.name] = wider(types[field.name], field.type) if field.name in types else field.type
    return pa.schema(list(types.items()))


def required_within(table: pa.Schema) -> list[str]:
    """Return a phrase for each field within a column that takes no nulls: files that tasks write may have nulls there.

    >>> import pyarrow as pa
    >>> required_within(pa.schema({"a": pa.list_(pa.struct([pa.field("b", pa.int8(), nullable=False)]))}))
    ["'a.element.b' within a column takes no nulls, which is not supported"]
    """
    paths = [path for field in table for path in _required_paths(field)]
    return [f"{path!r} within a column takes no nulls, which is not supported" for path in paths]


def _required_paths(column: pa.Field[Any]) -> Iterator[str]:
    kind: Any = column.type
    if pa.types.is_map(kind):
        parts = [kind.key_field.with_nullable(True).with_name("key"), kind.item_field.with_name("value")]  # keys are never null
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        parts = [kind.value_field.with_name("element")]
    else:
        parts = list(kind) if pa.types.is_struct(kind) else []
    for part in parts:
        if not part.nullable:
            yield f"{column.name}.{part.name}"
        yield from (f"{column.name}.{path}" for path in _required_paths(part))


def cast_to(batch: pa.RecordBatch, schema: pa.Schema, operator: str) -> pa.RecordBatch:
    """Return a batch in the columns of a schema, which has no others. Raises ValueNotWritable for values that do not fit."""
    if batch.schema.equals(schema):
        return batch
    columns = []
    for field in schema:
        column = batch.column(field.name)
        try:
            columns.append(column if column.type.equals(field.type) else column.cast(field.type))
        except pa.ArrowException as error:
            raise ValueNotWritable(
                operator=operator,
                column=field.name,
                value=f"a {column.type}",
                format=f"the type {field.type} of the table",
                help=f"{str(error).strip()}: change such values before they come here, or leave such rows out",
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def last_of_each(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the last row of each key, in the order of the rows. 0.0 and -0.0 are the same key.

    >>> import pyarrow as pa
    >>> last_of_each(pa.table({"k": [1, 2, 1], "v": ["a", "b", "c"]}), ["k"]).to_pydict()
    {'k': [2, 1], 'v': ['b', 'c']}
    """
    number = "dagflow row number"
    columns = [pc.add(rows[key], 0.0) if pa.types.is_floating(rows[key].type) else rows[key] for key in keys]
    numbered = pa.table(columns, list(keys)).append_column(number, pa.array(range(len(rows)), pa.int64()))
    last = numbered.group_by(list(keys)).aggregate([(number, "max")]).column(f"{number}_max")
    return rows.take(last.take(pc.sort_indices(last)))
