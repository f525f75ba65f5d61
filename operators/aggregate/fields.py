"""Keys and values of records, as properties name them: by functions of the record, or by names of columns.

An operator by key validates its properties with `a_key` and `a_field`. It returns `key_of_groups(self.by)` as its partition key
and `needed_of(…)` as the columns it needs. It gets keys and values of records from `getter(…)`, and puts keys through `one_nan`,
since each NaN differs from all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter, is_
from typing import Any, Literal, get_args

import attrs
import pyarrow as pa

from dagflow.arrow_types.held import why_not_held
from dagflow.errors import ColumnNotThere
from operators.aggregate.errors import KeyColumnRefused, ValueColumnRefused
from operators.names import computed_before

ResultScope = Literal["all", "window"]
"""The input that a result covers: all, or that of one window of the run."""
VALUE = "value"
_NAN = float("nan")
_BARE = frozenset({str, bytes, int, float, bool, type(None)})


def is_of_window(operator: Any) -> bool:
    """Return True if the results of an operator cover a window: the condition of handlers of records that nothing keeps."""
    return bool(operator.scope == "window")


def a_field(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate a property that is a function of the record, the name of a column, or None."""
    if value is not None and not callable(value) and not (isinstance(value, str) and value):
        raise TypeError(
            f"{attribute.name} must be a function of the record or the name of a column; got {value!r}{computed_before(value)}"
        )


def a_key(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate a property that is a function of the record, the name of a column, a tuple of names, or None."""
    for name in value if isinstance(value, tuple) and value else (value,):
        a_field(instance, attribute, name)


def key_type_problems(operator: object, by: object) -> Iterator[str]:
    """Yield the problem of an operator that is declared with keys of text, say, while `by` makes tuples: of one name, too."""
    cls, arguments = type(operator), get_args(operator.__dict__.get("__orig_class__"))
    variables = (variable.__name__ for variable in getattr(cls, "__parameters__", ()))
    key: Any = dict(zip(variables, arguments, strict=False)).get("K")
    if isinstance(by, tuple) and key in _BARE:
        alone = f"name it alone, not in a list or tuple: {by[0]}" if len(by) == 1 else "name one column"
        yield f"by={by!r} makes keys that are tuples, but {cls.__name__} is declared with keys of {key.__name__}: {alone}"


def getter(what: Callable[[Any], Any] | str | tuple[str, ...] | None) -> Callable[[Any], Any]:
    """Return a function that gets a field of a record: a tuple of fields for several names, None for None.

    >>> getter("real")(1.5), getter(("real", "imag"))(1j), getter("a")({"a": 3}), getter("value")("a bare value")
    (1.5, (0.0, 1.0), 3, 'a bare value')
    """
    if what is None:
        return no_key
    if isinstance(what, str):
        return _Named(what)
    if isinstance(what, tuple):
        return _Several(what)
    return what


def no_key(_: object) -> None:
    """Return None, the key of all records where there are no groups."""


def alone(by: Any) -> Any:
    """Return the name that is alone in a tuple; others as they are. Groups are the same, and their keys tuples."""
    return by[0] if isinstance(by, tuple) and len(by) == 1 else by


def key_of_groups(by: Any) -> Any:
    """Return the partition key of groups, also where all records are one group."""
    return no_key if by is None else alone(by)


def one_nan(key: Any) -> Any:
    """Return a key with the same NaN for every NaN, also within tuples, so that such keys are one key of a dict.

    >>> len({one_nan(float("nan")), one_nan(float("nan"))}), len({one_nan((float("nan"), 1)), one_nan((float("nan"), 1))})
    (1, 1)
    """
    if type(key) is tuple:
        parts = tuple(map(one_nan, key))
        return key if all(map(is_, parts, key)) else parts
    return key if key == key else _NAN


def check_columns(schema: pa.Schema, by: str, what: object, side: str = "") -> None:
    """Raise ColumnNotThere where the property named `by` names an unknown column. `side`: the one of several inputs."""
    for name in names_of(what):
        if name not in schema.names:
            raise ColumnNotThere.of(f"`{by}`", name, schema, side)


def check_keys(batch: pa.RecordBatch, by: object) -> None:
    """Raise ColumnNotThere, and KeyColumnRefused where a column cannot be part of a key."""
    check_columns(batch.schema, "by", by)
    for name in names_of(by):
        if pa.types.is_nested(kind := batch.column(name).type):
            raise KeyColumnRefused(column=name, type=str(kind))


def check_objects(batch: pa.RecordBatch, *what: object) -> None:
    """Raise OverflowError for a value of a key or a column that no Python object holds: at the end of a window it is too late."""
    for name in (name for each in what for name in names_of(each)):
        wrong = why_not_held(batch.column(name), "Python")
        if wrong:
            raise OverflowError(f"column {name!r} has {wrong}; no Python object holds it")


def check_values(schema: pa.Schema, of: object, merge: str, setting: str = "of") -> None:
    """Raise ColumnNotThere, and ValueColumnRefused where the values of a column cannot be merged: `sum`, `min`, `max`.

    `merge` is also `sort`, which pyarrow does: it has no order of lists. `setting`: the property that has the names.
    """
    check_columns(schema, setting, of)
    types: Any = pa.types
    for name in names_of(of):
        kind = schema.field(name).type
        is_time = types.is_timestamp(kind) or types.is_date(kind) or types.is_time(kind)
        has_none = types.is_nested(kind) if merge == "sort" else types.is_struct(kind) or types.is_map(kind)
        if has_none or (merge == "sum" and is_time):
            raise ValueColumnRefused(column=name, type=str(kind), lack="added up" if merge == "sum" else "compared")


class _Named:
    """The field of a name; `value` of a bare record is the record itself."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._of_object = attrgetter(name)

    def __call__(self, record: Any) -> Any:
        if type(record) in _BARE and self._name == VALUE:
            return record
        if isinstance(record, Mapping):
            return record[self._name]
        if self._name == VALUE and not hasattr(record, VALUE):
            return record
        return self._of_object(record)


@attrs.frozen
class _Several:
    """The fields of several names, as a tuple. Two with the same names are equal, since they are the same key."""

    names: tuple[str, ...]
    _parts: tuple[_Named, ...] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_parts", tuple(map(_Named, self.names)))

    def __call__(self, record: Any) -> Any:
        return tuple(part(record) for part in self._parts)


def names_of(what: object) -> tuple[str, ...]:
    """Return the names of columns in a property; none for a function or None."""
    return (what,) if isinstance(what, str) else what if isinstance(what, tuple) else ()


def needed_of(port: str, **properties: object) -> dict[str, tuple[str, ...]]:
    """Return the `needed_columns` of properties that are fields of the records of `input`.

    Not `value`: of a record that has no such field, it is the record itself.

    >>> needed_of("input", of="price", time=len), needed_of("input", of="value"), needed_of("partials", of="price")
    ({'of': ('price',), 'time': ()}, {'of': ()}, {})
    """
    if port != "input":
        return {}
    return {name: tuple(column for column in names_of(what) if column != VALUE) for name, what in properties.items()}
