"""Validators and converters for the options of formats. Their errors name the option, and the values that it may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs


def must_be(expected: str, test: Callable[[Any], bool]) -> Callable[[object, attrs.Attribute[Any], Any], None]:
    """Return a validator of an option for whose values `test` holds. It raises TypeError.

    >>> @attrs.define
    ... class Sieve:
    ...     mesh: str = attrs.field(validator=a_text)
    >>> Sieve(5)
    Traceback (most recent call last):
    ...
    TypeError: mesh is 5, but must be a string
    """

    def validate(_: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if not test(value):
            raise TypeError(f"{attribute.name} is {value!r}, but must be {expected}")

    return validate


def _is_type(value: Any) -> bool:
    return isinstance(value, str) or type(value).__module__.partition(".")[0] == "pyarrow"


def _is_mapping(value: Any, test: Callable[[Any], bool]) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) and test(each) for name, each in value.items())


a_text = must_be("a string", lambda value: isinstance(value, str))
a_text_or_none = must_be("a string or None", lambda value: value is None or isinstance(value, str))
an_integer_or_none = must_be(
    "an integer or None", lambda value: value is None or (isinstance(value, int) and not isinstance(value, bool))
)
types_by_name = must_be("a mapping of names to types", lambda value: _is_mapping(value, _is_type))
texts_by_name = must_be("a mapping of names to strings", lambda value: _is_mapping(value, lambda each: isinstance(each, str)))


def texts(option: str, value: Any) -> tuple[str, ...]:
    """Return a list of strings as a tuple. A single string is refused: its list was forgotten. Raises TypeError."""
    if isinstance(value, str):
        raise TypeError(f"{option} is the string {value!r}, but must be a list of strings: [{value!r}]")
    given: tuple[Any, ...] = tuple(value) if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping) else (None,)
    if not all(isinstance(each, str) for each in given):
        raise TypeError(f"{option} is {value!r}, but must be a list of strings")
    return given
