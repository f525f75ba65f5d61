"""The two forms of records: Python objects and Arrow batches. A bare builtin is one column `value`."""

from __future__ import annotations

import datetime
import decimal
import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args, get_origin

import attrs

from dagflow.model.types.columns import (
    RecordMisfit,
    arrow_values,
    cached,
    column_type,
    columns_of_records,
    fields_of_type,
    names_of,
    record_class,
    value_type,
)
from dagflow.model.types.expressions import resolve, type_name
from dagflow.model.types.records import READER_COLUMNS, SPARSE, ReaderRecord

if TYPE_CHECKING:
    import pyarrow as pa

VALUE = "value"
_MAKING = threading.local()
ADDED = "dagflow.added"
"""Metadata of a field, with a default, that plain forms of earlier versions lack."""


def arrow_type(tp: Any) -> pa.DataType | None:
    """Return the Arrow type of a Python type; None when it has none.

    >>> arrow_type(str), arrow_type(list[int]), arrow_type(object)
    (DataType(string), ListType(list<item: int64>), None)
    """
    import pyarrow as pa

    tp = value_type(tp)
    simple = {
        str: pa.string(),
        bytes: pa.binary(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        datetime.datetime: pa.timestamp("us"),
        datetime.date: pa.date32(),
        datetime.timedelta: pa.duration("us"),
    }
    if inspect.isclass(tp) and tp in simple:
        return simple[tp]
    origin, arguments = get_origin(tp), get_args(tp)
    if origin is list and arguments:
        item = arrow_type(arguments[0])
        return pa.list_(item) if item is not None else None
    if origin is dict and len(arguments) == 2 and resolve(arguments[0]) is str:
        item = arrow_type(arguments[1])
        return pa.map_(pa.string(), item) if item is not None else None
    columns = columns_of(tp)
    return pa.struct(columns) if columns is not None else None


def columns_of(tp: Any) -> list[pa.Field] | None:
    """Return the columns of a class with fields (attrs, dataclass, named tuple, `ReaderRecord[T]`); None for other types."""
    import pyarrow as pa

    tp = resolve(tp)
    outer = get_origin(tp) or tp
    if outer is ReaderRecord:
        inner = arrow_type((get_args(tp) or (str,))[0])
        names = list(zip(READER_COLUMNS, (pa.int64(), pa.int64(), inner), strict=True))
        return [pa.field(n, t) for n, t in names] if inner is not None else None
    if (fields := record_class(outer)) is None or not fields.is_whole:
        return None
    making: set[Any] = _MAKING.__dict__.setdefault("classes", set())
    if outer in making:
        return None  # it has objects of its own class in a field
    making.add(outer)
    try:
        columns = {name: arrow_type(kind) for name, kind in fields_of_type(tp).items()}
    finally:
        making.discard(outer)
    return None if None in columns.values() else [pa.field(name, kind) for name, kind in columns.items()]


@cached
def schema_of(tp: Any) -> pa.Schema | None:
    """Return the schema of a batch of records of type `tp`; None when the type has no Arrow form."""
    import pyarrow as pa

    columns = columns_of(tp)
    if columns is not None:
        return pa.schema(columns)
    kind = arrow_type(tp)
    return None if kind is None else pa.schema([pa.field(VALUE, kind)])


def to_batch(records: Sequence[Any], tp: Any) -> pa.RecordBatch:
    """Return a batch of records of type `tp`, from which `to_records` makes equal records of the same classes.

    Raises TypeError when the type has no Arrow form; RecordMisfit, a TypeError that knows the `index` of the first bad record,
    for one that would not come back as it is: of another class (a subclass too), out of range, a datetime with a time zone.
    Integers may stand for floats, and numpy's scalars for Python's.

    >>> to_batch(["1", "2", 3], str)
    Traceback (most recent call last):
    ...
    dagflow.model.types.columns.RecordMisfit: a record does not fit its type str: int is not str
    """
    schema = schema_of(tp)
    if schema is None:
        if open_fields(tp) is None:
            raise TypeError(f"{type_name(tp)} has no Arrow form")
        return _inferred(records, tp)
    try:
        return _batch(records, tp, schema)
    except MISFITS as error:
        index, reason = _first_misfit(records, tp, schema)
        field = "" if index is None else _field_of_misfit(records[index], tp)
        where = f"field {field!r}: " if field else ""
        raise RecordMisfit(f"a record does not fit its type {type_name(tp)}: {where}{_misfit(reason or error)}", index) from error


@cached
def open_fields(tp: Any) -> dict[str, pa.DataType | None] | None:
    """Return the fields of a class whose types are known, or Any (None), so that values say them; None for other types."""
    tp = resolve(tp)
    outer = get_origin(tp) or tp
    if (fields := record_class(outer)) is None or not fields.is_whole:
        return None
    types = fields_of_type(tp)
    kinds = {name: None if kind is Any else arrow_type(kind) for name, kind in types.items()}
    return kinds if all(kind is not None or types[name] is Any for name, kind in kinds.items()) else None


def _inferred(records: Sequence[Any], tp: Any) -> pa.RecordBatch:
    """Return a batch of records of a class some of whose fields are of any type: the values say the types of the columns."""
    import pyarrow as pa

    columns = {}
    for name, kind in (open_fields(tp) or {}).items():
        values = [getattr(record, name) for record in records]
        for index, value in enumerate(values):
            if kind is None and type(value) not in _INFERRED:
                raise RecordMisfit(f"field {name!r}: no column type is known for {type(value).__name__}", index)
        try:
            columns[name] = pa.array(values, kind)
        except MISFITS as error:
            raise RecordMisfit(f"field {name!r}: {error}") from error
    return pa.RecordBatch.from_pydict(columns)


_INFERRED = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        str,
        bytes,
        datetime.datetime,
        datetime.date,
        datetime.time,
        datetime.timedelta,
        decimal.Decimal,
    }
)
"""The types whose values say the type of their column."""
MISFITS = (TypeError, ValueError, OverflowError, AttributeError, NotImplementedError)
"""The exceptions of pyarrow for values that it cannot convert. Its own ones derive from these."""


def _batch(records: Sequence[Any], tp: Any, schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [arrow_values(records, tp)] if columns_of(tp) is None else columns_of_records(records, resolve(tp))
    return pa.RecordBatch.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def _first_misfit(records: Sequence[Any], tp: Any, schema: pa.Schema) -> tuple[int | None, Exception | None]:
    """Return the index of the first record that does not fit, and the error; None if each of them fits alone."""

    def reason(low: int, high: int) -> Exception | None:
        try:
            _batch(records[low:high], tp, schema)
        except MISFITS as error:
            return error
        return None

    low, high = 0, len(records)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reason(low, middle) else (middle, high)
    error = reason(low, high)
    return (low, error) if error else (None, None)


def _field_of_misfit(record: Any, tp: Any) -> str:
    """Return the field in which a record does not fit, such as `place.zip`; empty if that is not one field."""
    import pyarrow as pa

    tp = value_type(tp)
    outer = get_origin(tp) or tp
    if type(record) is not outer:
        return ""
    for name in names_of(outer):
        kind, value = column_type(tp, name), getattr(record, name)
        try:
            pa.array(arrow_values([value], kind), arrow_type(kind))
        except MISFITS:
            within = _field_of_misfit(value, kind)
            return f"{name}.{within}" if within else name
    return ""


def _misfit(reason: Exception) -> str:
    """Return the text of a misfit. For large integers, the text of pyarrow does not say what to do."""
    if "int too large" in str(reason) or "too large to fit int64" in str(reason):
        return "an integer of more than 64 bits is too large for a column; declare it as str or decimal.Decimal"
    return str(reason)


def to_records(batch: pa.RecordBatch, tp: Any) -> list[Any]:
    """Return the records of a batch as Python objects of type `tp`, or as dicts (or bare values) if the type is unknown.

    Raises OverflowError for a value that Python's objects do not hold.
    """
    check_held(batch)
    tp = resolve(tp)
    outer = get_origin(tp) or tp
    if batch.schema.names == [VALUE] and columns_of(tp) is None:
        import pyarrow as pa

        if outer not in (dict, Mapping) or pa.types.is_map(batch.column(0).type):  # else a row with a column of this name
            return objects_of(batch.column(0), tp)
    if outer is ReaderRecord or batch.schema.names == list(READER_COLUMNS):
        values = objects_of(batch.column(2), (get_args(tp) or (Any,))[0])
        make = functools.partial(tuple.__new__, ReaderRecord)
        return list(map(make, zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), values, strict=True)))
    if (record := record_class(outer)) is not None:
        types = fields_of_type(tp)
        columns = [objects_of(batch.column(name), types[name]) for name in record.arguments]
        return record.made(outer, columns, batch.num_rows)
    plain: list[Any] = batch.to_pylist()
    return plain


def check_held(batch: pa.RecordBatch) -> None:
    """Raise OverflowError for the first value that Python's objects do not hold, such as a time after the year 9999."""
    from dagflow.arrow_types.held import why_not_held

    for field, column in zip(batch.schema, batch.columns, strict=True):
        wrong = why_not_held(column, "Python")
        if wrong:
            raise OverflowError(f"column {field.name!r} has {wrong}; no Python object holds it")


def objects_of(column: Any, tp: Any) -> list[Any]:
    """Return the values of a column as Python objects of type `tp`."""
    values = column.to_pylist()
    make = maker(tp)
    return values if make is None else [None if v is None else make(v) for v in values]


@cached
def maker(tp: Any) -> Callable[[Any], Any] | None:
    """Return a function from the plain form of a value of type `tp` to the value; None where both are the same."""
    tp = value_type(tp)
    outer = get_origin(tp) or tp
    if outer is ReaderRecord:
        return _reader_record_of(maker((get_args(tp) or (str,))[0]))
    if outer is list and get_args(tp):
        item = maker(get_args(tp)[0])
        return None if item is None else lambda values: [None if v is None else item(v) for v in values]
    if outer is dict:
        value = maker(get_args(tp)[1]) if get_args(tp) else None
        return dict if value is None else lambda pairs: {k: v if v is None else value(v) for k, v in dict(pairs).items()}
    if (rows := record_class(outer)) is not None:
        types, aliases = fields_of_type(tp), rows.arguments
        makers = {name: maker(types[name]) for name in aliases}
        fields = attrs.fields(outer) if attrs.has(outer) else ()
        added = {a.name for a in fields if ADDED in a.metadata or SPARSE in a.metadata}
        if added:
            return lambda value: outer(
                **{
                    aliases[n]: (value[n] if m is None or value[n] is None else m(value[n]))
                    for n, m in makers.items()
                    if n not in added or n in value
                }
            )
        return lambda value: outer(
            **{aliases[n]: (value[n] if m is None or value[n] is None else m(value[n])) for n, m in makers.items()}
        )
    return None


def _reader_record_of(make: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    def made(value: Any) -> Any:
        block_id, position, record = value.values() if isinstance(value, dict) else value
        return ReaderRecord(block_id, position, record if make is None or record is None else make(record))

    return made
