"""The content of records as bytes: the same for a record and for its row in a batch."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import datetime
import decimal
import enum
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from dagflow import ReaderRecord
from dagflow.arrow_types.held import why_not_held
from dagflow.scaling import compared

_READ = sorted(ReaderRecord._fields)
_OTHER, _BYTES = b"\xff", b"\xfe"
"""The prefixes of the contents of values other than text, and of bytes: no text in UTF-8 has a byte like these."""


def contents(record: object) -> tuple[bytes, ...]:
    r"""Return the content of a record as bytes, one for each field. Records that count as equal have equal content.

    They do where they are equal in Python, and more, as a column does not keep what they were made of: a list is the tuple of
    the same values, an attrs class the mapping of its fields (all of them, whatever `eq` says), an enumeration its value, one
    NaN the other. Of a `ReaderRecord`, position and record count, not the block: that is a matter of how its file was cut.
    Raises TypeError for what is not plain data: None, text, bytes, numbers, dates, enumerations, and lists, sets, mappings and
    attrs classes of these.

    >>> contents("a"), contents(1.0) == contents(1), contents("1") == contents(1), contents(None) == contents("None")
    ((b'a',), True, False, False)
    >>> contents([1, None]), contents(ReaderRecord(7, 5, "x"))
    ((b'\xff[1,None]',), (b'\xff5', b'x'))
    """
    cls: Any = type(record)
    if cls is str:
        return (content_of(record),)
    if attrs.has(cls):
        fields = {field.name: getattr(record, field.name) for field in attrs.fields(cls)}
        return tuple(content_of(fields[name]) for name in _counting(fields))
    if isinstance(record, ReaderRecord):
        return content_of(record.position), content_of(record.record)
    return (content_of(record),)


def column_contents(batch: pa.RecordBatch) -> list[Iterable[bytes]]:
    """Return the `contents` of all rows' records, by column."""
    return [contents_of_column(batch.column(name)) for name in _counting(batch.schema.names)]


def _counting(fields: Iterable[str]) -> list[str]:
    """Return the fields that count, in an order that does not depend on how they were written."""
    names = sorted(fields)
    return ["position", "record"] if names == _READ else names


def contents_of_column(column: pa.Array) -> Iterable[bytes]:
    """Return the `content_of` each value of a column. Raises OverflowError for one that no Python object holds."""
    kind, join = column.type, pc.binary_join_element_wise
    wrong = why_not_held(column, "Python")
    if wrong:
        raise OverflowError(f"a column has {wrong}; no Python object holds it")
    if column.null_count == 0 and pa.types.is_integer(kind):
        column = join(_OTHER, column.cast(pa.string()).cast(pa.binary()), b"")
    elif column.null_count == 0 and pa.types.is_binary(kind):
        column = join(_BYTES, column, b"")
    elif column.null_count or not pa.types.is_string(kind):
        return map(content_of, column.to_pylist(maps_as_pydicts="strict"))
    _, offsets, data = column.buffers()
    if len(column) == 0 or data is None:
        return [b""] * len(column)
    ends = memoryview(offsets).cast("i")[column.offset : column.offset + len(column) + 1].tolist()
    text = data.slice(ends[0], ends[-1] - ends[0]).to_pybytes()
    return [text[start - ends[0] : stop - ends[0]] for start, stop in pairwise(ends)]


def content_of(value: Any) -> bytes:
    """Return the content of a value as bytes. Raises TypeError for what is not plain data."""
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, enum.Enum):
        return content_of(value.value)
    if isinstance(value, str):
        return str.encode(value, "utf-8", "surrogatepass")
    return _BYTES + value if isinstance(value, bytes) else _OTHER + _text(value).encode()


def _text(value: Any) -> str:
    """Return a text for a value: equal for equal values, different for others."""
    text_of = _TEXTS.get(type(value))
    if text_of is not None:
        return text_of(value)
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
    raise TypeError(f"{type(value).__qualname__} is not plain data: name what counts with key=…")


def _of_fields(fields: Mapping[Any, Any]) -> str:
    if sorted(map(str, fields)) == _READ:
        return f"[{_text(fields['position'])},{_text(fields['record'])}]"
    pairs = sorted((_text(name), _text(value)) for name, value in fields.items())
    return _joined("{}", (f"{name}:{value}" for name, value in pairs))


def _joined(brackets: str, texts: Iterable[str]) -> str:
    return f"{brackets[0]}{','.join(texts)}{brackets[1]}"


def _of_number(value: Any) -> str:
    """Return the text of a number, the same for an integer, an equal float and an equal decimal. All NaN have one."""
    if value != value or abs(value) == float("inf"):
        return repr(float(value))
    if value == int(value):
        return str(int(value))
    near = float(value)
    return repr(near) if near == value else "{}/{}".format(*value.as_integer_ratio())  # a decimal that no float is


def _of_datetime(value: datetime.datetime) -> str:
    instant = compared(value)
    return f"{instant}" if type(instant) is tuple else datetime.datetime.isoformat(instant) + _and_nanoseconds(value)


def _of_time(value: datetime.time) -> str:
    offset = value.utcoffset()
    if offset is None:
        return datetime.time.isoformat(value)
    since = datetime.timedelta(0, value.second, value.microsecond, 0, value.minute, value.hour) - offset
    return f"{since // datetime.timedelta(microseconds=1)}us UTC"


def _of_duration(value: datetime.timedelta) -> str:
    return f"{value // datetime.timedelta(microseconds=1)}us" + _and_nanoseconds(value)


def nanoseconds_of(value: object) -> int:
    """Return the nanoseconds of a time or duration below its microseconds; pandas' types have them."""
    return getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0)


def _and_nanoseconds(value: object) -> str:
    beyond = nanoseconds_of(value)
    return f"+{beyond}ns" if beyond else ""


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: lambda value: ascii(str.__str__(value)),  # what repr() escapes is a matter of the version of Python
    int: lambda value: str(int(value)),
    type(None): repr,
    float: _of_number,
    bytes: repr,
    list: lambda value: _joined("[]", map(_text, value)),
    tuple: lambda value: _joined("[]", map(_text, value)),
    datetime.datetime: _of_datetime,
    datetime.date: datetime.date.isoformat,
    datetime.time: _of_time,
    datetime.timedelta: _of_duration,
    decimal.Decimal: _of_number,
}
