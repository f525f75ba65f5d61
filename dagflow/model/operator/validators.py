"""Validators of properties and settings. Each message is a sentence that names the property, its value and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

import attrs

Validator = Callable[[object, "attrs.Attribute[Any]", Any], None]


def one_of(choices: Collection[Any]) -> Validator:
    """Return a validator of a property that is one of these. It raises ValueError.

    >>> @attrs.define
    ... class Sieve:
    ...     mesh: str = attrs.field(validator=one_of(("fine", "coarse")))
    >>> Sieve("big")
    Traceback (most recent call last):
    ...
    ValueError: mesh is 'big', but must be 'fine' or 'coarse'
    """

    def validate(_: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value not in choices:
            *most, last = map(repr, choices)
            known = f"{', '.join(most)} or {last}" if most else last
            raise ValueError(f"{attribute.name} is {value!r}, but must be {known}")

    return validate


def integer_from(least: int) -> Validator:
    """Return a validator of an integer that is `least` or more. It raises ValueError.

    >>> @attrs.define
    ... class Sieve:
    ...     layers: int = attrs.field(validator=integer_from(1))
    >>> Sieve(0)
    Traceback (most recent call last):
    ...
    ValueError: layers is 0, but must be an integer, 1 or more
    """

    def validate(_: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if type(value) is not int or value < least:
            raise ValueError(f"{attribute.name} is {value!r}, but must be an integer, {least} or more")

    return validate


def positive(_: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
    """Refuse 0 and less. None stands for a setting that was left out."""
    if value is not None and value <= 0:
        raise ValueError(f"{attribute.name} is {value!r}, but must be more than 0")


def not_negative(_: object, attribute: attrs.Attribute[Any], value: float) -> None:
    """Refuse less than 0."""
    if value < 0:
        raise ValueError(f"{attribute.name} is {value!r}, but cannot be negative")


def not_empty(_: object, attribute: attrs.Attribute[Any], value: str | None) -> None:
    """Refuse an empty string. None stands for a setting that was left out."""
    if value == "":
        raise ValueError(f"{attribute.name} is empty; leave it out, or say none")


_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def share_or_count(value: int | str) -> tuple[int | None, float | None]:
    """Return a limit as a count or as a share; the other one is None. Raises ValueError.

    >>> share_or_count(100), share_or_count("100"), share_or_count("0.5%")
    ((100, None), (100, None), (None, 0.005))
    """
    text = str(value).strip()
    if not isinstance(value, bool) and text.isascii() and text.isdigit():
        return int(text), None
    percent = _PERCENT.fullmatch(text)
    if percent is None or float(percent[1]) > 100:
        raise ValueError(f"{value!r} is neither a number of records, such as 100, nor a share of them, such as '1%'")
    return None, float(f"{percent[1]}e-2")


def records_or_share(_: object, attribute: attrs.Attribute[Any], value: int | str | None) -> None:
    """Validate a limit of records: a count, or a share in percent. None stands for no limit."""
    if value is not None:
        try:
            share_or_count(value)
        except ValueError as error:
            raise ValueError(f"{attribute.name}: {error}") from None


def share(_: object, attribute: attrs.Attribute[Any], value: float) -> None:
    """Validate a share: a number from 0 to 1."""
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise ValueError(f"{attribute.name} is {value!r}, but must be a share from 0 to 1, such as 0.01 for 1 %")
