"""Values of stored records, compared with the types that their fields declare.

A seal says that a record is as it was written, not that dagflow has written it.
"""

from __future__ import annotations

import functools
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union, get_args, get_origin

import attrs

MAX_NUMBER = 1 << 256
"""Numbers of records are below this. Sums and products of a few of them are still floats."""

Check = Callable[[Any], bool]
_PLAIN = frozenset({str, bool, type(None)})


@functools.cache
def fits(tp: Any) -> Check:
    """Return a function that tells whether a value is of a declared type, with everything in it. Numbers are finite.

    >>> [fits(dict[str, float])(value) for value in ({"a": 1}, {"a": 1e308}, {"a": "b"}, [])]
    [True, False, False, False]
    """
    origin, arguments = get_origin(tp), get_args(tp)
    if origin in (Union, types.UnionType):
        checks = [fits(each) for each in arguments]
        return lambda value: any(check(value) for check in checks)
    if origin is typing.Literal:
        return lambda value: value in arguments
    if origin in (list, tuple, Sequence) and arguments:
        return _each(list | tuple, fits(arguments[0]), lambda value: value)
    if origin in (dict, Mapping) and arguments:
        return _each(Mapping, fits(arguments[1]), lambda value: value.values())
    if tp in (int, float):
        return is_number
    if isinstance(tp, type) and attrs.has(tp):
        checked = tuple(fields_of(tp).items())
        return lambda value: isinstance(value, tp) and all(check(getattr(value, name)) for name, check in checked)
    return functools.partial(_is_instance, tp) if tp in _PLAIN else lambda value: True


@functools.cache
def fields_of(cls: type) -> dict[str, Check]:
    """Return a check for each field of an attrs class."""
    hints = typing.get_type_hints(cls)
    return {field.name: fits(hints[field.name]) for field in attrs.fields(cls)}


def is_number(value: Any) -> bool:
    """Return whether a value is a number that times, sizes and positions can have.

    >>> [is_number(value) for value in (1, -2.5, True, 1e308, float("nan"), 10**90, "1")]
    [True, True, False, False, False, False, False]
    """
    return type(value) in (int, float) and (type(value) is int or math.isfinite(value)) and -MAX_NUMBER < value < MAX_NUMBER


def _each(kind: Any, check: Check, values: Callable[[Any], Any]) -> Check:
    return lambda value: isinstance(value, kind) and all(map(check, values(value)))


def _is_instance(tp: type, value: Any) -> bool:
    return isinstance(value, tp)
