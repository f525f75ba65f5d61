"""Records and batches as the text and bytes that sinks of text write."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import codecs
import struct
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dagflow import ReaderRecord
from operators.sinks.errors import NotText

READER_COLUMNS = ["block_id", "position", "record"]
BYTES = (bytes, bytearray, memoryview)
JOINABLE = frozenset({"utf-8", "ascii", "iso8859-1"})
"""Encodings in which the text of many records may be encoded at once: that of each does not depend on its neighbours."""
ENCODED_AT_ONCE = 128

_record_of = attrgetter("record")


def codec_of(encoding: str) -> str:
    """Return Python's name of an encoding; "" for one that it does not know."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return ""


def encoding_problems(encoding: str, terminator: str) -> list[str]:
    """Return the problems of an encoding of text, and of what ends each record in it."""
    try:
        mark = "".encode(encoding)
        terminator.encode(encoding)
    except LookupError:
        return [f"encoding {encoding!r} is not a text encoding that Python knows (utf-8, latin-1, cp1252, …)"]
    except UnicodeError:
        return [f"terminator {terminator!r} cannot be written in {encoding}"]
    return [f"encoding {encoding!r} puts a byte-order mark before every record: name one without, as utf-8"] if mark else []


def as_bytes(record: object, encoding: str, operator: str) -> bytes:
    """Return the bytes of a record, or of the record of a `ReaderRecord`. Raises NotText."""
    if isinstance(record, ReaderRecord):
        record = record.record
    if isinstance(record, str):
        return record.encode(encoding)
    if isinstance(record, BYTES):
        return bytes(record)
    raise NotText(operator=operator, got=f"{record!r:.60} ({type(record).__name__})")


def joined(records: Iterator[Any], end: bytes, encoding: str) -> tuple[bytes, int] | None:
    """Return the bytes of many records, `end` after each, and their number; None unless all are of one kind.

    This is much faster than `as_bytes` for each record, since only C runs once per record.
    """
    values = list(records)
    if values and type(values[0]) is ReaderRecord:
        try:
            values = list(map(_record_of, values))
        except AttributeError:
            return None
    count = len(values)
    try:
        if values and isinstance(values[0], str):
            # Some at a time: what was joined is still in the nearest cache when it is encoded, and records in which all is ASCII
            # are encoded ten times as fast as others.
            mark = end.decode(encoding)
            some = range(0, count, ENCODED_AT_ONCE)
            values = [mark.join(values[start : start + ENCODED_AT_ONCE]).encode(encoding) for start in some]
        values.append(b"")  # so that the last record gets its end too
        return end.join(values), count
    except (TypeError, UnicodeError):  # of several kinds; or text that cannot be encoded: `as_bytes` says which
        return None


def text_column(batch: pa.RecordBatch, operator: str) -> Any:
    """Return the column of text or bytes of a batch: `value` of a bare type, `record` of a ReaderRecord. Raises NotText."""
    names = batch.schema.names
    if names == ["value"] or names == READER_COLUMNS:
        column = batch.column(len(names) - 1)
        for accepted, plain in _PLAIN:
            if getattr(pa.types, accepted)(column.type):
                column = column if plain is None else column.cast(getattr(pa, plain)())
                if column.null_count:
                    got = f"null in column {names[-1]!r} ({column.null_count} of {len(column)} records)"
                    raise NotText(operator=operator, got=got)
                return column
    shown = ", ".join(f"{field.name} ({field.type})" for field in batch.schema)
    raise NotText(operator=operator, got=f"batches of {shown}")


_PLAIN = [
    ("is_string", None),
    ("is_large_string", None),
    ("is_binary", None),
    ("is_large_binary", None),
    ("is_fixed_size_binary", "binary"),
    ("is_string_view", "string"),
    ("is_binary_view", "binary"),
]


def row_ends(column: Any, end: int) -> Any:
    """Return for each row of a text or binary column without nulls the bytes up to its end, with `end` bytes after each row.

    >>> import pyarrow as pa
    >>> row_ends(pa.array(["ab", "", "c"]), 1).tolist()
    [3, 4, 6]
    """
    lengths = pc.binary_length(column).to_numpy(zero_copy_only=False)
    return np.cumsum(lengths.astype(np.int64) + end)


def joined_column(column: Any, end: bytes) -> Iterator[bytes | memoryview]:
    """Yield the bytes of all values of a text or binary column without nulls, `end` after each, in a few pieces.

    Without `end` the piece is a view of the column's own buffer.
    """
    if not len(column):
        return
    if column.nbytes > 1 << 30 and len(column) > 1:  # terminators may bring the offsets of what is joined over 2 GiB
        half = len(column) // 2
        yield from joined_column(column.slice(0, half), end)
        yield from joined_column(column.slice(half), end)
        return
    is_large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    if not end:
        yield _values(column, "q" if is_large else "i")
        return
    # Made of buffers: pa.array() and pa.scalar() of Python's values import pandas, 0.4 s in each worker.
    several = pa.large_list(column.type) if is_large else pa.list_(column.type)
    form = "q" if is_large else "i"
    rows = pa.Array.from_buffers(several, 1, [None, _bounds(form, len(column))], children=[column])
    separator = pa.Array.from_buffers(column.type, 1, [None, _bounds(form, len(end)), pa.py_buffer(end)])[0]
    whole = pc.binary_join(rows, separator)
    yield memoryview(whole[0].as_buffer())
    yield end


def _bounds(form: str, end: int) -> Any:
    """Return the offsets of an array of one value."""
    return pa.py_buffer(struct.pack(f"=2{form}", 0, end))


def _values(column: Any, offset_format: str) -> memoryview:
    """Return the bytes of all values of a column as they lie in memory."""
    _, offsets, data = column.buffers()
    if data is None:
        return memoryview(b"")
    bounds = memoryview(offsets).cast("b").cast(offset_format)  # type: ignore[call-overload]  # "i" or "q"
    return memoryview(data)[bounds[column.offset] : bounds[column.offset + len(column)]]
