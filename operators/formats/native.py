"""The compiled parsers of `dagflow-native`, where it is installed.

They take what is plain and nothing else; for the rest they answer None, and the parsers beside them read it. What they take they
read with the same result: `tests/operators/formats/test_native.py` compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa

try:
    import dagflow_native

    compiled: Any = dagflow_native
except ImportError:  # it is an option
    compiled = None

Lines = Callable[[memoryview], pa.RecordBatch | None]
_BYTES = (1, 127)
"""The bytes that a delimiter or quote may be, so that it is not a part of a longer character."""


def json_parser(types: dict[str, pa.DataType], skips_others: bool) -> Lines | None:
    """Return a parser of JSON lines into columns of some types, None where there is none for one of the types.

    `skips_others`: members that are not columns are left out; else the answer is None where there are some.
    """
    columns = [_column(name, kind) for name, kind in types.items()]
    if compiled is None or not columns or None in columns:
        return None
    known = tuple(columns)
    struct = pa.struct(list(types.items()))
    parse = compiled.json_lines

    def parsed(lines: memoryview) -> pa.RecordBatch | None:
        result = parse(lines, known, skips_others)
        return None if result is None else pa.RecordBatch.from_struct_array(_array(struct, result))

    return parsed


def _column(name: str, kind: pa.DataType) -> tuple[str, str, int, tuple[Any, ...]] | None:
    """Describe a column as `json_lines` takes it, None where it has no columns of this type."""
    types = pa.types
    if types.is_integer(kind):
        return name, "i" if types.is_signed_integer(kind) else "u", kind.bit_width, ()
    if types.is_float64(kind):
        return name, "f", 0, ()
    if types.is_boolean(kind):
        return name, "b", 0, ()
    if types.is_string(kind):
        return name, "s", 0, ()
    if types.is_list(kind) or types.is_struct(kind):
        parts = tuple(_column(kind.field(n).name, kind.field(n).type) for n in range(kind.num_fields))
        return None if None in parts else (name, "l" if types.is_list(kind) else "r", 0, parts)
    return None


def _array(kind: pa.DataType, parsed: Any) -> pa.Array:
    rows, nulls, validity, offsets, values, columns = parsed
    children = [_array(kind.field(n).type, column) for n, column in enumerate(columns)]
    buffers = [None if part is None else pa.py_buffer(part) for part in (validity, offsets, values)]
    if pa.types.is_struct(kind):
        used = buffers[:1]
    elif pa.types.is_list(kind):
        used = buffers[:2]
    elif pa.types.is_string(kind):
        used = buffers
    else:
        used = [buffers[0], buffers[2]]
    return pa.Array.from_buffers(kind, rows, used, nulls, children=children)


def column_cutter(
    names: Sequence[str], wanted: Collection[str], delimiter: str, quote: str
) -> Callable[[pa.Buffer], tuple[int, pa.Buffer] | None] | None:
    """Return a function that leaves only the wanted columns in CSV text, and counts its rows; None where it would not pay.

    The columns keep their order. Text ends with a newline. The function answers None where a row has not a field for each name.
    """
    kept = bytes(name in wanted for name in names)
    if compiled is None or not 0 < sum(kept) <= len(kept) * 3 // 4:  # each byte is looked at once more
        return None
    if any(not _BYTES[0] <= ord(each) <= _BYTES[1] or each in "\r\n" for each in delimiter + quote):
        return None
    cut, delimiter_byte, quote_byte = compiled.cut, ord(delimiter), ord(quote or delimiter)

    def cut_columns(text: pa.Buffer) -> tuple[int, pa.Buffer] | None:
        if text.size == 0 or text[text.size - 1] != ord("\n"):
            return None
        result = cut(text, delimiter_byte, quote_byte, kept)
        return None if result is None else (result[0], pa.py_buffer(result[1]))

    return cut_columns
