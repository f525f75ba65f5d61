"""Rows of the server as batches: COPY writes them as CSV, and Arrow reads that."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as t
from pyarrow import csv

from operators.database.postgres_types import is_array, is_binary

MAX_ROWS = 65_536

_PARSE = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)


def portions(lines: Iterable[Any], most_bytes: int) -> Iterator[bytearray]:
    """Yield lines joined, each time about as many bytes, and at most 65,536 lines.

    >>> list(portions([b"1,a", b"2,b", b"3,c"], 5))
    [bytearray(b'1,a2,b'), bytearray(b'3,c')]
    """
    joined, count = bytearray(), 0
    for line in lines:
        joined += line  # a third of the time that a list of lines takes, which keeps a buffer of libpq for each
        count += 1
        if len(joined) >= most_bytes or count >= MAX_ROWS:
            yield joined
            joined, count = bytearray(), 0
    if joined:
        yield joined


def batch_of(data: bytes | bytearray, schema: pa.Schema) -> pa.RecordBatch:
    r"""Return the rows of CSV as COPY writes it: a null is nothing, an empty string is quoted. Lists and binaries are text there.

    Raises ValueError, which names the column where it is known.

    >>> batch_of(b'1,,t\n2,"",f\n', pa.schema({"a": pa.int32(), "b": pa.string(), "c": pa.bool_()})).to_pylist()
    [{'a': 1, 'b': None, 'c': True}, {'a': 2, 'b': '', 'c': False}]
    """
    names = [str(number) for number in range(len(schema))]
    types = {name: pa.string() if _is_text(field.type) else field.type for name, field in zip(names, schema, strict=True)}
    convert = csv.ConvertOptions(
        column_types=types,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=["t"],
        false_values=["f"],
    )
    read = csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names)
    try:
        table = csv.read_csv(pa.BufferReader(data), read, _PARSE, convert)
    except pa.ArrowInvalid as error:
        raise ValueError(_named(str(error), schema)) from None
    columns = []
    for field, column in zip(schema, table.columns, strict=True):
        values = pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)
        try:
            columns.append(_decoded(values, field.type) if _is_text(field.type) else values)
        except (ValueError, TypeError) as error:
            raise ValueError(f"column {field.name!r}: {error}") from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_text(kind: Any) -> bool:
    return is_array(kind) or is_binary(kind)


def _decoded(values: Any, kind: Any) -> Any:
    if is_binary(kind):  # \x and hexadecimal digits
        return pa.array([None if text is None else bytes.fromhex(text[2:]) for text in values.to_pylist()], kind)
    lists: list[Any] = [None if text is None else json.loads(text) for text in values.to_pylist()]
    if t.is_floating(kind.value_type):  # JSON has NaN and infinity as text
        lists = [each and [None if value is None else float(value) for value in each] for each in lists]
    return pa.array(lists, kind)


def _named(message: str, schema: pa.Schema) -> str:
    """Return the message of Arrow with the name of the column in the place of its number.

    >>> _named("In CSV column #0: CSV conversion error to date32: invalid value 'infinity'", pa.schema({"day": pa.date32()}))
    "column 'day': CSV conversion error to date32: invalid value 'infinity'"
    """
    _, mark, rest = message.partition("CSV column #")
    number, colon, reason = rest.partition(": ")
    if not mark or not number.isdigit() or not colon:
        return message
    return f"column {schema.names[int(number)]!r}: {reason}"


def key_position(batch: pa.RecordBatch, column: int, row: int) -> int:
    """Return the position of the key of a row."""
    values = batch.column(column).slice(row, 1)
    return int(values.cast(pa.int64())[0].as_py())


def row_as_json(batch: pa.RecordBatch, row: int, names: Sequence[str]) -> bytes:
    """Return a row as a JSON object, for traces: values that JSON does not have are text."""
    values = batch.slice(row, 1).to_pylist()[0]
    return json.dumps({name: values[name] for name in names}, ensure_ascii=False, default=str).encode()
