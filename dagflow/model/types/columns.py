"""Records as columns of values that Arrow takes without a loss."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import inspect
from collections.abc import Callable, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Literal, TypeVar, get_args, get_origin

import attrs

from dagflow.model.types.comparison import evaluated, is_numpy, own_annotations
from dagflow.model.types.expressions import UNIONS, resolve, substitute, type_name
from dagflow.model.types.records import READER_COLUMNS, ReaderRecord

R = TypeVar("R")

LEAVES: dict[type, frozenset[type]] = {
    **{tp: frozenset({tp}) for tp in (str, bytes, int, bool, datetime.datetime, datetime.date, datetime.timedelta)},
    float: frozenset({float, int}),  # Arrow refuses integers that a float cannot hold
}
"""The types of columns without parts, and the classes of their values. A subclass would come back as its base."""


class RecordMisfit(TypeError):
    """A record that does not fit the type of its port. `index` is its place; None when no record is to blame alone."""

    def __init__(self, text: str, index: int | None = None) -> None:
        super().__init__(text)
        self.index = index


def value_type(tp: Any) -> Any:
    """Return the type of the values in a column: without None, aliases and new names; of a Literal the class of its values."""
    tp = resolve(tp)
    if get_origin(tp) in UNIONS:
        members = [a for a in map(resolve, get_args(tp)) if a is not type(None)]
        return value_type(members[0]) if len(members) == 1 else tp
    if get_origin(tp) is Literal:
        kinds = {type(value) for value in get_args(tp)} - {type(None)}
        return kinds.pop() if len(kinds) == 1 else tp
    return tp


def cached(function: Callable[[Any], R]) -> Callable[[Any], R]:
    """Cache a function of a type, except for types without a hash, such as Annotated with a list."""
    memo = functools.cache(function)

    @functools.wraps(function)
    def call(tp: Any) -> R:
        try:
            hash(tp)
        except TypeError:
            return function(tp)
        return memo(tp)

    return call


@attrs.frozen
class RecordClass:
    """A class whose objects are rows: of attrs, a dataclass, or a named tuple.

    Attributes:
        names: of its fields, which are the columns.
        arguments: by what names its constructor takes fields; those that it does not take are not there.
        is_positional: it takes them by position, too, in this order. That is five times as fast.
    """

    names: tuple[str, ...]
    arguments: dict[str, str]
    is_positional: bool

    @property
    def is_whole(self) -> bool:
        """True if its objects can be made of the values of their fields."""
        return len(self.arguments) == len(self.names)

    def made(self, cls: Any, columns: Sequence[Sequence[Any]], rows: int) -> list[Any]:
        """Return so many objects of a class, from the columns that its constructor takes."""
        if not columns:
            return [cls() for _ in range(rows)]
        if self.is_positional:
            return list(map(cls, *columns))
        return [cls(**dict(zip(self.arguments.values(), values, strict=True))) for values in zip(*columns, strict=True)]


@functools.cache
def record_class(cls: Any) -> RecordClass | None:
    """Return a class as one of rows; None where it has no fields that can be known.

    A dataclass or a named tuple whose constructor is its own, or does more than to take the fields, may not come back as it was.

    >>> record_class(ReaderRecord).names, record_class(int)
    (('block_id', 'position', 'record'), None)
    """
    if not inspect.isclass(cls):
        return None
    if attrs.has(cls):
        given = [field for field in attrs.fields(cls) if field.init]
        # a constructor of the user's own may take anything
        is_made = "__attrs_attrs__" in vars(cls) and "__attrs_init__" not in vars(cls)
        is_positional = is_made and not any(field.kw_only for field in given)
        names = tuple(field.name for field in attrs.fields(cls))
        return RecordClass(names, {field.name: field.alias or field.name for field in given}, is_positional)
    if dataclasses.is_dataclass(cls):
        fields = dataclasses.fields(cls)
        taken = list(inspect.signature(cls.__init__).parameters)[1:]
        if not _is_generated(cls.__init__) or hasattr(cls, "__post_init__") or {*taken} != {field.name for field in fields}:
            return None
        arguments = {field.name: field.name for field in fields if field.init}
        return RecordClass(tuple(field.name for field in fields), arguments, not any(field.kw_only for field in fields))
    named: Any = getattr(cls, "_fields", None) if issubclass(cls, tuple) else None
    if not isinstance(named, tuple) or not _is_generated(cls.__new__):
        return None
    return RecordClass(named, dict(zip(named, named, strict=True)), is_positional=True)


def _is_generated(function: Any) -> bool:
    return inspect.isfunction(function) and function.__code__.co_filename.startswith("<")


@cached
def fields_of_type(tp: Any) -> dict[str, Any]:
    """Return the fields of a class of rows, by name, with their types."""
    outer = get_origin(tp) or tp
    bindings: dict[TypeVar, Any] = dict(zip(getattr(outer, "__parameters__", ()), get_args(tp), strict=False))
    types, given = {}, {field.name: field.type for field in attrs.fields(outer)} if attrs.has(outer) else {}
    for name in names_of(outer):
        owner = owner_of(outer, name)
        types[name] = substitute(evaluated(given.get(name, own_annotations(owner).get(name, Any)), owner), bindings)
    return types


def names_of(cls: Any) -> tuple[str, ...]:
    """Return the names of the fields of a class of rows; none of another one."""
    rows = record_class(cls)
    return () if rows is None else rows.names


def owner_of(cls: type, field: str) -> type:
    """Return the class, of a class and its bases, that annotates a field. Its module has the names of the annotation."""
    return next((k for k in cls.__mro__ if field in own_annotations(k)), cls)


def column_type(tp: Any, name: str) -> Any:
    """Return the type of a column of records of type `tp`; Any if it is unknown.

    >>> column_type(ReaderRecord[str], "record"), column_type(int, "value"), column_type(int, "other")
    (<class 'str'>, <class 'int'>, typing.Any)
    """
    tp = resolve(tp)
    outer = get_origin(tp) or tp
    if outer is ReaderRecord:
        return dict(zip(READER_COLUMNS, (int, int, (get_args(tp) or (str,))[0]), strict=True)).get(name, Any)
    if record_class(outer) is not None:
        return fields_of_type(tp).get(name, Any)
    return tp if name == "value" else Any


def columns_of_records(records: Sequence[Any], tp: Any) -> list[Sequence[Any]]:
    """Return the columns of records of a class with fields. Raises TypeError for a record that is not exactly of the class."""
    outer = get_origin(tp) or tp
    _exactly(records, frozenset({outer}), tp)
    if outer is ReaderRecord:
        block_ids, positions, values = zip(*records, strict=True) if records else ((), (), ())
        return [arrow_values(block_ids, int), arrow_values(positions, int), arrow_values(values, (get_args(tp) or (str,))[0])]
    return [arrow_values(list(map(attrgetter(name), records)), kind) for name, kind in fields_of_type(tp).items()]


def arrow_values(values: Sequence[Any], tp: Any) -> Sequence[Any]:
    """Return values of type `tp` (or None) as pyarrow takes them. Raises TypeError for one that would come back as another."""
    tp = value_type(tp)
    outer, arguments = get_origin(tp) or tp, get_args(tp)
    if outer in LEAVES:
        return _leaves(values, outer)
    present = [v for v in values if v is not None]
    _exactly(present, frozenset({outer}), tp)
    converted: Sequence[Any]
    if outer is list:
        converted = _regrouped(present, arrow_values(list(chain.from_iterable(present)), arguments[0]))
    elif outer is dict:
        arrow_values(list(chain.from_iterable(present)), arguments[0])
        within = arrow_values(list(chain.from_iterable(v.values() for v in present)), arguments[1])
        parts = _regrouped(present, within)
        converted = [dict(zip(v, part, strict=True)) for v, part in zip(present, parts, strict=True)]
    elif record_class(outer) is not None:
        names = names_of(outer)
        rows = zip(*columns_of_records(present, tp), strict=True) if names else [() for _ in present]
        converted = [dict(zip(names, row, strict=True)) for row in rows]
    else:
        return values
    if len(present) == len(values):
        return converted
    left = iter(converted)
    return [None if v is None else next(left) for v in values]


def _regrouped(groups: Sequence[Any], items: Sequence[Any]) -> list[list[Any]]:
    """Return the items in groups of the same lengths as the original ones."""
    left = iter(items)
    return [list(islice(left, len(group))) for group in groups]


def _leaves(values: Sequence[Any], tp: type) -> Sequence[Any]:
    allowed = LEAVES[tp] | {type(None)}
    others = set(map(type, values)) - allowed
    if any(map(is_numpy, others)):
        values = [v.item() if is_numpy(type(v)) else v for v in values]
    if others:
        _exactly(values, allowed, tp)
    if tp is datetime.datetime and any(v is not None and v.tzinfo is not None for v in values):
        raise TypeError(
            "a datetime with a time zone would lose it in a batch: pass on .astimezone(datetime.UTC).replace(tzinfo=None), "
            "or its .isoformat() as text"
        )
    return values


def _exactly(values: Sequence[Any], allowed: frozenset[type], tp: Any) -> None:
    others = set(map(type, values)) - allowed
    if not others:
        return
    other = next(type(v) for v in values if type(v) in others)
    wanted = type_name(tp)
    if other is not bool and any(issubclass(other, k) for k in allowed):
        raise TypeError(f"{type_name(other)} is a subclass of {wanted}: in a batch it would become a plain {wanted}")
    raise TypeError(f"{type_name(other)} is not {wanted}")
