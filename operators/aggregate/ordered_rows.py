"""Rows as bytes in their order: what `agg.first`, `agg.last`, `agg.arg_min` and `agg.arg_max` keep of groups.

The first row of a group is the least of these values, and the last row the largest. So they are added, merged and taken back as
those of `agg.min` and `agg.max` are. Behind the bytes that decide the order come those of the result.
"""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from dagflow.arrow_types import wider
from operators.aggregate.errors import ColumnTypeChanged

_LENGTH = 4
"""The bytes at the end that have the length of the result's, and whether it is null."""
_VALID, _NULL_LAST, _NULL_FIRST = b"\1", b"\2", b"\0"


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column is compared and emitted: without a dictionary, and of text and bytes the common one."""
    kind = kind.value_type if t.is_dictionary(kind) else kind
    if t.is_large_string(kind) or t.is_string_view(kind):
        return pa.string()
    if t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind):
        return pa.binary()
    return pa.float32() if t.is_float16(kind) else kind


def type_of_rows(schema: pa.Schema, order_by: Iterable[str], others: Iterable[str]) -> pa.DataType:
    """Return columns in the order in which they decide: those of the order, then others by name; without those of no order."""
    names = dict.fromkeys([*order_by, *sorted(others)])
    kinds = [(name, plain_type(schema.field(name).type)) for name in names]
    return pa.struct([(name, kind) for name, kind in kinds if not _has_no_order(kind)])


def _has_no_order(kind: pa.DataType) -> bool:
    return bool(t.is_nested(kind) or t.is_decimal256(kind) or t.is_interval(kind))


def wider_rows(old: pa.DataType, new: pa.DataType) -> pa.DataType:
    """Return the columns of two types of rows, each of the wider type. Their bytes are the same. Raises ColumnTypeChanged."""
    before, now = ({field.name: field.type for field in each} for each in (old, new))
    for name in (*before, *now):
        one, other = before.get(name), now.get(name)
        if one is None or other is None or not (t.is_null(one) or t.is_null(other) or _basic(one) == _basic(other)):
            raise ColumnTypeChanged(column=name, before=str(one or "not there"), now=str(other or "not there"))
    return pa.struct([(name, wider(kind, now[name])) for name, kind in before.items()])


def bytes_of_rows(batch: pa.RecordBatch, kinds: pa.DataType, result: str, *, last: bool) -> pa.Array:
    """Return the bytes of rows. Nulls are never preferred: they come last, or first where the last row is wanted."""
    columns = {field.name: _as_basic(batch.column(field.name), field.type) for field in kinds}
    parts = [_in_order(column, _NULL_FIRST if last else _NULL_LAST) for column in columns.values()]
    value = _bytes_of(columns[result])
    lengths = np.where(
        value.is_valid().to_numpy(zero_copy_only=False), pc.fill_null(pc.binary_length(value), 0).to_numpy() + 1, 0
    )
    return pc.binary_join_element_wise(*parts, value.fill_null(b""), _fixed(lengths.astype(">u4")), b"")


def results_of_rows(rows: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the results that are in the bytes of rows; null where there is no row."""
    values = [None if row is None else _result(row) for row in rows.to_pylist()]
    basic = _basic(kind)
    if t.is_null(basic):
        return pa.nulls(len(values))
    texts = pa.array(values, pa.binary())
    if t.is_binary(basic) or t.is_string(basic):
        return texts.cast(kind)
    width = pa.binary(basic.bit_width // 8)
    fixed = pa.array([bytes(width.byte_width) if value is None else value for value in values], width)
    whole = pa.Array.from_buffers(basic, len(values), [None, fixed.buffers()[1]])
    whole = whole.cast(kind, safe=False) if basic != kind else whole
    return pc.if_else(texts.is_valid(), whole, pa.scalar(None, kind))


def _result(row: bytes) -> bytes | None:
    length = int.from_bytes(row[-_LENGTH:], "big")
    return row[-_LENGTH - length + 1 : -_LENGTH] if length else None


def _basic(kind: pa.DataType) -> pa.DataType:
    """Return the type whose bytes stand for values of a type: the same for all integers but the longest, and for all floats."""
    if t.is_uint64(kind):
        return pa.decimal128(20, 0)
    if t.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    if t.is_integer(kind) or t.is_boolean(kind):
        return pa.int64() if t.is_integer(kind) else pa.uint8()
    return pa.float64() if t.is_floating(kind) else kind


def _as_basic(column: pa.Array, kind: pa.DataType) -> pa.Array:
    column = column.cast(column.type.value_type) if t.is_dictionary(column.type) else column
    column = column.cast(_basic(kind))
    if not t.is_floating(column.type):
        return column
    column = pc.add(column, 0.0)  # one zero, and one NaN
    return pc.if_else(pc.is_nan(column), float("nan"), column)


def _in_order(column: pa.Array, null: bytes) -> pa.Array:
    """Return bytes in the order of values, none of which begins with those of another one."""
    is_valid = column.is_valid()
    mark = pc.if_else(is_valid, pa.scalar(_VALID), pa.scalar(null))
    if t.is_null(column.type):
        return mark
    if t.is_string(column.type) or t.is_binary(column.type):
        plain = column.cast(pa.binary()).fill_null(b"")
        escaped = pc.replace_substring(plain, pattern=b"\0", replacement=b"\0\xff")
        body = pc.binary_join_element_wise(escaped, pa.scalar(b"\0\0"), b"")
    elif t.is_decimal(column.type):
        raw = _raw(column).reshape(-1, 16)[:, ::-1].copy()
        raw[:, 0] ^= 0x80
        body = _of_buffer(raw, 16)
    elif t.is_floating(column.type):
        bits = _raw(column).view(np.int64)
        body = _fixed(np.where(bits < 0, ~bits, bits ^ np.int64(-(2**63))).astype(np.int64).view(np.uint64).astype(">u8"))
    else:
        numbers = _raw(column).view(f"{'u' if t.is_uint8(column.type) else 'i'}{column.type.bit_width // 8}").astype(np.int64)
        body = _fixed((numbers ^ np.int64(-(2**63))).view(np.uint64).astype(">u8"))
    return pc.binary_join_element_wise(mark, pc.if_else(is_valid, body, pa.scalar(b"")), b"")


def _bytes_of(column: pa.Array) -> pa.Array:
    """Return the bytes of values, from which `results_of_rows` makes them again."""
    if t.is_null(column.type):
        return pa.nulls(len(column), pa.binary())
    if t.is_string(column.type) or t.is_binary(column.type):
        return column.cast(pa.binary())
    body = _of_buffer(_raw(column), column.type.bit_width // 8)
    return pc.if_else(column.is_valid(), body, pa.scalar(None, pa.binary()))


def _raw(column: pa.Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the bytes of a column of values of one width."""
    width, data = column.type.bit_width // 8, column.buffers()[1]
    return np.frombuffer(data, np.uint8)[column.offset * width : (column.offset + len(column)) * width]


def _fixed(numbers: np.ndarray[Any, Any]) -> pa.Array:
    return _of_buffer(numbers, numbers.dtype.itemsize)


def _of_buffer(values: np.ndarray[Any, Any], width: int) -> pa.Array:
    """Return values of one width as bytes."""
    data = np.ascontiguousarray(values)
    count = data.nbytes // width
    return pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(data.tobytes())]).cast(pa.binary())
