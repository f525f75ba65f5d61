"""The two forms of records: Python objects and Arrow batches. A bare builtin is one column `value`."""

from __future__ import annotations

import datetime
import decimal
import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

import attrs

from dagflow.model.operator import own_annotations
from dagflow.model.records import ReaderRecord
from dagflow.model.types import Bindings, evaluated, substitute

if TYPE_CHECKING:
    import pyarrow as pa

VALUE = "value"


def arrow_type(tp: Any) -> pa.DataType | None:
    """The Arrow type of a Python type; None when it has none.

    >>> arrow_type(str), arrow_type(list[int]), arrow_type(object)
    (DataType(string), ListType(list<item: int64>), None)
    """
    import pyarrow as pa

    simple = {
        str: pa.string(),
        bytes: pa.binary(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        datetime.datetime: pa.timestamp("us"),
        datetime.date: pa.date32(),
        datetime.timedelta: pa.duration("us"),
        decimal.Decimal: None,
    }
    if inspect.isclass(tp) and tp in simple:
        return simple[tp]
    origin, arguments = get_origin(tp), get_args(tp)
    if origin in (Union, types.UnionType):
        members = [a for a in arguments if a is not type(None)]
        return arrow_type(members[0]) if len(members) == 1 else None
    if origin is list and arguments:
        item = arrow_type(arguments[0])
        return pa.list_(item) if item is not None else None
    if origin is dict and len(arguments) == 2 and arguments[0] is str:
        item = arrow_type(arguments[1])
        return pa.map_(pa.string(), item) if item is not None else None
    columns = columns_of(tp)
    return pa.struct(columns) if columns is not None else None


def columns_of(tp: Any) -> list[pa.Field] | None:
    """The columns of a class with fields (attrs, `ReaderRecord[T]`); None for other types."""
    import pyarrow as pa

    outer = get_origin(tp) or tp
    if outer is ReaderRecord:
        inner = arrow_type((get_args(tp) or (str,))[0])
        names = [("block_id", pa.int64()), ("position", pa.int64()), ("record", inner)]
        return [pa.field(n, t) for n, t in names] if inner is not None else None
    if not inspect.isclass(outer) or not attrs.has(outer):
        return None
    bindings: Bindings = dict(zip(getattr(outer, "__parameters__", ()), get_args(tp), strict=False))
    columns = []
    for field in attrs.fields(outer):
        owner = next((k for k in outer.__mro__ if field.name in own_annotations(k)), outer)
        kind = arrow_type(substitute(evaluated(field.type, owner), bindings))
        if kind is None or not field.init:
            return None
        columns.append(pa.field(field.name, kind))
    return columns


@functools.cache
def schema_of(tp: Any) -> pa.Schema | None:
    """The schema of a batch of records of type `tp`; None when the type has no Arrow form."""
    import pyarrow as pa

    columns = columns_of(tp)
    if columns is not None:
        return pa.schema(columns)
    kind = arrow_type(tp)
    return None if kind is None else pa.schema([pa.field(VALUE, kind)])


def to_batch(records: Sequence[Any], tp: Any) -> pa.RecordBatch:
    """A batch of records of type `tp`. Raises TypeError when the type has no Arrow form or a record does not fit."""
    import pyarrow as pa

    schema = schema_of(tp)
    if schema is None:
        raise TypeError(f"{tp} has no Arrow form")
    try:
        if schema.names == [VALUE] and columns_of(tp) is None:
            return pa.RecordBatch.from_arrays(
                [pa.array(_plain_all(records, schema.field(0)), schema.field(0).type)], schema=schema
            )
        if (get_origin(tp) or tp) is ReaderRecord:
            columns: Any = list(zip(*records, strict=True)) or [(), (), ()]
            columns[2] = _plain_all(columns[2], schema.field(2))
        else:
            columns = [[_plain(getattr(r, name)) for r in records] for name in schema.names]
        return pa.RecordBatch.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, AttributeError) as error:
        raise TypeError(f"a record does not fit its type: {error}") from error


def _plain_all(values: Sequence[Any], field: pa.Field) -> Sequence[Any]:
    """The values of a column as pyarrow takes them: nothing to do unless there may be objects in them."""
    import pyarrow as pa

    return [_plain(v) for v in values] if pa.types.is_nested(field.type) else values


def _plain(value: Any) -> Any:
    if attrs.has(type(value)):
        return {a.name: _plain(getattr(value, a.name)) for a in attrs.fields(type(value))}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def to_records(batch: pa.RecordBatch, tp: Any) -> list[Any]:
    """The records of a batch as Python objects of type `tp`; when nothing is known of the type, dicts (or bare values)."""
    outer = get_origin(tp) or tp
    if batch.schema.names == [VALUE] and columns_of(tp) is None:
        return _objects(batch.column(0), tp)
    if outer is ReaderRecord or batch.schema.names == ["block_id", "position", "record"]:
        record = _objects(batch.column(2), (get_args(tp) or (Any,))[0])
        make = functools.partial(tuple.__new__, ReaderRecord)
        return list(map(make, zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), record, strict=True)))
    if inspect.isclass(outer) and attrs.has(outer):
        makers = _makers(outer)
        columns = [_objects(batch.column(name), makers[name]) for name in makers]
        return list(map(lambda *values: outer(**dict(zip(_aliases(outer), values, strict=True))), *columns))
    rows: list[Any] = batch.to_pylist()
    return rows


def _objects(column: Any, tp: Any) -> list[Any]:
    values = column.to_pylist()
    make = maker(tp)
    return values if make is None else [None if v is None else make(v) for v in values]


def maker(tp: Any) -> Callable[[Any], Any] | None:
    """What makes an object of type `tp` of the plain dict or list that stands for it; None when it stands for itself."""
    outer = get_origin(tp) or tp
    if outer in (Union, types.UnionType):
        members = [a for a in get_args(tp) if a is not type(None)]
        return maker(members[0]) if len(members) == 1 else None
    if outer is list and get_args(tp):
        item = maker(get_args(tp)[0])
        return None if item is None else lambda values: [item(v) for v in values]
    if outer is dict:
        value = maker(get_args(tp)[1]) if get_args(tp) else None
        return dict if value is None else lambda pairs: {k: value(v) for k, v in dict(pairs).items()}
    if inspect.isclass(outer) and attrs.has(outer):
        makers = {name: maker(t) for name, t in _makers(outer).items()}
        aliases = dict(zip(makers, _aliases(outer), strict=True))
        return lambda value: outer(
            **{aliases[n]: (value[n] if m is None or value[n] is None else m(value[n])) for n, m in makers.items()}
        )
    return None


@functools.cache
def _makers(cls: type) -> dict[str, Any]:
    return {a.name: evaluated(a.type, cls) for a in attrs.fields(cls) if a.init}


@functools.cache
def _aliases(cls: type) -> list[str]:
    return [a.alias or a.name for a in attrs.fields(cls) if a.init]
