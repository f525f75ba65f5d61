"""Checks of records against the types of their ports, as `run_operator` always makes them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, Union, get_args, get_origin

from dagflow.model.errors.running import WrongRecordType
from dagflow.model.types.comparison import is_variable, type_name
from dagflow.model.types.records import ReaderRecord, excerpt


def type_check(port: str, tp: Any, doing: str = "was emitted") -> Callable[[Any], None] | None:
    """Return a function that raises WrongRecordType for a record that is not of type `tp`; None when everything is."""
    if tp is Any or tp is object:
        return None

    def check(record: Any) -> None:
        if type(record) is not tp and not fits(record, tp):
            raise WrongRecordType(port, type_name(tp), _name_of(record), excerpt(record), doing)

    return check


def _name_of(record: Any) -> str:
    if isinstance(record, ReaderRecord):
        return f"ReaderRecord[{type_name(type(record.record))}]"
    return type_name(type(record))


def fits(value: Any, tp: Any) -> bool:
    """Return whether a value is of a type, elements of containers included.

    >>> fits([1, 2], list[int]), fits(["a"], list[int]), fits(True, int), fits(1, float)
    (True, False, True, True)
    """
    if tp is Any or tp is object or is_variable(tp):
        return True
    origin, arguments = get_origin(tp), get_args(tp)
    if tp is None or tp is type(None):
        return value is None
    if origin in (Union, types.UnionType):
        return any(fits(value, member) for member in arguments)
    outer = origin or tp
    if outer is float and type(value) is int:
        return True
    if not inspect.isclass(outer):
        return True
    if not isinstance(value, outer):
        return False
    inside: Any = value
    if outer is ReaderRecord and arguments:
        return fits(inside.record, arguments[0])
    if outer in (list, set, frozenset) and arguments:
        return all(fits(v, arguments[0]) for v in inside)
    if outer is dict and arguments:
        return all(fits(k, arguments[0]) and fits(v, arguments[1]) for k, v in inside.items())
    if outer is tuple and arguments and arguments[-1] is not Ellipsis:
        return len(inside) == len(arguments) and all(fits(v, a) for v, a in zip(inside, arguments, strict=True))
    return True
