"""The content of records as bytes: the same for a record and for its row in a batch."""

from __future__ import annotations

import datetime
import decimal
import enum
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs

from dagflow import ReaderRecord

if TYPE_CHECKING:
    import pyarrow as pa

_READ = sorted(ReaderRecord._fields)


def contents(record: object) -> tuple[bytes, ...]:
    """What a record says, as bytes, one for each of its fields; equal records have equal contents.

    Of a `ReaderRecord`, position and record count, not the block: that is a matter of how its file was cut. Raises TypeError for
    what is no plain data: None, text, bytes, numbers, dates, enumerations, and lists, sets, mappings and attrs classes of these.

    >>> contents("a"), contents(1.0) == contents(1), contents([1, None]), contents(ReaderRecord(7, 5, "x"))
    ((b'a',), True, (b'[1,None]',), (b'5', b'x'))
    """
    cls: Any = type(record)
    if cls is str or cls is bytes:
        return (content_of(record),)
    if attrs.has(cls):
        fields = {field.name: getattr(record, field.name) for field in attrs.fields(cls)}
        return tuple(content_of(fields[name]) for name in _counting(fields))
    if isinstance(record, ReaderRecord):
        return content_of(record.position), content_of(record.record)
    return (content_of(record),)


def column_contents(batch: pa.RecordBatch) -> list[Iterable[bytes]]:
    """The `contents` of all rows' records, by column."""
    return [contents_of_column(batch.column(name)) for name in _counting(batch.schema.names)]


def _counting(fields: Iterable[str]) -> list[str]:
    """The fields that count, in an order that does not depend on how they were written."""
    names = sorted(fields)
    return ["position", "record"] if names == _READ else names


def contents_of_column(column: pa.Array) -> Iterable[bytes]:
    """The `content_of` each value of a column."""
    import pyarrow as pa

    kind = column.type
    if column.null_count == 0 and pa.types.is_integer(kind):
        column = column.cast(pa.string())
    elif column.null_count or not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return map(content_of, column.to_pylist(maps_as_pydicts="strict"))
    _, offsets, data = column.buffers()
    if len(column) == 0 or data is None:
        return [b""] * len(column)
    ends = memoryview(offsets).cast("i")[column.offset : column.offset + len(column) + 1].tolist()
    text = data.slice(ends[0], ends[-1] - ends[0]).to_pybytes()
    return [text[start - ends[0] : stop - ends[0]] for start, stop in pairwise(ends)]


def content_of(value: Any) -> bytes:
    """What a value says, as bytes. Raises TypeError for what is no plain data."""
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass")
    return value if type(value) is bytes else _text(value).encode()


def _text(value: Any) -> str:
    """A value so that equal ones have equal texts, and others have others."""
    known = _TEXTS.get(type(value))
    if known is not None:
        return known(value)
    if isinstance(value, ReaderRecord):
        return f"[{_text(value.position)},{_text(value.record)}]"
    if attrs.has(type(value)):
        return _of_fields({field.name: getattr(value, field.name) for field in attrs.fields(type(value))})
    if isinstance(value, Mapping):
        return _of_fields(value)
    if isinstance(value, enum.Enum):
        return _text(value.value)
    if isinstance(value, (set, frozenset)):
        return _joined("()", sorted(map(_text, value)))
    for kind, text in _TEXTS.items():
        if isinstance(value, kind):
            return text(value)
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return _text(value.item())
    raise TypeError(f"{type(value).__qualname__} is no plain data: say with key=… what counts")


def _of_fields(fields: Mapping[Any, Any]) -> str:
    if sorted(map(str, fields)) == _READ:
        return f"[{_text(fields['position'])},{_text(fields['record'])}]"
    pairs = sorted((_text(name), _text(value)) for name, value in fields.items())
    return _joined("{}", (f"{name}:{value}" for name, value in pairs))


def _joined(brackets: str, texts: Iterable[str]) -> str:
    return f"{brackets[0]}{','.join(texts)}{brackets[1]}"


def _of_number(value: Any) -> str:
    """A number, the same for an integer, an equal float and an equal decimal; all that are no numbers are one."""
    return str(int(value)) if value == value and abs(value) != float("inf") and value == int(value) else repr(float(value))


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: ascii,  # what repr() escapes is a matter of the version of Python
    int: str,
    bool: lambda value: str(int(value)),
    type(None): repr,
    float: _of_number,
    bytes: repr,
    list: lambda value: _joined("[]", map(_text, value)),
    tuple: lambda value: _joined("[]", map(_text, value)),
    datetime.datetime: datetime.datetime.isoformat,
    datetime.date: datetime.date.isoformat,
    datetime.time: datetime.time.isoformat,
    datetime.timedelta: lambda value: f"{value // datetime.timedelta(microseconds=1)}us",
    decimal.Decimal: _of_number,
}
